// What happened, for Python to tell.
#include <dlfcn.h>
#include <execinfo.h>
#include <string.h>

#include "state.h"

namespace nkt {

thread_local CoreState* core = nullptr;
uint64_t library_base = 0;
int own_process = 0;

namespace {

int events_lock = 0;

struct Locked {
  Locked() {
    while (__atomic_exchange_n(&events_lock, 1, __ATOMIC_ACQUIRE)) {
    }
  }
  ~Locked() { __atomic_store_n(&events_lock, 0, __ATOMIC_RELEASE); }
};

constexpr int kDeepest = 2 * kMaxFrames;
thread_local void* thrown_frames[kDeepest];
thread_local int thrown_count = 0;

void add_frames(Event& event, const Told& told) {
  void* own[kDeepest];
  void** frames = told.thrown ? thrown_frames : own;
  const int count = told.thrown ? thrown_count : backtrace(own, kDeepest);
  if (told.exact_pc) event.pcs[event.frames++] = told.exact_pc - library_base;
  for (int i = 0; i < count && event.frames < kMaxFrames; i++) {
    Dl_info found;
    if (!dladdr(frames[i], &found) || reinterpret_cast<uint64_t>(found.dli_fbase) != library_base) continue;
    event.pcs[event.frames++] = site_of(frames[i]);
  }
}

// What is out of bounds is a range: repeats at one site extend it.
void extend(Event& event, const Told& told) {
  const bool ranges = event.kind == kOutOfBoundsRead || event.kind == kOutOfBoundsWrite;
  if (!ranges && event.kind != kOverlap && event.kind != kReadOfOthers) return;
  if (told.a < event.a) event.a = told.a;
  if (told.b > event.b) event.b = told.b;
}

}  // namespace

void tell(EventKind kind, int tensor, uint64_t site, const Told& told) {
  Locked locked;
  Call& call = *core->call;
  for (int i = 0; i < call.events_used; i++) {
    Event& event = call.events[i];
    if (event.kind != kind || event.core != core->id || event.site != site || event.tensor != tensor) continue;
    event.repeats++;
    event.count += told.count;
    extend(event, told);
    return;
  }
  if (call.events_used == kMaxEvents) {
    call.events_dropped++;
    return;
  }
  Event& event = call.events[call.events_used];
  memset(&event, 0, sizeof event);
  event.kind = kind;
  event.core = core->id;
  event.tensor = tensor;
  event.site = site;
  event.count = told.count;
  event.repeats = 1;
  event.a = told.a;
  event.b = told.b;
  event.c = told.c;
  event.d = told.d;
  strncpy(event.text, told.text, kTextBytes - 1);
  add_frames(event, told);
  call.events_used++;
}

void note_throw() { thrown_count = backtrace(thrown_frames, kDeepest); }

void stop() {
  core->record->status = kStopped;
  throw Stop();
}

void list_move(CoreState& state, const Move& move) {
  Call& call = *state.call;
  const int64_t at = __atomic_fetch_add(&call.moves_used, 1, __ATOMIC_RELAXED);
  if (at < kMaxMoves) call.moves[at] = move;
}

}  // namespace nkt
