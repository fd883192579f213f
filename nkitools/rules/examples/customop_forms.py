"""The examples of the rules of custom operators that are about signatures, accessors and modes (see customop.py)."""

CO108_BAD = """\
// multicore=True, run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {  // CO108
  return torch::abs(t_in);
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO108_GOOD = """\
// multicore=True, run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = get_dst_tensor();
  if (get_cpu_id() == 0) torch::abs_out(t_out, t_in);
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO109_BAD = """\
// multicore=True, run(x(1000))
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
"""

CO109_GOOD = """\
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

CO110_BAD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::zeros(t_in.sizes(), torch::kFloat);
  auto t_in_acc = t_in.accessor<int32_t, 1>();  // CO110
  auto t_out_acc = t_out.accessor<float, 1>();
  for (int64_t i = 0; i < t_in.numel(); i++) {
    t_out_acc[i] = t_in_acc[i];
  }
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO110_GOOD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::zeros(t_in.sizes(), torch::kFloat);
  auto t_in_acc = t_in.accessor<float, 1>();
  auto t_out_acc = t_out.accessor<float, 1>();
  for (int64_t i = 0; i < t_in.numel(); i++) {
    t_out_acc[i] = t_in_acc[i];
  }
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO111_BAD = """\
// run(x(70000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  return torch::zeros({t_in.numel(), 1, 1, 1, 1}, torch::kFloat);
}

torch::Tensor shape(torch::Tensor t_in) {  // CO111
  return torch::zeros({t_in.numel(), 1, 1, 1, 1}, torch::kFloat);
}
"""

CO111_GOOD = """\
// run(x(70000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  return torch::zeros({t_in.numel(), 1, 1, 1}, torch::kFloat);
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros({t_in.numel(), 1, 1, 1}, torch::kFloat);
}
"""

CO112_BAD = """\
// run(x(1000), 2.0)
torch::Tensor kernel(const torch::Tensor& t_in, float factor) {  // CO112
  return torch::mul(t_in, factor);
}

torch::Tensor shape(torch::Tensor t_in, float factor) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO112_GOOD = """\
// run(x(1000), 2.0)
torch::Tensor kernel(const torch::Tensor& t_in, double factor) {
  return torch::mul(t_in, factor);
}

torch::Tensor shape(torch::Tensor t_in, double factor) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO113_BAD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  auto source = t_in.read_stream_accessor<float>();
  auto result = t_out.write_stream_accessor<float>();
  float next = source.read();
  for (int64_t i = 0; i < t_in.numel(); i++) {
    result.write(2 * next);
    next = source.read();  // CO113
  }
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO113_GOOD = """\
// run(x(1000))
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
"""

CO114_BAD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {  // CO114
  torch::Tensor t_out = torch::empty(t_in.sizes(), torch::kFloat);
  float rows[4000];
  auto t_in_acc = t_in.accessor<float, 1>();
  auto t_out_acc = t_out.accessor<float, 1>();
  for (int i = 0; i < 1000; i++) rows[i] = t_in_acc[i];
  for (int i = 0; i < 1000; i++) t_out_acc[i] = rows[999 - i];
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""

CO114_GOOD = """\
// run(x(1000))
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
"""

CO115_BAD = """\
// multicore=True, run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = get_dst_tensor();
  size_t num_elem = t_in.numel();
  size_t part = (num_elem + get_cpu_count() - 1) / get_cpu_count();
  size_t first = get_cpu_id() * part;
  if (first >= num_elem) return t_out;
  size_t size = std::min(part, num_elem - first);
  printf("%d elements from %d on\\n", (int)size, (int)first);  // CO115
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

CO115_GOOD = """\
// multicore=True, run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = get_dst_tensor();
  size_t num_elem = t_in.numel();
  size_t part = (num_elem + get_cpu_count() - 1) / get_cpu_count();
  size_t first = get_cpu_id() * part;
  if (first >= num_elem) return t_out;
  size_t size = std::min(part, num_elem - first);
  if (get_cpu_id() == 0) printf("%d elements a core\\n", (int)size);
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

CO117_BAD = """\
// run(x(1000))
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
"""

CO117_GOOD = """\
// run(x(1000))
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::zeros(t_in.sizes(), torch::kFloat);
  auto t_in_acc = t_in.accessor<float, 1>();
  auto t_out_acc = t_out.accessor<float, 1>();
  for (int64_t i = 0; i < t_in.numel(); i++) {
    t_out_acc[i] = t_in_acc[i];
  }
  return t_out;
}

torch::Tensor shape(torch::Tensor t_in) {
  return torch::zeros(t_in.sizes(), torch::kFloat);
}
"""
