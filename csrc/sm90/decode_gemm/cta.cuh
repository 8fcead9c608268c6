// Who this CTA is, handed from the kernel to its epilogue.
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

}  // namespace fish::sm90
