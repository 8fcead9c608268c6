// MXFP8 GEMM for few tokens: cp.async stages feed mma.sync with block scales applied by the hardware.
//
// Blackwell accumulates in full fp32, so nothing is promoted: one accumulator runs over all of K, in an order that does
// not depend on the number of tokens.
#include "fish/launch.h"
#include "fish/ptx.cuh"
#include "layout.h"
#include "mxfp8_gemm.h"

namespace fish::sm120 {
namespace {

__device__ __forceinline__ void copy_chunk(uint32_t destination, const void* source, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination), "l"(source), "r"(exists ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

__device__ __forceinline__ uint32_t load_word(uint32_t address) {
  uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
  return word;
}

// d += weights · tokens, both scaled by byte `step` of their words.
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&weights)[4], const uint32_t (&tokens)[2],
                                    uint32_t weight_scales, uint32_t token_scales, uint16_t step) {
  constexpr uint16_t kSelector = 0;
  asm volatile(
      "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {%11, %12}, {%13}, {%14, %15};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(weights[0]), "r"(weights[1]), "r"(weights[2]), "r"(weights[3]), "r"(tokens[0]), "r"(tokens[1]),
        "r"(weight_scales), "h"(step), "h"(kSelector), "r"(token_scales), "h"(step), "h"(kSelector));
}

template <int kTokens, int kStages>
struct Tile {
  static constexpr int kWeightBytes = kRows * kBlockColumns;
  static constexpr int kStageBytes = kWeightBytes + kTokens * kBlockColumns;
  static constexpr int kTokenGroups = kTokens / kMmaTokens;

  const MxGemmParams& params;
  uint32_t shared;
  int first_row, first_token;

  __device__ uint32_t stage(int block) const { return shared + block % kStages * kStageBytes; }

  template <int kCount>
  __device__ void copy_rows(uint32_t target, const uint8_t* source, int first, int limit, int block) const {
    constexpr int kChunks = kBlockColumns / kChunk;
    for (int i = threadIdx.x; i < kCount * kChunks; i += kThreads) {
      const int row = i / kChunks, column = i % kChunks * kChunk;
      const int from = min(first + row, limit - 1);
      copy_chunk(target + shared_offset(row, column),
                 source + static_cast<size_t>(from) * params.columns + block * kBlockColumns + column,
                 first + row < limit);
    }
  }
  __device__ void copy_weights(int block) const {
    copy_rows<kRows>(stage(block), params.weights, first_row, params.rows, block);
  }
  __device__ void copy_tokens(int block) const {
    copy_rows<kTokens>(stage(block) + kWeightBytes, params.tokens, first_token, params.token_count, block);
  }

  // One block of K for this warp's 16 rows and all tokens of the tile.
  __device__ void multiply(float (&sums)[kTokenGroups][4], int block) const {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int weight_pitch = padded_to_4(params.rows), token_pitch = padded_to_4(params.token_count);
    const uint32_t weight_scales = __ldg(
        params.weight_scales + scale_word(block, first_row + warp * kMmaRows + weight_scale_row(lane), weight_pitch));
    uint32_t token_scales[kTokenGroups];
#pragma unroll
    for (int q = 0; q < kTokenGroups; ++q) {
      const int token = min(first_token + q * kMmaTokens + token_scale_token(lane), token_pitch - 1);
      token_scales[q] = params.token_scales[scale_word(block, token, token_pitch)];
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint32_t weights[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        weights[i] = load_word(stage(block) + shared_offset(warp * kMmaRows + weight_row(lane, i),
                                                            step * kStepColumns + weight_column(lane, i)));
      }
#pragma unroll
      for (int q = 0; q < kTokenGroups; ++q) {
        uint32_t tokens[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          tokens[i] =
              load_word(stage(block) + kWeightBytes +
                        shared_offset(q * kMmaTokens + token_of(lane), step * kStepColumns + token_column(lane, i)));
        }
        mma(sums[q], weights, tokens, weight_scales, token_scales[q], step);
      }
    }
  }

  __device__ void store(const float (&sums)[kTokenGroups][4]) const {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int q = 0; q < kTokenGroups; ++q) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int token = first_token + q * kMmaTokens + output_token(lane, i);
        const int row = first_row + warp * kMmaRows + output_row(lane, i);
        if (token < params.token_count) {
          params.output[static_cast<size_t>(token) * params.rows + row] = __float2bfloat16_rn(sums[q][i]);
        }
      }
    }
  }
};

template <int kTokens, int kStages>
__global__ void __launch_bounds__(kThreads) gemm(const __grid_constant__ MxGemmParams params) {
  extern __shared__ __align__(128) uint8_t shared[];
  const Tile<kTokens, kStages> tile{params, shared_address(shared), static_cast<int>(blockIdx.x) * kRows,
                                    static_cast<int>(blockIdx.y) * kTokens};
  const int blocks = params.columns / kBlockColumns;
  let_next_kernel_start();
  // Weights are constants of the model: fetched while the previous kernel still runs.
  for (int block = 0; block < min(kStages - 1, blocks); ++block) tile.copy_weights(block);
  wait_for_previous_kernel();
  for (int block = 0; block < kStages - 1; ++block) {
    if (block < blocks) tile.copy_tokens(block);
    commit_copies();
  }
  float sums[Tile<kTokens, kStages>::kTokenGroups][4] = {};
  for (int block = 0; block < blocks; ++block) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // the copies of all threads have landed, and everyone has left the stage that is filled next
    const int next = block + kStages - 1;
    if (next < blocks) {
      tile.copy_weights(next);
      tile.copy_tokens(next);
    }
    commit_copies();
    tile.multiply(sums, block);
  }
  tile.store(sums);
}

template <int kTokens, int kStages>
cudaError_t launch_tile(const MxGemmParams& params, cudaStream_t stream) {
  const dim3 grid(params.rows / kRows, (params.token_count + kTokens - 1) / kTokens);
  return launch(gemm<kTokens, kStages>, {grid, kThreads, kStages * Tile<kTokens, kStages>::kStageBytes, 1, stream},
                params);
}

}  // namespace

cudaError_t mxfp8_gemm(const MxGemmParams& params, cudaStream_t stream) {
  if (params.token_count <= 8) return launch_tile<8, 5>(params, stream);
  if (params.token_count <= 16) return launch_tile<16, 4>(params, stream);
  if (params.token_count <= 32) return launch_tile<32, 4>(params, stream);
  return launch_tile<64, 4>(params, stream);
}

}  // namespace fish::sm120
