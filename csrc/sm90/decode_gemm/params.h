// What a decode GEMM kernel is given. D = A @ B^T (+ residual): A activations [tokens, K], B weights [N, K], D [tokens,
// N].
#pragma once

#include <cstdint>
#include <cuda_bf16.h>

namespace fish::sm90 {

struct GemmParams {
  const float* activation_scales;  // [K/128][tokens_padded]; null when the activations are bf16
  const float* weight_scales;      // [ceil(N/128)][K/128]
  const __nv_bfloat16* residual;   // [tokens][N], added before rounding; may be null
  __nv_bfloat16* output;           // [tokens][N]
  uint8_t* quantized;              // [tokens][N/2] e4m3: the output of the SwiGLU epilogue
  float* quantized_scales;         // [N/2/128][tokens_padded]
  int tokens;
  int tokens_padded;  // to a multiple of 4: the pitch of the scales
  int rows;           // N
  int blocks;         // K/128
  int trigger_before_last;
};

}  // namespace fish::sm90
