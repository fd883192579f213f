// ReLU and its gradient on all GpSimd cores, each with a part of the elements of its own. On several cores the output
// is the tensor of get_dst_tensor(), and only TCM accessors may be used.
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

// The elements [first, end) of the core that asks. The first cores take one more where the count is no multiple of
// the number of cores, so no part begins where another one ends early; with few elements the last cores have none.
struct Part {
  size_t first;
  size_t end;
  explicit Part(size_t count) {
    const size_t core = get_cpu_id();
    const size_t each = count / get_cpu_count();
    const size_t rest = count % get_cpu_count();
    first = core * each + (core < rest ? core : rest);
    end = first + each + (core < rest ? 1 : 0);
  }
};

}  // namespace

torch::Tensor relu_forward(const torch::Tensor& input) {
  torch::Tensor output = get_dst_tensor();
  auto in = input.tcm_accessor();
  auto out = output.tcm_accessor();
  TcmFloats values;
  const Part part(input.numel());
  for (size_t start = part.first; start < part.end; start += CHUNK) {
    const size_t count = chunk_at(start, part.end);
    in.tensor_to_tcm<float>(values.data, start, count);
    for (size_t i = 0; i < count; i++) {
      if (values.data[i] <= 0.0f) values.data[i] = 0.0f;  // NaN is not <= 0, and stays
    }
    out.tcm_to_tensor<float>(values.data, start, count);
  }
  return output;
}

torch::Tensor relu_backward(const torch::Tensor& gradient, const torch::Tensor& input) {
  torch::Tensor output = get_dst_tensor();
  auto grad = gradient.tcm_accessor();
  auto in = input.tcm_accessor();
  auto out = output.tcm_accessor();
  TcmFloats gradients;
  TcmFloats values;
  const Part part(input.numel());
  for (size_t start = part.first; start < part.end; start += CHUNK) {
    const size_t count = chunk_at(start, part.end);
    grad.tensor_to_tcm<float>(gradients.data, start, count);
    in.tensor_to_tcm<float>(values.data, start, count);
    for (size_t i = 0; i < count; i++) {
      if (values.data[i] <= 0.0f) gradients.data[i] = 0.0f;
    }
    out.tcm_to_tensor<float>(gradients.data, start, count);
  }
  return output;
}
