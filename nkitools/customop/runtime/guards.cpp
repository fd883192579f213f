// Memory of tensors between pages that nobody may touch, in a call that is made once more for what its first one cannot
// see: an access through a pointer, before or past a tensor (Call::guard).
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "state.h"

namespace nkt {
namespace {

constexpr size_t kGuardBytes = 64 * 1024;  // on either side
constexpr int kMostGuarded = 64;
GuardedMemory apart[kMostGuarded];
int apart_count = 0;

}  // namespace

char* guarded_memory(const Call& call, const TensorImpl& tensor) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = static_cast<size_t>(tensor.numel) << tensor.item_shift;
  const size_t open = (bytes + page - 1) / page * page;
  if (call.guard == kGuardNone || call.multicore || apart_count == kMostGuarded) return nullptr;
  void* all = mmap(nullptr, open + 2 * kGuardBytes, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  char* start = static_cast<char*>(all) + kGuardBytes;
  if (open && mprotect(start, open, PROT_READ | PROT_WRITE) != 0) return nullptr;
  if (call.guard == kGuardEnd) start += open - bytes;
  apart[apart_count++] = GuardedMemory{start, bytes, tensor.role};
  return start;
}

const GuardedMemory* guarded_at(const void* address) {
  const char* at = static_cast<const char*>(address);
  for (int i = 0; i < apart_count; i++) {
    const GuardedMemory& each = apart[i];
    if (at >= each.start - kGuardBytes && at < each.start + each.bytes + kGuardBytes) return &each;
  }
  return nullptr;
}

}  // namespace nkt
