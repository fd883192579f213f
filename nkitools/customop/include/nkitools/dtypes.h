// Scalar types, and the tensor types that they stand for.
#pragma once

#include <cstdint>
#include <cstring>

namespace c10 {
inline namespace nkt_host {

// The tensor library's types (Tensor Factory Functions, custom-ops-ref-guide). There is no kDouble, kLong or kBool.
enum class ScalarType : int8_t { Byte = 0, Char = 1, Short = 2, Int = 3, Half = 5, Float = 6, BFloat16 = 15 };

// Holds 16 bits and computes in float32, rounding to nearest even whenever a value is stored.
struct BFloat16 {
  uint16_t x;
  BFloat16() = default;
  BFloat16(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    x = is_nan ? 0x7fc0 : static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
  }
  operator float() const {
    const uint32_t bits = static_cast<uint32_t>(x) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
};

namespace detail {

inline uint16_t half_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (bits >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and more round to infinity
  if (bits < 0x38800000u) {                                               // subnormal: let the adder do the rounding
    float magnitude;
    std::memcpy(&magnitude, &bits, 4);
    magnitude += 0.5f;  // one unit in the last place of 0.5f is 2^-24, that of half's subnormals
    std::memcpy(&bits, &magnitude, 4);
    return static_cast<uint16_t>(sign | (bits - 0x3f000000u));
  }
  bits += 0xfffu + ((bits >> 13) & 1);
  return static_cast<uint16_t>(sign | ((bits - 0x38000000u) >> 13));
}

inline float float_of(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  uint32_t bits;
  float value;
  if (exponent == 0) {
    value = static_cast<float>(mantissa) * 5.9604644775390625e-8f;  // 2^-24
    std::memcpy(&bits, &value, 4);
    bits |= sign;
  } else {
    bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | (mantissa << 13);
  }
  std::memcpy(&value, &bits, 4);
  return value;
}

}  // namespace detail

struct Half {
  uint16_t x;
  Half() = default;
  Half(float value) : x(detail::half_of(value)) {}
  operator float() const { return detail::float_of(x); }
};

}  // namespace nkt_host
}  // namespace c10

namespace nkt {

// The tensor type of a C++ type; no other type has one, so that no accessor of another type compiles.
template <typename T>
struct TypeOf {
  static_assert(sizeof(T) == 0,
                "nkitools: tensors hold float, c10::Half, c10::BFloat16, int32_t, int16_t, int8_t or uint8_t (CO110)");
};
template <> struct TypeOf<float> { static constexpr c10::ScalarType value = c10::ScalarType::Float; };
template <> struct TypeOf<c10::Half> { static constexpr c10::ScalarType value = c10::ScalarType::Half; };
template <> struct TypeOf<c10::BFloat16> { static constexpr c10::ScalarType value = c10::ScalarType::BFloat16; };
template <> struct TypeOf<int32_t> { static constexpr c10::ScalarType value = c10::ScalarType::Int; };
template <> struct TypeOf<int16_t> { static constexpr c10::ScalarType value = c10::ScalarType::Short; };
template <> struct TypeOf<int8_t> { static constexpr c10::ScalarType value = c10::ScalarType::Char; };
template <> struct TypeOf<uint8_t> { static constexpr c10::ScalarType value = c10::ScalarType::Byte; };

}  // namespace nkt
