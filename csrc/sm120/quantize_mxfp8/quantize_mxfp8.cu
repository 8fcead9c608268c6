// Quantises each 32 columns of a row with a power-of-two scale. Also compiled for sm_90a, where it can be run and
// compared.
#include "fish/launch.h"
#include "fish/quantize.cuh"
#include "sm120/mxfp8_gemm/layout.h"
#include "sm120/mxfp8_gemm/mxfp8_gemm.h"

namespace fish::sm120 {
namespace {

constexpr int kQuantizeThreads = 128;
constexpr int kColumnsPerLane = 8;
constexpr int kLanesPerBlock = 4;  // 32 columns
constexpr int kLanesPerWord = 16;  // 128 columns

// The biased exponent of the smallest power of two whose product with 448 = 1.75 · 2^8 is not below amax.
__device__ __forceinline__ int scale_exponent(float amax) {
  const uint32_t bits = __float_as_uint(amax);
  const int exponent = bits >> 23, mantissa = bits & 0x7fffff;
  if (exponent == 255) return 254;  // infinity
  const int needed = exponent - 8 + (mantissa > 0x600000);
  return max(needed, 0);
}

__global__ void quantize(const __nv_bfloat16* x, uint8_t* values, uint32_t* scales, int token_count, int columns) {
  let_next_kernel_start();
  const int column = (blockIdx.x * kQuantizeThreads + threadIdx.x) * kColumnsPerLane;
  const int token = blockIdx.y;
  wait_for_previous_kernel();
  if (column >= columns) return;  // whole groups of 16 lanes: columns % 128 == 0
  uint32_t* word = scales + scale_word(column / kBlockColumns, token, padded_to_4(token_count));
  if (token >= token_count) {
    if (column % kBlockColumns == 0) *word = 0;
    return;
  }
  const size_t index = static_cast<size_t>(token) * columns + column;
  float numbers[8];
  unpack_bf16(*reinterpret_cast<const uint4*>(x + index), numbers);
  const int exponent = scale_exponent(largest_of_lanes<kLanesPerBlock>(largest_magnitude(numbers)));
#pragma unroll
  for (int i = 0; i < 8; ++i) numbers[i] = ldexpf(numbers[i], 127 - exponent);
  *reinterpret_cast<uint2*>(values + index) = pack_e4m3(numbers, 1.f);
  // Byte b of the word is the scale of the b-th 32 columns.
  const unsigned members = 0xffffu << (threadIdx.x % 32 / kLanesPerWord * kLanesPerWord);
  uint32_t packed = static_cast<uint32_t>(exponent) << 8 * (threadIdx.x % kLanesPerWord / kLanesPerBlock);
  packed |= __shfl_xor_sync(members, packed, 4);
  packed |= __shfl_xor_sync(members, packed, 8);
  if (column % kBlockColumns == 0) *word = packed;
}

}  // namespace

cudaError_t quantize_mxfp8(const __nv_bfloat16* x, uint8_t* values, uint32_t* scales, int token_count, int columns,
                           cudaStream_t stream) {
  constexpr int kColumns = kQuantizeThreads * kColumnsPerLane;
  const dim3 grid((columns + kColumns - 1) / kColumns, padded_to_4(token_count));
  return launch(quantize, {grid, kQuantizeThreads, 0, 1, stream}, x, values, scales, token_count, columns);
}

}  // namespace fish::sm120
