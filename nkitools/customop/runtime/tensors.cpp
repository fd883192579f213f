// Tensors, and the accessors of their elements and streams.
#include <stdlib.h>
#include <string.h>

#include <new>

#include "state.h"

namespace nkt {

size_t item_size(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Byte:
    case c10::ScalarType::Char:
      return 1;
    case c10::ScalarType::Short:
    case c10::ScalarType::Half:
    case c10::ScalarType::BFloat16:
      return 2;
    default:
      return 4;
  }
}

bool is_floating(c10::ScalarType type) {
  return type == c10::ScalarType::Float || type == c10::ScalarType::Half || type == c10::ScalarType::BFloat16;
}

TensorImpl* make_tensor(const int64_t* sizes, size_t dims, c10::ScalarType dtype, int role, uint64_t site) {
  Told told;
  told.a = static_cast<int64_t>(dims);
  if (dims > kMaxDims) {
    told.text = "dimensions";
    tell(kDimensionLimit, role, site, told);
    stop();
  }
  TensorImpl* tensor = new TensorImpl();
  static int32_t serials = 0;
  tensor->serial = __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
  tensor->owners = 1;
  tensor->role = role;
  tensor->dtype = dtype;
  tensor->site = site;
  tensor->dims = static_cast<int32_t>(dims);
  tensor->numel = 1;
  tensor->item_shift = item_size(dtype) == 4 ? 2 : item_size(dtype) == 2;
  for (size_t i = dims; i-- > 0;) {
    if (sizes[i] < 0 || (sizes[i] > 0 && tensor->numel > INT64_MAX / 8 / sizes[i])) {
      delete tensor;
      told.text = sizes[i] < 0 ? "negative" : "elements";
      told.b = sizes[i];
      tell(kDimensionLimit, role, site, told);
      stop();
    }
    tensor->sizes[i] = sizes[i];
    tensor->strides[i] = tensor->numel;
    tensor->numel *= sizes[i];
  }
  return tensor;
}

TensorImpl* retain(TensorImpl* tensor) {
  if (tensor) __atomic_add_fetch(&tensor->owners, 1, __ATOMIC_RELAXED);
  return tensor;
}

void release(TensorImpl* tensor) {
  if (!tensor || __atomic_sub_fetch(&tensor->owners, 1, __ATOMIC_ACQ_REL) > 0) return;
  if (tensor->owns_data) free(tensor->data);
  if (tensor->owns_shadow) free(tensor->shadow);
  delete tensor;
}

void give_memory(TensorImpl& tensor, uint64_t site) {
  const size_t numel = static_cast<size_t>(tensor.numel);
  const size_t bytes = numel * item_size(tensor.dtype);
  tensor.data = guarded_memory(*core->call, tensor);
  tensor.owns_data = tensor.data == nullptr;
  if (tensor.owns_data) tensor.data = static_cast<char*>(malloc(bytes + 1));
  tensor.written = nullptr;
  tensor.shadow = static_cast<uint8_t*>(calloc(numel + 1, 1));
  tensor.owns_shadow = true;
  if (!tensor.data || !tensor.shadow) {
    Told told;
    told.text = "there is no memory for the tensor";
    tell(kOperation, tensor.role, site, told);
    stop();
  }
  memset(tensor.data, core->call->canary, bytes);
}

namespace {

TensorImpl& checked(TensorImpl* tensor, uint64_t site) {
  if (NKT_RARE(tensor == nullptr)) {
    Told told;
    told.text = "a Tensor that no factory function has made has no elements";
    tell(kOperation, kLocal, site, told);
    stop();
  }
  return *tensor;
}

// What may be done with data: not in a shape function, and with the right type.
void judge_use(const TensorImpl& tensor, c10::ScalarType type, uint64_t site) {
  if (!tensor.data) {
    tell(kShapeFunctionReads, tensor.role, site);
    stop();
  }
  if (type != tensor.dtype) {
    Told told;
    told.a = static_cast<int64_t>(type);
    told.b = static_cast<int64_t>(tensor.dtype);
    tell(kDtype, tensor.role, site, told);
    if (item_size(type) != item_size(tensor.dtype)) stop();
  }
}

void judge_single_core(const TensorImpl& tensor, int accessor, uint64_t site) {
  if (!core->call->multicore) return;
  Told told;
  told.a = accessor;
  tell(kAccessorInMulticore, tensor.role, site, told);
}

void tell_incoherent(const TensorImpl& tensor, int how, uint64_t site) {
  if (tensor.policy == torch::CoherencyEnforcer::INCOHERENT_QUIET) return;
  Told told;
  told.a = how;
  told.b = tensor.policy == torch::CoherencyEnforcer::INCOHERENT_VERBOSE;
  tell(kIncoherent, tensor.role, site, told);
}

}  // namespace

const int64_t* sizes_of(TensorImpl* tensor, size_t& dims) {
  dims = static_cast<size_t>(checked(tensor, NKT_SITE).dims);
  return tensor->sizes;
}

int64_t numel_of(TensorImpl* tensor) { return checked(tensor, NKT_SITE).numel; }

c10::ScalarType type_of(TensorImpl* tensor) { return checked(tensor, NKT_SITE).dtype; }

int policy_of(TensorImpl* tensor) { return checked(tensor, NKT_SITE).policy; }

void set_policy(TensorImpl* tensor, int policy) { checked(tensor, NKT_SITE).policy = policy; }

int64_t size_out_of_range(int64_t index, size_t dims) {
  Told told;
  told.a = index + 1;
  told.b = static_cast<int64_t>(dims);
  told.text = "sizes";
  tell(kDims, kNoTensor, NKT_SITE, told);
  stop();
}

TensorImpl* open_tcm(TensorImpl* tensor) {
  const uint64_t site = NKT_SITE;
  enter();
  if (!checked(tensor, site).data) {
    tell(kShapeFunctionReads, tensor->role, site);
    stop();
  }
  return tensor;
}

Elements open_elements(TensorImpl* tensor, c10::ScalarType type, size_t dims, bool writable) {
  const uint64_t site = NKT_SITE;
  enter_to_move();
  judge_use(checked(tensor, site), type, site);
  if (static_cast<size_t>(tensor->dims) != dims) {
    Told told;
    told.a = static_cast<int64_t>(dims);
    told.b = tensor->dims;
    told.text = "accessor";
    tell(kDims, tensor->role, site, told);
    stop();
  }
  judge_single_core(*tensor, 0, site);
  core->direct = true;
  lay_open(*tensor);
  if (writable) tensor->by_reference = true;
  note_move(*core, writable ? kElementsWritten : kElementsRead, tensor, nullptr, 0, 0, site);
  uint64_t* counter = writable ? &core->record->element_writes : &core->record->element_reads;
  return Elements{tensor, tensor->data, tensor->sizes, tensor->strides, counter, &tensor->streams};
}

void fill_lost(char* at, size_t bytes) {
  const uint16_t nan = 0x7fc1;
  for (size_t i = 0; i < bytes; i++) at[i] = static_cast<char>(i & 1 ? nan >> 8 : nan);
}

namespace {

char* lost_element(CoreState& state) {
  fill_lost(state.lost_element, sizeof state.lost_element);
  return state.lost_element;
}

}  // namespace

void* element_out_of_bounds(TensorImpl* tensor, int64_t index, int64_t size, int dimension) {
  Told told;
  told.a = index;
  told.b = size;
  told.c = dimension;
  tell(kElementIndex, tensor->role, NKT_SITE, told);
  return lost_element(*core);
}

void element_beside_stream(TensorImpl* tensor) { tell_incoherent(*tensor, 1, NKT_SITE); }

// --- streams ---------------------------------------------------------------------------------------------------------

struct StreamState {
  TensorImpl* tensor;
  int64_t next;
  bool writes;
  bool open;
  bool has_buffer;
  CoreState* owner;
};

StreamState* open_stream(TensorImpl* tensor, c10::ScalarType type, bool writes) {
  const uint64_t site = NKT_SITE;
  enter_to_move();
  judge_use(checked(tensor, site), type, site);
  judge_single_core(*tensor, writes ? 2 : 1, site);
  if (tensor->write_streams > 0 || (writes && tensor->streams > 0)) tell_incoherent(*tensor, 0, site);
  lay_open(*tensor);
  CoreState& state = *core;
  state.direct = true;
  StreamState* stream = new StreamState{retain(tensor), 0, writes, true, false, &state};
  tensor->streams++;
  tensor->write_streams += writes;
  state.streams++;
  note_move(state, writes ? kStreamWritten : kStreamRead, tensor, nullptr, 0, 0, site);
  stream->has_buffer = state.pool_used + kStreamBuffer <= kPool;
  if (stream->has_buffer) {
    state.pool_used += kStreamBuffer;
    if (state.pool_used > state.record->tcm_peak) state.record->tcm_peak = state.pool_used;
  }
  if (state.streams > kFastStreams) {
    Told told;
    told.a = state.streams;
    tell(kManyStreams, tensor->role, site, told);
  }
  return stream;
}

void* next_in_stream(StreamState* stream) {
  Told told;
  told.a = stream->writes;
  told.b = stream->tensor->numel;
  CoreState& state = *stream->owner;
  (stream->writes ? state.record->stream_writes : state.record->stream_reads)++;
  if (NKT_RARE(!stream->open || stream->next >= stream->tensor->numel)) {
    tell(stream->open ? kStreamPastEnd : kStreamClosed, stream->tensor->role, NKT_SITE, told);
    return lost_element(state);
  }
  TensorImpl& tensor = *stream->tensor;
  if (stream->writes && tensor.shadow) tensor.shadow[stream->next] |= static_cast<uint8_t>(1u << state.id);
  return tensor.data + static_cast<size_t>(stream->next++) * item_size(tensor.dtype);
}

int close_stream(StreamState* stream) {
  if (!stream->open) return 0;
  note_move(*stream->owner, kStreamEnded, stream->tensor, nullptr, 0, static_cast<size_t>(stream->next), NKT_SITE);
  stream->open = false;
  stream->tensor->streams--;
  stream->tensor->write_streams -= stream->writes;
  stream->owner->streams--;
  if (stream->has_buffer) stream->owner->pool_used -= kStreamBuffer;
  return 0;
}

void drop_stream(StreamState* stream) {
  if (!stream) return;
  close_stream(stream);
  release(stream->tensor);
  delete stream;
}

void no_such_argument() { stop(); }

}  // namespace nkt

// --- what belongs to the call ----------------------------------------------------------------------------------------

torch::Tensor get_dst_tensor() {
  using namespace nkt;
  enter();
  const uint64_t site = NKT_SITE;
  if (!core->destination) {
    Told told;
    told.text = "get_dst_tensor: a shape function has no output tensor";
    tell(kOperation, kNoTensor, site, told);
    stop();
  }
  if (core->output_lent && !core->record->dst_taken) give_memory(*core->destination, site);
  core->record->dst_taken = 1;
  core->call->output_site = site;
  return torch::Tensor(retain(core->destination));
}

uint32_t get_cpu_id() { return static_cast<uint32_t>(nkt::core->id); }

// "The total number of available GPSIMD cores": the guide does not say that there are fewer in single-core mode.
uint32_t get_cpu_count() { return nkt::kMaxCores; }
