// The tensor operations: element by element, no broadcasting. Floating types are computed in float32 and integers in 64
// bits; the result is rounded or cut to its type once. The guide says nothing of mixed types: two tensors must have one
// type, a scalar takes that of the tensor (the guide says so of bitwise operations), and what has no integer result
// (division, logarithms, ...) makes float32 of integers, as torch does.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nkitools/operations.h"
#include "state.h"

namespace nkt {
namespace {

using c10::Scalar;
using c10::ScalarType;
using torch::Tensor;

float load_float(const TensorImpl& tensor, int64_t i) {
  switch (tensor.dtype) {
    case ScalarType::Float: return reinterpret_cast<const float*>(tensor.data)[i];
    case ScalarType::Half: return reinterpret_cast<const c10::Half*>(tensor.data)[i];
    case ScalarType::BFloat16: return reinterpret_cast<const c10::BFloat16*>(tensor.data)[i];
    case ScalarType::Int: return static_cast<float>(reinterpret_cast<const int32_t*>(tensor.data)[i]);
    case ScalarType::Short: return reinterpret_cast<const int16_t*>(tensor.data)[i];
    case ScalarType::Char: return reinterpret_cast<const int8_t*>(tensor.data)[i];
    case ScalarType::Byte: return reinterpret_cast<const uint8_t*>(tensor.data)[i];
  }
  return 0;
}

int64_t load_integer(const TensorImpl& tensor, int64_t i) {
  switch (tensor.dtype) {
    case ScalarType::Int: return reinterpret_cast<const int32_t*>(tensor.data)[i];
    case ScalarType::Short: return reinterpret_cast<const int16_t*>(tensor.data)[i];
    case ScalarType::Char: return reinterpret_cast<const int8_t*>(tensor.data)[i];
    case ScalarType::Byte: return reinterpret_cast<const uint8_t*>(tensor.data)[i];
    default: return static_cast<int64_t>(load_float(tensor, i));
  }
}

void store_integer(TensorImpl& tensor, int64_t i, int64_t value) {
  switch (tensor.dtype) {
    case ScalarType::Int: reinterpret_cast<int32_t*>(tensor.data)[i] = static_cast<int32_t>(value); break;
    case ScalarType::Short: reinterpret_cast<int16_t*>(tensor.data)[i] = static_cast<int16_t>(value); break;
    case ScalarType::Char: reinterpret_cast<int8_t*>(tensor.data)[i] = static_cast<int8_t>(value); break;
    case ScalarType::Byte: reinterpret_cast<uint8_t*>(tensor.data)[i] = static_cast<uint8_t>(value); break;
    default: break;
  }
}

void store_float(TensorImpl& tensor, int64_t i, float value) {
  switch (tensor.dtype) {
    case ScalarType::Float: reinterpret_cast<float*>(tensor.data)[i] = value; break;
    case ScalarType::Half: reinterpret_cast<c10::Half*>(tensor.data)[i] = value; break;
    case ScalarType::BFloat16: reinterpret_cast<c10::BFloat16*>(tensor.data)[i] = value; break;
    default: store_integer(tensor, i, static_cast<int64_t>(value)); break;
  }
}

[[noreturn]] void refuse(EventKind kind, const char* operation, uint64_t site, int64_t a = 0, int64_t b = 0) {
  Told told;
  told.text = operation;
  told.a = a;
  told.b = b;
  tell(kind, kNoTensor, site, told);
  stop();
}

TensorImpl& data_of(const Tensor& tensor, const char* operation, uint64_t site) {
  TensorImpl* impl = tensor.nkt_impl();
  if (!impl) refuse(kOperation, "a Tensor that no factory function has made has no elements", site);
  if (!impl->data) {
    Told told;
    told.text = operation;
    tell(kShapeFunctionReads, impl->role, site, told);
    stop();
  }
  lay_open(*impl);
  return *impl;
}

void check_shapes(const TensorImpl& a, const TensorImpl& b, const char* operation, uint64_t site) {
  bool same = a.dims == b.dims;
  for (int i = 0; same && i < a.dims; i++) same = a.sizes[i] == b.sizes[i];
  if (!same) refuse(kShapes, operation, site);
}

// One operand: a tensor, or a scalar of the type that the operation runs in.
struct Operand {
  const TensorImpl* tensor;
  const Scalar* scalar;
  float number(int64_t i) const { return tensor ? load_float(*tensor, i) : static_cast<float>(scalar->nkt_number()); }
  int64_t integer(int64_t i) const { return tensor ? load_integer(*tensor, i) : scalar->nkt_integer(); }
};

struct Operation {
  const char* name;
  uint64_t site;
  ScalarType type;         // of the result
  const TensorImpl* like;  // an operand that has the result's shape
  bool floating;           // computed in float32
};

enum Needs { kAnyType, kFloatResult, kIntegersOnly };

Operation plan(const char* name, uint64_t site, Needs needs, const TensorImpl* a, const TensorImpl* b) {
  const TensorImpl* like = a ? a : b;
  if (a && b) {
    check_shapes(*a, *b, name, site);
    if (a->dtype != b->dtype) refuse(kDtype, name, site, static_cast<int64_t>(b->dtype), static_cast<int64_t>(a->dtype));
  }
  const bool floating = is_floating(like->dtype);
  if (needs == kIntegersOnly && floating) refuse(kDtype, name, site, -1, static_cast<int64_t>(like->dtype));
  const ScalarType type = needs == kFloatResult && !floating ? ScalarType::Float : like->dtype;
  return Operation{name, site, type, like, floating || needs == kFloatResult};
}

TensorImpl* result_for(const Operation& operation) {
  const TensorImpl& like = *operation.like;
  TensorImpl* made = make_tensor(like.sizes, static_cast<size_t>(like.dims), operation.type, kLocal, operation.site);
  made->data = static_cast<char*>(malloc(static_cast<size_t>(made->numel) * item_size(made->dtype) + 1));
  made->owns_data = true;
  if (!made->data) refuse(kOperation, "there is no memory for the result", operation.site);
  return made;
}

TensorImpl& checked_result(const Operation& operation, const Tensor& result) {
  TensorImpl& impl = data_of(result, operation.name, operation.site);
  check_shapes(impl, *operation.like, operation.name, operation.site);
  if (impl.dtype != operation.type) {
    refuse(kDtype, operation.name, operation.site, static_cast<int64_t>(operation.type), static_cast<int64_t>(impl.dtype));
  }
  if (impl.shadow) memset(impl.shadow, 1 << core->id, static_cast<size_t>(impl.numel));
  return impl;
}

// `function` has two forms: of floats and of integers.
template <typename Function>
void compute(const Operation& operation, TensorImpl& result, Operand left, Operand right, Function function) {
  enter();
  for (int64_t i = 0; i < result.numel; i++) {
    if (operation.floating) {
      store_float(result, i, function(left.number(i), right.number(i)));
    } else {
      store_integer(result, i, function(left.integer(i), right.integer(i)));
    }
  }
}

const TensorImpl* impl_of(const Tensor& tensor, const char* name, uint64_t site) { return &data_of(tensor, name, site); }
const TensorImpl* impl_of(const Scalar&, const char*, uint64_t) { return nullptr; }
Operand operand_of(const Tensor& tensor) { return Operand{tensor.nkt_impl(), nullptr}; }
Operand operand_of(const Scalar& scalar) { return Operand{nullptr, &scalar}; }

int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return static_cast<int64_t>(result);
}

// The operation on two operands, or with the same one twice, into `into` or a new tensor.
template <typename Left, typename Right, typename Function>
Tensor run(const char* name, uint64_t site, Needs needs, const Left& left, const Right& right, Function function,
           Tensor* into) {
  const Operation planned = plan(name, site, needs, impl_of(left, name, site), impl_of(right, name, site));
  if (into) {
    compute(planned, checked_result(planned, *into), operand_of(left), operand_of(right), function);
    return *into;
  }
  Tensor result(result_for(planned));
  compute(planned, *result.nkt_impl(), operand_of(left), operand_of(right), function);
  return result;
}

struct Second {
  template <typename T>
  T operator()(T, T y) const { return y; }
};

void fill(Tensor& result, const Scalar& value, uint64_t site) { run("fill_", site, kAnyType, result, value, Second(), &result); }

// Of zeros.
Tensor made(c10::IntArrayRef size, c10::TensorOptions options, uint64_t site) {
  TensorImpl* impl = make_tensor(size.nkt_data(), size.nkt_length(), options.nkt_dtype(), kLocal, site);
  Tensor result(impl);
  if (!core->destination) return result;  // of a shape function: a shape is all that it makes
  const size_t bytes = static_cast<size_t>(impl->numel) * item_size(impl->dtype);
  impl->data = static_cast<char*>(calloc(bytes + 1, 1));
  impl->owns_data = true;
  if (!impl->data) refuse(kOperation, "there is no memory for the tensor", site);
  return result;
}

// The first tensor that may be the result is made where the output is: neither it nor what is known of it is copied
// then. Not on several cores, which have one output and a tensor each.
bool lend_output(TensorImpl& tensor) {
  CoreState& state = *core;
  if (state.call->multicore || state.output_lent || state.call->guard || state.record->dst_taken || !is_as_said(*state.call, tensor)) return false;
  tensor.data = state.destination->data;
  tensor.shadow = state.destination->shadow;
  tensor.written = state.destination->written;
  state.output_lent = true;
  return true;
}

Tensor made_with(c10::IntArrayRef size, const Scalar& value, c10::TensorOptions options, uint64_t site) {
  Tensor result = made(size, options, site);
  if (result.nkt_impl()->data) fill(result, value, site);
  return result;
}

}  // namespace
}  // namespace nkt

namespace torch {
inline namespace nkt_host {

using namespace nkt;

Tensor& Tensor::fill_(const Scalar& value) const {
  Tensor& self = const_cast<Tensor&>(*this);
  fill(self, value, NKT_SITE);
  return self;
}

Tensor empty(IntArrayRef size, c10::TensorOptions options) {
  const uint64_t site = NKT_SITE;
  TensorImpl* impl = make_tensor(size.nkt_data(), size.nkt_length(), options.nkt_dtype(), kLocal, site);
  Tensor result(impl);
  if (core->destination && !lend_output(*impl)) give_memory(*impl, site);
  return result;
}

Tensor full(IntArrayRef size, const Scalar& value, c10::TensorOptions options) {
  return made_with(size, value, options, NKT_SITE);
}
Tensor zeros(IntArrayRef size, c10::TensorOptions options) { return made(size, options, NKT_SITE); }
Tensor ones(IntArrayRef size, c10::TensorOptions options) { return made_with(size, 1, options, NKT_SITE); }

Tensor eye(int64_t n, int64_t m, c10::TensorOptions options) {
  const int64_t sizes[] = {n, m};
  Tensor result = made(IntArrayRef(sizes, 2), options, NKT_SITE);
  TensorImpl& impl = *result.nkt_impl();
  for (int64_t i = 0; impl.data && i < n && i < m; i++) {
    is_floating(impl.dtype) ? store_float(impl, i * m + i, 1) : store_integer(impl, i * m + i, 1);
  }
  return result;
}

// --- the functions: a type for what each computes of floats and of integers, then its two styles ---------------------

namespace {

#define NKT_OF_ONE(Name, of_float, of_integer)                      \
  struct Name {                                                     \
    float operator()(float x, float) const { return of_float; }     \
    int64_t operator()(int64_t x, int64_t) const { return of_integer; } \
  };
NKT_OF_ONE(Abs, ::fabsf(x), x < 0 ? -x : x)
NKT_OF_ONE(Ceil, ::ceilf(x), x)
NKT_OF_ONE(Floor, ::floorf(x), x)
NKT_OF_ONE(Sin, ::sinf(x), x)
NKT_OF_ONE(Cos, ::cosf(x), x)
NKT_OF_ONE(Tan, ::tanf(x), x)
NKT_OF_ONE(Log, ::logf(x), x)
NKT_OF_ONE(Log2, ::log2f(x), x)
NKT_OF_ONE(Log10, ::log10f(x), x)
NKT_OF_ONE(Exp, ::expf(x), x)
NKT_OF_ONE(Not, x, ~x)

struct Add {
  float scale;
  int64_t factor;
  explicit Add(const Scalar& alpha, int sign)
      : scale(static_cast<float>(sign * alpha.nkt_number())), factor(sign * alpha.nkt_integer()) {}
  float operator()(float x, float y) const { return x + scale * y; }
  int64_t operator()(int64_t x, int64_t y) const { return x + factor * y; }
};
struct Multiply {
  template <typename T>
  T operator()(T x, T y) const { return x * y; }
};
struct Divide {
  float operator()(float x, float y) const { return x / y; }
  int64_t operator()(int64_t x, int64_t) const { return x; }  // not asked for: the result is floating
};
struct Power {
  float operator()(float x, float y) const { return ::powf(x, y); }
  int64_t operator()(int64_t x, int64_t y) const { return integer_power(x, y); }
};
struct And {
  float operator()(float x, float) const { return x; }  // refused before
  int64_t operator()(int64_t x, int64_t y) const { return x & y; }
};
struct Or {
  float operator()(float x, float) const { return x; }
  int64_t operator()(int64_t x, int64_t y) const { return x | y; }
};
// Keeps NaN, as torch does.
struct Clamp {
  float least, most;
  int64_t lowest, highest;
  Clamp(const Scalar& low, const Scalar& high)
      : least(static_cast<float>(low.nkt_number())), most(static_cast<float>(high.nkt_number())),
        lowest(low.nkt_integer()), highest(high.nkt_integer()) {}
  float operator()(float x, float) const { return x < least ? least : x > most ? most : x; }
  int64_t operator()(int64_t x, int64_t) const { return x < lowest ? lowest : x > highest ? highest : x; }
};

}  // namespace

#define NKT_UNARY(name, needs, Function)                                                                       \
  Tensor& name##_out(Tensor& result, const Tensor& self) {                                                     \
    run(#name, NKT_SITE, needs, self, self, Function(), &result);                                              \
    return result;                                                                                             \
  }                                                                                                            \
  Tensor name(const Tensor& self) { return run(#name, NKT_SITE, needs, self, self, Function(), nullptr); }
NKT_UNARY(abs, kAnyType, Abs)
NKT_UNARY(ceil, kAnyType, Ceil)
NKT_UNARY(floor, kAnyType, Floor)
NKT_UNARY(sin, kFloatResult, Sin)
NKT_UNARY(cos, kFloatResult, Cos)
NKT_UNARY(tan, kFloatResult, Tan)
NKT_UNARY(log, kFloatResult, Log)
NKT_UNARY(log2, kFloatResult, Log2)
NKT_UNARY(log10, kFloatResult, Log10)
NKT_UNARY(exp, kFloatResult, Exp)
NKT_UNARY(bitwise_not, kIntegersOnly, Not)

#define NKT_BINARY(name, needs, Function, Left, Right)                                                         \
  Tensor& name##_out(Tensor& result, const Left& self, const Right& other) {                                   \
    run(#name, NKT_SITE, needs, self, other, Function(), &result);                                             \
    return result;                                                                                             \
  }                                                                                                            \
  Tensor name(const Left& self, const Right& other) {                                                          \
    return run(#name, NKT_SITE, needs, self, other, Function(), nullptr);                                      \
  }
NKT_BINARY(mul, kAnyType, Multiply, Tensor, Scalar)
NKT_BINARY(mul, kAnyType, Multiply, Tensor, Tensor)
NKT_BINARY(div, kFloatResult, Divide, Tensor, Scalar)
NKT_BINARY(div, kFloatResult, Divide, Tensor, Tensor)
NKT_BINARY(pow, kAnyType, Power, Tensor, Scalar)
NKT_BINARY(pow, kAnyType, Power, Scalar, Tensor)
NKT_BINARY(pow, kAnyType, Power, Tensor, Tensor)
NKT_BINARY(bitwise_and, kIntegersOnly, And, Tensor, Scalar)
NKT_BINARY(bitwise_and, kIntegersOnly, And, Scalar, Tensor)
NKT_BINARY(bitwise_and, kIntegersOnly, And, Tensor, Tensor)
NKT_BINARY(bitwise_or, kIntegersOnly, Or, Tensor, Scalar)
NKT_BINARY(bitwise_or, kIntegersOnly, Or, Scalar, Tensor)
NKT_BINARY(bitwise_or, kIntegersOnly, Or, Tensor, Tensor)

#define NKT_SCALED(name, sign, Right)                                                                          \
  Tensor& name##_out(Tensor& result, const Tensor& self, const Right& other, const Scalar& alpha) {            \
    run(#name, NKT_SITE, kAnyType, self, other, Add(alpha, sign), &result);                                    \
    return result;                                                                                             \
  }                                                                                                            \
  Tensor name(const Tensor& self, const Right& other, const Scalar& alpha) {                                   \
    return run(#name, NKT_SITE, kAnyType, self, other, Add(alpha, sign), nullptr);                             \
  }
NKT_SCALED(add, 1, Scalar)
NKT_SCALED(add, 1, Tensor)
NKT_SCALED(sub, -1, Scalar)
NKT_SCALED(sub, -1, Tensor)

Tensor& clamp_out(Tensor& result, const Tensor& self, const Scalar& low, const Scalar& high) {
  run("clamp", NKT_SITE, kAnyType, self, self, Clamp(low, high), &result);
  return result;
}
Tensor clamp(const Tensor& self, const Scalar& low, const Scalar& high) {
  return run("clamp", NKT_SITE, kAnyType, self, self, Clamp(low, high), nullptr);
}

}  // namespace nkt_host
}  // namespace torch
