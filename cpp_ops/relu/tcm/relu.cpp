// ReLU and its gradient through TCM: bursts of many elements instead of one access for each. A TCM accessor sees its
// tensor flattened, so that any rank will do.
#include <stdlib.h>
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>

namespace {

constexpr size_t CHUNK = 1024;  // floats; the gradient's two buffers take half of the 16384 bytes of a core

// TCM that is given back on every way out of the kernel.
struct TcmFloats {
  float* data;
  TcmFloats() : data(static_cast<float*>(torch::neuron::tcm_malloc(CHUNK * sizeof(float)))) {
    if (data == nullptr) abort();  // an output that nobody computed must not come back as if it was one
  }
  ~TcmFloats() { torch::neuron::tcm_free(data); }
  TcmFloats(const TcmFloats&) = delete;
  TcmFloats& operator=(const TcmFloats&) = delete;
};

size_t chunk_at(size_t start, size_t end) { return end - start < CHUNK ? end - start : CHUNK; }

}  // namespace

torch::Tensor relu_forward(const torch::Tensor& input) {
  torch::Tensor output = torch::empty(input.sizes(), torch::kFloat);
  auto in = input.tcm_accessor();
  auto out = output.tcm_accessor();
  TcmFloats values;
  const size_t end = input.numel();
  for (size_t start = 0; start < end; start += CHUNK) {
    const size_t count = chunk_at(start, end);
    in.tensor_to_tcm<float>(values.data, start, count);
    for (size_t i = 0; i < count; i++) {
      if (values.data[i] <= 0.0f) values.data[i] = 0.0f;  // NaN is not <= 0, and stays
    }
    out.tcm_to_tensor<float>(values.data, start, count);
  }
  return output;
}

torch::Tensor relu_backward(const torch::Tensor& gradient, const torch::Tensor& input) {
  torch::Tensor output = torch::empty(input.sizes(), torch::kFloat);
  auto grad = gradient.tcm_accessor();
  auto in = input.tcm_accessor();
  auto out = output.tcm_accessor();
  TcmFloats gradients;
  TcmFloats values;
  const size_t end = input.numel();
  for (size_t start = 0; start < end; start += CHUNK) {
    const size_t count = chunk_at(start, end);
    grad.tensor_to_tcm<float>(gradients.data, start, count);
    in.tensor_to_tcm<float>(values.data, start, count);
    for (size_t i = 0; i < count; i++) {
      if (values.data[i] <= 0.0f) gradients.data[i] = 0.0f;
    }
    out.tcm_to_tensor<float>(gradients.data, start, count);
  }
  return output;
}
