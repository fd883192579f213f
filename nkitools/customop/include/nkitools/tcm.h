// TCM, the cores and the destination tensor (TCM Management Functions, Writing Directly to Output Tensor, Using
// multiple GPSIMD cores: custom-ops-ref-guide). The guide says of some only which header has them, so all headers do.
#pragma once

#include "nkitools/tensor.h"

namespace torch {
namespace neuron {

// From a pool of 16 KB a core; null when it has not so much left.
void* tcm_malloc(size_t nbytes);
// Of what tcm_malloc returned; of anything else it is undefined (CO116).
void tcm_free(void* ptr);

}  // namespace neuron
}  // namespace torch

torch::Tensor get_dst_tensor();
uint32_t get_cpu_id();
uint32_t get_cpu_count();
