// run(x(1000))
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>

torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  auto source = t_in.read_stream_accessor<float>();
  auto result = t_out.write_stream_accessor<float>();
  float next = source.read();
  for (int64_t i = 0; i < t_in.numel(); i++) {
    result.write(2 * next);
    if (i + 1 < t_in.numel()) next = source.read();
  }
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
