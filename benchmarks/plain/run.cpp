// One operator (KERNEL, of SOURCE, with so many OPERANDS), on so many cores one after the other.
#include SOURCE

namespace torch {
Tensor destination;
uint32_t core;
}  // namespace torch

extern "C" __attribute__((visibility("default"))) void run(int cores, const torch::Tensor* inputs, const torch::Tensor* output) {
  torch::destination = *output;
  for (int i = 0; i < cores; i++) {
    torch::core = static_cast<uint32_t>(i);
#if OPERANDS == 1
    KERNEL(inputs[0]);
#else
    KERNEL(inputs[0], inputs[1]);
#endif
  }
}
