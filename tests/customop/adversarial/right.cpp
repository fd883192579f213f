// Operators that are right and look suspicious: no finding, and the elements of `=== name | head | NumPy's | shape of x`.
// --- elements ---
=== reads_first_often | elements | x[0] + 0 * x
  for (int64_t i = 0; i < n; i++) o[i] = in[0];
=== writes_twice | elements | x
  for (int64_t i = 0; i < n; i++) o[i] = 0;
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== backwards | elements | x[::-1]
  for (int64_t i = n - 1; i >= 0; i--) o[n - 1 - i] = in[i];
=== strides_of_7 | elements | x
  for (int64_t first = 0; first < 7; first++)
    for (int64_t i = first; i < n; i += 7) o[i] = in[i];
=== clamps_its_index | elements | x[np.minimum(np.arange(256) + 1, 255)]
  for (int64_t i = 0; i < n; i++) o[i] = in[std::min(i + 1, n - 1)];
=== guarded_neighbour | elements | np.diff(x, prepend=0)
  for (int64_t i = 0; i < n; i++) o[i] = i > 0 ? in[i] - in[i - 1] : in[i];
=== writes_nan | elements | np.full_like(x, np.nan)
  for (int64_t i = 0; i < n; i++) o[i] = std::nanf("");
=== writes_all_bits | elements | np.full(256, 0xffffffff, np.uint32).view(np.float32)
  for (int64_t i = 0; i < n; i++) memset(&o[i], 0xff, 4);
=== writes_other_bits | elements | np.full(256, 0x5a5a5a5a, np.uint32).view(np.float32)
  for (int64_t i = 0; i < n; i++) memset(&o[i], 0x5a, 4);
=== writes_infinity | elements | np.full_like(x, np.inf)
  volatile float zero = 0;
  for (int64_t i = 0; i < n; i++) o[i] = in[i] / zero;
=== accumulates | elements | np.cumsum(x)
  o[0] = in[0];
  for (int64_t i = 1; i < n; i++) o[i] = o[i - 1] + in[i];
=== in_place_sort | elements | np.sort(x)
  for (int64_t i = 0; i < n; i++) o[i] = in[n - 1 - i];
  std::sort(&o[0], &o[0] + n);
=== pointer_to_all | elements | 2 * x
  const float* p = &in[0];
  float* q = &o[0];
  for (int64_t i = 0; i < n; i++) q[i] = 2 * p[i];
=== pointer_one_past_the_end | elements | x
  std::copy(&in[0], &in[0] + n, &o[0]);
=== memcpy_of_all | elements | x
  memcpy(&o[0], &in[0], n * sizeof(float));
=== catches_its_own | elements | x
  for (int64_t i = 0; i < n; i++) {
    try {
      if (i % 50 == 0) throw std::runtime_error("again");
      o[i] = in[i];
    } catch (const std::exception&) {
      o[i] = in[i];
    }
  }
=== catches_all | elements | x
  try {
    throw 3;
  } catch (...) {
    for (int64_t i = 0; i < n; i++) o[i] = in[i];
  }
=== vectors_of_its_own | elements | np.sort(x)[::-1]
  std::vector<float> all(n);
  for (int64_t i = 0; i < n; i++) all[i] = in[i];
  std::sort(all.rbegin(), all.rend());
  for (int64_t i = 0; i < n; i++) o[i] = all[i];
=== prints_much | elements | x
  for (int64_t i = 0; i < n; i++) {
    o[i] = in[i];
    printf("%f\n", in[i]);
  }
=== asserts_what_holds | elements | x
  for (int64_t i = 0; i < n; i++) {
    assert(i < n);
    o[i] = in[i];
  }
=== recurses_a_little | helper | np.cumsum(x)
static float sum(const float* p, int64_t count) { return count == 0 ? 0 : p[0] + sum(p + 1, count - 1); }
torch::Tensor kernel(const torch::Tensor& x) {
  torch::Tensor out = torch::empty(x.sizes(), torch::kFloat);
  auto in = x.accessor<float, 1>();
  auto o = out.accessor<float, 1>();
  float before = 0;
  for (int64_t i = 0; i < x.numel(); i++) o[i] = before = before + sum(&in[i], 1);
  return out;
}
=== transposes | plane | x.reshape(-1).reshape(32, 8).T
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      const int64_t flat = j * rows + i;
      o[i][j] = in[flat / columns][flat % columns];
    }
=== a_row_at_a_time | plane | x.cumsum(axis=1)
  for (int64_t i = 0; i < rows; i++) {
    auto row = in[i];
    auto to = o[i];
    float sum = 0;
    for (int64_t j = 0; j < columns; j++) to[j] = sum += row[j];
  }
=== one_element | elements | x | 1
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
=== eight_elements | elements | x | 8
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
// --- copies and blocks ---
=== chunks_with_rest | tcm | x | 250
  for (size_t i = 0; i < n; i += 64) {
    const size_t size = std::min<size_t>(64, n - i);
    in.tensor_to_tcm<float>(b, i, size);
    o.tcm_to_tensor<float>(b, i, size);
  }
=== copies_backwards | tcm | x
  for (size_t i = n; i > 0; i -= 32) {
    in.tensor_to_tcm<float>(b, i - 32, 32);
    o.tcm_to_tensor<float>(b, i - 32, 32);
  }
=== copies_one_by_one | tcm | x
  for (size_t i = 0; i < n; i++) {
    in.tensor_to_tcm<float>(b, i, 1);
    o.tcm_to_tensor<float>(b, i, 1);
  }
=== copies_none | tcm | x
  in.tensor_to_tcm<float>(b, 0, n);
  in.tensor_to_tcm<float>(b, n, 0);
  o.tcm_to_tensor<float>(b, 0, n);
=== overlapping_chunks | tcm | x
  for (size_t i = 0; i + 64 <= n; i += 32) {
    in.tensor_to_tcm<float>(b, i, 64);
    o.tcm_to_tensor<float>(b, i, 64);
  }
=== last_element_of_a_block | tcm | np.append(x[:-1], 7)
  in.tensor_to_tcm<float>(b, 0, n);
  b[n - 1] = 7;
  o.tcm_to_tensor<float>(b, 0, n);
=== half_a_block | bare | np.append(x[:128], x[:128])
  float* b = (float*)torch::neuron::tcm_malloc(4096);
  if (b == nullptr) return out;
  x.tcm_accessor().tensor_to_tcm<float>(b + 500, 0, 128);
  out.tcm_accessor().tcm_to_tensor<float>(b + 500, 0, 128);
  out.tcm_accessor().tcm_to_tensor<float>(b + 500, 128, 128);
  torch::neuron::tcm_free(b);
=== hundred_blocks_of_16_bytes | bare | np.ones_like(x)
  void* all[100];
  for (void*& each : all) each = torch::neuron::tcm_malloc(16);
  for (void* each : all) torch::neuron::tcm_free(each);
  out.fill_(1);
=== the_whole_pool | bare | np.full_like(x, 3)
  float* b = (float*)torch::neuron::tcm_malloc(16384);
  if (b == nullptr) return out;
  for (int i = 0; i < 4096; i++) b[i] = 3;
  out.tcm_accessor().tcm_to_tensor<float>(b, 0, 256);
  torch::neuron::tcm_free(b);
=== tries_less | bare | np.full_like(x, 1)
  size_t bytes = 1 << 20;
  float* b = nullptr;
  while ((b = (float*)torch::neuron::tcm_malloc(bytes)) == nullptr) bytes /= 2;
  for (size_t i = 0; i < bytes / 4; i++) b[i] = 1;
  out.tcm_accessor().tcm_to_tensor<float>(b, 0, 256);
  torch::neuron::tcm_free(b);
=== frees_out_of_order | bare | np.full_like(x, 2)
  float* a = (float*)torch::neuron::tcm_malloc(1024);
  float* b = (float*)torch::neuron::tcm_malloc(1024);
  float* c = (float*)torch::neuron::tcm_malloc(1024);
  torch::neuron::tcm_free(b);
  torch::neuron::tcm_free(a);
  for (int i = 0; i < 256; i++) c[i] = 2;
  out.tcm_accessor().tcm_to_tensor<float>(c, 0, 256);
  torch::neuron::tcm_free(c);
=== frees_null_of_a_failure | bare | np.ones_like(x)
  void* b = torch::neuron::tcm_malloc(1 << 20);
  torch::neuron::tcm_free(b);
  out.fill_(1);
=== odd_blocks | bare | np.full_like(x, 13)
  uint8_t* b = (uint8_t*)torch::neuron::tcm_malloc(13);
  if (b == nullptr) return out;
  int sum = 0;
  for (int i = 0; i < 13; i++) b[i] = 1;
  for (int i = 0; i < 13; i++) sum += b[i];
  out.fill_(sum);
  torch::neuron::tcm_free(b);
=== block_of_doubles | bare | np.full_like(x, 0.5)
  double* b = (double*)torch::neuron::tcm_malloc(80);
  if (b == nullptr) return out;
  for (int i = 0; i < 10; i++) b[i] = 0.05;
  double sum = 0;
  for (int i = 0; i < 10; i++) sum += b[i];
  out.fill_((float)sum);
  torch::neuron::tcm_free(b);
=== block_of_structs | bare | np.full_like(x, 6)
  struct Pair {
    float a;
    int16_t b;
  };
  Pair* b = (Pair*)torch::neuron::tcm_malloc(3 * sizeof(Pair));
  if (b == nullptr) return out;
  for (int i = 0; i < 3; i++) b[i] = Pair{1, 1};
  float sum = 0;
  for (int i = 0; i < 3; i++) sum += b[i].a + b[i].b;
  out.fill_(sum);
  torch::neuron::tcm_free(b);
=== memmove_in_a_block | tcm | np.append(x[0], x[:-1])
  in.tensor_to_tcm<float>(b, 0, n);
  memmove(b + 1, b, (n - 1) * sizeof(float));
  o.tcm_to_tensor<float>(b, 0, n);
=== sums_with_a_carry | tcm | np.cumsum(x)
  float carry = 0;
  for (size_t i = 0; i < n; i += 16) {
    in.tensor_to_tcm<float>(b, i, 16);
    for (int j = 0; j < 16; j++) b[j] = carry = carry + b[j];
    o.tcm_to_tensor<float>(b, i, 16);
  }
=== reads_its_output_again | tcm | 2 * x
  in.tensor_to_tcm<float>(b, 0, n);
  o.tcm_to_tensor<float>(b, 0, n);
  o.tensor_to_tcm<float>(b, 0, n);
  for (size_t i = 0; i < n; i++) b[i] *= 2;
  o.tcm_to_tensor<float>(b, 0, n);
=== copies_of_ff | tcm | np.full(256, -1, np.int32).view(np.float32)
  memset(b, 0xff, n * 4);
  o.tcm_to_tensor<float>(b, 0, n);
// --- outputs of get_dst_tensor ---
=== dst_of_one_core | dst | x
  x.tcm_accessor().tensor_to_tcm<float>(b, 0, n);
  out.tcm_accessor().tcm_to_tensor<float>(b, 0, n);
=== dst_is_zeroed_first | dst_elements | x
  for (int64_t i = 0; i < n; i++) o[i] = 0;
  for (int64_t i = 0; i < n; i++) o[i] += in[i];
// --- streams ---
=== streams_of_all | streams | 2 * x
  for (int64_t i = 0; i < n; i++) to.write(2 * from.read());
=== stream_read_twice | streams | 2 * x
  auto again = x.read_stream_accessor<float>();
  for (int64_t i = 0; i < n; i++) to.write(from.read() + again.read());
=== stream_then_elements | streams | x
  for (int64_t i = 0; i < n; i++) to.write(0);
  to.close();
  auto o = out.accessor<float, 1>();
  for (int64_t i = 0; i < n; i++) o[i] = from.read();
=== stream_closed_twice | streams | x
  for (int64_t i = 0; i < n; i++) to.write(from.read());
  to.close();
  to.close();
// --- operations ---
=== operations_alone | bare | np.abs(x)
  return torch::abs(x);
=== fills | bare | np.full_like(x, -1)
  out.fill_(-1);
=== operations_in_place | bare | 2 * x
  torch::add_out(out, x, x);
// --- cores ---
=== cores_in_parts | cores | x
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
=== cores_read_all | core_helper | np.full_like(x, 256)
torch::Tensor kernel(const torch::Tensor& x) {
  torch::Tensor out = get_dst_tensor();
  float* b = (float*)torch::neuron::tcm_malloc(1024);
  if (b == nullptr) return out;
  x.tcm_accessor().tensor_to_tcm<float>(b, 0, 256);
  const float most = *std::max_element(b, b + 256);
  for (int i = 0; i < 32; i++) b[i] = most;
  out.tcm_accessor().tcm_to_tensor<float>(b, get_cpu_id() * 32, 32);
  torch::neuron::tcm_free(b);
  return out;
}
=== cores_read_their_own | cores | 2 * x
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
  o.tensor_to_tcm<float>(b, first, part);
  for (size_t i = 0; i < part; i++) b[i] *= 2;
  o.tcm_to_tensor<float>(b, first, part);
=== cores_print_of_one | cores | x
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
  if (id == 0) printf("%d\n", (int)part);
=== cores_interleaved | core_helper | x
torch::Tensor kernel(const torch::Tensor& x) {
  torch::Tensor out = get_dst_tensor();
  float* b = (float*)torch::neuron::tcm_malloc(4);
  if (b == nullptr) return out;
  for (int64_t i = get_cpu_id(); i < x.numel(); i += get_cpu_count()) {
    x.tcm_accessor().tensor_to_tcm<float>(b, i, 1);
    out.tcm_accessor().tcm_to_tensor<float>(b, i, 1);
  }
  torch::neuron::tcm_free(b);
  return out;
}
=== cores_some_idle | cores | x
  if (id % 2 == 0) {
    for (size_t at = first; at < first + 2 * part; at += part) {
      in.tensor_to_tcm<float>(b, at, part);
      o.tcm_to_tensor<float>(b, at, part);
    }
  }
