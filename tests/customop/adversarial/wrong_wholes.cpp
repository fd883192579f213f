// As wrong.cpp: cores, outputs, streams, types, shape functions, stacks.
// --- cores ---
=== cores_overlap_by_one | cores | CO105
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
  if (id > 0) o.tcm_to_tensor<float>(b, first - 1, 1);  // HERE
=== cores_all_write_all | cores | CO105
  for (size_t i = 0; i < part; i++) b[i] = id;
  for (size_t i = 0; i < n; i += part) o.tcm_to_tensor<float>(b, i, part);  // HERE
=== cores_write_a_sum | cores | CO105
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
  float sum = 0;
  for (size_t i = 0; i < part; i++) sum += b[i];
  b[0] = sum;
  o.tcm_to_tensor<float>(b, 0, 1);  // HERE
=== cores_forget_their_number | cores | CO105
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first % 64, part);  // HERE
=== cores_read_before_them | cores | CO105
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
  if (id > 0) o.tensor_to_tcm<float>(b, first - 1, 1);  // HERE
=== cores_read_behind_them | cores | CO105
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
  if (id < 7) o.tensor_to_tcm<float>(b, first + part, 1);  // HERE
=== cores_reduce | cores | CO105
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
  if (id == 0) o.tensor_to_tcm<float>(b, 1 * part, part);  // HERE
=== cores_read_a_total | cores | CO105
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
  if (id == 7) {
    o.tensor_to_tcm<float>(b, 0, part);  // HERE
  }
=== cores_leave_the_rest | cores | CO106 | 251
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
=== cores_one_is_idle | cores | CO106
  in.tensor_to_tcm<float>(b, first, part);
  if (id != 5) o.tcm_to_tensor<float>(b, first, part);
=== cores_skip_the_first | cores | CO106
  in.tensor_to_tcm<float>(b, first, part);
  if (id > 0) o.tcm_to_tensor<float>(b, first, part);
=== cores_only_core_0 | cores | CO106
  in.tensor_to_tcm<float>(b, first, part);
  if (id == 0) o.tcm_to_tensor<float>(b, 0, part);
=== cores_past_the_end | cores | CO104 | 256
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
  if (id == 7) o.tcm_to_tensor<float>(b, first + 1, part);  // HERE
=== cores_without_dst | core_helper | CO108
torch::Tensor kernel(const torch::Tensor& x) {  // HERE
  return torch::abs(x);
}
=== cores_make_an_output | core_helper | CO108
torch::Tensor kernel(const torch::Tensor& x) {  // HERE
  torch::Tensor out = torch::zeros(x.sizes(), torch::kFloat);
  return out;
}
=== cores_read_elements | core_helper | CO109
torch::Tensor kernel(const torch::Tensor& x) {
  torch::Tensor out = get_dst_tensor();
  auto in = x.accessor<float, 1>();  // HERE
  if (in[0] == 7) return out;
  return out;
}
=== cores_write_a_stream | core_helper | CO109
torch::Tensor kernel(const torch::Tensor& x) {
  torch::Tensor out = get_dst_tensor();
  auto o = out.write_stream_accessor<float>();  // HERE
  for (int64_t i = 0; i < x.numel(); i++) o.write(1);
  return out;
}
=== cores_print | cores | CO115
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
  printf("core %d\n", (int)id);  // HERE
=== cores_one_crashes | cores | CO103
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
  if (id == 3) *(volatile int*)nullptr = 1;  // HERE
=== cores_one_exits | cores | CO103
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
  if (id == 3) _exit(0);  // HERE
=== cores_one_throws | cores | CO103
  in.tensor_to_tcm<float>(b, first, part);
  o.tcm_to_tensor<float>(b, first, part);
  if (id == 6) throw std::runtime_error("core 6");  // HERE
=== cores_one_leaks | core_helper | CO102
torch::Tensor kernel(const torch::Tensor& x) {
  torch::Tensor out = get_dst_tensor();
  if (get_cpu_id() == 2) torch::neuron::tcm_malloc(100);  // HERE
  float* b = (float*)torch::neuron::tcm_malloc(4);
  if (b == nullptr) return out;
  for (int64_t i = get_cpu_id(); i < x.numel(); i += 8) {
    x.tcm_accessor().tensor_to_tcm<float>(b, i, 1);
    out.tcm_accessor().tcm_to_tensor<float>(b, i, 1);
  }
  torch::neuron::tcm_free(b);
  return out;
}
// --- outputs ---
=== half_is_written | elements | CO106
  for (int64_t i = 0; i < n / 2; i++) o[i] = in[i];
=== last_is_not_written | elements | CO106
  for (int64_t i = 0; i + 1 < n; i++) o[i] = in[i];
=== every_second | elements | CO106
  for (int64_t i = 0; i < n; i += 2) o[i] = in[i];
=== nothing_is_written | elements | CO106
  if (n < 0) o[0] = in[0];
=== a_row_is_not_written | plane | CO106 | 8, 32
  for (int64_t i = 1; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) o[i][j] = in[i][j];
=== chunks_without_rest | tcm | CO106 | 250
  for (size_t i = 0; i + 64 <= n; i += 64) {
    in.tensor_to_tcm<float>(b, i, 64);
    o.tcm_to_tensor<float>(b, i, 64);
  }
=== block_is_not_filled | tcm | CO106
  o.tcm_to_tensor<float>(b, 0, n);  // HERE
=== sum_of_nothing | tcm | CO106
  in.tensor_to_tcm<float>(b, 0, n / 2);
  for (size_t i = 0; i < n; i++) b[i] = 2 * b[i];
  o.tcm_to_tensor<float>(b, 0, n);  // HERE
=== dst_reads_itself | dst | CO106
  out.tcm_accessor().tensor_to_tcm<float>(b, 0, n);
  for (size_t i = 0; i < n; i++) b[i] += 1;
  out.tcm_accessor().tcm_to_tensor<float>(b, 0, n);  // HERE
=== accumulates_in_dst | dst_elements | CO106
  for (int64_t i = 0; i < n; i++) o[i] += in[i];
// --- streams ---
=== stream_reads_past | streams | CO113
  for (int64_t i = 0; i < n; i++) to.write(1);
  for (int64_t i = 0; i <= n; i++) from.read();  // HERE
=== stream_writes_past | streams | CO113
  for (int64_t i = 0; i <= n; i++) to.write(1);  // HERE
=== stream_after_close | streams | CO113
  for (int64_t i = 0; i < n; i++) to.write(1);
  from.close();
  from.read();  // HERE
=== stream_writes_after_close | streams | CO113
  for (int64_t i = 0; i < n; i++) to.write(1);
  to.close();
  to.write(2);  // HERE
=== stream_and_elements | streams | CO113
  for (int64_t i = 0; i < n; i++) to.write(1);
  out.accessor<float, 1>()[0] = 2;  // HERE
=== two_writers | streams | CO113
  for (int64_t i = 0; i < n; i++) to.write(1);
  auto second = out.write_stream_accessor<float>();  // HERE
  second.write(1);
=== five_streams | streams | CO113
  for (int64_t i = 0; i < n; i++) to.write(1);
  auto a = x.read_stream_accessor<float>();
  auto c = x.read_stream_accessor<float>();
  auto d = x.read_stream_accessor<float>();  // HERE
  a.read(), c.read(), d.read();
// --- types ---
=== int_accessor | bare | CO110
  auto in = x.accessor<int32_t, 1>();  // HERE
  out.fill_(in[0]);
=== half_copy | bare | CO110
  uint16_t* b = (uint16_t*)torch::neuron::tcm_malloc(512);
  if (b == nullptr) return out;
  x.tcm_accessor().tensor_to_tcm<c10::Half>((c10::Half*)b, 0, 256);  // HERE
  torch::neuron::tcm_free(b);
=== int_stream | bare | CO110
  auto in = x.read_stream_accessor<int32_t>();  // HERE
  out.fill_(in.read());
=== bits_of_floats | bare | CO110
  return torch::bitwise_and(x, 3);  // HERE
=== plane_of_a_line | bare | CO117
  auto in = x.accessor<float, 2>();  // HERE
  out.fill_(in[0][0]);
=== line_of_a_plane | bare | CO117 | 8, 32
  auto in = x.accessor<float, 1>();  // HERE
  out.fill_(in[0]);
=== size_of_dimension_3 | bare | CO117
  out.fill_(x.sizes()[3]);  // HERE
=== adds_two_shapes | bare | CO117
  return torch::add(x, torch::ones({3}, torch::kFloat));  // HERE
// --- shape functions ---
=== shape_of_another_size | shape | CO107
torch::Tensor shape(const torch::Tensor& x) {  // HERE
  return torch::zeros({x.numel() + 1}, torch::kFloat);
}
=== shape_of_another_dtype | shape | CO107
torch::Tensor shape(const torch::Tensor& x) {  // HERE
  return torch::zeros(x.sizes(), torch::kInt);
}
=== shape_of_another_rank | shape | CO107
torch::Tensor shape(const torch::Tensor& x) {  // HERE
  return torch::zeros({1, x.numel()}, torch::kFloat);
}
=== shape_reads_elements | shape | CO107
torch::Tensor shape(const torch::Tensor& x) {
  auto in = x.accessor<float, 1>();  // HERE
  return torch::zeros({(int64_t)in[0]}, torch::kFloat);
}
=== shape_negative | shape | CO111
torch::Tensor shape(const torch::Tensor& x) {
  return torch::zeros({-x.numel()}, torch::kFloat);  // HERE
}
=== shape_of_nine_dimensions | shape | CO111
torch::Tensor shape(const torch::Tensor& x) {
  return torch::zeros({x.numel(), 1, 1, 1, 1, 1, 1, 1, 1}, torch::kFloat);  // HERE
}
=== shape_exits | shape | CO103
torch::Tensor shape(const torch::Tensor& x) {
  if (x.numel() > 1) _exit(0);  // HERE
  return torch::zeros(x.sizes(), torch::kFloat);
}
=== shape_crashes | shape | CO103
torch::Tensor shape(const torch::Tensor& x) {
  *(volatile int*)nullptr = 1;  // HERE
  return torch::zeros(x.sizes(), torch::kFloat);
}
=== shape_throws | shape | CO103
torch::Tensor shape(const torch::Tensor& x) {
  if (x.numel() > 1) throw std::runtime_error("no shape");  // HERE
  return torch::zeros(x.sizes(), torch::kFloat);
}
=== shape_loops | shape | CO103
torch::Tensor shape(const torch::Tensor& x) {
  for (volatile int i = 0; i >= 0; i = i & 1023) continue;  // HERE
  return torch::zeros(x.sizes(), torch::kFloat);
}
// --- stacks ---
=== stack_of_16_kib | helper | CO114
torch::Tensor kernel(const torch::Tensor& x) {  // HERE
  torch::Tensor out = torch::empty(x.sizes(), torch::kFloat);
  auto in = x.accessor<float, 1>();
  auto o = out.accessor<float, 1>();
  volatile float rows[4096];
  for (int i = 0; i < 4096; i++) rows[i] = in[i % 256];
  for (int i = 0; i < 256; i++) o[i] = rows[i];
  return out;
}
