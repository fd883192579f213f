#include <torch/torch.h>
#include "torchneuron/register.h"

torch::Tensor relu_shape(const torch::Tensor& input) { return torch::zeros(input.sizes(), torch::kFloat); }

NEURON_LIBRARY(relu, m) { m.def("relu", &relu_shape, "relu"); }
