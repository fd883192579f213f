// The library's operators and kernels, and calls of them.
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <exception>
#include <new>
#include <typeinfo>

#include "nkitools/bind.h"
#include "state.h"

namespace nkt {

#if defined(__GLIBCXX__)
// A clause that catches nothing: the runtime of C++ asks its type first, while the stack of the throw is still whole.
// No file defines `key`, so that the type's description is the object below and not the compiler's own.
struct Thrown {
  virtual void key();
};

class Watcher : public std::type_info {
 public:
  Watcher() : std::type_info("nkt::Thrown") {}
  bool __do_catch(const std::type_info*, void**, unsigned) const override {
    note_throw();
    return false;
  }
};
extern Watcher watcher __asm__("_ZTIN3nkt6ThrownE");
Watcher watcher;
#endif

namespace {

constexpr int kMaxNames = 256;

struct Named {
  const char* library;
  Bound bound;
};

Named kernels[kMaxNames];
Named operators[kMaxNames];
int kernel_count = 0;
int operator_count = 0;

void find_base() {
  if (library_base) return;
  Dl_info found;
  if (dladdr(reinterpret_cast<void*>(&find_base), &found)) library_base = reinterpret_cast<uint64_t>(found.dli_fbase);
}

Value value_of(CoreState& state, int index, char* memory) {
  const Argument& argument = state.call->args[index];
  Value value = {nullptr, c10::Scalar()};
  if (argument.kind == kScalarDouble) {
    value.scalar = c10::Scalar(argument.number);
  } else if (argument.kind == kScalarInteger) {
    value.scalar = c10::Scalar(static_cast<long long>(argument.integer));
  } else {
    const TensorRecord& record = argument.tensor;
    value.tensor = make_tensor(record.sizes, static_cast<size_t>(record.dim), static_cast<c10::ScalarType>(record.dtype), index, 0);
    value.tensor->data = memory ? memory + record.offset : nullptr;
    char* apart = memory ? guarded_memory(*state.call, *value.tensor) : nullptr;
    if (apart) {
      memcpy(apart, value.tensor->data, static_cast<size_t>(value.tensor->numel) << value.tensor->item_shift);
      value.tensor->data = apart;
    }
  }
  return value;
}

void describe(TensorRecord& record, const TensorImpl& tensor) {
  record.dim = tensor.dims;
  record.dtype = static_cast<int32_t>(tensor.dtype);
  record.numel = tensor.numel;
  memcpy(record.sizes, tensor.sizes, sizeof record.sizes);
}

// Into the output, where the tensor's memory is not that already.
void put_out(const Call& call, const TensorImpl& tensor, char* memory, Written& written) {
  const size_t numel = static_cast<size_t>(tensor.numel);
  char* output = memory + call.out.offset;
  uint8_t* shadow = reinterpret_cast<uint8_t*>(memory + call.shadow);
  if (tensor.data == output) return;
  written.give_up();
  memcpy(output, tensor.data, numel * item_size(tensor.dtype));
  if (!tensor.shadow) {
    memset(shadow, 1, numel);
  } else {
    memcpy(shadow, tensor.shadow, numel);
  }
}

// The returned tensor becomes the output, as on the device where the destination tensor was not taken.
void keep_result(CoreState& state, TensorImpl* result, char* memory, Written& written) {
  Call& call = *state.call;
  if (!result) return;
  describe(call.returned, *result);
  if (!is_as_said(call, *result)) {
    tell(kReturned, result->role, result->site);
    return;
  }
  put_out(call, *result, memory, written);
  call.output_site = result->site;
  call.output_serial = result->serial;
  if (result->by_reference) call.by_reference = 1;
}

void tell_exception(const char* what) {
  Told told;
  told.text = what;
#if defined(__GLIBCXX__)
  told.thrown = true;
#endif
  tell(kException, kNoTensor, 0, told);
  core->record->status = kCrashed;
}

TensorImpl* invoke(CoreState& state, const Bound& bound, const Value* values) {
  try {
    TensorImpl* result = bound.invoke(bound.function, values);
    state.record->status = kFinished;
    return result;
  } catch (const Stop&) {
    if (state.record->status == kRunning) state.record->status = kStopped;
#if defined(__GLIBCXX__)
  } catch (Thrown&) {
#endif
  } catch (const std::bad_alloc&) {
    tell_exception("std::bad_alloc: there is no memory left");
  } catch (const std::exception& error) {
    tell_exception(error.what());
  } catch (...) {
    tell_exception("an exception that is no std::exception");
  }
  return nullptr;
}

// Runs a kernel or shape function; crashes come back here.
TensorImpl* guarded(CoreState& state, const Bound& bound, const Value* values) {
  state.record->status = kRunning;
  own_process = getpid();
  state.stack_top = static_cast<char*>(__builtin_frame_address(0));
  if (sigsetjmp(state.jump, 0) != 0) return nullptr;
  return invoke(state, bound, values);
}

void run_core(Call& call, char* memory, Written& written, int id) {
  CoreState* state = new_core();
  state->id = id;
  state->call = &call;
  state->record = &call.core[id];
  core = state;
  start_pool(*state);
  Value values[kMaxArguments] = {};
  for (int i = 0; i < call.arguments; i++) values[i] = value_of(*state, i, memory);
  state->destination = make_tensor(call.out.sizes, static_cast<size_t>(call.out.dim), static_cast<c10::ScalarType>(call.out.dtype), kOutput, 0);
  state->destination->data = memory + call.out.offset;
  state->destination->shadow = reinterpret_cast<uint8_t*>(memory + call.shadow);
  state->destination->written = &written;
  if (char* apart = guarded_memory(call, *state->destination)) {
    memset(apart, call.canary, static_cast<size_t>(call.out.numel) << state->destination->item_shift);
    state->destination->data = apart;
    state->destination->written = nullptr;
  }

  const Bound& bound = kernels[call.kernel].bound;
  TensorImpl* result = guarded(*state, bound, values);
  const bool finished = state->record->status == kFinished;
  if (finished && call.multicore && !state->record->dst_taken) {
    tell(kDstMissing, kNoTensor, reinterpret_cast<uint64_t>(bound.function) - library_base);
  }
  if (finished && !state->record->dst_taken) keep_result(*state, result, memory, written);
  if (finished && state->record->dst_taken) put_out(call, *state->destination, memory, written);
  if (state->destination->by_reference) call.by_reference = 1;
  end_pool(*state, finished);
  const int64_t limit = call.stack_limit;
  if (limit && state->record->stack_bytes > static_cast<uint64_t>(limit)) {
    Told told;
    told.a = static_cast<int64_t>(state->record->stack_bytes);
    tell(kStack, kNoTensor, reinterpret_cast<uint64_t>(bound.function) - library_base, told);
  }
  if (finished) {  // else somebody may still hold them
    release(result);
    release(state->destination);
    for (int i = 0; i < call.arguments; i++) release(values[i].tensor);
  }
  core = nullptr;
  delete state;
}

struct Thread {
  Call* call;
  char* memory;
  Written* written;
  int id;
  pthread_t handle;
};

void* run_thread(void* argument) {
  Thread& thread = *static_cast<Thread*>(argument);
  if (thread.call->trap) give_signal_stack();
  run_core(*thread.call, thread.memory, *thread.written, thread.id);
  return nullptr;
}

void run_threads(Call& call, char* memory, Written& written) {
  Thread threads[kMaxCores];
  sigset_t alarm_signal, mask;
  sigemptyset(&alarm_signal);
  sigaddset(&alarm_signal, SIGALRM);
  for (int i = 0; i < call.cores; i++) {
    threads[i] = Thread{&call, memory, &written, call.order[i], pthread_t()};
    if (pthread_create(&threads[i].handle, nullptr, run_thread, &threads[i]) != 0) threads[i].call = nullptr;
  }
  // The alarm is for the cores, who know where they are.
  pthread_sigmask(SIG_BLOCK, &alarm_signal, &mask);
  for (int i = 0; i < call.cores; i++) {
    if (threads[i].call) pthread_join(threads[i].handle, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

bool holds(const char* at, size_t bytes, char value) {
  for (size_t i = 0; i < bytes; i++) {
    if (at[i] != value) return false;
  }
  return true;
}

constexpr size_t kAtOnce = 256;

// Whether each of so many elements was written by one core.
NKT_HOT bool written_once(const uint8_t* shadow) {
  uint8_t other = 0;
  for (size_t i = 0; i < kAtOnce; i++) {
    const uint8_t cores = shadow[i];
    other = static_cast<uint8_t>(other | (cores & (cores - 1)) | (cores == 0));
  }
  return other == 0;
}

// What was written through references is known by the canary alone; Python runs again with another one to be sure.
void judge_output(Call& call, char* memory, Written& written) {
  if (written.listed()) {
    call.unwritten = static_cast<int64_t>(written.missing());
    if (call.unwritten) written.lay_open();
    return;
  }
  const size_t numel = static_cast<size_t>(call.out.numel);
  const size_t item = item_size(static_cast<c10::ScalarType>(call.out.dtype));
  uint8_t* shadow = reinterpret_cast<uint8_t*>(memory + call.shadow);
  const char* data = memory + call.out.offset;
  if (call.by_reference) {
    for (size_t i = 0; i < numel; i++) {
      if (!shadow[i] && !holds(data + i * item, item, static_cast<char>(call.canary))) shadow[i] = 1;
    }
  }
  for (size_t i = 0; i < numel; i++) {
    while (i + kAtOnce <= numel && written_once(shadow + i)) i += kAtOnce;
    if (i == numel) break;
    call.unwritten += shadow[i] == 0;
    call.overlapping += (shadow[i] & (shadow[i] - 1)) != 0;
  }
}

int64_t list(const Named* named, int count, char* buffer, int64_t size) {
  int64_t used = 0;
  for (int i = 0; i < count; i++) {
    const Bound& bound = named[i].bound;
    used += snprintf(buffer + used, used < size ? static_cast<size_t>(size - used) : 0, "%s\t%s\t%s\t%s\t%llu\n", named[i].library,
                     bound.name, bound.kernel, bound.signature,
                     static_cast<unsigned long long>(reinterpret_cast<uint64_t>(bound.function) - library_base));
    if (used >= size) return -1;
  }
  return used;
}

}  // namespace

bool is_as_said(const Call& call, const TensorImpl& tensor) {
  bool same = tensor.dims == call.out.dim && static_cast<int32_t>(tensor.dtype) == call.out.dtype;
  for (int i = 0; same && i < tensor.dims; i++) same = tensor.sizes[i] == call.out.sizes[i];
  return same;
}

void add_kernel(const Bound& bound) {
  if (kernel_count < kMaxNames) kernels[kernel_count++] = Named{"", bound};
}

void add_operator(const char* library, const Bound& bound) {
  if (operator_count < kMaxNames) operators[operator_count++] = Named{library, bound};
}

}  // namespace nkt

#define NKT_EXPORT extern "C" __attribute__((visibility("default")))

NKT_EXPORT int64_t nkt_abi_size() { return static_cast<int64_t>(sizeof(nkt::Call)); }

// Once in each process, before the first call: what loads libraries, or allocates, when it is used first.
NKT_EXPORT void nkt_prepare() {
  nkt::find_base();
  void* frames[2];
  backtrace(frames, 2);
}

// Operators (or kernels), a line each: library, name, kernel, signature and address, with tabs between.
NKT_EXPORT int64_t nkt_operators(char* buffer, int64_t size) {
  nkt::find_base();
  return nkt::list(nkt::operators, nkt::operator_count, buffer, size);
}
NKT_EXPORT int64_t nkt_kernels(char* buffer, int64_t size) {
  nkt::find_base();
  return nkt::list(nkt::kernels, nkt::kernel_count, buffer, size);
}

// Asks operator call->op for the shape of its result.
NKT_EXPORT void nkt_shape(nkt::Call* call) {
  using namespace nkt;
  find_base();
  call->base = library_base;
  call->stage = 1;
  CoreState* state = new_core();
  CoreRecord record = CoreRecord();
  state->call = call;
  state->record = &record;
  core = state;
  if (call->trap) {
    give_signal_stack();
    catch_signals(true);
    if (call->timeout_ms > 0) arm_timeout(call->timeout_ms);
  }
  Value values[kMaxArguments] = {};
  for (int i = 0; i < call->arguments; i++) values[i] = value_of(*state, i, nullptr);
  TensorImpl* result = guarded(*state, operators[call->op].bound, values);
  if (result) {
    const int64_t offset = call->out.offset;
    describe(call->out, *result);
    call->out.offset = offset;
    call->output_site = result->site;
    call->stage = 2;
  }
  core = nullptr;
  delete state;
  if (call->trap) catch_signals(false);
}

// Runs kernel call->kernel on its cores. `memory` holds the arguments, and has room for the output and its shadow.
NKT_EXPORT void nkt_run(nkt::Call* call, char* memory) {
  using namespace nkt;
  find_base();
  call->base = library_base;
  const size_t numel = static_cast<size_t>(call->out.numel);
  Written written;
  written.begin(memory + call->out.offset, reinterpret_cast<uint8_t*>(memory + call->shadow), numel,
                item_size(static_cast<c10::ScalarType>(call->out.dtype)), call->canary, !call->threads);
  if (call->trap) {
    give_signal_stack();
    catch_signals(true);
    if (call->timeout_ms > 0) arm_timeout(call->timeout_ms);
  }
  if (call->threads) {
    run_threads(*call, memory, written);
  } else {
    for (int i = 0; i < call->cores; i++) run_core(*call, memory, written, call->order[i]);
  }
  judge_output(*call, memory, written);
  call->stage = 3;
  if (call->trap) catch_signals(false);
}
