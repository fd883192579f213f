// Each element times a factor: a custom operator to start from. Every core takes a part of the elements.
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>

torch::Tensor template_name(const torch::Tensor& t_in, double factor) {
  torch::Tensor t_out = get_dst_tensor();
  auto t_in_acc = t_in.tcm_accessor();
  auto t_out_acc = t_out.tcm_accessor();

  size_t num_elem = t_in.numel();
  size_t part = (num_elem + get_cpu_count() - 1) / get_cpu_count();
  size_t end = std::min(num_elem, part * (get_cpu_id() + 1));

  static constexpr size_t chunk = 2048;  // elements that are in a core's memory at one time
  float* buffer = (float*)torch::neuron::tcm_malloc(sizeof(float) * chunk);
  if (buffer == nullptr) return t_out;
  for (size_t first = part * get_cpu_id(); first < end; first += chunk) {
    size_t size = std::min(chunk, end - first);
    t_in_acc.tensor_to_tcm<float>(buffer, first, size);
    for (size_t i = 0; i < size; i++) buffer[i] *= (float)factor;
    t_out_acc.tcm_to_tensor<float>(buffer, first, size);
  }
  torch::neuron::tcm_free(buffer);
  return t_out;
}
