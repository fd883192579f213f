// torch::Scalar, torch::IntArrayRef and c10::TensorOptions.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "nkitools/entry.h"

// Used by code that runs elsewhere and not in Neuron's reference guide: it works here, and the build says so.
#define NKT_UNDOCUMENTED(what) [[deprecated("nkitools CO112: " what " is not in Neuron's reference guide")]]

namespace c10 {
inline namespace nkt_host {

class Scalar {
 public:
  Scalar() : integral_(true), integer_(0), number_(0) {}
  Scalar(double value) : integral_(false), integer_(0), number_(value) {}
  Scalar(float value) : Scalar(static_cast<double>(value)) {}
  Scalar(BFloat16 value) : Scalar(static_cast<float>(value)) {}
  Scalar(Half value) : Scalar(static_cast<float>(value)) {}
  Scalar(int value) : Scalar(static_cast<long long>(value)) {}
  Scalar(unsigned value) : Scalar(static_cast<long long>(value)) {}
  Scalar(long value) : Scalar(static_cast<long long>(value)) {}
  Scalar(unsigned long value) : Scalar(static_cast<long long>(value)) {}
  Scalar(long long value) : integral_(true), integer_(value), number_(static_cast<double>(value)) {}

  NKT_UNDOCUMENTED("Scalar::toFloat")
  float toFloat() const { return static_cast<float>(number_); }
  NKT_UNDOCUMENTED("Scalar::toDouble")
  double toDouble() const { return number_; }
  NKT_UNDOCUMENTED("Scalar::toInt")
  int toInt() const { return static_cast<int>(integral_ ? integer_ : static_cast<int64_t>(number_)); }
  NKT_UNDOCUMENTED("Scalar::toLong")
  int64_t toLong() const { return integral_ ? integer_ : static_cast<int64_t>(number_); }
  template <typename T>
  NKT_UNDOCUMENTED("Scalar::to")
  T to() const {
    return integral_ ? static_cast<T>(integer_) : static_cast<T>(number_);
  }

  // For the runtime.
  bool nkt_is_integral() const { return integral_; }
  int64_t nkt_integer() const { return integral_ ? integer_ : static_cast<int64_t>(number_); }
  double nkt_number() const { return number_; }

 private:
  bool integral_;
  int64_t integer_;
  double number_;
};

class IntArrayRef {
 public:
  IntArrayRef() : data_(nullptr), length_(0) {}
  IntArrayRef(const int64_t& one) : data_(&one), length_(1) {}
  IntArrayRef(const int64_t* data, size_t length) : data_(data), length_(length) {}
  IntArrayRef(const std::initializer_list<int64_t>& list) : data_(list.begin()), length_(list.size()) {}
  template <size_t N>
  IntArrayRef(const int64_t (&array)[N]) : data_(array), length_(N) {}
  template <typename Container, typename = decltype(static_cast<const int64_t*>(static_cast<const Container*>(nullptr)->data()))>
  IntArrayRef(const Container& container) : data_(container.data()), length_(container.size()) {}

  const int64_t& operator[](size_t index) const {
    if (NKT_RARE(index >= length_)) nkt::size_out_of_range(static_cast<int64_t>(index), length_);
    return data_[index];
  }

  NKT_UNDOCUMENTED("IntArrayRef::size")
  size_t size() const { return length_; }
  NKT_UNDOCUMENTED("IntArrayRef::begin")
  const int64_t* begin() const { return data_; }
  NKT_UNDOCUMENTED("IntArrayRef::end")
  const int64_t* end() const { return data_ + length_; }

  // For the runtime.
  const int64_t* nkt_data() const { return data_; }
  size_t nkt_length() const { return length_; }

 private:
  const int64_t* data_;
  size_t length_;
};

inline bool operator==(const IntArrayRef& a, const IntArrayRef& b) {
  if (a.nkt_length() != b.nkt_length()) return false;
  for (size_t i = 0; i < a.nkt_length(); i++) {
    if (a.nkt_data()[i] != b.nkt_data()[i]) return false;
  }
  return true;
}
inline bool operator!=(const IntArrayRef& a, const IntArrayRef& b) { return !(a == b); }

// Only the dtype has an effect, and there is no default: it must be given.
class TensorOptions {
 public:
  TensorOptions(ScalarType dtype) : dtype_(dtype) {}
  ScalarType nkt_dtype() const { return dtype_; }

 private:
  ScalarType dtype_;
};

}  // namespace nkt_host
}  // namespace c10

namespace torch {

using c10::IntArrayRef;
using c10::Scalar;
using c10::ScalarType;

constexpr ScalarType kFloat = ScalarType::Float;
constexpr ScalarType kBFloat16 = ScalarType::BFloat16;
constexpr ScalarType kHalf = ScalarType::Half;
constexpr ScalarType kInt = ScalarType::Int;
constexpr ScalarType kChar = ScalarType::Char;
constexpr ScalarType kShort = ScalarType::Short;
constexpr ScalarType kByte = ScalarType::Byte;

}  // namespace torch
