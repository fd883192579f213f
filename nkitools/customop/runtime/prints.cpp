// printf and its kin: these definitions take the place of the C library's within an operator's library.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

namespace nkt {
namespace {

int prints_lock = 0;

// Beyond the buffer the oldest is lost (Limitations of printf, custom-ops-ref-guide); here half of it at a time.
void make_room(Call& call, int32_t bytes) {
  if (call.prints_used + bytes <= kPrintBytes) return;
  int32_t cut = 0;
  while (cut < call.prints_used && (cut < kPrintBytes / 2 || call.prints_used - cut + bytes > kPrintBytes)) {
    PrintRecord record;
    memcpy(&record, call.prints + cut, sizeof record);
    cut += static_cast<int32_t>(sizeof record) + record.bytes;
  }
  memmove(call.prints, call.prints + cut, static_cast<size_t>(call.prints_used - cut));
  call.prints_used -= cut;
}

void keep(const char* text, size_t length, uint64_t site) {
  if (!core) {
    const ssize_t written = write(STDOUT_FILENO, text, length);
    (void)written;
    return;
  }
  note_stack();
  Call& call = *core->call;
  if (call.multicore && core->id != 0) tell(kPrintOffCore, kNoTensor, site);
  const size_t most = kPrintBytes / 4;
  PrintRecord record = {core->id, static_cast<int32_t>(length < most ? length : most), site};
  while (__atomic_exchange_n(&prints_lock, 1, __ATOMIC_ACQUIRE)) {
  }
  make_room(call, static_cast<int32_t>(sizeof record) + record.bytes);
  memcpy(call.prints + call.prints_used, &record, sizeof record);
  memcpy(call.prints + call.prints_used + sizeof record, text, static_cast<size_t>(record.bytes));
  call.prints_used += static_cast<int32_t>(sizeof record) + record.bytes;
  call.print_bytes += record.bytes;
  __atomic_store_n(&prints_lock, 0, __ATOMIC_RELEASE);
}

int keep_formatted(const char* format, va_list arguments, uint64_t site) {
  char small[512];
  va_list again;
  va_copy(again, arguments);
  const int length = vsnprintf(small, sizeof small, format, arguments);
  if (length >= static_cast<int>(sizeof small)) {
    char* large = static_cast<char*>(malloc(static_cast<size_t>(length) + 1));
    if (large) {
      vsnprintf(large, static_cast<size_t>(length) + 1, format, again);
      keep(large, static_cast<size_t>(length), site);
      free(large);
    }
  } else if (length > 0) {
    keep(small, static_cast<size_t>(length), site);
  }
  va_end(again);
  return length;
}

}  // namespace
}  // namespace nkt

#ifndef NKT_SANITIZED  // sanitizers have their own

// Not hidden, as the C library declares them otherwise: that they are taken is the linker's work (build.py).
#define NKT_WITHIN extern "C"

NKT_WITHIN int vprintf(const char* format, va_list arguments) {
  return nkt::keep_formatted(format, arguments, NKT_SITE);
}

NKT_WITHIN int printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = nkt::keep_formatted(format, arguments, NKT_SITE);
  va_end(arguments);
  return length;
}

// What a C library with checks makes of printf.
NKT_WITHIN int __printf_chk(int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = nkt::keep_formatted(format, arguments, NKT_SITE);
  va_end(arguments);
  return length;
}

// What compilers make of a printf without arguments.
NKT_WITHIN int puts(const char* text) {
  const uint64_t site = NKT_SITE;
  nkt::keep(text, strlen(text), site);
  nkt::keep("\n", 1, site);
  return 0;
}

NKT_WITHIN int putchar(int character) {
  const char text = static_cast<char>(character);
  nkt::keep(&text, 1, NKT_SITE);
  return character;
}

#endif
