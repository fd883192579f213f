// A program that makes one call: for sanitizers, which want to be there from the start of a process.
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "nkitools/abi.h"

extern "C" void nkt_prepare();
extern "C" void nkt_run(nkt::Call*, char*);

// The argument is the descriptor of the call's memory.
int main(int count, char** arguments) {
  if (count != 2) return 2;
  const int memory_fd = atoi(arguments[1]);
  struct stat status;
  if (fstat(memory_fd, &status) != 0) return 3;
  void* memory = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
  if (memory == MAP_FAILED) return 4;
  nkt_prepare();
  nkt_run(static_cast<nkt::Call*>(memory), static_cast<char*>(memory));
  return 0;
}
