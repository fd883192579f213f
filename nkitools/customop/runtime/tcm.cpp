// Copies between the TCM of a core and tensors.
#include <string.h>

#include "state.h"

namespace nkt {

namespace {

struct Piece {
  size_t offset;
  size_t count;
};

struct Buffer {
  Block* block;  // null where it is in none
  size_t room;   // elements that are asked for and there
};

// Judges the buffer of a copy.
NKT_INLINE Buffer judge_buffer(CoreState& state, const void* pointer, size_t count, const TensorImpl& copied, uint64_t site) {
  const int tensor = copied.role;
  Told told;
  if (NKT_RARE(pointer == nullptr)) {
    told.a = static_cast<int64_t>(state.malloc_failed ? state.failed_bytes : 0);
    told.b = static_cast<int64_t>(state.failed_in_use);
    told.c = static_cast<int64_t>(state.failed_site);
    tell(kTcmNullUse, tensor, site, told);
    stop();
  }
  Block* block = block_at(state, pointer);
  if (NKT_RARE(block == nullptr)) {
    tell(kNotTcm, tensor, site, told);
    return Buffer{nullptr, count};
  }
  told.c = static_cast<int64_t>(block->allocated);
  if (NKT_RARE(block->state == kFreed)) {
    told.a = static_cast<int64_t>(block->bytes);
    told.d = static_cast<int64_t>(block->freed);
    tell(kTcmFreedUse, tensor, site, told);
    stop();
  }
  if (NKT_RARE(reinterpret_cast<uintptr_t>(pointer) & ((uintptr_t(1) << copied.item_shift) - 1))) {
    Told odd;
    odd.a = int64_t(1) << copied.item_shift;
    odd.c = told.c;
    odd.d = static_cast<int64_t>(block->bytes);
    tell(kTcmUnaligned, tensor, site, odd);
  }
  const char* at = static_cast<const char*>(pointer);
  const char* end = block->start + block->bytes;
  const size_t room = at >= block->start && at < end ? static_cast<size_t>(end - at) >> copied.item_shift : 0;
  if (NKT_RARE(count > room)) {
    told.a = static_cast<int64_t>(count << copied.item_shift);
    told.b = static_cast<int64_t>(room << copied.item_shift);
    told.d = static_cast<int64_t>(block->bytes);
    tell(kTcmTooSmall, tensor, site, told);
    return Buffer{block, room};
  }
  return Buffer{block, count};
}

// A block that is written whole from an argument has nothing left that nobody has written; other tensors may have.
void note_filled(CoreState& state, Block& block, const void* pointer, size_t bytes, const TensorImpl& from) {
  const bool argument = from.role < kOutput;
  if (argument == block.filled || (argument && (pointer != block.start || bytes != block.bytes))) return;
  block.filled = argument;
  state.unfilled += argument ? -1 : 1;
}

// The part of a copy that lies in the tensor; what lies outside is told.
NKT_INLINE Piece judge_range(const TensorImpl& tensor, size_t offset, size_t count, EventKind kind, uint64_t site) {
  const size_t numel = static_cast<size_t>(tensor.numel);
  const size_t inside = offset >= numel ? 0 : (count < numel - offset ? count : numel - offset);
  if (NKT_RARE(inside != count)) {
    Told told;
    told.a = static_cast<int64_t>(offset);
    told.b = static_cast<int64_t>(offset + count - 1);
    told.count = static_cast<int64_t>(count - inside);
    told.d = tensor.numel;
    tell(kind, tensor.role, site, told);
  }
  return Piece{offset, inside};
}

NKT_INLINE void judge_type(const TensorImpl& tensor, c10::ScalarType type, uint64_t site) {
  if (NKT_RARE(type != tensor.dtype)) {
    Told told;
    told.a = static_cast<int64_t>(type);
    told.b = static_cast<int64_t>(tensor.dtype);
    tell(kDtype, tensor.role, site, told);
    if (item_size(type) != item_size(tensor.dtype)) stop();
  }
}

// Says that this core wrote the elements; whether another one had written some of them.
bool mark_written(uint8_t* shadow, size_t count, uint8_t bit, bool threads) {
  const uint64_t bits = 0x0101010101010101u * bit;
  uint64_t others = 0;
  size_t i = 0;
  for (; !threads && i + 8 <= count; i += 8) {  // eight elements at a time
    uint64_t eight;
    memcpy(&eight, shadow + i, 8);
    others |= eight;
    eight |= bits;
    memcpy(shadow + i, &eight, 8);
  }
  for (; i < count; i++) others |= __atomic_fetch_or(shadow + i, bit, __ATOMIC_RELAXED);
  return (others & ~bits) != 0;
}

// Tells of the elements that this core reads and another one has written, of an output that several cores write.
void judge_readers(const CoreState& state, const TensorImpl& tensor, Piece piece, uint64_t site) {
  const uint8_t others = static_cast<uint8_t>(~(1u << state.id));
  size_t first = piece.count, last = 0;
  for (size_t i = 0; i < piece.count; i++) {
    if (!(__atomic_load_n(tensor.shadow + piece.offset + i, __ATOMIC_RELAXED) & others)) continue;
    first = i < first ? i : first;
    last = i;
  }
  if (first == piece.count) return;
  Told told;
  told.a = static_cast<int64_t>(piece.offset + first);
  told.b = static_cast<int64_t>(piece.offset + last);
  tell(kReadOfOthers, tensor.role, site, told);
}

// Whether one of the words is `wanted`, of the bits of it that are set.
template <typename Word>
NKT_HOT bool holds_word(const Word* words, size_t count, Word wanted) {
  Word most = 0;
  for (size_t i = 0; i < count; i++) {
    const Word word = static_cast<Word>(words[i] & wanted);
    most = word > most ? word : most;
  }
  return most == wanted;
}

// Made of canaries of 0xff: NaNs of either sign, whose bits go through arithmetic unchanged, and integers of 16 or 32
// bits. They may be numbers all the same: Python runs again with another canary to be sure.
bool seems_unwritten(const Call& call, const TensorImpl& tensor, const void* data, size_t count) {
  if (call.canary != 0xff || tensor.item_shift == 0) return false;
  const uint32_t wanted = is_floating(tensor.dtype) ? 0x7fffffff : 0xffffffff;
  if (tensor.item_shift == 2) return holds_word(static_cast<const uint32_t*>(data), count, wanted);
  return holds_word(static_cast<const uint16_t*>(data), count, static_cast<uint16_t>(wanted >> 16));
}

}  // namespace

void tensor_to_tcm(TensorImpl* tensor, void* pointer, size_t offset, size_t count, c10::ScalarType type) {
  const uint64_t site = NKT_SITE;
  CoreState& state = enter_to_move();
  const int shift = tensor->item_shift;
  state.record->tcm_reads++;
  state.record->tcm_bytes_read += count << shift;
  judge_type(*tensor, type, site);
  const Buffer buffer = judge_buffer(state, pointer, count, *tensor, site);
  const Piece piece = judge_range(*tensor, offset, buffer.room, kOutOfBoundsRead, site);
  lay_open(*tensor);
  if (NKT_RARE(tensor->role == kOutput && tensor->shadow && state.call->multicore)) {
    judge_readers(state, *tensor, piece, site);
  }
  memcpy(pointer, tensor->data + (piece.offset << shift), piece.count << shift);
  if (NKT_RARE(piece.count < buffer.room && buffer.block)) {
    fill_lost(static_cast<char*>(pointer) + (piece.count << shift), (buffer.room - piece.count) << shift);
  }
  note_move(state, kTensorToTcm, tensor, buffer.block, piece.offset, piece.count, site, pointer);
  if (buffer.block) note_filled(state, *buffer.block, pointer, piece.count << shift, *tensor);
}

namespace {

// The elements of a tensor that a copy takes from behind the end of its block are written all the same.
void write_lost(TensorImpl& tensor, size_t offset, size_t room, size_t count, uint8_t bit) {
  const size_t numel = static_cast<size_t>(tensor.numel);
  if (offset >= numel || numel - offset <= room) return;
  const size_t end = count < numel - offset ? offset + count : numel;
  lay_open(tensor);
  for (size_t i = offset + room; i < end; i++) {
    fill_lost(tensor.data + (i << tensor.item_shift), size_t(1) << tensor.item_shift);
    if (tensor.shadow && !__atomic_load_n(tensor.shadow + i, __ATOMIC_RELAXED)) __atomic_fetch_or(tensor.shadow + i, bit, __ATOMIC_RELAXED);
  }
}

}  // namespace

void tcm_to_tensor(TensorImpl* tensor, const void* pointer, size_t offset, size_t count, c10::ScalarType type) {
  const uint64_t site = NKT_SITE;
  CoreState& state = enter_to_move();
  const int shift = tensor->item_shift;
  state.record->tcm_writes++;
  state.record->tcm_bytes_written += count << shift;
  judge_type(*tensor, type, site);
  const Buffer buffer = judge_buffer(state, pointer, count, *tensor, site);
  const Piece piece = judge_range(*tensor, offset, buffer.room, kOutOfBoundsWrite, site);
  const uint8_t bit = static_cast<uint8_t>(1u << state.id);
  const bool listed = tensor->written && tensor->written->add(piece.offset, piece.count, bit);
  memcpy(tensor->data + (piece.offset << shift), pointer, piece.count << shift);
  note_move(state, kTcmToTensor, tensor, buffer.block, piece.offset, piece.count, site, pointer);
  // What a block held before it was filled may be in another one: a first call with arrays of a shape looks at all.
  const bool certain = state.unfilled == 0 && !state.direct && !state.call->at_once;
  if (NKT_RARE(!certain && seems_unwritten(*state.call, *tensor, pointer, piece.count))) tell(kCanaryCopied, tensor->role, site);
  if (!listed && tensor->shadow && mark_written(tensor->shadow + piece.offset, piece.count, bit, state.call->threads)) {
    Told told;
    told.a = static_cast<int64_t>(piece.offset);
    told.b = static_cast<int64_t>(piece.offset + piece.count) - 1;
    tell(kOverlap, tensor->role, site, told);
  }
  if (NKT_RARE(buffer.room < count)) write_lost(*tensor, offset, buffer.room, count, bit);
}

}  // namespace nkt
