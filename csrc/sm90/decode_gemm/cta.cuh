// Who this CTA is: what producer, multipliers and epilogue have in common.
#pragma once

#include "params.h"
#include "ring.cuh"

namespace fish::sm90 {

template <class Config>
struct Cta {
  Ring<Config> ring;
  float* local;            // shared, over the ring: this CTA's own sums
  float* incoming;         // shared: what the cluster sends
  int k_rank;              // among the CTAs of the cluster that share K
  int row_rank;            // among neighbouring tiles of the cluster
  int row;                 // first weight row
  int token;               // first token
  int tokens;              // tokens of this tile that exist
  int k_group, row_group;  // of the thread's warpgroup
  bool is_math;            // false in the producer warp

  // The first of the two rows (r, r + 8) whose sums the thread holds, counted from `row`.
  __device__ int thread_row() const {
    return row_group * kWgmmaRows + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
  }
  // The rank in the cluster of another CTA that works on the same tile.
  __device__ int sharer_of_k(int k_rank) const { return row_rank * Config::kCtasAlongK + k_rank; }

  // Its first token in each group of 8.
  __device__ static int thread_token() { return threadIdx.x % 4 * 2; }
};

template <class Config>
__device__ __forceinline__ Cta<Config> locate_cta(const GemmParams& params, uint8_t* shared, int incoming,
                                                  int barriers) {
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);  // known to the compiler to be the same in all lanes
  const int warpgroup = warp / 4;
  // CTAs that read the same weights for different tokens are neighbours: the second read finds them in L2.
  const int tile = blockIdx.x / Config::kCluster;
  const int token_tiles = (params.tokens + Config::kTokens - 1) / Config::kTokens;
  Cta<Config> cta;
  cta.ring = {shared_address(shared), shared_address(shared) + barriers};
  cta.local = reinterpret_cast<float*>(shared);
  cta.incoming = reinterpret_cast<float*>(shared + incoming);
  cta.k_rank = blockIdx.x % Config::kCtasAlongK;
  cta.row_rank = blockIdx.x / Config::kCtasAlongK % Config::kCtasAlongRows;
  cta.row = (tile / token_tiles * Config::kCtasAlongRows + cta.row_rank) * Config::kRows;
  cta.token = tile % token_tiles * Config::kTokens;
  cta.tokens = min(Config::kTokens, params.tokens - cta.token);
  cta.k_group = warpgroup / Config::kWarpgroupsAlongRows;
  cta.row_group = warpgroup % Config::kWarpgroupsAlongRows;
  cta.is_math = warp < Config::kMathThreads / 32;
  return cta;
}

}  // namespace fish::sm90
