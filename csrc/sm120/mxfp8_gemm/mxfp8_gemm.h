// The MXFP8 ops of sm_120a as host code calls them.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace fish::sm120 {

// D = A @ B^T. Scales as four UE8M0 bytes a word, [K/128][count rounded up to 4].
struct MxGemmParams {
  const uint8_t* tokens;  // [tokens_count][K] e4m3
  const uint32_t* token_scales;
  const uint8_t* weights;  // [rows][K] e4m3
  const uint32_t* weight_scales;
  __nv_bfloat16* output;  // [tokens_count][rows]
  int token_count, rows, columns;
};

cudaError_t mxfp8_gemm(const MxGemmParams& params, cudaStream_t stream);

// values · 2^(scale byte - 127) ≈ x, [token_count][columns]
cudaError_t quantize_mxfp8(const __nv_bfloat16* x, uint8_t* values, uint32_t* scales, int token_count, int columns,
                           cudaStream_t stream);

}  // namespace fish::sm120
