// Adds the partial sums of all warpgroups along K and all CTAs of the cluster in a fixed order, adds the residual,
// stores bf16.
//
//   total = ((CTA 0: warpgroup 0 + 1 + …) + (CTA 1: …)) + …      the same for every number of tokens, so the same bits
//
// Each CTA of the cluster finishes kOwnedRows of the tile: the others send it theirs. No atomics, no workspace in
// global memory.
#pragma once

#include "cta.cuh"

namespace fish::sm90 {

// Where a slab keeps the sums of a row for two neighbouring tokens: [row][pair], the pairs of a row permuted so that
// neither the writers (4 pairs of 4 rows in half a warp) nor the readers (16 rows of one pair) meet in a bank.
template <int kPairs>
__device__ __forceinline__ int pair_index(int row, int pair) {
  constexpr int kMask = kPairs - 1;
  const int shuffle = kPairs == 4   ? row >> 2 & 3
                      : kPairs == 8 ? (row >> 1 & 1) << 2 | (row >> 2 & 3)
                                    : (row & 3) << 2 | (row >> 2 & 3);
  return row * kPairs + (pair ^ (shuffle & kMask));
}

template <class Config>
struct StoreEpilogue {
  // How many rows of weight scales the rows of a tile can touch.
  static constexpr int kScaleBlocks = kScaleBlock % Config::kRows == 0   ? 1
                                      : Config::kRows % kScaleBlock == 0 ? Config::kRows / kScaleBlock
                                                                         : Config::kRows / kScaleBlock + 2;
  static constexpr int kExchangeBytes = 0;
  static constexpr int kPairs = Config::kPairs;
  static constexpr int kSlabPairs = Config::kOwnedRows * kPairs;  // of an incoming slab
  static constexpr int kBarrier = 1;                              // named barrier of the multiplying threads

  static __device__ int scale_row(const GemmParams& params, int first_row, int index) {
    return min(first_row / kScaleBlock + index, (params.rows - 1) / kScaleBlock);
  }
  static __device__ int scale_index(int first_row, int row) {
    return min((first_row + row) / kScaleBlock - first_row / kScaleBlock, kScaleBlocks - 1);
  }

  // Bytes that arrive from the cluster, counted on the `reduced` barrier.
  static __device__ uint32_t expected_bytes(int tokens) {
    if constexpr (Config::kBulkPush) return (Config::kCtasAlongK - 1) * kSlabPairs * 8;
    return Config::kIncomingSlabs * Config::kOwnedRows * ((tokens + 1) / 2) * 8;
  }

  static __device__ void run(const Cta<Config>& cta, const GemmParams& params,
                             const float (&sums)[Config::kTokens / 2]) {
    if (cta.is_math) {
      if constexpr (Config::kCtasAlongK == 1) {
        keep(cta, sums);
      } else if constexpr (Config::kBulkPush) {
        keep(cta, sums);
        send_slabs(cta);
      } else {
        send_sums(cta, sums);
        barrier_wait(cta.ring.reduced(), 0);
      }
    }
    __syncwarp();
    if constexpr (Config::kBulkPush) cluster_arrive_relaxed();
    if (cta.is_math) store(cta, params);
    __syncwarp();
    if constexpr (Config::kBulkPush) cluster_wait();  // the copy engine reads our slab until the others have their part
  }

 private:
  // Calls visit(row of the tile, pair of tokens, sums of that pair) for everything the thread holds.
  template <class Visit>
  static __device__ void for_each_pair(const Cta<Config>& cta, const float (&sums)[Config::kTokens / 2],
                                       const Visit& visit) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = cta.thread_row() + 8 * half;
      if (row >= Config::kRows) continue;
#pragma unroll
      for (int q = 0; q < Config::kTokens / 8; ++q) {
        const int pair = 4 * q + cta.thread_token() / 2;
        if (2 * pair < cta.tokens) visit(row, pair, float2{sums[4 * q + 2 * half], sums[4 * q + 2 * half + 1]});
      }
    }
  }

  // Over the bytes of the ring, which everyone in the CTA has finished reading.
  static __device__ void keep(const Cta<Config>& cta, const float (&sums)[Config::kTokens / 2]) {
    sync_threads<Config::kMathThreads>(kBarrier);
    float2* slab = reinterpret_cast<float2*>(cta.local) + cta.k_group * Config::kRows * kPairs;
    for_each_pair(cta, sums, [&](int row, int pair, float2 value) { slab[pair_index<kPairs>(row, pair)] = value; });
    sync_threads<Config::kMathThreads>(kBarrier);
  }

  static __device__ void send_sums(const Cta<Config>& cta, const float (&sums)[Config::kTokens / 2]) {
    float2* slab =
        reinterpret_cast<float2*>(cta.incoming) + (cta.k_rank * Config::kWarpgroupsAlongK + cta.k_group) * kSlabPairs;
    for_each_pair(cta, sums, [&](int row, int pair, float2 value) {
      const int owner = cta.sharer_of_k(row / Config::kOwnedRows);
      const float2* target = slab + pair_index<kPairs>(row % Config::kOwnedRows, pair);
      store_cluster_counted(cluster_address(shared_address(target), owner), value,
                            cluster_address(cta.ring.reduced(), owner));
    });
  }

  // Adds up this CTA's warpgroups, then sends every other CTA its rows.
  static __device__ void send_slabs(const Cta<Config>& cta) {
    constexpr int kTilePairs = Config::kRows * kPairs;
    float2* slab = reinterpret_cast<float2*>(cta.local);
    if constexpr (Config::kWarpgroupsAlongK > 1) {
      for (int i = threadIdx.x; i < kTilePairs; i += Config::kMathThreads)
        slab[i] = sum_of<Config::kWarpgroupsAlongK>(slab + i, kTilePairs);
    }
    fence_shared_for_copies();
    sync_threads<Config::kMathThreads>(kBarrier);
    if (threadIdx.x < Config::kCtasAlongK && threadIdx.x != cta.k_rank) {
      const int owner = cta.sharer_of_k(threadIdx.x);
      const float2* target = reinterpret_cast<float2*>(cta.incoming) + cta.k_rank * kSlabPairs;
      copy_to_cluster(cluster_address(shared_address(target), owner), shared_address(slab + threadIdx.x * kSlabPairs),
                      kSlabPairs * 8, cluster_address(cta.ring.reduced(), owner));
    }
    barrier_wait(cta.ring.reduced(), 0);
  }

  template <int kCount>
  static __device__ float2 sum_of(const float2* first, int pitch) {
    float2 total = *first;
#pragma unroll
    for (int i = 1; i < kCount; ++i) {
      const float2 next = first[i * pitch];
      total.x += next.x;
      total.y += next.y;
    }
    return total;
  }

  // The finished sum of one owned row for two tokens.
  static __device__ float2 total_of(const Cta<Config>& cta, int row, int pair) {
    const int index = pair_index<kPairs>(row, pair);
    const float2* local = reinterpret_cast<const float2*>(cta.local);
    const float2* incoming = reinterpret_cast<const float2*>(cta.incoming) + index;
    if constexpr (Config::kCtasAlongK == 1) {
      return sum_of<Config::kWarpgroupsAlongK>(local + index, Config::kRows * kPairs);
    }
    float2 total = {0.f, 0.f};
#pragma unroll
    for (int rank = 0; rank < Config::kCtasAlongK; ++rank) {
      float2 part;
      if constexpr (Config::kBulkPush) {
        part = rank == cta.k_rank ? local[rank * kSlabPairs + index] : incoming[rank * kSlabPairs];
      } else {
        part = sum_of<Config::kWarpgroupsAlongK>(incoming + rank * Config::kWarpgroupsAlongK * kSlabPairs, kSlabPairs);
      }
      total.x += part.x;
      total.y += part.y;
    }
    return total;
  }

  // A thread adds up two tokens of one row; neighbours then trade, so that each stores one token of two rows.
  static __device__ void store(const Cta<Config>& cta, const GemmParams& params) {
    const int first_row = cta.row + cta.k_rank * Config::kOwnedRows;
    const int items = Config::kOwnedRows * ((cta.tokens + 1) / 2);
    const bool odd = threadIdx.x % 2;
    for (int item = threadIdx.x; item - static_cast<int>(threadIdx.x % 32) < items; item += Config::kMathThreads) {
      const int row = item % Config::kOwnedRows, pair = item / Config::kOwnedRows;
      float2 total = {0.f, 0.f};
      if (item < items) total = total_of(cta, row, pair);
      const float traded = __shfl_xor_sync(~0u, odd ? total.x : total.y, 1);
      const int token = 2 * pair + odd;
      if (item >= items || token >= cta.tokens) continue;
      float2 rows = odd ? float2{traded, total.y} : float2{total.x, traded};
      const size_t index = static_cast<size_t>(cta.token + token) * params.rows + first_row + (row - odd);
      if (params.residual != nullptr) {
        const float2 residual = bf16_to_float(*reinterpret_cast<const uint32_t*>(params.residual + index));
        rows.x += residual.x;
        rows.y += residual.y;
      }
      *reinterpret_cast<__nv_bfloat162*>(params.output + index) = __floats2bfloat162_rn(rows.x, rows.y);
    }
  }
};

}  // namespace fish::sm90
