#include "fish/launch.h"
#include "sm90/row_quantize/block.cuh"

namespace fish::sm90 {
namespace {

constexpr int kThreads = 128;

// One thread for 8 columns; rows past the last token only zero their scales.
__global__ void quantize(const __nv_bfloat16* x, QuantizedRows out) {
  let_next_kernel_start();
  const int column = (blockIdx.x * kThreads + threadIdx.x) * kColumnsPerLane;
  const int token = blockIdx.y;
  wait_for_previous_kernel();
  if (column >= out.columns) return;  // whole groups of 16 lanes: columns % 128 == 0
  if (token >= out.tokens) return zero_scale(out, token, column);
  float values[8];
  unpack_bf16(load8(x + static_cast<size_t>(token) * out.columns + column), values);
  store_block(values, out, token, column);
}

}  // namespace

cudaError_t quantize_fp8(const __nv_bfloat16* x, const QuantizedRows& out, cudaStream_t stream) {
  constexpr int kColumns = kThreads * kColumnsPerLane;
  const dim3 grid((out.columns + kColumns - 1) / kColumns, out.tokens_padded);
  return launch(quantize, {grid, kThreads, 0, 1, stream}, x, out);
}

}  // namespace fish::sm90
