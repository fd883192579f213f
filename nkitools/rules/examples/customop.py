"""The examples of the rules of custom operators.

Each is the C++ of a kernel and its shape function, after ``<torch/torch.h>`` and ``<neuron/neuron-utils.hpp>``. The
first line says how it is loaded and called: ``run(...)`` has the arguments, in which ``x(n)`` is an array of n float32.
"""

CO101_BAD = """\
// run(x(5000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  size_t num_elem = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * num_elem);
  t_in.tcm_accessor().tensor_to_tcm<float>(buffer, 0, num_elem);  // CO101
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, 0, num_elem);
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO101_GOOD = """\
// run(x(5000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  size_t num_elem = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * 1024);
  if (buffer == nullptr) return t_out;
  for (size_t i = 0; i < num_elem; i += 1024) {
    size_t size = std::min(num_elem - i, (size_t)1024);
    t_in.tcm_accessor().tensor_to_tcm<float>(buffer, i, size);
    t_out.tcm_accessor().tcm_to_tensor<float>(buffer, i, size);
  }
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO102_BAD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  size_t num_elem = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * num_elem);  // CO102
  if (buffer == nullptr) return t_out;
  t_in.tcm_accessor().tensor_to_tcm<float>(buffer, 0, num_elem);
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, 0, num_elem);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO102_GOOD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  size_t num_elem = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * num_elem);
  if (buffer == nullptr) return t_out;
  t_in.tcm_accessor().tensor_to_tcm<float>(buffer, 0, num_elem);
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, 0, num_elem);
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO103_BAD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  size_t num_elem = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * num_elem);
  if (buffer == nullptr) return t_out;
  t_in.tcm_accessor().tensor_to_tcm<float>(buffer, 0, num_elem);
  for (size_t i = 0; i <= num_elem; i++) {
    buffer[i] = buffer[i] > 0 ? buffer[i] : 0;  // CO103
  }
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, 0, num_elem);
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO103_GOOD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  size_t num_elem = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * num_elem);
  if (buffer == nullptr) return t_out;
  t_in.tcm_accessor().tensor_to_tcm<float>(buffer, 0, num_elem);
  for (size_t i = 0; i < num_elem; i++) {
    buffer[i] = buffer[i] > 0 ? buffer[i] : 0;
  }
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, 0, num_elem);
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO104_BAD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::zeros(t_in.sizes(), torch::kFloat);
  size_t num_elem = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * 300);
  if (buffer == nullptr) return t_out;
  for (size_t i = 0; i < num_elem; i += 300) {
    size_t size = 300;
    t_in.tcm_accessor().tensor_to_tcm<float>(buffer, i, size);  // CO104
    t_out.tcm_accessor().tcm_to_tensor<float>(buffer, i, std::min(num_elem - i, size));
  }
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO104_GOOD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::zeros(t_in.sizes(), torch::kFloat);
  size_t num_elem = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * 300);
  if (buffer == nullptr) return t_out;
  for (size_t i = 0; i < num_elem; i += 300) {
    size_t size = std::min(num_elem - i, (size_t)300);
    t_in.tcm_accessor().tensor_to_tcm<float>(buffer, i, size);
    t_out.tcm_accessor().tcm_to_tensor<float>(buffer, i, size);
  }
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO105_BAD = """\
// multicore=True, run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = get_dst_tensor();
  size_t num_elem = t_in.numel();
  size_t part = (num_elem + get_cpu_count() - 1) / get_cpu_count();
  size_t first = get_cpu_id() * (part - 1);
  if (first >= num_elem) return t_out;
  size_t size = get_cpu_id() == get_cpu_count() - 1 ? num_elem - first : part;
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * size);
  if (buffer == nullptr) return t_out;
  t_in.tcm_accessor().tensor_to_tcm<float>(buffer, first, size);
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, first, size);  // CO105
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO105_GOOD = """\
// multicore=True, run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = get_dst_tensor();
  size_t num_elem = t_in.numel();
  size_t part = (num_elem + get_cpu_count() - 1) / get_cpu_count();
  size_t first = get_cpu_id() * part;
  if (first >= num_elem) return t_out;
  size_t size = std::min(part, num_elem - first);
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * size);
  if (buffer == nullptr) return t_out;
  t_in.tcm_accessor().tensor_to_tcm<float>(buffer, first, size);
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, first, size);
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO106_BAD = """\
// multicore=True, run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = get_dst_tensor();  // CO106
  size_t num_elem = t_in.numel();
  size_t part = (num_elem - 1) / get_cpu_count();
  size_t first = get_cpu_id() * part;
  if (first >= num_elem) return t_out;
  size_t size = std::min(part, num_elem - first);
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * size);
  if (buffer == nullptr) return t_out;
  t_in.tcm_accessor().tensor_to_tcm<float>(buffer, first, size);
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, first, size);
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO106_GOOD = """\
// multicore=True, run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = get_dst_tensor();
  size_t num_elem = t_in.numel();
  size_t part = (num_elem + get_cpu_count() - 1) / get_cpu_count();
  size_t first = get_cpu_id() * part;
  if (first >= num_elem) return t_out;
  size_t size = std::min(part, num_elem - first);
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * size);
  if (buffer == nullptr) return t_out;
  t_in.tcm_accessor().tensor_to_tcm<float>(buffer, first, size);
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, first, size);
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO107_BAD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  return torch::abs(t_in);
}

torch::Tensor shape(torch::Tensor t_in) {  // CO107
  return torch::zeros({t_in.numel(), 1}, torch::kFloat);
}
"""

CO107_GOOD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  return torch::abs(t_in);
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO116_BAD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  size_t num_elem = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * num_elem);
  if (buffer == nullptr) return t_out;
  t_in.tcm_accessor().tensor_to_tcm<float>(buffer, 0, num_elem);
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, 0, num_elem);
  torch::neuron::tcm_free(buffer);
  torch::neuron::tcm_free(buffer);  // CO116
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO116_GOOD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  size_t num_elem = t_in.numel();
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * num_elem);
  if (buffer == nullptr) return t_out;
  t_in.tcm_accessor().tensor_to_tcm<float>(buffer, 0, num_elem);
  t_out.tcm_accessor().tcm_to_tensor<float>(buffer, 0, num_elem);
  torch::neuron::tcm_free(buffer);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""
