// What the runtime knows while a call is running. Everything here is of one library: it is linked into each.
#pragma once

#include <setjmp.h>
#include <stdint.h>

#include "nkitools/abi.h"
#include "nkitools/bind.h"
#include "nkitools/tcm.h"

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
constexpr int kSlots = 64;             // blocks of a core before the memory of a freed one is used again

// Loops over elements that are worth vectors; clang makes them so at any level.
#if defined(__GNUC__) && !defined(__clang__)
#define NKT_HOT __attribute__((optimize("O3")))
#else
#define NKT_HOT
#endif

struct TensorImpl {
  int64_t owners;
  char* data;           // null in a shape function: there are shapes only
  uint8_t* shadow;      // of each element, which cores wrote it; null where all of it is written from the start
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
  bool owns_data;
  bool owns_shadow;
  bool by_reference;
  uint64_t site;
};

enum BlockState { kUnused = 0, kLive, kFreed };

struct Block {
  BlockState state;
  char* start;
  size_t bytes;
  uint64_t allocated;
  uint64_t freed;
};

struct CoreState {
  int id;
  Call* call;
  CoreRecord* record;
  TensorImpl* destination;
  bool output_lent;     // the output's memory is that of a tensor that the kernel has made
  char* arena;
  int slot_shift;       // a slot has 1 << slot_shift bytes
  size_t slot_bytes;
  int next_slot;
  Block blocks[kSlots];
  size_t pool_used;
  int streams;
  bool malloc_failed;
  size_t failed_bytes;
  size_t failed_in_use;
  uint64_t failed_site;
  char* stack_top;
  sigjmp_buf jump;
  char lost_element[64];  // stands in for elements that do not exist
};

// Thrown to end a core where nothing further can be computed; the reason has been reported.
struct Stop {};

#if defined(__linux__)
#define NKT_QUICK_TLS __attribute__((tls_model("initial-exec")))
#else
#define NKT_QUICK_TLS
#endif
extern thread_local CoreState* core NKT_QUICK_TLS;
extern uint64_t library_base;

size_t item_size(c10::ScalarType);
bool is_floating(c10::ScalarType);
// Memory that nobody has written, of the tensor's own.
void give_memory(TensorImpl&, uint64_t site);
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
};
// Adds an event, or counts it with the one that is there already for this kind, core, tensor and site.
void tell(EventKind, int tensor, uint64_t site, const Told& = Told());
[[noreturn]] void stop();

// The deepest stack seen; called where an operator enters the runtime.
inline void note_stack() {
  char* here = static_cast<char*>(__builtin_frame_address(0));
  const uint64_t depth = static_cast<uint64_t>(core->stack_top - here);
  if (core->stack_top > here && depth > core->record->stack_bytes) core->record->stack_bytes = depth;
}

void start_pool(CoreState&);
void end_pool(CoreState&, bool judge);
// The block that an address is in or, of a guarded one, just beyond; null where there is none.
Block* block_at(CoreState&, const void*);

void catch_signals(bool on);
void give_signal_stack();
void arm_timeout(int64_t milliseconds);

}  // namespace nkt
