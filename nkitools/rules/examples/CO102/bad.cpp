// run(x(1000))
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>

torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  size_t num_elem = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * num_elem);  // CO102
  if (buffer == nullptr) return t_out;
  t_in.tcm_accessor().tensor_to_tcm<float>(buffer, 0, num_elem);
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, 0, num_elem);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
