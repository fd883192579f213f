// printf and its kin, and exit: these definitions take the place of the C library's within an operator's library.
#include <pthread.h>
#include <signal.h>
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

void keep(const char* text, size_t length, uint64_t site, const PrintedValue* values = nullptr, int32_t count = 0) {
  if (!core) {
    const ssize_t written = write(STDOUT_FILENO, text, length);
    (void)written;
    return;
  }
  enter();
  Call& call = *core->call;
  if (call.multicore && core->id != 0) tell(kPrintOffCore, kNoTensor, site);
  const size_t most = kPrintBytes / 4;
  const int32_t kept = static_cast<int32_t>(length < most ? length : most);
  while (count > 0 && values[count - 1].end > kept) --count;
  const int32_t behind = count * static_cast<int32_t>(sizeof(PrintedValue));
  PrintRecord record = {core->id, kept + behind, site, kept, count};
  while (__atomic_exchange_n(&prints_lock, 1, __ATOMIC_ACQUIRE)) {
  }
  make_room(call, static_cast<int32_t>(sizeof record) + record.bytes);
  char* at = call.prints + call.prints_used;
  memcpy(at, &record, sizeof record);
  memcpy(at + sizeof record, text, static_cast<size_t>(kept));
  if (behind) memcpy(at + sizeof record + kept, values, static_cast<size_t>(behind));
  call.prints_used += static_cast<int32_t>(sizeof record) + record.bytes;
  call.print_bytes += kept;
  __atomic_store_n(&prints_lock, 0, __ATOMIC_RELEASE);
}

// One conversion of a format: "%-8.3lf". Its arguments can be taken where `type` is known.
struct Conversion {
  const char* end;
  int stars;    // widths and precisions that are arguments
  char length;  // 'H' of hh, 'h', 'l', 'L' of ll, 'z', 'j', 't', 'D' of a long double, 0
  char type;
};

Conversion conversion_at(const char* format) {  // behind the %
  Conversion found = {format, 0, 0, 0};
  while (*found.end && strchr("-+ #0123456789.*", *found.end)) found.stars += *found.end++ == '*';
  while (*found.end && strchr("hlzjtL", *found.end)) {
    const char letter = *found.end++;
    if (letter == 'L') found.length = 'D';
    else if (found.length == letter) found.length = letter == 'h' ? 'H' : 'L';
    else found.length = letter;
  }
  found.type = *found.end ? *found.end++ : 0;
  return found;
}

// Writes a text piece by piece, so that it is known where each number stands.
class Formatter {
 public:
  // False where the format has what is not taken apart here; the caller formats as a whole then.
  bool run(const char* format, va_list* arguments) {
    while (*format) {
      const char* percent = strchr(format, '%');
      const size_t plain = percent ? static_cast<size_t>(percent - format) : strlen(format);
      if (!add(format, plain)) return false;
      if (!percent) return true;
      const Conversion one = conversion_at(percent + 1);
      if (one.stars || !one.type || !convert(percent, one, arguments)) return false;
      format = one.end;
    }
    return true;
  }

  char text[512];
  size_t length = 0;
  PrintedValue values[16];
  int32_t count = 0;

 private:
  bool add(const char* piece, size_t size) {
    if (length + size >= sizeof text) return false;
    memcpy(text + length, piece, size);
    length += size;
    return true;
  }

  template <typename T>
  bool print(const char* percent, const Conversion& one, T value) {
    char piece[32];
    const size_t size = static_cast<size_t>(one.end - percent);
    if (size >= sizeof piece) return false;
    memcpy(piece, percent, size);
    piece[size] = 0;
    const int written = snprintf(text + length, sizeof text - length, piece, value);
    if (written < 0 || length + static_cast<size_t>(written) >= sizeof text) return false;
    length += static_cast<size_t>(written);
    return true;
  }

  template <typename T>
  bool number(const char* percent, const Conversion& one, T value, char kind, uint64_t payload) {
    const int32_t begin = static_cast<int32_t>(length);
    if (count == 16 || !print(percent, one, value)) return false;
    values[count++] = {begin, static_cast<int32_t>(length), kind, sizeof(T) == 8 ? 64 : 32, payload};
    return true;
  }

  template <typename Signed, typename Unsigned>
  bool integer(const char* percent, const Conversion& one, va_list* arguments) {
    if (one.type == 'd' || one.type == 'i') {
      const Signed value = va_arg(*arguments, Signed);
      return number(percent, one, value, 'i', static_cast<uint64_t>(static_cast<int64_t>(value)));
    }
    const Unsigned value = va_arg(*arguments, Unsigned);
    return number(percent, one, value, 'u', static_cast<uint64_t>(value));
  }

  bool convert(const char* percent, const Conversion& one, va_list* arguments) {
    if (one.type == '%') return add("%", 1);
    if (strchr("diuxXo", one.type)) {
      if (one.length == 'l' || one.length == 'z' || one.length == 'j' || one.length == 't') {
        return integer<long, unsigned long>(percent, one, arguments);
      }
      if (one.length == 'L') return integer<long long, unsigned long long>(percent, one, arguments);
      return one.length != 'D' && integer<int, unsigned int>(percent, one, arguments);
    }
    if (strchr("fFeEgGaA", one.type) && one.length != 'D') {
      const double value = va_arg(*arguments, double);
      uint64_t payload;
      memcpy(&payload, &value, sizeof payload);
      return number(percent, one, value, 'd', payload);
    }
    if (one.type == 'c' && !one.length) return print(percent, one, va_arg(*arguments, int));
    if (one.type == 's' && !one.length) return print(percent, one, va_arg(*arguments, const char*));
    return one.type == 'p' && print(percent, one, va_arg(*arguments, void*));
  }
};

int keep_whole(const char* format, va_list arguments, uint64_t site) {
  va_list again;
  va_copy(again, arguments);
  const int length = vsnprintf(nullptr, 0, format, arguments);
  char* text = length < 0 ? nullptr : static_cast<char*>(malloc(static_cast<size_t>(length) + 1));
  if (text) {
    vsnprintf(text, static_cast<size_t>(length) + 1, format, again);
    if (length) keep(text, static_cast<size_t>(length), site);
    free(text);
  }
  va_end(again);
  return length;
}

int keep_formatted(const char* format, va_list arguments, uint64_t site) {
  Formatter formatter;
  va_list own;
  va_copy(own, arguments);
  const bool taken_apart = formatter.run(format, &own);
  va_end(own);
  if (!taken_apart) return keep_whole(format, arguments, site);
  if (formatter.length) keep(formatter.text, formatter.length, site, formatter.values, formatter.count);
  return static_cast<int>(formatter.length);
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

NKT_WITHIN pid_t fork() {
  typedef pid_t (*Fork)();
  using namespace nkt;
  if (core && __atomic_add_fetch(&core->call->forks, 1, __ATOMIC_RELAXED) > kMaxForks) end_by_forks(NKT_SITE);
  return reinterpret_cast<Fork>(dlsym(RTLD_NEXT, "fork"))();
}
NKT_WITHIN void exit(int status) { nkt::end_by_exit("exit", status, NKT_SITE); }
NKT_WITHIN void _exit(int status) { nkt::end_by_exit("_exit", status, NKT_SITE); }
NKT_WITHIN void _Exit(int status) { nkt::end_by_exit("_Exit", status, NKT_SITE); }
NKT_WITHIN void quick_exit(int status) { nkt::end_by_exit("quick_exit", status, NKT_SITE); }

// Of the signals that end a process without a word: the others go their way.
NKT_WITHIN int raise(int number) {
  struct sigaction now;
  const bool ends = number == SIGKILL || (number == SIGTERM && sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_DFL);
  if (ends) nkt::end_by_exit("raise", number, NKT_SITE);
  return pthread_kill(pthread_self(), number);
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
