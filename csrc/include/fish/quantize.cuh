// The one definition of what quantising a block means. `reference.py` states the same and is compared bit for bit.
#pragma once

#include "ptx.cuh"

namespace fish {

constexpr float kLargestE4m3 = 448.f;
constexpr float kSmallestAmax = 1e-10f;  // keeps the scale of an all-zero block finite

// value = e4m3(x · inverse), x ≈ value · scale. Both divisions are IEEE: `amax * (1/448)` is one ulp off for some amax,
// and bf16 inputs hit exact ties often enough for that ulp to flip bytes.
struct Fp8Scale {
  float inverse, scale;
};

__device__ __forceinline__ Fp8Scale fp8_scale(float amax) {
  const float inverse = __fdiv_rn(kLargestE4m3, fmaxf(amax, kSmallestAmax));
  return {inverse, __frcp_rn(inverse)};
}

__device__ __forceinline__ float silu(float x) { return __fdividef(x, 1.f + __expf(-x)); }

// The largest magnitude of 8 values; NaN is passed over, so that it marks its own element and not its whole block.
__device__ __forceinline__ float largest_magnitude(const float (&values)[8]) {
  float largest = fabsf(values[0]);
#pragma unroll
  for (int i = 1; i < 8; ++i) largest = fmaxf(largest, fabsf(values[i]));
  return largest;
}

// The largest over the kLanes neighbouring lanes that hold a block. Other lanes of the warp may be elsewhere.
template <int kLanes>
__device__ __forceinline__ float largest_of_lanes(float value) {
  const unsigned members = ((1u << kLanes) - 1) << (threadIdx.x % 32 / kLanes * kLanes);
#pragma unroll
  for (int lanes = 1; lanes < kLanes; lanes *= 2) value = fmaxf(value, __shfl_xor_sync(members, value, lanes));
  return value;
}

__device__ __forceinline__ void unpack_bf16(const uint4& packed, float (&values)[8]) {
  const uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = bf16_to_float(words[i]);
    values[2 * i] = pair.x;
    values[2 * i + 1] = pair.y;
  }
}

__device__ __forceinline__ uint2 pack_e4m3(const float (&values)[8], float inverse) {
  uint32_t pairs[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) pairs[i] = to_e4m3(values[2 * i] * inverse, values[2 * i + 1] * inverse);
  return {pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16};
}

}  // namespace fish
