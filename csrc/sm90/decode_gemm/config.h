// Sizes of one decode GEMM kernel, all known when it is compiled, and the shared memory they lead to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

namespace fish::sm90 {

constexpr int kScaleBlock = 128;          // columns of K (and rows of N) that share a scale
constexpr int kWarpgroup = 128;           // threads
constexpr int kWgmmaRows = 64;            // weight rows of one wgmma
constexpr int kSharedBytes = 227 * 1024;  // what a CTA may have
constexpr int kSwizzleGroup = 1024;       // bytes: 8 rows of 128, the unit of the 128-byte swizzle

// What the host chooses. Only `split` (how K is cut) decides bits; the rest decides speed.
struct Plan {
  int token_tile;           // tokens of one CTA: the N of the wgmma
  int warpgroups_along_k;   // each takes every n-th block of K
  int weight_rows;          // weight rows of one CTA
  int stages;               // ring stages of each warpgroup
  int ctas_along_k;         // of a cluster: they share the K of one tile
  int ctas_along_rows;      // of a cluster: neighbouring tiles, whose epilogues exchange something
  int trigger_before_last;  // the next kernel may start this many loads before the last one; kTriggerAtStart = at once

  // The trigger is a run-time argument of the same kernel.
  constexpr bool same_variant(const Plan& other) const {
    return token_tile == other.token_tile && warpgroups_along_k == other.warpgroups_along_k &&
           weight_rows == other.weight_rows && stages == other.stages && ctas_along_k == other.ctas_along_k &&
           ctas_along_rows == other.ctas_along_rows;
  }
};

constexpr int kTriggerAtStart = 1 << 20;

template <int kTokens_, int kWarpgroupsAlongK_, int kRows_, int kStages_, int kCtasAlongK_, int kCtasAlongRows_,
          int kActivationBytes_>
struct Config {
  static constexpr int kTokens = kTokens_;
  static constexpr int kWarpgroupsAlongK = kWarpgroupsAlongK_;
  static constexpr int kRows = kRows_;
  static constexpr int kStages = kStages_;
  static constexpr int kCtasAlongK = kCtasAlongK_;
  static constexpr int kCtasAlongRows = kCtasAlongRows_;
  static constexpr int kCluster = kCtasAlongK * kCtasAlongRows;
  static constexpr int kActivationBytes = kActivationBytes_;  // an activation element: 1 for e4m3, 2 for bf16

  static constexpr int kWarpgroupsAlongRows = (kRows + kWgmmaRows - 1) / kWgmmaRows;
  static constexpr int kMathThreads = kWarpgroupsAlongK * kWarpgroupsAlongRows * kWarpgroup;
  static constexpr int kThreads = kMathThreads + 32;  // one more warp feeds the ring
  static constexpr int kSlots = kWarpgroupsAlongK * kStages;
  static constexpr int kWeightBytes = kRows * kScaleBlock;
  static constexpr int kStageBytes = kWeightBytes + kTokens * kScaleBlock * kActivationBytes;

  // Two blocks of K go to the tensor cores at once. At 64 tokens that was slower (gate_up 15.5 → 16.6 µs).
  static constexpr bool kPairBlocks = kTokens <= 32 && kActivationBytes == 1;

  // Partial sums meet in shared memory: [slab][row][pair of tokens].
  static constexpr int kOwnedRows = kRows / kCtasAlongK;  // rows of the tile that a CTA finishes
  static constexpr int kPairs = kTokens / 2;
  // Few tokens: every thread stores its sums in the owner's memory, one slab for each warpgroup along K of each CTA.
  // Many: a CTA first adds up its own in a slab of all rows, then the copy engine moves each owner its part.
  static constexpr bool kBulkPush = kCtasAlongK > 1 && kTokens >= 32;
  static constexpr int kLocalSlabs = kCtasAlongK == 1 || kBulkPush ? kWarpgroupsAlongK : 0;
  static constexpr int kLocalBytes = kLocalSlabs * kRows * kTokens * 4;
  static constexpr int kIncomingSlabs = kCtasAlongK == 1 ? 0 : kCtasAlongK * (kBulkPush ? 1 : kWarpgroupsAlongK);
  static constexpr int kIncomingBytes = kIncomingSlabs * kOwnedRows * kTokens * 4;

  static_assert(kRows % 8 == 0 && kRows % kCtasAlongK == 0 && kOwnedRows % 2 == 0);
  static_assert(kStageBytes % kSwizzleGroup == 0);
};

__host__ __device__ constexpr int blocks_per_cta(int blocks, int ctas_along_k) {
  return (blocks + ctas_along_k - 1) / ctas_along_k;
}

// Where things lie in shared memory. The ring starts on a swizzle group. A CTA's own sums reuse its bytes, since
// everyone here has then finished reading; what other CTAs store needs bytes of its own.
template <class Config, class Epilogue>
struct SharedLayout {
  int incoming, activation_scales, weight_scales, barriers, bytes;

  __host__ __device__ constexpr explicit SharedLayout(int blocks) {
    constexpr int kRing = Config::kSlots * Config::kStageBytes;
    incoming = kRing > Config::kLocalBytes ? kRing : Config::kLocalBytes;
    activation_scales = incoming + Config::kIncomingBytes + Epilogue::kExchangeBytes;
    // One row more than there are blocks: the last row is read up to the width of the tile.
    const int scale_rows = Config::kActivationBytes == 1 ? blocks + 1 : 0;
    weight_scales = activation_scales + scale_rows * Config::kTokens * 4;
    barriers = (weight_scales + Epilogue::kScaleBlocks * blocks * 4 + 7) / 8 * 8;
    bytes = barriers + (2 * Config::kSlots + 2) * 8 + kSwizzleGroup;  // the slack aligns the ring
  }
};

}  // namespace fish::sm90
