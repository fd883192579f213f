// The whole runtime: compiled once, and linked into every operator's library.

// glibc's inline definitions would stand beside prints.cpp's own; gcc takes the later ones.
#if defined(__clang__) && !defined(__NO_INLINE__)
#define __NO_INLINE__ 1
#endif

#include "calls.cpp"
#include "crash.cpp"
#include "events.cpp"
#include "guards.cpp"
#include "operations.cpp"
#include "pool.cpp"
#include "prints.cpp"
#include "tcm.cpp"
#include "tensors.cpp"
#include "written.cpp"
