// The ring of stages between the copy engine and the tensor cores, and the warp that fills it.
//
//   block j of this CTA's K  →  warpgroup j % warpgroups_along_k, stage (j / warpgroups_along_k) % stages
//   one stage: weights [rows][128 B] then activations [tokens][128 B] (twice for bf16: columns 0-63, 64-127)
#pragma once

#include "config.h"
#include "fish/ptx.cuh"
#include "params.h"

namespace fish::sm90 {

// The blocks of K that one CTA multiplies. Depends on the split of K only, never on the number of tokens.
struct BlockRange {
  int first, count;
  __device__ BlockRange(int part, int parts, int blocks)
      : first(part * blocks / parts), count((part + 1) * blocks / parts - first) {}
};

template <class Config>
struct Ring {
  uint32_t stages;    // shared address of slot 0
  uint32_t barriers;  // full[slots], empty[slots], scales, reduced

  static __device__ int slot(int block) {
    return (block % Config::kWarpgroupsAlongK) * Config::kStages + (block / Config::kWarpgroupsAlongK) % Config::kStages;
  }
  static __device__ uint32_t parity(int block) { return (block / Config::kSlots) & 1; }

  __device__ uint32_t stage(int slot) const { return stages + slot * Config::kStageBytes; }
  __device__ uint32_t full(int slot) const { return barriers + slot * 8; }
  __device__ uint32_t empty(int slot) const { return barriers + (Config::kSlots + slot) * 8; }
  __device__ uint32_t scales() const { return barriers + 2 * Config::kSlots * 8; }
  __device__ uint32_t reduced() const { return barriers + (2 * Config::kSlots + 1) * 8; }

  __device__ void init() const {
    for (int i = 0; i < Config::kSlots; ++i) {
      barrier_init(full(i), 1);
      barrier_init(empty(i), Config::kWarpgroupsAlongRows * 4);
    }
    barrier_init(scales(), 1);
    barrier_init(reduced(), 1);
  }
};

// The producer: one thread that issues every copy of the CTA.
template <class Config>
struct Producer {
  Ring<Config> ring;
  const CUtensorMap* weights;
  const CUtensorMap* activations;
  BlockRange range;
  int weight_row, token;

  __device__ void load_weights(int block) const {
    const int slot = Ring<Config>::slot(block);
    barrier_expect_bytes(ring.full(slot), Config::kStageBytes);
    copy_box(ring.stage(slot), weights, (range.first + block) * kScaleBlock, weight_row, ring.full(slot), kEvictFirst);
  }

  __device__ void load_activations(int block) const {
    const int slot = Ring<Config>::slot(block);
    const uint32_t target = ring.stage(slot) + Config::kWeightBytes;
    const int column = (range.first + block) * kScaleBlock;
    copy_box(target, activations, column, token, ring.full(slot), kEvictLast);
    if constexpr (Config::kActivationBytes == 2) {
      copy_box(target + Config::kTokens * kScaleBlock, activations, column + 64, token, ring.full(slot), kEvictLast);
    }
  }

  // One copy when the tile holds all tokens (the scales of a range of blocks are then contiguous), else one a block.
  __device__ void load_scales(const GemmParams& params, uint32_t target) const {
    const int pitch = params.tokens_padded;
    const int width = min(Config::kTokens, pitch - token);
    const float* source = params.activation_scales + static_cast<size_t>(range.first) * pitch + token;
    barrier_expect_bytes(ring.scales(), range.count * width * 4);
    if (width == pitch) {
      if (range.count > 0) copy_bytes(target, source, range.count * width * 4, ring.scales());
      return;
    }
    const int target_pitch = min(Config::kTokens, pitch) * 4;
    for (int i = 0; i < range.count; ++i) {
      copy_bytes(target + i * target_pitch, source + static_cast<size_t>(i) * pitch, width * 4, ring.scales());
    }
  }

  // Weights of the first stages are constants of the model: they are fetched while the previous kernel still runs. Everything
  // that a kernel of this stream may have written waits for it.
  __device__ void run(const GemmParams& params, uint32_t scale_target) const {
    const int prefetched = min(Config::kSlots, range.count);
    const int trigger_at = range.count - 1 - params.trigger_before_last;
    for (int j = 0; j < prefetched; ++j) load_weights(j);
    if (params.trigger_before_last < kTriggerAtStart && trigger_at < prefetched) let_next_kernel_start();
    wait_for_previous_kernel();
    if constexpr (Config::kActivationBytes == 1) load_scales(params, scale_target);
    for (int j = 0; j < prefetched; ++j) load_activations(j);
    for (int j = prefetched; j < range.count; ++j) {
      barrier_wait(ring.empty(Ring<Config>::slot(j)), Ring<Config>::parity(j) ^ 1);
      load_weights(j);
      load_activations(j);
      if (j == trigger_at) let_next_kernel_start();
    }
  }
};

}  // namespace fish::sm90
