// The decode GEMMs as host code calls them: one entry point an op and token tile, which launches the variant that the
// plan names.
#pragma once

#include <cuda_runtime.h>

#include "config.h"
#include "params.h"

namespace fish::sm90 {

struct Operands {
  const void* weights;      // [N, K] e4m3
  const void* activations;  // [tokens, K] e4m3 or bf16
};

#define FISH_DECLARE_GEMM(name) \
  template <int kTokens>        \
  cudaError_t name(const Plan& plan, const Operands& operands, const GemmParams& params, cudaStream_t stream)

FISH_DECLARE_GEMM(fp8_gemm);        // kFp8Plans
FISH_DECLARE_GEMM(w8a16_gemm);      // kW8a16Plans
FISH_DECLARE_GEMM(gate_up_swiglu);  // kGateUpPlans

#undef FISH_DECLARE_GEMM

}  // namespace fish::sm90
