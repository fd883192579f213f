// run(x(1000))
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>

torch::Tensor kernel(const torch::Tensor& t_in) {
  return torch::abs(t_in);
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
