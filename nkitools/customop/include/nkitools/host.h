// What shape functions have beside the guide's names: they run on the host, where torch is PyTorch itself.
#pragma once

#include <sstream>
#include <stdexcept>

#include "nkitools/operations.h"

namespace nkt {

inline void write_all(std::ostream&) {}
template <typename First, typename... Rest>
void write_all(std::ostream& out, const First& first, const Rest&... rest) {
  out << first;
  write_all(out, rest...);
}

template <typename... Parts>
[[noreturn]] void check_failed(const char* condition, const Parts&... parts) {
  std::ostringstream text;
  if (sizeof...(parts) == 0) text << "Expected " << condition << " to be true, but got false.";
  write_all(text, parts...);
  throw std::runtime_error(text.str());
}

}  // namespace nkt

#define TORCH_CHECK(condition, ...) ((condition) ? void() : ::nkt::check_failed(#condition, ##__VA_ARGS__))
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define AT_ASSERT(condition) TORCH_CHECK(condition)

namespace torch {

inline Tensor empty_like(const Tensor& self) { return empty(self.sizes(), self.scalar_type()); }
inline Tensor zeros_like(const Tensor& self) { return zeros(self.sizes(), self.scalar_type()); }
inline Tensor ones_like(const Tensor& self) { return ones(self.sizes(), self.scalar_type()); }

}  // namespace torch
