// The form of the result, which the compiler asks for, and the operator's name.
#include <torch/torch.h>
#include "torchneuron/register.h"

torch::Tensor template_name_shape(torch::Tensor t_in, double factor) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}

NEURON_LIBRARY(template_name_ops, m) {
  m.def("template_name", &template_name_shape, "template_name");
}
