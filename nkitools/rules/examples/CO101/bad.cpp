// run(x(5000))
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>

torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  size_t num_elem = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * num_elem);
  t_in.tcm_accessor().tensor_to_tcm<float>(buffer, 0, num_elem);  // CO101
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, 0, num_elem);
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
