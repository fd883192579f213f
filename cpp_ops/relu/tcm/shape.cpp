// The shape of the input, for both.
#include <torch/torch.h>
#include "torchneuron/register.h"

torch::Tensor relu_forward_shape(const torch::Tensor& input) {
  return torch::zeros(input.sizes(), torch::kFloat);
}

torch::Tensor relu_backward_shape(const torch::Tensor& gradient, const torch::Tensor& input) {
  return torch::zeros(input.sizes(), torch::kFloat);
}

NEURON_LIBRARY(relu_tcm, m) {
  m.def("relu_forward", &relu_forward_shape, "relu_forward");
  m.def("relu_backward", &relu_backward_shape, "relu_backward");
}
