// run(x(1000))
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>

torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::zeros(t_in.sizes(), torch::kFloat);
  size_t num_elem = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * 300);
  if (buffer == nullptr) return t_out;
  for (size_t i = 0; i < num_elem; i += 300) {
    size_t size = 300;
    t_in.tcm_accessor().tensor_to_tcm<float>(buffer, i, size);  // CO104
    t_out.tcm_accessor().tcm_to_tensor<float>(buffer, i, std::min(num_elem - i, size));
  }
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
