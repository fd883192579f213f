// The sum of each row, by accessors.
#include <torch/torch.h>

torch::Tensor kernel(const torch::Tensor& t_in) {
  size_t rows = t_in.sizes()[0];
  size_t columns = t_in.sizes()[1];
  torch::Tensor t_out = torch::zeros({(int64_t)rows}, torch::kFloat);
  auto in = t_in.accessor<float, 2>();
  auto out = t_out.accessor<float, 1>();
  for (size_t i = 0; i < rows; i++) {
    float sum = 0;
    for (size_t j = 0; j < columns; j++) {
      sum += in[i][j];
    }
    out[i] = sum;
  }
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros({t_in.sizes()[0]}, torch::kFloat);
}
