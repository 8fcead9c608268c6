// The multiplying half of a decode GEMM: one warpgroup drains its stages and accumulates in fp32.
//
// The tensor cores keep about 13 bits inside a sum, so a partial sum never spans more than one block of 128 columns;
// scaling it by activation scale × weight scale and adding it in fp32 is needed for the block scales anyway.
#pragma once

#include "fish/wgmma.cuh"
#include "cta.cuh"

namespace fish::sm90 {

// Multiplies one stage into `partial` (issued, not waited for).
template <class Config>
__device__ __forceinline__ void multiply_stage(float (&partial)[Config::kTokens / 2], uint32_t stage, int row_group) {
  constexpr int kTokens = Config::kTokens;
  const uint32_t weights = stage + row_group * kWgmmaRows * kScaleBlock;
  const uint32_t first_half = stage + Config::kWeightBytes;
  const uint64_t tokens = operand_descriptor(first_half);
  if constexpr (Config::kActivationBytes == 1) {
    const uint64_t descriptor = operand_descriptor(weights);
#pragma unroll
    for (int k = 0; k < 4; ++k) wgmma_e4m3<kTokens>(partial, descriptor + 2 * k, tokens + 2 * k, k > 0);
  } else {
    // e4m3 weights become bf16 in registers. Row r of the swizzled tile keeps its 16-byte chunk c at chunk c ^ (r % 8).
    const int lane = threadIdx.x % 32, row = (threadIdx.x / 32 % 4) * 16 + lane / 4;
    const uint32_t address = weights + row * kScaleBlock + 2 * (lane % 4);
    uint32_t operand[8][4];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {  // rows r, r+8; then the same rows 8 columns on
        uint16_t pair;
        asm volatile("ld.shared.u16 %0, [%1];"
                     : "=h"(pair)
                     : "r"(address + (part % 2) * 8 * kScaleBlock + ((k ^ (row % 8)) << 4) + (part / 2) * 8));
        operand[k][part] = e4m3_to_bf16(pair);
      }
    }
    const uint64_t second_half = operand_descriptor(first_half + Config::kTokens * kScaleBlock);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      wgmma_bf16<kTokens>(partial, operand[k], (k < 4 ? tokens : second_half) + 2 * (k % 4), k > 0);
    }
  }
}

// One warpgroup's share of the K range. kOneWeightScale: rows r and r + 8 always lie in the same block of 128.
template <class Config, bool kOneWeightScale>
struct Multiplier {
  using Sums = float[Config::kTokens / 2];

  const Cta<Config>& cta;
  const float* activation_scales;  // shared, [blocks][scale_pitch]
  const float* weight_scales[2];   // shared, [blocks]: of the thread's rows r and r + 8
  int scale_pitch, blocks;

  __device__ void run(Sums& sums) const {
    int step = 0;
    if constexpr (Config::kPairBlocks) {
      for (; step + 1 < steps(); step += 2) {
        Sums first, second;
        wait_for(step);
        wait_for(step + 1);
        wgmma_fence();
        multiply_stage<Config>(first, stage(step), cta.row_group);
        multiply_stage<Config>(second, stage(step + 1), cta.row_group);
        wgmma_commit();
        wgmma_wait();
        release(step);
        release(step + 1);
        promote(sums, first, step);
        promote(sums, second, step + 1);
      }
    }
    for (; step < steps(); ++step) {
      wait_for(step);
      Sums partial;
      wgmma_fence();
      multiply_stage<Config>(partial, stage(step), cta.row_group);
      wgmma_commit();
      wgmma_wait();
      release(step);
      promote(sums, partial, step);
    }
  }

 private:
  __device__ int steps() const {
    return (blocks - cta.k_group + Config::kWarpgroupsAlongK - 1) / Config::kWarpgroupsAlongK;
  }
  __device__ int slot(int step) const { return cta.k_group * Config::kStages + step % Config::kStages; }
  __device__ uint32_t stage(int step) const { return cta.ring.stage(slot(step)); }
  __device__ void wait_for(int step) const { barrier_wait(cta.ring.full(slot(step)), step / Config::kStages & 1); }

  // The producer may fill the slot again, if it has a block left for it.
  __device__ void release(int step) const {
    if (threadIdx.x % 32 == 0 && step + Config::kStages < steps()) barrier_arrive(cta.ring.empty(slot(step)));
  }

  // sums += partial · scales of the step's block
  __device__ void promote(Sums& sums, const Sums& partial, int step) const {
    const int block = cta.k_group + step * Config::kWarpgroupsAlongK;
    const float first_weight = weight_scales[0][block];
    const float weight[2] = {first_weight, kOneWeightScale ? first_weight : weight_scales[1][block]};
    const float* scales = activation_scales + block * scale_pitch + cta.thread_token();
#pragma unroll
    for (int q = 0; q < Config::kTokens / 8; ++q) {
      float2 token = {1.f, 1.f};
      if constexpr (Config::kActivationBytes == 1) token = *reinterpret_cast<const float2*>(scales + 8 * q);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        sums[4 * q + 2 * half] += partial[4 * q + 2 * half] * (token.x * weight[half]);
        sums[4 * q + 2 * half + 1] += partial[4 * q + 2 * half + 1] * (token.y * weight[half]);
      }
    }
  }
};

}  // namespace fish::sm90
