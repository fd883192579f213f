// run(x(1000), 2.0)
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>

torch::Tensor kernel(const torch::Tensor& t_in, double factor) {
  return torch::mul(t_in, factor);
}

torch::Tensor shape(torch::Tensor t_in, double factor) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
