// The thread that issues every copy of a CTA.
#pragma once

#include "cta.cuh"

namespace fish::sm90 {

template <class Config>
struct Producer {
  const Cta<Config>& cta;
  const CUtensorMap* weights;
  const CUtensorMap* activations;
  BlockRange range;

  // Weights of the first stages are constants of the model: they are fetched while the previous kernel still runs.
  // Everything that a kernel of this stream may have written waits for it.
  __device__ void start(const GemmParams& params, uint32_t scale_target) const {
    for (int j = 0; j < prefetched(); ++j) load_weights(j);
    prefetch_map(activations);
    if (params.trigger_before_last < kTriggerAtStart && trigger_at(params) < prefetched()) let_next_kernel_start();
    wait_for_previous_kernel();
    if constexpr (Config::kActivationBytes == 1) load_scales(params, scale_target);
  }

  __device__ void run(const GemmParams& params) const {
    for (int j = 0; j < prefetched(); ++j) load_activations(j);
    for (int j = prefetched(); j < range.count; ++j) {
      barrier_wait(cta.ring.empty(Ring<Config>::slot(j)), Ring<Config>::parity(j) ^ 1);
      load_weights(j);
      load_activations(j);
      if (j == trigger_at(params)) let_next_kernel_start();
    }
  }

 private:
  __device__ int prefetched() const { return min(Config::kSlots, range.count); }
  __device__ int trigger_at(const GemmParams& params) const { return range.count - 1 - params.trigger_before_last; }

  __device__ void load_weights(int block) const {
    const int slot = Ring<Config>::slot(block);
    barrier_expect_bytes(cta.ring.full(slot), Config::kStageBytes);
    copy_box(cta.ring.stage(slot), weights, (range.first + block) * kScaleBlock, cta.row, cta.ring.full(slot),
             kEvictFirst);
  }

  __device__ void load_activations(int block) const {
    const int slot = Ring<Config>::slot(block);
    const uint32_t target = cta.ring.stage(slot) + Config::kWeightBytes;
    const int column = (range.first + block) * kScaleBlock;
#pragma unroll
    for (int half = 0; half < Config::kActivationBytes; ++half) {
      copy_box(target + half * Config::kTokens * kScaleBlock, activations, column + 64 * half, cta.token,
               cta.ring.full(slot), kEvictLast);
    }
  }

  // One copy when the tile holds all tokens (the scales of a range of blocks are then contiguous), else one a block.
  __device__ void load_scales(const GemmParams& params, uint32_t target) const {
    const int pitch = params.tokens_padded;
    const int width = min(Config::kTokens, pitch - cta.token);
    const float* source = params.activation_scales + static_cast<size_t>(range.first) * pitch + cta.token;
    barrier_expect_bytes(cta.ring.scales(), range.count * width * 4);
    if (width == pitch) {
      if (range.count > 0) copy_bytes(target, source, range.count * width * 4, cta.ring.scales());
      return;
    }
    const int target_pitch = min(Config::kTokens, pitch) * 4;
    for (int i = 0; i < range.count; ++i) {
      copy_bytes(target + i * target_pitch, source + static_cast<size_t>(i) * pitch, width * 4, cta.ring.scales());
    }
  }
};

}  // namespace fish::sm90
