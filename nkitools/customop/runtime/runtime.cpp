// The whole runtime: compiled once, and linked into every operator's library.
#include "calls.cpp"
#include "crash.cpp"
#include "events.cpp"
#include "operations.cpp"
#include "prints.cpp"
#include "tcm.cpp"
#include "tensors.cpp"
#include "written.cpp"
