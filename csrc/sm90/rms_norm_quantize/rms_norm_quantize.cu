#include "fish/launch.h"
#include "sm90/row_quantize/block.cuh"

namespace fish::sm90 {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kMaxWarps = kMaxThreads / 32;

// The sum over the CTA in an order that depends on K only, never on the number of tokens.
__device__ float sum_of_row(float value) {
  __shared__ float warps[kMaxWarps];
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(~0u, value, lanes);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  float total = 0.f;
  for (int i = 0; i < blockDim.x / 32; ++i) total += warps[i];
  return total;
}

// One CTA a row. Every thread keeps kVectors × 8 columns in registers, so that x is read once.
template <int kVectors>
__global__ void __launch_bounds__(kMaxThreads) rms_norm(const __nv_bfloat16* x, __nv_bfloat16* residual,
                                                        const __nv_bfloat16* weight, float epsilon, QuantizedRows out) {
  let_next_kernel_start();
  const int token = blockIdx.x;
  const int step = blockDim.x * kColumnsPerLane, first = threadIdx.x * kColumnsPerLane;
  uint4 weights[kVectors] = {};
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    if (first + i * step < out.columns) weights[i] = load8(weight + first + i * step);
  }
  wait_for_previous_kernel();
  if (token >= out.tokens) {
    for (int i = 0; i < kVectors; ++i) {
      if (first + i * step < out.columns) zero_scale(out, token, first + i * step);
    }
    return;
  }
  const size_t row = static_cast<size_t>(token) * out.columns;
  float values[kVectors][8];
  float squares = 0.f;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int column = first + i * step;
    if (column >= out.columns) continue;
    unpack_bf16(load8(x + row + column), values[i]);
    if (residual != nullptr) {
      float before[8];
      unpack_bf16(load8(residual + row + column), before);
      __nv_bfloat162 after[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        after[j] = __floats2bfloat162_rn(values[i][2 * j] + before[2 * j], values[i][2 * j + 1] + before[2 * j + 1]);
        values[i][2 * j] = __low2float(after[j]);
        values[i][2 * j + 1] = __high2float(after[j]);
      }
      *reinterpret_cast<uint4*>(residual + row + column) = *reinterpret_cast<const uint4*>(after);
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) squares += values[i][j] * values[i][j];
  }
  const float mean = __fdiv_rn(sum_of_row(squares), static_cast<float>(out.columns));
  const float factor = __frcp_rn(__fsqrt_rn(mean + epsilon));
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int column = first + i * step;
    if (column >= out.columns) continue;  // whole groups of 16 lanes
    float scale[8];
    unpack_bf16(weights[i], scale);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      // Rounded to bf16 twice, as a norm layer that hands bf16 on does.
      const float normed = __bfloat162float(__float2bfloat16_rn(values[i][j] * factor));
      values[i][j] = __bfloat162float(__float2bfloat16_rn(normed * scale[j]));
    }
    store_block(values[i], out, token, column);
  }
}

}  // namespace

cudaError_t rms_norm_quantize(const __nv_bfloat16* x, __nv_bfloat16* residual, const __nv_bfloat16* weight,
                              float epsilon, const QuantizedRows& out, cudaStream_t stream) {
  const int vectors = out.columns / kColumnsPerLane;
  const int per_thread = (vectors + kMaxThreads - 1) / kMaxThreads;
  const int threads = ((vectors + per_thread - 1) / per_thread + 31) / 32 * 32;
  const LaunchShape shape{dim3(out.tokens_padded), threads, 0, 1, stream};
  switch (per_thread) {
    case 1: return launch(rms_norm<1>, shape, x, residual, weight, epsilon, out);
    case 2: return launch(rms_norm<2>, shape, x, residual, weight, epsilon, out);
    default: return cudaErrorInvalidValue;  // the caller checks K <= 16384
  }
}

}  // namespace fish::sm90
