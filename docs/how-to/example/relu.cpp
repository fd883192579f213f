#include <torch/torch.h>

torch::Tensor relu(const torch::Tensor& input) {
  torch::Tensor output = torch::empty(input.sizes(), torch::kFloat);
  auto in = input.accessor<float, 2>();
  auto out = output.accessor<float, 2>();
  for (int64_t row = 0; row < input.sizes()[0]; row++) {
    for (int64_t column = 0; column < input.sizes()[1]; column++) {
      const float value = in[row][column];
      out[row][column] = value > 0.0f ? value : 0.0f;
    }
  }
  return output;
}
