// D = A @ B^T for few tokens: bound by the bytes of B, so everything serves keeping loads of B in flight.
//
//   weights are the M operand of wgmma, tokens its N: a tile of 64 weight rows × 8…128 tokens wastes nothing
//   one warp copies, warpgroups multiply; K is split over warpgroups, and where N is small over the CTAs of a cluster
//   the first ring of weights is in flight before the previous kernel has ended
#pragma once

#include "config.h"
#include "mainloop.cuh"
#include "producer.cuh"
#include "store_epilogue.cuh"
#include "swiglu_epilogue.cuh"

namespace fish::sm90 {

// Asks for the scales of the tile's rows, [scale blocks][blocks of K]; they are there after copied_floats_wait().
template <class Config, class Finish>
__device__ __forceinline__ void fetch_weight_scales(const Cta<Config>& cta, const GemmParams& params,
                                                    const BlockRange& range, float* weight_scales) {
#pragma unroll
  for (int index = 0; index < Finish::kScaleBlocks; ++index) {
    const size_t row = Finish::scale_row(params, cta.row, index);
    const float* source = params.weight_scales + row * params.blocks + range.first;
    for (int i = threadIdx.x; i < range.count; i += Config::kMathThreads) {
      copy_float(shared_address(weight_scales + index * range.count + i), source + i);
    }
  }
}

template <class Config, template <class> class Epilogue>
__global__ void __launch_bounds__(Config::kThreads)
    decode_gemm(const __grid_constant__ CUtensorMap weights, const __grid_constant__ CUtensorMap activations,
                const __grid_constant__ GemmParams params) {
  using Finish = Epilogue<Config>;
  extern __shared__ uint8_t unaligned[];
  uint8_t* shared = unaligned + (-shared_address(unaligned) & (kSwizzleGroup - 1));
  const SharedLayout<Config, Finish> layout(blocks_per_cta(params.blocks, Config::kCtasAlongK));

  const Cta<Config> cta = locate_cta<Config>(params, shared, layout.incoming, layout.barriers);
  const BlockRange range(cta.k_rank, Config::kCtasAlongK, params.blocks);
  float* weight_scales = reinterpret_cast<float*>(shared + layout.weight_scales);

  // Weight scales go first: behind a ring of weights they would wait for it.
  if (cta.is_math) {
    fetch_weight_scales<Config, Finish>(cta, params, range, weight_scales);
  } else if (threadIdx.x % 32 == 0) {
    if (params.trigger_before_last >= kTriggerAtStart) let_next_kernel_start();
    cta.ring.init();
    if constexpr (Config::kCluster > 1) barrier_expect_bytes(cta.ring.reduced(), Finish::expected_bytes(cta.tokens));
    fence_barrier_init();
  }
  __syncwarp();
  if constexpr (Config::kCluster > 1) cluster_arrive_relaxed();
  __syncthreads();

  const Producer<Config> producer{cta, &weights, &activations, range};
  if (cta.is_math) {
    copied_floats_wait();
    wait_for_previous_kernel();
    sync_threads<Config::kMathThreads>(1);
  } else if (threadIdx.x % 32 == 0) {
    producer.start(params, shared_address(shared + layout.activation_scales));
  }
  __syncwarp();
  if constexpr (Config::kCluster > 1) cluster_wait();  // every CTA of the cluster has started, its barriers exist

  float sums[Config::kTokens / 2] = {};
  if (cta.is_math) {
    const int first = Finish::scale_index(cta.row, cta.thread_row());
    const int second = Finish::scale_index(cta.row, cta.thread_row() + 8);
    const Multiplier<Config, Finish::kScaleBlocks == 1> multiplier{
        cta,
        reinterpret_cast<const float*>(shared + layout.activation_scales),
        {weight_scales + first * range.count, weight_scales + second * range.count},
        min(Config::kTokens, params.tokens_padded),
        range.count};
    if constexpr (Config::kActivationBytes == 1) barrier_wait(cta.ring.scales(), 0);
    multiplier.run(sums);
  } else if (threadIdx.x % 32 == 0) {
    producer.run(params);
  }
  __syncwarp();
  Finish::run(cta, params, sums);
}

}  // namespace fish::sm90
