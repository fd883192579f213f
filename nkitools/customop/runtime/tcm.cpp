// The TCM pool of a core, and copies between it and tensors.
//
// Each block ends at a page that nobody may touch, and a freed one is taken away: an access beyond a block, or after it
// was freed, faults at the instruction that makes it.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "state.h"

namespace nkt {

namespace {

constexpr size_t kMargin = 64;  // before a block, and what is left behind it: filled with kFence
constexpr unsigned char kFence = 0xA5;

size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// As much as a block's elements may need to be aligned; the rest of its last one stays before the guard page.
size_t slack_of(size_t bytes) { return rounded_up(bytes, 4) - bytes; }

char* slot_start(CoreState& state, int slot) { return state.arena + static_cast<size_t>(slot) * state.slot_bytes; }

void note_peak(CoreState& state) {
  if (state.pool_used > state.record->tcm_peak) state.record->tcm_peak = state.pool_used;
}

int free_slot(CoreState& state) {
  for (int tried = 0; tried < kSlots; tried++) {
    const int slot = (state.next_slot + tried) % kSlots;
    if (state.blocks[slot].state != kLive) {
      state.next_slot = (slot + 1) % kSlots;
      return slot;
    }
  }
  return -1;
}

char* take_memory(CoreState& state, int slot, size_t bytes) {
#ifdef NKT_SANITIZED
  (void)state;
  (void)slot;
  return static_cast<char*>(malloc(bytes));
#else
  const size_t guard = state.slot_bytes - page_bytes();
  const size_t used = rounded_up(bytes + slack_of(bytes) + kMargin, page_bytes());
  char* end = slot_start(state, slot) + guard;
  if (mprotect(end - used, used, PROT_READ | PROT_WRITE) != 0) return nullptr;
  char* start = end - slack_of(bytes) - bytes;
  memset(start - kMargin, kFence, kMargin);
  memset(start + bytes, kFence, slack_of(bytes));
  return start;
#endif
}

// Which side of a block has been written beyond, where no guard page could see it: -1 before, 1 behind, 0 none.
int broken_fence(const Block& block) {
#ifndef NKT_SANITIZED
  for (size_t i = 1; i <= kMargin; i++) {
    if (static_cast<unsigned char>(block.start[-static_cast<ptrdiff_t>(i)]) != kFence) return -1;
  }
  for (size_t i = 0; i < slack_of(block.bytes); i++) {
    if (static_cast<unsigned char>(block.start[block.bytes + i]) != kFence) return 1;
  }
#else
  (void)block;
#endif
  return 0;
}

void judge_fence(const Block& block, uint64_t site) {
  const int side = broken_fence(block);
  if (side == 0) return;
  Told told;
  told.a = static_cast<int64_t>(block.bytes);
  told.b = side < 0;
  told.c = static_cast<int64_t>(block.allocated);
  tell(kTcmOverrun, kNoTensor, site, told);
}

void give_memory_back(CoreState& state, Block& block) {
#ifdef NKT_SANITIZED
  (void)state;
  free(block.start);
#else
  const size_t slot = static_cast<size_t>(&block - state.blocks);
  mprotect(slot_start(state, static_cast<int>(slot)), state.slot_bytes - page_bytes(), PROT_NONE);
#endif
}

// The addresses of a pool outlive its core: the next one that this thread runs finds its pages there.
struct Arena {
  char* start = nullptr;
  size_t bytes = 0;
  ~Arena() {
    if (start) munmap(start, bytes);
  }
};

char* kept_arena(size_t bytes) {
  static thread_local Arena arena;
  if (!arena.start) {
    void* start = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (start == MAP_FAILED) return nullptr;
    arena.start = static_cast<char*>(start);
    arena.bytes = bytes;
  }
  return arena.start;
}

}  // namespace

void start_pool(CoreState& state) {
  state.slot_bytes = rounded_up(kPool + kMargin, page_bytes()) + page_bytes();
  for (state.slot_shift = 0; (size_t(1) << state.slot_shift) < state.slot_bytes;) state.slot_shift++;
  state.slot_bytes = size_t(1) << state.slot_shift;  // whose number is then found without a division
  state.arena = kept_arena(state.slot_bytes * kSlots);
}

void end_pool(CoreState& state, bool judge) {
  for (Block& block : state.blocks) {
    if (block.state != kLive) continue;
    state.record->tcm_leaked += block.bytes;
    if (judge) {
      judge_fence(block, block.allocated);
      Told told;
      told.a = static_cast<int64_t>(block.bytes);
      tell(kTcmLeak, kNoTensor, block.allocated, told);
    }
    give_memory_back(state, block);
  }
}

Block* block_at(CoreState& state, const void* address) {
#ifdef NKT_SANITIZED
  for (Block& block : state.blocks) {
    const char* at = static_cast<const char*>(address);
    if (block.state != kUnused && at >= block.start && at < block.start + block.bytes) return &block;
  }
  return nullptr;
#else
  const char* at = static_cast<const char*>(address);
  if (!state.arena || at < state.arena || at >= state.arena + state.slot_bytes * kSlots) return nullptr;
  Block& block = state.blocks[static_cast<size_t>(at - state.arena) >> state.slot_shift];
  return block.state == kUnused ? nullptr : &block;
#endif
}

namespace {

struct Piece {
  size_t offset;
  size_t count;
};

// Judges the buffer of a copy; how many elements of it there are.
size_t judge_buffer(const void* pointer, size_t count, const TensorImpl& copied, uint64_t site) {
  CoreState& state = *core;
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
    return count;
  }
  told.c = static_cast<int64_t>(block->allocated);
  if (NKT_RARE(block->state == kFreed)) {
    told.a = static_cast<int64_t>(block->bytes);
    told.d = static_cast<int64_t>(block->freed);
    tell(kTcmFreedUse, tensor, site, told);
    stop();
  }
  const char* at = static_cast<const char*>(pointer);
  const char* end = block->start + block->bytes;
  const size_t room = at >= block->start && at < end ? static_cast<size_t>(end - at) >> copied.item_shift : 0;
  if (NKT_RARE(count > room)) {
    told.a = static_cast<int64_t>(count << copied.item_shift);
    told.b = static_cast<int64_t>(room << copied.item_shift);
    told.d = static_cast<int64_t>(block->bytes);
    tell(kTcmTooSmall, tensor, site, told);
    return room;
  }
  return count;
}

// The part of a copy that lies in the tensor; what lies outside is told.
Piece judge_range(const TensorImpl& tensor, size_t offset, size_t count, EventKind kind, uint64_t site) {
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

void judge_type(const TensorImpl& tensor, c10::ScalarType type, uint64_t site) {
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

// Whether floats are among them that were made of canaries of 0xff: NaNs whose bits go through arithmetic unchanged.
template <typename Word>
NKT_HOT bool holds_canary(const Word* words, size_t count) {
  const Word nan = static_cast<Word>(static_cast<Word>(~Word(0)) >> 1);  // of either sign
  Word most = 0;
  for (size_t i = 0; i < count; i++) {
    const Word word = static_cast<Word>(words[i] & nan);
    most = word > most ? word : most;
  }
  return most == nan;
}

// A NaN may have come with the arguments: Python runs again with another canary to be sure.
bool seems_unwritten(const TensorImpl& tensor, const void* data, size_t count) {
  if (core->call->canary != 0xff || !is_floating(tensor.dtype)) return false;
  if (tensor.item_shift == 2) return holds_canary(static_cast<const uint32_t*>(data), count);
  return holds_canary(static_cast<const uint16_t*>(data), count);
}

}  // namespace

void tensor_to_tcm(TensorImpl* tensor, void* pointer, size_t offset, size_t count, c10::ScalarType type) {
  const uint64_t site = NKT_SITE;
  note_stack();
  const int shift = tensor->item_shift;
  core->record->tcm_reads++;
  core->record->tcm_bytes_read += count << shift;
  judge_type(*tensor, type, site);
  const size_t room = judge_buffer(pointer, count, *tensor, site);
  const Piece piece = judge_range(*tensor, offset, room < count ? room : count, kOutOfBoundsRead, site);
  memcpy(pointer, tensor->data + (piece.offset << shift), piece.count << shift);
}

void tcm_to_tensor(TensorImpl* tensor, const void* pointer, size_t offset, size_t count, c10::ScalarType type) {
  const uint64_t site = NKT_SITE;
  note_stack();
  const int shift = tensor->item_shift;
  core->record->tcm_writes++;
  core->record->tcm_bytes_written += count << shift;
  judge_type(*tensor, type, site);
  const size_t room = judge_buffer(pointer, count, *tensor, site);
  const Piece piece = judge_range(*tensor, offset, room < count ? room : count, kOutOfBoundsWrite, site);
  memcpy(tensor->data + (piece.offset << shift), pointer, piece.count << shift);
  if (NKT_RARE(seems_unwritten(*tensor, pointer, piece.count))) tell(kCanaryCopied, tensor->role, site);
  if (tensor->shadow &&
      mark_written(tensor->shadow + piece.offset, piece.count, static_cast<uint8_t>(1u << core->id), core->call->threads)) {
    Told told;
    told.a = static_cast<int64_t>(piece.offset);
    told.b = static_cast<int64_t>(piece.offset + piece.count) - 1;
    tell(kOverlap, tensor->role, site, told);
  }
}

}  // namespace nkt

namespace torch {
namespace neuron {

void* tcm_malloc(size_t nbytes) {
  using namespace nkt;
  CoreState& state = *core;
  note_stack();
  const int slot = nbytes <= kPool - state.pool_used ? free_slot(state) : -1;
  char* start = slot < 0 || (!state.arena) ? nullptr : take_memory(state, slot, nbytes);
  if (start == nullptr) {
    state.malloc_failed = true;
    state.failed_bytes = nbytes;
    state.failed_in_use = state.pool_used;
    state.failed_site = NKT_SITE;
    return nullptr;
  }
  // Neither numbers nor an earlier buffer's: what is used before it is written shows.
  memset(start, state.call->canary, nbytes);
  state.blocks[slot] = Block{kLive, start, nbytes, NKT_SITE, 0};
  state.pool_used += nbytes;
  note_peak(state);
  return start;
}

void tcm_free(void* pointer) {
  using namespace nkt;
  CoreState& state = *core;
  const uint64_t site = NKT_SITE;
  note_stack();
  Told told;
  if (pointer == nullptr) {
    if (state.malloc_failed) return;  // it is what tcm_malloc returned
    told.a = 3;
    tell(kBadFree, kNoTensor, site, told);
    return;
  }
  Block* block = block_at(state, pointer);
  if (block == nullptr || block->state == kFreed || block->start != pointer) {
    told.a = block == nullptr ? 0 : block->state == kFreed ? 1 : 2;
    told.b = block == nullptr ? 0 : static_cast<int64_t>(block->bytes);
    told.c = block == nullptr ? 0 : static_cast<int64_t>(block->allocated);
    told.d = block == nullptr ? 0 : static_cast<int64_t>(block->freed);
    tell(kBadFree, kNoTensor, site, told);
    return;
  }
  judge_fence(*block, site);
  block->state = kFreed;
  block->freed = site;
  state.pool_used -= block->bytes;
  give_memory_back(state, *block);
}

}  // namespace neuron
}  // namespace torch
