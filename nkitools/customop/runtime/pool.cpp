// The TCM pool of a core.
//
// Each block ends at a page that nobody may touch, and a freed one is taken away: an access beyond a block, or after it
// was freed, faults at the instruction that makes it. To take it away costs as much as a hundred copies, and nearly all
// kernels free what they have as they end: of those that are known to (Call::at_once is not set), a freed block lingers
// until the runtime is entered again. What is done before can only matter through what is done then, and a call in which
// that happens after all is made again (Call::went_on).
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

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

char* slot_start(CoreState& state, int slot) {
  return state.kept->chunks[slot / kSlots] + static_cast<size_t>(slot % kSlots) * state.slot_bytes;
}

bool has_chunk(Arena& arena, int chunk) {
  if (arena.chunks[chunk]) return true;
  void* start = mmap(nullptr, arena.chunk_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);
  if (start != MAP_FAILED) arena.chunks[chunk] = static_cast<char*>(start);
  return start != MAP_FAILED;
}

void note_peak(CoreState& state) {
  if (state.pool_used > state.record->tcm_peak) state.record->tcm_peak = state.pool_used;
}

int free_slot(CoreState& state) {
  for (int tried = 0; tried < state.slots; tried++) {
    const int slot = (state.next_slot + tried) % state.slots;
    if (slot >= state.slots_used || state.block(slot).state != kLive) return slot;
  }
  const int slot = state.slots;
  if (!state.kept || slot == kMostSlots || !has_chunk(*state.kept, slot / kSlots)) return -1;
  state.more[slot / kSlots - 1] = new (std::nothrow) Block[kSlots];
  if (!state.more[slot / kSlots - 1]) return -1;
  state.slots += kSlots;
  return slot;
}

void close_slot(CoreState& state, int slot) {
  size_t& open = state.kept->open[slot];
  if (open) mprotect(slot_start(state, slot) + state.slot_bytes - page_bytes() - open, open, PROT_NONE);
  open = 0;
}

char* take_memory(CoreState& state, int slot, size_t bytes) {
#ifdef NKT_SANITIZED
  (void)state;
  (void)slot;
  return static_cast<char*>(malloc(bytes));
#else
  const int guard = state.call->guard;
  const size_t slack = guard ? 0 : slack_of(bytes);
  const size_t margin = guard == kGuardFront ? 0 : kMargin;
  const size_t used = rounded_up(bytes + slack + margin, page_bytes());
  char* end = slot_start(state, slot) + state.slot_bytes - page_bytes();
  Arena& kept = *state.kept;
  if (kept.open[slot] != used) {
    close_slot(state, slot);
    if (mprotect(end - used, used, PROT_READ | PROT_WRITE) != 0) return nullptr;
    kept.open[slot] = used;
    if (slot >= kept.used) kept.used = slot + 1;
  }
  if (guard == kGuardFront) return end - used;
  char* start = end - slack - bytes;
  memset(start - kMargin, kFence, kMargin);
  if (guard) return start;
  if (slack_of(bytes)) memset(start + bytes, kFence, slack_of(bytes));  // a store of nothing there costs 100 ns
  return start;
#endif
}

// Which side of a block has been written beyond, where no guard page could see it: -1 before, 1 behind, 0 none.
int broken_fence(const Block& block) {
#ifndef NKT_SANITIZED
  uint64_t words[kMargin / 8], broken = 0;
  memcpy(words, block.start - kMargin, kMargin);
  for (const uint64_t word : words) broken |= word ^ 0x0101010101010101u * kFence;
  if (broken) return -1;
  for (size_t i = 0; i < slack_of(block.bytes); i++) {
    if (static_cast<unsigned char>(block.start[block.bytes + i]) != kFence) return 1;
  }
#else
  (void)block;
#endif
  return 0;
}

void judge_fence(const Block& block, uint64_t site) {
  const int side = core->call->guard ? 0 : broken_fence(block);
  if (side == 0) return;
  Told told;
  told.a = static_cast<int64_t>(block.bytes);
  told.b = side < 0;
  told.c = static_cast<int64_t>(block.allocated);
  tell(kTcmOverrun, kNoTensor, site, told);
}

void give_memory_back(CoreState& state, int slot) {
#ifdef NKT_SANITIZED
  free(state.block(slot).start);
#else
  close_slot(state, slot);
#endif
}

Arena& kept_arena(size_t chunk_bytes) {
  static thread_local Arena arena = Arena();
  arena.chunk_bytes = chunk_bytes;
  return arena;
}

}  // namespace

Arena::~Arena() {
  for (char* chunk : chunks) {
    if (chunk) munmap(chunk, chunk_bytes);
  }
}

CoreState* new_core() {
  CoreState* state = new CoreState;
  memset(state, 0, offsetof(CoreState, blocks));
  return state;
}

void start_pool(CoreState& state) {
  state.slot_bytes = rounded_up(kPool + kMargin, page_bytes()) + page_bytes();
  for (state.slot_shift = 0; (size_t(1) << state.slot_shift) < state.slot_bytes;) state.slot_shift++;
  state.slot_bytes = size_t(1) << state.slot_shift;  // whose number is then found without a division
  Arena& arena = kept_arena(state.slot_bytes * kSlots);
  if (!has_chunk(arena, 0)) return;
  state.kept = &arena;
  state.slots = kSlots;
  state.stale = true;
  if (state.stale && state.call->at_once) close_stale(state);
}

void end_pool(CoreState& state, bool judge) {
  for (int slot = 0; slot < state.slots_used; slot++) {
    Block& block = state.block(slot);
    if (block.state != kLive) continue;
    state.record->tcm_leaked += block.bytes;
    if (judge) {
      judge_fence(block, block.allocated);
      Told told;
      told.count = static_cast<int64_t>(block.bytes);
      tell(kTcmLeak, kNoTensor, block.allocated, told);
    }
#ifndef NKT_SANITIZED
    if (!state.call->at_once) continue;  // the next core will want it
#endif
    give_memory_back(state, slot);
  }
  if (!judge && state.lingering) state.call->went_on = 1;
}

void take_lingering(CoreState& state) {
  for (int slot = 0; slot < state.slots_used; slot++) {
    if (state.block(slot).state == kFreed) give_memory_back(state, slot);
  }
  state.lingering = false;
  state.call->went_on = 1;
}

void close_stale(CoreState& state) {
  for (int slot = state.slots_used; slot < state.kept->used; slot++) close_slot(state, slot);
  state.stale = false;
}

Block* block_at(CoreState& state, const void* address) {
#ifdef NKT_SANITIZED
  for (int slot = 0; slot < state.slots_used; slot++) {
    Block& block = state.block(slot);
    const char* at = static_cast<const char*>(address);
    if (at >= block.start && at < block.start + block.bytes) return &block;
  }
  return nullptr;
#else
  const char* at = static_cast<const char*>(address);
  for (int first = 0; first < state.slots; first += kSlots) {
    // Of what is before the chunk a very large number.
    const size_t slot = static_cast<size_t>(at - state.kept->chunks[first / kSlots]) >> state.slot_shift;
    if (slot >= kSlots) continue;
    const int found = first + static_cast<int>(slot);
    return found < state.slots_used ? &state.block(found) : nullptr;
  }
  return nullptr;
#endif
}

}  // namespace nkt

namespace torch {
namespace neuron {

void* tcm_malloc(size_t nbytes) {
  using namespace nkt;
  CoreState& state = enter();
  const int slot = nbytes <= kPool - state.pool_used ? free_slot(state) : -1;
  char* start = slot < 0 ? nullptr : take_memory(state, slot, nbytes);
  if (start == nullptr) {
    state.malloc_failed = true;
    state.failed_bytes = nbytes;
    state.failed_in_use = state.pool_used;
    state.failed_site = NKT_SITE;
    Told told;
    told.a = static_cast<int64_t>(nbytes & INT64_MAX);
    told.b = static_cast<int64_t>(kPool - state.pool_used);
    tell(kTcmRefused, kNoTensor, state.failed_site, told);
    return nullptr;
  }
  // Neither numbers nor an earlier buffer's: what is used before it is written shows.
  memset(start, state.call->canary, nbytes);
  state.next_slot = (slot + 1) % state.slots;
  if (slot >= state.slots_used) state.slots_used = slot + 1;
  state.block(slot) = Block{kLive, slot, start, nbytes, NKT_SITE, 0, false, state.blocks_begun++};
  note_move(state, kMalloc, nullptr, &state.block(slot), 0, nbytes, state.block(slot).allocated);
  state.unfilled++;
  state.pool_used += nbytes;
  note_peak(state);
  return start;
}

void tcm_free(void* pointer) {
  using namespace nkt;
  const uint64_t site = NKT_SITE;
  CoreState& state = note_stack();
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
  note_move(state, kFree, nullptr, block, 0, block->bytes, site);
  block->state = kFreed;
  block->freed = site;
  state.pool_used -= block->bytes;
#ifndef NKT_SANITIZED
  state.lingering = !state.direct;
#endif
  if (!state.lingering || state.call->at_once) give_memory_back(state, block->slot);
}

}  // namespace neuron
}  // namespace torch
