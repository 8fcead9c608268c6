// A block of 128 columns in the hands of 16 neighbouring lanes, 8 columns each.
#pragma once

#include "fish/quantize.cuh"
#include "row_quantize.h"

namespace fish::sm90 {

constexpr int kColumnsPerLane = 8;
constexpr int kLanesPerBlock = 16;

// Quantises the block that these 16 lanes hold and stores it with its scale.
__device__ __forceinline__ void store_block(const float (&values)[8], const QuantizedRows& out, int token, int column) {
  const Fp8Scale scale = fp8_scale(largest_of_lanes<kLanesPerBlock>(largest_magnitude(values)));
  *reinterpret_cast<uint2*>(out.values + static_cast<size_t>(token) * out.columns + column) =
      pack_e4m3(values, scale.inverse);
  if (column % 128 == 0) out.scales[static_cast<size_t>(column / 128) * out.tokens_padded + token] = scale.scale;
}

__device__ __forceinline__ void zero_scale(const QuantizedRows& out, int token, int column) {
  if (column % 128 == 0) out.scales[static_cast<size_t>(column / 128) * out.tokens_padded + token] = 0.f;
}

__device__ __forceinline__ uint4 load8(const __nv_bfloat16* address) {
  return *reinterpret_cast<const uint4*>(address);
}

}  // namespace fish::sm90
