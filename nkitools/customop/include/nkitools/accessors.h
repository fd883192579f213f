// Element, stream and TCM accessors (Tensor Accessors, Streaming Accessors and TCM Accessor, custom-ops-ref-guide).
#pragma once

#include "nkitools/entry.h"

namespace torch {
inline namespace nkt_host {

class Tensor;

// What to do when accesses of a tensor may be incoherent.
class CoherencyEnforcer {
 public:
  enum Policy { COHERENT, INCOHERENT_VERBOSE, INCOHERENT_QUIET };
};

namespace detail {

template <typename T, bool read_only>
struct Element {
  typedef T type;
};
template <typename T>
struct Element<T, true> {
  typedef const T type;
};

}  // namespace detail

// Reads and writes HBM directly, element by element; single-core mode only.
template <typename T, size_t N, bool read_only = false>
class TensorAccessor {
 public:
  TensorAccessor<T, N - 1, read_only> operator[](int64_t index) const {
    if (NKT_RARE(static_cast<uint64_t>(index) >= static_cast<uint64_t>(elements_.sizes[0]))) {
      return TensorAccessor<T, N - 1, read_only>(
          elements_, static_cast<T*>(nkt::element_out_of_bounds(elements_.tensor, index, elements_.sizes[0], dimension_)),
          dimension_ + 1, true);
    }
    return TensorAccessor<T, N - 1, read_only>(elements_, data_ + index * elements_.strides[0], dimension_ + 1, lost_);
  }

 private:
  friend class Tensor;
  template <typename, size_t, bool>
  friend class TensorAccessor;

  explicit TensorAccessor(const nkt::Elements& elements)
      : elements_(elements), data_(static_cast<T*>(elements.data)), dimension_(0), lost_(false) {}
  TensorAccessor(const nkt::Elements& outer, T* data, int dimension, bool lost)
      : elements_(outer), data_(data), dimension_(dimension), lost_(lost) {
    elements_.sizes++;
    elements_.strides++;
  }

  nkt::Elements elements_;
  T* data_;
  int dimension_;
  bool lost_;  // an index before this one was out of bounds: data_ is one element of no tensor
};

template <typename T, bool read_only>
class TensorAccessor<T, 1, read_only> {
 public:
  typename detail::Element<T, read_only>::type& operator[](int64_t index) const {
    ++*elements_.counter;
    if (NKT_RARE(static_cast<uint64_t>(index) >= static_cast<uint64_t>(elements_.sizes[0]))) {
      return *static_cast<T*>(nkt::element_out_of_bounds(elements_.tensor, index, elements_.sizes[0], dimension_));
    }
    if (NKT_RARE(*elements_.streams)) nkt::element_beside_stream(elements_.tensor);
    return lost_ ? *data_ : data_[index * elements_.strides[0]];
  }

 private:
  friend class Tensor;
  template <typename, size_t, bool>
  friend class TensorAccessor;

  explicit TensorAccessor(const nkt::Elements& elements)
      : elements_(elements), data_(static_cast<T*>(elements.data)), dimension_(0), lost_(false) {}
  TensorAccessor(const nkt::Elements& outer, T* data, int dimension, bool lost)
      : elements_(outer), data_(data), dimension_(dimension), lost_(lost) {
    elements_.sizes++;
    elements_.strides++;
  }

  nkt::Elements elements_;
  T* data_;
  int dimension_;
  bool lost_;
};

// A stream is active from here until close() or the end of its scope, and takes 4 KB of the TCM pool.
template <typename T>
class TensorReadStreamAccessor {
 public:
  TensorReadStreamAccessor(const TensorReadStreamAccessor&) = delete;
  TensorReadStreamAccessor& operator=(const TensorReadStreamAccessor&) = delete;
  TensorReadStreamAccessor(TensorReadStreamAccessor&& other) : stream_(other.stream_) { other.stream_ = nullptr; }
  ~TensorReadStreamAccessor() { nkt::drop_stream(stream_); }

  T read() { return *static_cast<T*>(nkt::next_in_stream(stream_)); }
  int close() { return nkt::close_stream(stream_); }

 private:
  friend class Tensor;
  explicit TensorReadStreamAccessor(nkt::StreamState* stream) : stream_(stream) {}
  nkt::StreamState* stream_;
};

template <typename T>
class TensorWriteStreamAccessor {
 public:
  TensorWriteStreamAccessor(const TensorWriteStreamAccessor&) = delete;
  TensorWriteStreamAccessor& operator=(const TensorWriteStreamAccessor&) = delete;
  TensorWriteStreamAccessor(TensorWriteStreamAccessor&& other) : stream_(other.stream_) { other.stream_ = nullptr; }
  ~TensorWriteStreamAccessor() { nkt::drop_stream(stream_); }

  void write(T value) { *static_cast<T*>(nkt::next_in_stream(stream_)) = value; }
  int close() { return nkt::close_stream(stream_); }

 private:
  friend class Tensor;
  explicit TensorWriteStreamAccessor(nkt::StreamState* stream) : stream_(stream) {}
  nkt::StreamState* stream_;
};

// Copies between a tensor, as if it was flattened, and a buffer of tcm_malloc. Offsets and counts are elements.
template <bool read_only>
class TensorTcmAccessor {
 public:
  template <typename T>
  void tensor_to_tcm(T* tcm_ptr, size_t tensor_offset, size_t num_elem) const {
    nkt::tensor_to_tcm(tensor_, tcm_ptr, tensor_offset, num_elem, nkt::TypeOf<T>::value);
  }
  template <typename T>
  void tcm_to_tensor(T* tcm_ptr, size_t tensor_offset, size_t num_elem) const {
    static_assert(!read_only, "nkitools: the TCM accessor of a const Tensor is read-only");
    nkt::tcm_to_tensor(tensor_, tcm_ptr, tensor_offset, num_elem, nkt::TypeOf<T>::value);
  }

 private:
  friend class Tensor;
  explicit TensorTcmAccessor(nkt::TensorImpl* tensor) : tensor_(tensor) {}
  nkt::TensorImpl* tensor_;
};

}  // namespace nkt_host
}  // namespace torch
