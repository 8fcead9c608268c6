// From a plan to the kernel compiled for it.
#pragma once

#include <iterator>
#include <utility>

#include "fish/launch.h"
#include "gemm.h"
#include "kernel.cuh"
#include "plans.h"

namespace fish::sm90 {

constexpr int kUsualBlocks = 32;  // of 128 columns of K, a CTA: a plan that is too big for these is of no use

template <class Config, template <class> class Epilogue>
cudaError_t launch_decode_gemm(const Operands& operands, const GemmParams& params, cudaStream_t stream) {
  constexpr bool kBf16 = Config::kActivationBytes == 2;
  const int columns = params.blocks * kScaleBlock;
  CUtensorMap weights, activations;
  cudaError_t error =
      describe({operands.weights, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, params.rows, columns, Config::kRows}, &weights);
  if (error != cudaSuccess) return error;
  error = describe({operands.activations, kBf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_UINT8,
                    Config::kActivationBytes, params.tokens, columns, Config::kTokens},
                   &activations);
  if (error != cudaSuccess) return error;
  using Finish = Epilogue<Config>;
  static_assert(SharedLayout<Config, Finish>(kUsualBlocks).bytes <= kSharedBytes, "the ring does not fit");
  const SharedLayout<Config, Finish> layout(blocks_per_cta(params.blocks, Config::kCtasAlongK));
  const int token_tiles = (params.tokens + Config::kTokens - 1) / Config::kTokens;
  const LaunchShape shape{dim3(params.rows / Config::kRows * Config::kCtasAlongK * token_tiles), Config::kThreads,
                          layout.bytes, Config::kCluster, stream};
  return launch(decode_gemm<Config, Epilogue>, shape, weights, activations, params);
}

// The plan's numbers become a Config by way of deduction: nvcc's host stubs cannot spell out a Config of table
// look-ups.
template <template <class> class Epilogue, int... kNumbers>
cudaError_t launch_config(std::integer_sequence<int, kNumbers...>, const Operands& operands, const GemmParams& params,
                          cudaStream_t stream) {
  return launch_decode_gemm<Config<kNumbers...>, Epilogue>(operands, params, stream);
}

// Launches `plan` if it is row kIndex of the table and of this token tile: only those are compiled in this file.
template <const auto& kTable, size_t kIndex, int kTokens, int kActivationBytes, template <class> class Epilogue>
bool try_plan(const Plan& plan, const Operands& operands, const GemmParams& params, cudaStream_t stream,
              cudaError_t& error) {
  if constexpr (kTable[kIndex].plan.token_tile == kTokens) {
    constexpr Plan kRow = kTable[kIndex].plan;
    if (plan.same_variant(kRow)) {
      using Numbers = std::integer_sequence<int, kRow.token_tile, kRow.warpgroups_along_k, kRow.weight_rows,
                                            kRow.stages, kRow.ctas_along_k, kRow.ctas_along_rows, kActivationBytes>;
      error = launch_config<Epilogue>(Numbers{}, operands, params, stream);
      return true;
    }
  }
  return false;
}

template <const auto& kTable, int kTokens, int kActivationBytes, template <class> class Epilogue>
cudaError_t launch_plan(const Plan& plan, const Operands& operands, const GemmParams& params, cudaStream_t stream) {
  cudaError_t error = cudaErrorInvalidConfiguration;  // the plan is not a row of the table
  [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
    (void)(try_plan<kTable, kIndex, kTokens, kActivationBytes, Epilogue>(plan, operands, params, stream, error) || ...);
  }(std::make_index_sequence<std::size(kTable)>());
  return error;
}

}  // namespace fish::sm90
