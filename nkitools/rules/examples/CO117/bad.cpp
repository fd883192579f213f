// run(x(1000))
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>

torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::zeros(t_in.sizes(), torch::kFloat);
  auto t_in_acc = t_in.accessor<float, 2>();  // CO117
  auto t_out_acc = t_out.accessor<float, 1>();
  for (int64_t i = 0; i < t_in.numel(); i++) {
    t_out_acc[i] = t_in_acc[i][0];
  }
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
