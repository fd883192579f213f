// NEURON_LIBRARY: which operators a library has (Building and executing operators, custom C++ operators guide).
#pragma once

#include "nkitools/bind.h"

namespace nkt {

class Library {
 public:
  explicit Library(const char* name) : name_(name) {}

  // An operator: its name, the function that tells the shape of its result, and the kernel's name in the compute
  // sources, with the parameters of the shape function.
  template <typename R, typename... A>
  Library& def(const char* name, R (*shape_function)(A...), const char* kernel) {
    add_operator(name_, bind(name, kernel, shape_function));
    return *this;
  }

 private:
  const char* name_;
};

struct Registration {
  Registration(const char* name, void (*define)(Library&)) {
    Library library(name);
    define(library);
  }
};

}  // namespace nkt

#define NEURON_LIBRARY(name, variable)                                                       \
  static void nkt_define_##name(::nkt::Library& variable);                                   \
  static const ::nkt::Registration nkt_registration_##name(#name, &nkt_define_##name);       \
  static void nkt_define_##name(::nkt::Library& variable)
