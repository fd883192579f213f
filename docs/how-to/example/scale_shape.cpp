#include <torch/torch.h>
#include "torchneuron/register.h"

torch::Tensor scale_shape(torch::Tensor t_in, double factor) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}

NEURON_LIBRARY(my_ops, m) {
  m.def("scale", &scale_shape, "scale");
}
