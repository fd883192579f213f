// What the runtime knows while a call is running. Everything here is of one library: it is linked into each.
#pragma once

#include <setjmp.h>
#include <stdint.h>

#include "nkitools/abi.h"
#include "nkitools/bind.h"
#include "nkitools/tcm.h"
#include "written.h"

#if defined(__SANITIZE_ADDRESS__)
#define NKT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NKT_SANITIZED 1
#endif
#endif

namespace nkt {

constexpr size_t kPool = 16384;        // TCM that an operator may have on a core (TCM Accessor, custom-ops-ref-guide)
constexpr size_t kStreamBuffer = 4096; // of it, for each open stream
constexpr int kFastStreams = 4;        // more of them are as slow as element accessors
constexpr int kSlots = 64;             // of a chunk: blocks of a core before the memory of a freed one is used again
constexpr int kMostSlots = 4096;       // as many blocks of 4 bytes fit the pool: a chunk more when all slots are live

// Loops over elements that are worth vectors; clang makes them so at any level.
#if defined(__GNUC__) && !defined(__clang__)
#define NKT_HOT __attribute__((optimize("O3")))
#else
#define NKT_HOT
#endif

// What every copy goes through.
#define NKT_INLINE inline __attribute__((always_inline))

struct TensorImpl {
  int64_t owners;
  char* data;           // null in a shape function: there are shapes only
  uint8_t* shadow;      // of each element, which cores wrote it; null where all of it is written from the start
  Written* written;     // of the output: what stands for data and shadow until it is laid open
  int64_t numel;
  int32_t item_shift;   // an element has 1 << item_shift bytes
  int64_t sizes[kMaxDims + 1];
  int64_t strides[kMaxDims + 1];
  int32_t dims;
  int32_t role;         // an argument's number, kOutput or kLocal
  c10::ScalarType dtype;
  int32_t streams;
  int32_t write_streams;
  int policy;
  int32_t serial;       // no other tensor of the process has it
  bool owns_data;
  bool owns_shadow;
  bool by_reference;
  uint64_t site;
};

enum BlockState { kLive, kFreed };

struct Block {
  BlockState state;
  int slot;
  char* start;
  size_t bytes;
  uint64_t allocated;
  uint64_t freed;
  bool filled;  // a burst from an argument has written all of it
  int number;   // among those of the core
};

// The addresses of a core's blocks. They outlive it: the next core that its thread runs finds its pages there.
struct Arena {
  char* chunks[kMostSlots / kSlots];
  size_t chunk_bytes;
  size_t open[kMostSlots];  // bytes of each slot that can be touched: those before the page at its end
  int used;             // the slots from here on have never been open
  ~Arena();
};

struct CoreState {
  int id;
  Call* call;
  CoreRecord* record;
  TensorImpl* destination;
  bool output_lent;     // the output's memory is that of a tensor that the kernel has made
  Arena* kept;          // null where there is no memory for the first chunk
  int slot_shift;       // a slot has 1 << slot_shift bytes
  size_t slot_bytes;
  int slots;            // of the chunks that this core has begun
  int next_slot;
  int slots_used;       // the slots from here on have had no block
  bool lingering;       // blocks are freed, and the kernel has done nothing since; they may still be open
  bool stale;           // slots may be open that the core before had blocks in
  bool direct;          // elements are handed out: not all that the kernel does passes through the runtime
  size_t pool_used;
  int blocks_begun;
  int unfilled;         // blocks that may hold, or when they were freed may have held, what nobody has written
  int streams;
  bool malloc_failed;
  size_t failed_bytes;
  size_t failed_in_use;
  uint64_t failed_site;
  char* stack_top;
  sigjmp_buf jump;
  char lost_element[64];  // stands in for elements that do not exist
  Block* more[kMostSlots / kSlots - 1];  // blocks of the chunks after the first
  Block blocks[kSlots];   // of the slots used
  Block& block(int slot) { return slot < kSlots ? blocks[slot] : more[slot / kSlots - 1][slot % kSlots]; }
  ~CoreState() {
    for (Block* chunk : more) delete[] chunk;
  }
};

// A core that has done nothing; the caller deletes it.
CoreState* new_core();

// Thrown to end a core where nothing further can be computed; the reason has been reported.
struct Stop {};

extern thread_local CoreState* core;
extern uint64_t library_base;
extern int own_process;  // that runs the call: not a process which the kernel has forked

size_t item_size(c10::ScalarType);
bool is_floating(c10::ScalarType);
// Memory that nobody has written, of the tensor's own.
void give_memory(TensorImpl&, uint64_t site);
// Before elements are read, or written otherwise than by a burst.
inline void lay_open(TensorImpl& tensor) {
  if (tensor.written) tensor.written->lay_open();
}
// Whether a tensor has the shape and dtype that the shape function has said.
bool is_as_said(const Call&, const TensorImpl&);
TensorImpl* make_tensor(const int64_t* sizes, size_t dims, c10::ScalarType, int role, uint64_t site);

// The address in the library of a caller; NKT_SITE is that of who called the runtime.
inline uint64_t site_of(const void* address) { return reinterpret_cast<uint64_t>(address) - 1 - library_base; }
#define NKT_SITE ::nkt::site_of(__builtin_return_address(0))

struct Told {
  int64_t count = 1;
  int64_t a = 0, b = 0, c = 0, d = 0;
  const char* text = "";
  uint64_t exact_pc = 0;  // of a signal: the instruction itself
  bool thrown = false;    // the frames are those of the throw, kept by note_throw
};
// Adds an event, or counts it with the one that is there already for this kind, core, tensor and site.
void tell(EventKind, int tensor, uint64_t site, const Told& = Told());
// Fills memory with what stands in for elements that do not exist: a NaN of every float type, and not what unwritten
// memory holds, or a result that was computed from it and stored would count as never written.
void fill_lost(char* at, size_t bytes);
[[noreturn]] void stop();
// Lists what a core does, of a traced call.
void list_move(CoreState&, const Move&);
inline void note_move(CoreState& state, MoveKind kind, const TensorImpl* tensor, const Block* block, size_t first,
                      size_t count, uint64_t site, const void* at = nullptr) {
  if (!NKT_RARE(state.call->traced)) return;
  const char* byte = static_cast<const char*>(at);
  list_move(state, Move{kind, state.id, tensor ? tensor->role : kNoTensor, block ? block->number : -1,
                        static_cast<int64_t>(first), static_cast<int64_t>(count), block && byte ? byte - block->start : 0,
                        site, tensor ? 1 << tensor->item_shift : 0, tensor ? tensor->serial : 0});
}
// Keeps the frames of the throw that is being looked at; its stack is still whole.
void note_throw();

// Takes away the freed blocks that are still open, and says that the kernel has gone on.
void take_lingering(CoreState&);
void close_stale(CoreState&);

// The deepest stack seen; called where an operator enters the runtime. Finding `core` takes a call: who needs more of it
// keeps what this gives.
inline CoreState& note_stack() {
  CoreState& state = *core;
  char* here = static_cast<char*>(__builtin_frame_address(0));
  const uint64_t depth = static_cast<uint64_t>(state.stack_top - here);
  if (state.stack_top > here && depth > state.record->stack_bytes) state.record->stack_bytes = depth;
  return state;
}

// An operator enters the runtime for more than to free what it has.
inline CoreState& enter() {
  CoreState& state = note_stack();
  if (NKT_RARE(state.lingering)) take_lingering(state);
  return state;
}
// It has its blocks by now: it moves data.
inline CoreState& enter_to_move() {
  CoreState& state = enter();
  if (NKT_RARE(state.stale)) close_stale(state);
  return state;
}

void start_pool(CoreState&);
void end_pool(CoreState&, bool judge);
// Where a tensor lies between pages that nobody may touch.
struct GuardedMemory {
  const char* start;
  size_t bytes;
  int role;
};
// Memory of a tensor between such pages; null where the call asks for none, or there is none.
char* guarded_memory(const Call&, const TensorImpl&);
// The tensor beside which an address lies; null where it is none.
const GuardedMemory* guarded_at(const void*);
// The block that an address is in or, of a guarded one, just beyond; null where there is none.
Block* block_at(CoreState&, const void*);

// Ends the core by what the kernel calls; in a process that the kernel has forked, the process.
[[noreturn]] void end_by_exit(const char* function, int status, uint64_t site);
// Ends the core that forks too often, or the process of its own that does.
[[noreturn]] void end_by_forks(uint64_t site);
// Ends the process, whatever the author's library calls _exit.
[[noreturn]] void leave(int status);
void catch_signals(bool on);
void give_signal_stack();
void arm_timeout(int64_t milliseconds);

}  // namespace nkt
