// Twice the elements, in chunks through TCM.
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>

torch::Tensor kernel(const torch::Tensor& t_in, double factor) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  const size_t chunk = 1024;
  size_t count = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * chunk);
  if (buffer == nullptr) return t_out;
  for (size_t start = 0; start < count; start += chunk) {
    size_t size = std::min(chunk, count - start);
    t_in.tcm_accessor().tensor_to_tcm<float>(buffer, start, size);
    for (size_t i = 0; i < size; i++) {
      buffer[i] = buffer[i] * factor;
    }
    t_out.tcm_accessor().tcm_to_tensor<float>(buffer, start, size);
  }
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in, double factor) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
