// Generalized intersection over union of two batches of boxes, on all GpSimd cores.
//
// A box is (left, top, right, bottom). GIoU is the intersection over the union, less the share of the smallest
// enclosing box that the union leaves empty (Rezatofighi et al., 2019). Areas below SMALLEST_AREA count as that much,
// so that boxes without an area give 0 and not NaN.
#include <stdint.h>
#include <stdlib.h>
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>

namespace {

constexpr float SMALLEST_AREA = 1e-5f;
constexpr size_t COORDINATES = 4;

// Two blocks of boxes and one of scores: 9 floats a box, 13824 of the 16384 bytes of TCM that a core's operator has.
constexpr size_t CHUNK = 384;

// TCM that is given back on every way out of the kernel.
struct TcmFloats {
  float* data;
  explicit TcmFloats(size_t count) : data(static_cast<float*>(torch::neuron::tcm_malloc(count * sizeof(float)))) {}
  ~TcmFloats() {
    if (data != nullptr) torch::neuron::tcm_free(data);
  }
  TcmFloats(const TcmFloats&) = delete;
  TcmFloats& operator=(const TcmFloats&) = delete;
};

float larger(float a, float b) { return a > b ? a : b; }
float smaller(float a, float b) { return a < b ? a : b; }

float area(const float* box) { return (box[2] - box[0]) * (box[3] - box[1]); }

float giou_of(const float* pred, const float* target) {
  // Boxes that do not meet have a negative extent, in one direction or in both.
  const float width = larger(smaller(pred[2], target[2]) - larger(pred[0], target[0]), 0.0f);
  const float height = larger(smaller(pred[3], target[3]) - larger(pred[1], target[1]), 0.0f);
  const float intersection = width * height;
  const float joined = area(pred) + area(target) - intersection;

  const float outer_width = larger(pred[2], target[2]) - smaller(pred[0], target[0]);
  const float outer_height = larger(pred[3], target[3]) - smaller(pred[1], target[1]);
  const float enclosing = outer_width * outer_height;

  return intersection / larger(joined, SMALLEST_AREA) - (enclosing - joined) / larger(enclosing, SMALLEST_AREA);
}

}  // namespace

// float32 boxes [batch, boxes, 4] of one shape to float32 [batch, boxes].
torch::Tensor giou(const torch::Tensor& preds, const torch::Tensor& targets) {
  torch::Tensor scores = get_dst_tensor();
  const size_t count = preds.numel() / COORDINATES;

  // The first `rest` cores have one box more than the others; with fewer boxes than cores the last ones have none.
  const size_t core = get_cpu_id();
  const size_t each = count / get_cpu_count();
  const size_t rest = count % get_cpu_count();
  const size_t first = core * each + (core < rest ? core : rest);
  const size_t end = first + each + (core < rest ? 1 : 0);

  TcmFloats pred_boxes(CHUNK * COORDINATES);
  TcmFloats target_boxes(CHUNK * COORDINATES);
  TcmFloats chunk_scores(CHUNK);
  if (pred_boxes.data == nullptr || target_boxes.data == nullptr || chunk_scores.data == nullptr) {
    abort();  // scores that nobody computed must not come back as if they were some
  }
  auto preds_in = preds.tcm_accessor();
  auto targets_in = targets.tcm_accessor();
  auto scores_out = scores.tcm_accessor();

  for (size_t start = first; start < end; start += CHUNK) {
    const size_t boxes = end - start < CHUNK ? end - start : CHUNK;
    preds_in.tensor_to_tcm<float>(pred_boxes.data, start * COORDINATES, boxes * COORDINATES);
    targets_in.tensor_to_tcm<float>(target_boxes.data, start * COORDINATES, boxes * COORDINATES);
    for (size_t i = 0; i < boxes; i++) {
      chunk_scores.data[i] = giou_of(pred_boxes.data + i * COORDINATES, target_boxes.data + i * COORDINATES);
    }
    scores_out.tcm_to_tensor<float>(chunk_scores.data, start, boxes);
  }
  return scores;
}
