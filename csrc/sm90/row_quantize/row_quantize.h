// The small kernels between the GEMMs, as host code calls them. All of them write e4m3 values [tokens, K] and fp32
// scales [K/128][tokens_padded], whose padding they fill with zeros.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace fish::sm90 {

struct QuantizedRows {
  uint8_t* values;
  float* scales;
  int tokens;
  int tokens_padded;
  int columns;  // K
};

// values · scales ≈ x
cudaError_t quantize_fp8(const __nv_bfloat16* x, const QuantizedRows& out, cudaStream_t stream);

// values · scales ≈ silu(gate) · up, with gate_up [tokens, 2K]: gate in the first half of a row, up in the second
cudaError_t silu_mul_quantize(const __nv_bfloat16* gate_up, const QuantizedRows& out, cudaStream_t stream);

// residual += x when there is one; values · scales ≈ rms_norm(residual, or x) · weight
cudaError_t rms_norm_quantize(const __nv_bfloat16* x, __nv_bfloat16* residual, const __nv_bfloat16* weight,
                              float epsilon, const QuantizedRows& out, cudaStream_t stream);

}  // namespace fish::sm90
