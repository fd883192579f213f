// Operators that are wrong, and the rule that has to say so, at the line that ends in `// HERE` (of CO106 the line that
// makes the output, where none does). `=== name | head | rule | shape of x`; the heads are in test_adversarial.py.
// --- elements ---
=== index_n | elements | CO104
  for (int64_t i = 0; i <= n; i++) o[i] = in[i];  // HERE
=== index_minus_one | elements | CO104
  for (int64_t i = 0; i < n; i++) o[i] = in[i - 1];  // HERE
=== index_next | elements | CO104
  for (int64_t i = 0; i < n; i++) {
    o[i] = in[i + 1] - in[i];  // HERE
  }
=== index_of_output | elements | CO104
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
  o[n] = 1;  // HERE
=== index_far | elements | CO104
  for (int64_t i = 0; i < n; i++) o[i] = 0;
  o[1 << 20] = in[0];  // HERE
=== index_overflows | elements | CO104
  for (int64_t i = 0; i < n; i++) o[i] = 0;
  int32_t big = 2147483647;
  o[static_cast<int32_t>(static_cast<uint32_t>(big) + 1u)] = 1;  // HERE
=== index_unsigned_wrap | elements | CO104
  for (int64_t i = 0; i < n; i++) o[i] = 0;
  for (size_t i = n - 1; i < static_cast<size_t>(n) + 2; i++) o[i] = 1;  // HERE
=== index_is_a_value | elements | CO104
  for (int64_t i = 0; i < n; i++) o[static_cast<int64_t>(in[i])] = 1;  // HERE
=== index_nan | elements | CO104
  for (int64_t i = 0; i < n; i++) o[i] = 0;
  volatile float zero = 0;
  o[static_cast<int64_t>(in[0] / zero)] = 2;  // HERE
=== plane_swapped | plane | CO104 | 8, 32
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      o[i][j] = in[j][i];  // HERE
=== plane_last_column | plane | CO104 | 8, 32
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < columns; j++) {
      o[i][j] = in[i][j + 1] - in[i][j];  // HERE
    }
  }
=== plane_last_row | plane | CO104 | 8, 32
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) o[i][j] = in[i + 1][j];  // HERE
=== plane_column_minus_one | plane | CO104 | 8, 32
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) o[i][j] = in[i][j - 1];  // HERE
=== in_a_helper | helper | CO104
static float at(const torch::Tensor& x, int64_t i) {
  auto in = x.accessor<float, 1>();
  return in[i];  // HERE
}
torch::Tensor kernel(const torch::Tensor& x) {
  torch::Tensor out = torch::empty(x.sizes(), torch::kFloat);
  auto o = out.accessor<float, 1>();
  for (int64_t i = 0; i < x.numel(); i++) o[i] = at(x, i + 1);
  return out;
}
=== in_a_lambda | elements | CO104
  auto at = [&](int64_t i) {
    return in[i + 4];  // HERE
  };
  for (int64_t i = 0; i < n; i++) o[i] = at(i);
// --- copies ---
=== copy_reads_past | tcm | CO104
  in.tensor_to_tcm<float>(b, 1, n);  // HERE
  o.tcm_to_tensor<float>(b, 0, n);
=== copy_writes_past | tcm | CO104
  in.tensor_to_tcm<float>(b, 0, n);
  o.tcm_to_tensor<float>(b, 0, n);
  o.tcm_to_tensor<float>(b, 1, n);  // HERE
=== copy_from_the_end | tcm | CO104
  in.tensor_to_tcm<float>(b, 0, n);
  o.tcm_to_tensor<float>(b, 0, n);
  in.tensor_to_tcm<float>(b, n, 1);  // HERE
=== copy_bytes_for_elements | tcm | CO104
  in.tensor_to_tcm<float>(b, 0, n * sizeof(float));  // HERE
  o.tcm_to_tensor<float>(b, 0, n);
=== copy_chunks_of_100 | tcm | CO104
  for (size_t i = 0; i < n; i += 100) {
    in.tensor_to_tcm<float>(b, i, 100);  // HERE
    o.tcm_to_tensor<float>(b, i, std::min<size_t>(100, n - i));
  }
=== copy_chunks_out | tcm | CO104
  for (size_t i = 0; i < n; i += 100) {
    in.tensor_to_tcm<float>(b, i, std::min<size_t>(100, n - i));
    o.tcm_to_tensor<float>(b, i, 100);  // HERE
  }
=== copy_negative | tcm | CO104
  in.tensor_to_tcm<float>(b, 0, n);
  o.tcm_to_tensor<float>(b, 0, n);
  in.tensor_to_tcm<float>(b, 0, static_cast<size_t>(-1));  // HERE
=== copy_negative_offset | tcm | CO104
  in.tensor_to_tcm<float>(b, 0, n);
  o.tcm_to_tensor<float>(b, 0, n);
  in.tensor_to_tcm<float>(b, static_cast<size_t>(-4), 4);  // HERE
=== copy_into_the_middle | tcm | CO104
  in.tensor_to_tcm<float>(b + n / 2, 0, n);  // HERE
  in.tensor_to_tcm<float>(b, 0, n);
  o.tcm_to_tensor<float>(b, 0, n);
=== copy_before_the_block | tcm | CO104
  in.tensor_to_tcm<float>(b, 0, n);
  o.tcm_to_tensor<float>(b, 0, n);
  in.tensor_to_tcm<float>(b - 4, 0, 4);  // HERE
=== copy_after_free | bare | CO104
  float* b = (float*)torch::neuron::tcm_malloc(1024);
  if (b == nullptr) return out;
  x.tcm_accessor().tensor_to_tcm<float>(b, 0, 256);
  torch::neuron::tcm_free(b);
  out.tcm_accessor().tcm_to_tensor<float>(b, 0, 256);  // HERE
=== copy_to_the_stack | bare | CO104
  float b[256];
  x.tcm_accessor().tensor_to_tcm<float>(b, 0, 256);  // HERE
  out.tcm_accessor().tcm_to_tensor<float>(b, 0, 256);
=== copy_to_the_heap | bare | CO104
  std::vector<float> b(256);
  x.tcm_accessor().tensor_to_tcm<float>(b.data(), 0, 256);  // HERE
  out.tcm_accessor().tcm_to_tensor<float>(b.data(), 0, 256);
=== block_in_bytes | bare | CO104
  float* b = (float*)torch::neuron::tcm_malloc(256);
  if (b == nullptr) return out;
  x.tcm_accessor().tensor_to_tcm<float>(b, 0, 256);  // HERE
  torch::neuron::tcm_free(b);
  out.fill_(0);
=== copy_unaligned | tcm | CO104
  in.tensor_to_tcm<float>(b, 0, n);
  o.tcm_to_tensor<float>(b, 0, n);
  in.tensor_to_tcm<float>((float*)((char*)b + 2), 0, 4);  // HERE
// --- blocks by pointers ---
=== raw_write_past | tcm | CO103
  for (size_t i = 0; i <= n; i++) b[i] = 1;  // HERE
  o.tcm_to_tensor<float>(b, 0, n);
=== raw_read_past | tcm | CO103
  in.tensor_to_tcm<float>(b, 0, n);
  for (size_t i = 0; i < n; i++) b[i] = b[i + 1];  // HERE
  o.tcm_to_tensor<float>(b, 0, n);
=== raw_write_before | tcm | CO103 CO104
  in.tensor_to_tcm<float>(b, 0, n);
  b[-1] = 3;  // HERE
  o.tcm_to_tensor<float>(b, 0, n);
=== raw_read_before | tcm | CO103 CO104
  in.tensor_to_tcm<float>(b, 0, n);
  for (size_t i = n; i-- > 0;) b[i] += b[static_cast<int64_t>(i) - 1];  // HERE
  o.tcm_to_tensor<float>(b, 0, n);
=== raw_read_long_before | tcm | CO103 CO104
  in.tensor_to_tcm<float>(b, 0, n);
  b[0] = b[-12];  // HERE
  o.tcm_to_tensor<float>(b, 0, n);
=== raw_write_page_before | tcm | CO103
  in.tensor_to_tcm<float>(b, 0, n);
  b[-65536] = 1;  // HERE
  o.tcm_to_tensor<float>(b, 0, n);
=== raw_write_after_free | bare | CO103
  float* b = (float*)torch::neuron::tcm_malloc(1024);
  if (b == nullptr) return out;
  torch::neuron::tcm_free(b);
  b[3] = 1;  // HERE
  out.fill_(b[3]);
=== raw_read_after_free | bare | CO103
  float* b = (float*)torch::neuron::tcm_malloc(1024);
  if (b == nullptr) return out;
  b[3] = 1;
  torch::neuron::tcm_free(b);
  const float late = b[3];  // HERE
  out.fill_(late);
=== odd_block_write | bare | CO103 CO104
  uint8_t* b = (uint8_t*)torch::neuron::tcm_malloc(13);
  if (b == nullptr) return out;
  for (int i = 0; i <= 13; i++) b[i] = 1;  // HERE
  out.fill_(b[3]);
  torch::neuron::tcm_free(b);
=== odd_block_read | bare | CO103 CO104
  uint8_t* b = (uint8_t*)torch::neuron::tcm_malloc(13);
  if (b == nullptr) return out;
  for (int i = 0; i < 13; i++) b[i] = 1;
  int sum = 0;
  for (volatile int i = 0; i <= 13; i = i + 1) sum += b[i];  // HERE
  out.fill_(sum);
  torch::neuron::tcm_free(b);
=== memset_past | tcm | CO103
  in.tensor_to_tcm<float>(b, 0, n);
  memset(b, 0, n * 4 + 16);  // HERE
  o.tcm_to_tensor<float>(b, 0, n);
=== memcpy_past | tcm | CO103
  in.tensor_to_tcm<float>(b, 0, n);
  memcpy(b + 1, b, n * 4);  // HERE
  o.tcm_to_tensor<float>(b, 0, n);
=== double_for_float | tcm | CO103
  double* d = (double*)b;
  for (size_t i = 0; i < n; i++) d[i] = 1;  // HERE
  o.tcm_to_tensor<float>(b, 0, n);
=== second_block_past | tcm | CO103
  float* second = (float*)torch::neuron::tcm_malloc(40);
  if (second == nullptr) return out;
  for (int i = 0; i < 11; i++) second[i] = 1;  // HERE
  torch::neuron::tcm_free(second);
  o.tcm_to_tensor<float>(b, 0, n);
// --- tensors by pointers ---
=== pointer_past_output | elements | CO103 CO104
  float* p = &o[0];
  for (int64_t i = 0; i < n + 64; i++) p[i] = 1;  // HERE
=== pointer_past_input | elements | CO103 CO104
  const float* p = &in[0];
  for (int64_t i = 0; i < n; i++) o[i] = p[i + 64];  // HERE
=== pointer_before_output | elements | CO103 CO104
  float* p = &o[0];
  for (int64_t i = 0; i < n; i++) p[i] = 1;
  p[-16] = 1;  // HERE
=== pointer_before_input | elements | CO103 CO104
  const float* p = &in[0];
  for (int64_t i = 0; i < n; i++) o[i] = p[i - 16];  // HERE
=== pointer_one_past_input | elements | CO103 CO104
  const float* p = &in[0];
  for (int64_t i = 0; i < n; i++) o[i] = p[i + 1];  // HERE
=== pointer_writes_input | elements | CO103 CO104
  float* p = const_cast<float*>(&in[0]);
  for (int64_t i = 0; i < n; i++) o[i] = 0;
  for (int64_t i = 0; i < n + 1024; i++) p[i] = 0;  // HERE
// --- frees and leaks ---
=== free_twice | tcm | CO116
  in.tensor_to_tcm<float>(b, 0, n);
  o.tcm_to_tensor<float>(b, 0, n);
  float* c = (float*)torch::neuron::tcm_malloc(16);
  torch::neuron::tcm_free(c);
  torch::neuron::tcm_free(c);  // HERE
=== free_middle | tcm | CO116
  in.tensor_to_tcm<float>(b, 0, n);
  o.tcm_to_tensor<float>(b, 0, n);
  torch::neuron::tcm_free(b + 4);  // HERE
=== free_of_the_stack | elements | CO116
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
  float local = in[0];
  torch::neuron::tcm_free(&local);  // HERE
=== free_of_the_heap | elements | CO116
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
  std::vector<float> heap(4);
  torch::neuron::tcm_free(heap.data());  // HERE
=== free_of_null | elements | CO116
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
  torch::neuron::tcm_free(nullptr);  // HERE
=== free_of_a_tensor | elements | CO116
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
  torch::neuron::tcm_free(&o[0]);  // HERE
=== free_twice_of_many | bare | CO116
  void* all[5];
  for (int i = 0; i < 5; i++) all[i] = torch::neuron::tcm_malloc(8);
  for (int i = 0; i <= 5; i++) torch::neuron::tcm_free(all[i % 5]);  // HERE
  out.fill_(1);
=== leak_one | elements | CO102
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
  float* b = (float*)torch::neuron::tcm_malloc(64);  // HERE
  if (b) b[0] = 1;
=== leak_in_a_loop | elements | CO102
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
  for (int i = 0; i < 10; i++) {
    float* b = (float*)torch::neuron::tcm_malloc(64);  // HERE
    if (b) b[0] = 1;
  }
=== leak_by_return | helper | CO102
torch::Tensor kernel(const torch::Tensor& x) {
  torch::Tensor out = torch::zeros(x.sizes(), torch::kFloat);
  float* b = (float*)torch::neuron::tcm_malloc(64);  // HERE
  if (b == nullptr || x.numel() > 2) return out;
  torch::neuron::tcm_free(b);
  return out;
}
=== leak_overwritten | bare | CO102
  float* b = (float*)torch::neuron::tcm_malloc(64);  // HERE
  b = (float*)torch::neuron::tcm_malloc(128);
  torch::neuron::tcm_free(b);
  out.fill_(1);
// --- the pool ---
=== pool_too_small | bare | CO101
  float* b = (float*)torch::neuron::tcm_malloc(16388);
  x.tcm_accessor().tensor_to_tcm<float>(b, 0, 256);  // HERE
  torch::neuron::tcm_free(b);
=== pool_minus_one | bare | CO101
  float* b = (float*)torch::neuron::tcm_malloc(static_cast<size_t>(-1));
  b[0] = 1;  // HERE
  torch::neuron::tcm_free(b);
=== pool_second | bare | CO101
  float* a = (float*)torch::neuron::tcm_malloc(12000);
  float* b = (float*)torch::neuron::tcm_malloc(12000);
  x.tcm_accessor().tensor_to_tcm<float>(a, 0, 256);
  x.tcm_accessor().tensor_to_tcm<float>(b, 0, 256);  // HERE
  torch::neuron::tcm_free(a);
  torch::neuron::tcm_free(b);
=== pool_by_pointer | bare | CO101
  float* b = (float*)torch::neuron::tcm_malloc(20000);
  for (int i = 0; i < 256; i++) b[i] = i;  // HERE
  torch::neuron::tcm_free(b);
=== pool_after_leaks | bare | CO101
  float* b = nullptr;
  for (int i = 0; i < 20; i++) b = (float*)torch::neuron::tcm_malloc(1024);
  x.tcm_accessor().tensor_to_tcm<float>(b, 0, 256);  // HERE
// --- ends ---
=== null_write | elements | CO103
  volatile float* p = nullptr;
  *p = in[0];  // HERE
=== wild_read | elements | CO103
  o[0] = *reinterpret_cast<volatile float*>(0x123456789000);  // HERE
=== divides_by_zero | elements | CO103
  volatile int zero = 0;
  o[0] = 7 / zero;  // HERE
=== aborts | elements | CO103
  if (n > 1) abort();  // HERE
=== asserts | elements | CO103
  assert(n == 1);  // HERE
=== throws_runtime_error | elements | CO103
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
  if (n > 1) throw std::runtime_error("too many");  // HERE
=== throws_an_int | elements | CO103
  for (int64_t i = 0; i < n; i++) o[i] = in[i];
  if (n > 1) throw 7;  // HERE
=== throws_in_a_helper | helper | CO103
static void check(int64_t n) {
  if (n > 1) throw std::invalid_argument("no");  // HERE
}
torch::Tensor kernel(const torch::Tensor& x) {
  torch::Tensor out = torch::zeros(x.sizes(), torch::kFloat);
  check(x.numel());
  return out;
}
=== vector_at | elements | CO103
  std::vector<float> all(4);
  o[0] = all.at(n);  // HERE
=== string_at | elements | CO103
  std::string text("abc");
  o[0] = text.at(n);  // HERE
=== no_memory | elements | CO103
  std::vector<float> all(static_cast<size_t>(1) << 40);  // HERE
  o[0] = all[n];
=== rethrows | elements | CO103
  try {
    throw std::runtime_error("first");
  } catch (const std::exception&) {
    throw std::logic_error("second");  // HERE
  }
=== exits_0 | elements | CO103
  if (n > 1) _exit(0);  // HERE
=== exits_3 | elements | CO103
  if (n > 1) _exit(3);  // HERE
=== exit_of_stdlib | elements | CO103
  if (n > 1) exit(4);  // HERE
=== quick_exits | elements | CO103
  if (n > 1) quick_exit(0);  // HERE
=== executes | elements | CO103
  if (n > 1) execl("/bin/true", "true", nullptr);  // HERE
=== handler_leaves | elements | CO103
  signal(SIGSEGV, [](int) { _exit(0); });  // HERE
  *(volatile int*)nullptr = 1;
=== sends_sigterm | elements | CO103
  if (n > 1) raise(SIGTERM);  // HERE
=== sends_sigkill | elements | CO103
  if (n > 1) raise(SIGKILL);  // HERE
=== traps | elements | CO103
  if (n > 1) __builtin_trap();  // HERE
=== recurses | helper | CO103 CO114
static int deep(volatile int* p) {
  volatile int here[512];
  here[0] = *p + 1;
  return deep(here) + here[1];  // HERE
}
torch::Tensor kernel(const torch::Tensor& x) {
  torch::Tensor out = torch::zeros(x.sizes(), torch::kFloat);
  volatile int zero = 0;
  out.fill_(deep(&zero));
  return out;
}
=== loops | elements | CO103
  for (volatile int i = 0; i >= 0; i = i & 1023) o[0] = in[0];  // HERE
=== loops_and_blocks | elements | CO103
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  for (volatile int i = 0; i >= 0; i = i & 1023) o[0] = in[0];  // HERE
=== calls_a_bad_pointer | elements | CO103
  float (*volatile function)(float) = nullptr;
  o[0] = function(in[0]);  // HERE
=== smashes_a_return | elements | CO103
  if (n > 1) {
    volatile char* text = const_cast<char*>("constant");
    text[0] = 'x';  // HERE
  }
