// multicore=True, run(x(1000))
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>

torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = get_dst_tensor();
  auto t_out_acc = t_out.accessor<float, 1>();  // CO109
  for (int64_t i = get_cpu_id(); i < t_in.numel(); i += get_cpu_count()) {
    t_out_acc[i] = 1;
  }
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
