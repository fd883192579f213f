// run(x(70000))
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>

torch::Tensor kernel(const torch::Tensor& t_in) {
  return torch::zeros({t_in.numel(), 1, 1, 1}, torch::kFloat);
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros({t_in.numel(), 1, 1, 1}, torch::kFloat);
}
