// torch::Tensor (Class torch::Tensor, custom-ops-ref-guide).
#pragma once

#include "nkitools/accessors.h"
#include "nkitools/scalar.h"

namespace torch {
inline namespace nkt_host {

class Tensor {
 public:
  NKT_UNDOCUMENTED("constructing a Tensor without a factory function")
  Tensor() : tensor_(nullptr) {}
  Tensor(const Tensor& other) : tensor_(nkt::retain(other.tensor_)) {}
  Tensor(Tensor&& other) : tensor_(other.tensor_) { other.tensor_ = nullptr; }
  ~Tensor() { nkt::release(tensor_); }

  Tensor& operator=(const Tensor& other) & {
    nkt::TensorImpl* before = tensor_;
    tensor_ = nkt::retain(other.tensor_);
    nkt::release(before);
    return *this;
  }
  Tensor& operator=(Tensor&& other) & {
    nkt::TensorImpl* before = tensor_;
    tensor_ = other.tensor_;
    other.tensor_ = nullptr;
    nkt::release(before);
    return *this;
  }

  template <typename T, size_t N>
  TensorAccessor<T, N, true> accessor() const& {
    return TensorAccessor<T, N, true>(nkt::open_elements(tensor_, nkt::TypeOf<T>::value, N, false));
  }
  template <typename T, size_t N>
  TensorAccessor<T, N, false> accessor() & {
    return TensorAccessor<T, N, false>(nkt::open_elements(tensor_, nkt::TypeOf<T>::value, N, true));
  }
  template <typename T>
  TensorReadStreamAccessor<T> read_stream_accessor() const& {
    return TensorReadStreamAccessor<T>(nkt::open_stream(tensor_, nkt::TypeOf<T>::value, false));
  }
  template <typename T>
  TensorWriteStreamAccessor<T> write_stream_accessor() & {
    return TensorWriteStreamAccessor<T>(nkt::open_stream(tensor_, nkt::TypeOf<T>::value, true));
  }
  TensorTcmAccessor<true> tcm_accessor() const& { return TensorTcmAccessor<true>(nkt::open_tcm(tensor_)); }
  TensorTcmAccessor<false> tcm_accessor() & { return TensorTcmAccessor<false>(nkt::open_tcm(tensor_)); }

  CoherencyEnforcer::Policy get_accessor_coherence_policy() const {
    return static_cast<CoherencyEnforcer::Policy>(nkt::policy_of(tensor_));
  }
  void set_accessor_coherence_policy(CoherencyEnforcer::Policy policy) const { nkt::set_policy(tensor_, policy); }

  Tensor& fill_(const Scalar& value) const;

  // Not in the list of members, but in the guide's own examples.
  int64_t numel() const { return nkt::numel_of(tensor_); }
  IntArrayRef sizes() const {
    size_t dims = 0;
    const int64_t* sizes = nkt::sizes_of(tensor_, dims);
    return IntArrayRef(sizes, dims);
  }

  NKT_UNDOCUMENTED("Tensor::size")
  int64_t size(int64_t dimension) const {
    const IntArrayRef all = sizes();
    const int64_t dims = static_cast<int64_t>(all.nkt_length());
    return all[static_cast<size_t>(dimension < 0 ? dimension + dims : dimension)];
  }
  NKT_UNDOCUMENTED("Tensor::dim")
  int64_t dim() const { return static_cast<int64_t>(sizes().nkt_length()); }
  NKT_UNDOCUMENTED("Tensor::scalar_type")
  ScalarType scalar_type() const { return nkt::type_of(tensor_); }
  NKT_UNDOCUMENTED("Tensor::dtype")
  ScalarType dtype() const { return nkt::type_of(tensor_); }

  // For the runtime.
  explicit Tensor(nkt::TensorImpl* owned) : tensor_(owned) {}
  nkt::TensorImpl* nkt_impl() const { return tensor_; }

 private:
  nkt::TensorImpl* tensor_;
};

Tensor empty(IntArrayRef size, c10::TensorOptions options);
Tensor full(IntArrayRef size, const Scalar& fill_value, c10::TensorOptions options);
Tensor zeros(IntArrayRef size, c10::TensorOptions options);
Tensor ones(IntArrayRef size, c10::TensorOptions options);
Tensor eye(int64_t n, int64_t m, c10::TensorOptions options);

}  // namespace nkt_host
}  // namespace torch
