// ReLU and its gradient, one element at a time: the plainest way, and by far the slowest. Every access goes to HBM.
// An element accessor knows its tensor's rank when it is compiled: matrices here, [batch, features].
#include <torch/torch.h>

torch::Tensor relu_forward(const torch::Tensor& input) {
  torch::Tensor output = torch::empty(input.sizes(), torch::kFloat);
  auto in = input.accessor<float, 2>();
  auto out = output.accessor<float, 2>();
  for (int64_t row = 0; row < input.sizes()[0]; row++) {
    for (int64_t column = 0; column < input.sizes()[1]; column++) {
      const float value = in[row][column];
      out[row][column] = value <= 0.0f ? 0.0f : value;  // NaN is not <= 0, and stays
    }
  }
  return output;
}

torch::Tensor relu_backward(const torch::Tensor& gradient, const torch::Tensor& input) {
  torch::Tensor output = torch::empty(input.sizes(), torch::kFloat);
  auto grad = gradient.accessor<float, 2>();
  auto in = input.accessor<float, 2>();
  auto out = output.accessor<float, 2>();
  for (int64_t row = 0; row < input.sizes()[0]; row++) {
    for (int64_t column = 0; column < input.sizes()[1]; column++) {
      out[row][column] = in[row][column] <= 0.0f ? 0.0f : grad[row][column];
    }
  }
  return output;
}
