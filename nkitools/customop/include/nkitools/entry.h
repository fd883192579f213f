// The runtime behind the headers: plain functions, so that what is inlined into an operator stays small.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nkitools/abi.h"
#include "nkitools/dtypes.h"

#define NKT_RARE(condition) __builtin_expect(!!(condition), 0)

namespace nkt {

struct TensorImpl;

// Adds to, and takes from, the number of owners; the last one deletes.
TensorImpl* retain(TensorImpl*);
void release(TensorImpl*);

// What an element accessor needs to know, asked for once.
struct Elements {
  TensorImpl* tensor;
  void* data;
  const int64_t* sizes;
  const int64_t* strides;
  uint64_t* counter;
  const int32_t* streams;  // how many are open on the tensor
};

Elements open_elements(TensorImpl*, c10::ScalarType, size_t dims, bool writable);
// Reports the index and returns memory that may be used in its stead.
void* element_out_of_bounds(TensorImpl*, int64_t index, int64_t size, int dimension);
void element_beside_stream(TensorImpl*);

struct StreamState;
StreamState* open_stream(TensorImpl*, c10::ScalarType, bool writes);
// The place of the next element; beyond the end, or closed, one that may be used in its stead.
void* next_in_stream(StreamState*);
int close_stream(StreamState*);
void drop_stream(StreamState*);

TensorImpl* open_tcm(TensorImpl*);
void tensor_to_tcm(TensorImpl*, void* block, size_t offset, size_t count, c10::ScalarType);
void tcm_to_tensor(TensorImpl*, const void* block, size_t offset, size_t count, c10::ScalarType);

const int64_t* sizes_of(TensorImpl*, size_t& dims);
int64_t numel_of(TensorImpl*);
c10::ScalarType type_of(TensorImpl*);
int64_t size_out_of_range(int64_t index, size_t dims);
int policy_of(TensorImpl*);
void set_policy(TensorImpl*, int policy);

[[noreturn]] void no_such_argument();

}  // namespace nkt
