// Of the operators' API what the example operators use through TCM, on bare host memory: no check, no count, no record.
// What nkitools' checks cost is measured against it.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace torch {

struct Sizes {
  const int64_t* sizes;
  int64_t operator[](size_t i) const { return sizes[i]; }
};

enum Dtype { kFloat };

template <bool read_only>
struct TcmAccessor {
  char* data;
  template <typename T>
  void tensor_to_tcm(T* block, size_t offset, size_t count) const {
    memcpy(block, data + offset * sizeof(T), count * sizeof(T));
  }
  template <typename T>
  void tcm_to_tensor(T* block, size_t offset, size_t count) const {
    memcpy(data + offset * sizeof(T), block, count * sizeof(T));
  }
};

struct Tensor {
  char* data;
  int64_t elements;
  const int64_t* shape;
  int64_t numel() const { return elements; }
  Sizes sizes() const { return Sizes{shape}; }
  TcmAccessor<true> tcm_accessor() const& { return {data}; }
  TcmAccessor<false> tcm_accessor() & { return {data}; }
};

extern Tensor destination;
extern uint32_t core;

inline Tensor empty(Sizes, Dtype) { return destination; }

namespace neuron {
inline void* tcm_malloc(size_t bytes) { return malloc(bytes); }
inline void tcm_free(void* block) { free(block); }
}  // namespace neuron
}  // namespace torch

inline torch::Tensor get_dst_tensor() { return torch::destination; }
inline uint32_t get_cpu_id() { return torch::core; }
inline uint32_t get_cpu_count() { return 8; }
