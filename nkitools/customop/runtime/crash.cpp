// Crashes and timeouts, in a process that has been made for the call.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#if defined(__linux__)
#include <sys/syscall.h>
#else
#include <dlfcn.h>
#endif
#include <unistd.h>

#include "state.h"

namespace nkt {
namespace {

const int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
struct sigaction before[5];

struct Place {
  uint64_t pc;
  uint64_t stack;
};

Place place_of(void* context) {
  const ucontext_t* found = static_cast<const ucontext_t*>(context);
#if defined(__linux__) && defined(__x86_64__)
  return Place{static_cast<uint64_t>(found->uc_mcontext.gregs[REG_RIP]), static_cast<uint64_t>(found->uc_mcontext.gregs[REG_RSP])};
#elif defined(__linux__) && defined(__aarch64__)
  return Place{found->uc_mcontext.pc, found->uc_mcontext.sp};
#elif defined(__APPLE__) && defined(__x86_64__)
  return Place{found->uc_mcontext->__ss.__rip, found->uc_mcontext->__ss.__rsp};
#elif defined(__APPLE__) && defined(__aarch64__)
  return Place{static_cast<uint64_t>(__darwin_arm_thread_state64_get_pc(found->uc_mcontext->__ss)),
               static_cast<uint64_t>(__darwin_arm_thread_state64_get_sp(found->uc_mcontext->__ss))};
#else
  (void)found;
  return Place{0, 0};
#endif
}

// Whether a crash is being told: one more then means that the kernel has overwritten what is known of it.
thread_local bool crashing = false;

void on_crash(int number, siginfo_t* info, void* context) {
  if (!core || crashing) {
    signal(number, SIG_DFL);
    raise(number);
    return;
  }
  crashing = true;
  Place place = place_of(context);
#if defined(__x86_64__)
  // A call of a bad address: where it came from lies on the stack.
  if (place.pc == reinterpret_cast<uint64_t>(info->si_addr) && number == SIGSEGV) {
    place.pc = *reinterpret_cast<uint64_t*>(place.stack) - 1;
  }
#endif
  const uint64_t address = reinterpret_cast<uint64_t>(info->si_addr);
  Told told;
  told.exact_pc = place.pc;
  told.a = number;
  told.b = static_cast<int64_t>(address);
  const bool memory = number == SIGSEGV || number == SIGBUS;
  Block* block = memory ? block_at(*core, info->si_addr) : nullptr;
  const GuardedMemory* beside = memory ? guarded_at(info->si_addr) : nullptr;
  static thread_local char text[kTextBytes];
  memset(text, 0, sizeof text);
  if (block) {
    told.c = block->state == kFreed ? 2 : 1;
    told.b = static_cast<int64_t>(address) - static_cast<int64_t>(reinterpret_cast<uint64_t>(block->start));
    told.count = static_cast<int64_t>(block->bytes);
    // Two sites have no other room.
    memcpy(text, &block->allocated, sizeof block->allocated);
    memcpy(text + sizeof block->allocated, &block->freed, sizeof block->freed);
    told.d = 1;
  } else if (beside) {
    told.c = 5;
    told.b = static_cast<int64_t>(address) - static_cast<int64_t>(reinterpret_cast<uint64_t>(beside->start));
    told.count = static_cast<int64_t>(beside->bytes);
  } else if (memory && address < 65536) {
    told.c = 3;
    told.d = core->malloc_failed ? static_cast<int64_t>(core->failed_bytes & INT64_MAX) : -1;
    told.count = static_cast<int64_t>(core->failed_site);
  } else if (memory && address + 65536 > place.stack && address < place.stack + 65536) {
    told.c = 4;
    told.d = core->stack_top - reinterpret_cast<char*>(address);
  }
  core->record->status = kCrashed;
  const int events = core->call->events_used;
  tell(kCrash, beside ? beside->role : kNoTensor, place.pc - library_base, told);
  if (block && core->call->events_used > events) memcpy(core->call->events[events].text, text, 16);
  crashing = false;
  siglongjmp(core->jump, 1);
}

void on_timeout(int) {
  if (core) {
    core->record->status = kTimedOut;
    tell(kTimeout, kNoTensor, 0);
  }
  leave(0);
}

}  // namespace

[[noreturn]] void leave(int status) {
#if defined(__linux__)
  syscall(SYS_exit_group, status);
#else
  typedef void (*Leave)(int);
  reinterpret_cast<Leave>(dlsym(RTLD_NEXT, "_exit"))(status);
#endif
  for (;;) continue;
}

[[noreturn]] void end_by_exit(const char* function, int status, uint64_t site) {
  if (!core || getpid() != own_process) leave(status);
  Told told;
  told.a = status;
  told.text = function;
  core->record->status = kCrashed;
  tell(kExit, kNoTensor, site, told);
  siglongjmp(core->jump, 1);
}

[[noreturn]] void end_by_forks(uint64_t site) {
  if (getpid() != own_process) leave(0);  // the count says so
  Told told;
  told.a = kMaxForks;
  core->record->status = kCrashed;
  tell(kForks, kNoTensor, site, told);
  siglongjmp(core->jump, 1);
}

// Signals of a stack that is used up need another one.
void give_signal_stack() {
  const size_t bytes = 128 * 1024;
  stack_t stack;
  memset(&stack, 0, sizeof stack);
  stack.ss_sp = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
  stack.ss_size = bytes;
  if (stack.ss_sp != MAP_FAILED) sigaltstack(&stack, nullptr);
}

void catch_signals(bool on) {
  for (size_t i = 0; i < sizeof kSignals / sizeof kSignals[0]; i++) {
    if (!on) {
      sigaction(kSignals[i], &before[i], nullptr);
      continue;
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(kSignals[i], &action, &before[i]);
  }
}

void arm_timeout(int64_t milliseconds) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_timeout;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGALRM, &action, nullptr);
  struct itimerval timer;
  memset(&timer, 0, sizeof timer);
  timer.it_value.tv_sec = milliseconds / 1000;
  timer.it_value.tv_usec = static_cast<suseconds_t>(milliseconds % 1000 * 1000);
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace nkt

// What assert() calls when it fails: said here, where its text is known.
namespace {
[[noreturn]] void assertion_failed(const char* expression, uint64_t site) {
  using namespace nkt;
  if (!core) abort();
  Told told;
  told.text = expression;
  tell(kAssertion, kNoTensor, site, told);
  core->record->status = kCrashed;
  siglongjmp(core->jump, 1);  // its callers take it for a function that throws nothing
}
}  // namespace

#if defined(__APPLE__)
extern "C" __attribute__((visibility("hidden"), noreturn)) void __assert_rtn(const char*, const char*, int,
                                                                            const char* expression) {
  assertion_failed(expression, NKT_SITE);
}
#else
extern "C" __attribute__((visibility("hidden"), noreturn)) void __assert_fail(const char* expression, const char*,
                                                                             unsigned, const char*) {
  assertion_failed(expression, NKT_SITE);
}
#endif
