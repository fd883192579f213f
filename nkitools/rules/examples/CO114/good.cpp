// run(x(1000))
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>

torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  float rows[1000];
  auto t_in_acc = t_in.accessor<float, 1>();
  auto t_out_acc = t_out.accessor<float, 1>();
  for (int i = 0; i < 1000; i++) rows[i] = t_in_acc[i];
  for (int i = 0; i < 1000; i++) t_out_acc[i] = rows[999 - i];
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
