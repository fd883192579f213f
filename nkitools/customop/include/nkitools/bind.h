// From a kernel or shape function to something that can be called with arguments that nobody has compiled.
#pragma once

#include <type_traits>
#include <utility>

#include "nkitools/tensor.h"

namespace nkt {

// One argument on its way in: the member that its parameter is made of.
struct Value {
  TensorImpl* tensor;
  c10::Scalar scalar;
};

// A function's parameters as letters, its result before them: t Tensor, s Scalar, d double, i int64_t, f float,
// n another number, ? anything else, which nobody can pass.
typedef TensorImpl* (*Invoker)(void (*function)(), const Value* values);

template <typename T, typename = void>
struct Parameter {
  static constexpr char letter = '?';
  struct Type {};
};
template <>
struct Parameter<torch::Tensor> {
  static constexpr char letter = 't';
  static torch::Tensor of(const Value& value) { return torch::Tensor(retain(value.tensor)); }
};
template <>
struct Parameter<c10::Scalar> {
  static constexpr char letter = 's';
  static c10::Scalar of(const Value& value) { return value.scalar; }
};
template <typename T>
struct Parameter<T, typename std::enable_if<std::is_arithmetic<T>::value>::type> {
  static constexpr char letter = std::is_same<T, double>::value                                     ? 'd'
                                 : std::is_same<T, float>::value                                    ? 'f'
                                 : std::is_integral<T>::value && std::is_signed<T>::value && sizeof(T) == 8 ? 'i'
                                                                                                    : 'n';
  static T of(const Value& value) {
    return std::is_integral<T>::value ? static_cast<T>(value.scalar.nkt_integer())
                                      : static_cast<T>(value.scalar.nkt_number());
  }
};

template <typename T>
struct Plain {
  typedef typename std::remove_cv<typename std::remove_reference<T>::type>::type type;
};

// Holds the argument while the function runs, so that a parameter may be any kind of reference to it.
template <typename T>
struct Holder {
  typename Plain<T>::type value;
  explicit Holder(const Value& from) : value(Parameter<typename Plain<T>::type>::of(from)) {}
  typename std::remove_reference<T>::type& get() { return value; }
};

constexpr bool all() { return true; }
template <typename... Rest>
constexpr bool all(bool first, Rest... rest) {
  return first && all(rest...);
}

template <bool possible, typename R, typename... A>
struct Call_ {
  static TensorImpl* call(void (*)(), const Value*) { no_such_argument(); }
};
template <typename... A>
struct Call_<true, torch::Tensor, A...> {
  static TensorImpl* call(void (*function)(), const Value* values) {
    return apply(reinterpret_cast<torch::Tensor (*)(A...)>(function), values, std::index_sequence_for<A...>());
  }
  template <size_t... I>
  static TensorImpl* apply(torch::Tensor (*function)(A...), const Value* values, std::index_sequence<I...>) {
    (void)values;
    const torch::Tensor result = with(function, Holder<A>(values[I])...);
    return retain(result.nkt_impl());
  }
  static torch::Tensor with(torch::Tensor (*function)(A...), Holder<A>... holders) {
    return function(static_cast<A>(holders.get())...);
  }
};

struct Bound {
  const char* name;      // of the operator, or of the kernel
  const char* kernel;    // in a registration: the kernel's name
  const char* signature;
  Invoker invoke;
  void (*function)();
};

template <typename R, typename... A>
struct Signature {
  static const char* letters() {
    static const char text[] = {std::is_same<R, torch::Tensor>::value ? 't' : '?',
                                Parameter<typename Plain<A>::type>::letter..., '\0'};
    return text;
  }
};

template <typename R, typename... A>
Bound bind(const char* name, const char* kernel, R (*function)(A...)) {
  constexpr bool possible = all(std::is_same<R, torch::Tensor>::value, Parameter<typename Plain<A>::type>::letter != '?'...);
  return Bound{name, kernel, Signature<R, A...>::letters(), &Call_<possible, R, A...>::call,
               reinterpret_cast<void (*)()>(function)};
}

// Where the names of a library are kept; both are called before main.
void add_kernel(const Bound&);
void add_operator(const char* library, const Bound&);

struct AddKernel {
  explicit AddKernel(const Bound& bound) { add_kernel(bound); }
};

}  // namespace nkt

// Written after the author's source by the build, once for each kernel that is registered.
#define NKT_KERNEL_2(number, text, function) static const ::nkt::AddKernel nkt_kernel_##number(::nkt::bind(text, "", &function));
#define NKT_KERNEL(number, text, function) NKT_KERNEL_2(number, text, function)
