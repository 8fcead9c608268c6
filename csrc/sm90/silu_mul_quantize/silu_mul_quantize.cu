#include "fish/launch.h"
#include "sm90/row_quantize/block.cuh"

namespace fish::sm90 {
namespace {

constexpr int kThreads = 128;

__global__ void silu_mul(const __nv_bfloat16* gate_up, QuantizedRows out) {
  let_next_kernel_start();
  const int column = (blockIdx.x * kThreads + threadIdx.x) * kColumnsPerLane;
  const int token = blockIdx.y;
  wait_for_previous_kernel();
  if (column >= out.columns) return;
  if (token >= out.tokens) return zero_scale(out, token, column);
  const __nv_bfloat16* row = gate_up + static_cast<size_t>(token) * out.columns * 2 + column;
  float gate[8], up[8];
  unpack_bf16(load8(row), gate);
  unpack_bf16(load8(row + out.columns), up);
#pragma unroll
  for (int i = 0; i < 8; ++i) up[i] *= silu(gate[i]);
  store_block(up, out, token, column);
}

}  // namespace

cudaError_t silu_mul_quantize(const __nv_bfloat16* gate_up, const QuantizedRows& out, cudaStream_t stream) {
  constexpr int kColumns = kThreads * kColumnsPerLane;
  const dim3 grid((out.columns + kColumns - 1) / kColumns, out.tokens_padded);
  return launch(silu_mul, {grid, kThreads, 0, 1, stream}, gate_up, out);
}

}  // namespace fish::sm90
