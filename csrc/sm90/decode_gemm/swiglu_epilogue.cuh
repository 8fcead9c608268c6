// h = silu(gate) · up, quantised to e4m3 in blocks of 128 columns, straight from the accumulators of the gate-up GEMM.
//
// The weight rows are interleaved in eights (8 gate rows, the 8 up rows of the same columns, …), so that the two rows a
// thread holds are the gate and the up of one column. A tile of 64 rows is 32 columns of h; the four CTAs of a cluster
// hold the 128 columns that share a scale and tell each other their largest magnitudes.
#pragma once

#include "cta.cuh"
#include "fish/quantize.cuh"

namespace fish::sm90 {

template <class Config>
struct SwigluEpilogue {
  static_assert(Config::kRows == 64 && Config::kCtasAlongK == 1 && Config::kCtasAlongRows == 4);
  static constexpr int kScaleBlocks = 2;  // of the gate rows, of the up rows
  static constexpr int kColumns = 32;     // of h, a CTA
  static constexpr int kMaxima = 16;      // warps in the cluster
  static constexpr int kExchangeBytes = Config::kTokens * ((kMaxima + 1) * 4 + kColumns);  // maxima, inverses, bytes

  static __device__ int scale_row(const GemmParams& params, int first_row, int index) {
    return (index * params.rows / 2 + first_row / 2) / kScaleBlock;
  }
  static __device__ int scale_index(int, int row) { return row / 8 % 2; }

  static __device__ uint32_t expected_bytes(int tokens) { return kMaxima * ((tokens + 1) / 2) * 8; }

  static __device__ void run(const Cta<Config>& cta, const GemmParams& params,
                             const float (&sums)[Config::kTokens / 2]) {
    if (!cta.is_math) return;
    float* maxima = cta.incoming;                                            // [16][tokens]
    float* inverse = maxima + kMaxima * Config::kTokens;                     // [tokens]
    uint8_t* bytes = reinterpret_cast<uint8_t*>(inverse + Config::kTokens);  // [tokens][32]
    float hidden[Config::kTokens / 4];
    swiglu(hidden, sums);
    push_maxima(cta, maxima, hidden);
    barrier_wait(cta.ring.reduced(), 0);
    if (threadIdx.x < Config::kTokens) inverse[threadIdx.x] = block_scale(cta, params, maxima, threadIdx.x);
    sync_threads<Config::kMathThreads>(1);
    quantize(cta, inverse, bytes, hidden);
    sync_threads<Config::kMathThreads>(1);
    store(cta, params, bytes);
  }

 private:
  static __device__ void swiglu(float (&hidden)[Config::kTokens / 4], const float (&sums)[Config::kTokens / 2]) {
#pragma unroll
    for (int q = 0; q < Config::kTokens / 8; ++q) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) hidden[2 * q + odd] = silu(sums[4 * q + odd]) * sums[4 * q + 2 + odd];
    }
  }

  // The largest of 8 columns is found among the 8 lanes that hold the same tokens; lane group c tells CTA c.
  static __device__ void push_maxima(const Cta<Config>& cta, float* maxima,
                                     const float (&hidden)[Config::kTokens / 4]) {
    const int target = threadIdx.x % 32 / 4;
    float* slot = maxima + (cta.row_rank * 4 + threadIdx.x / 32) * Config::kTokens + cta.thread_token();
    const uint32_t remote = cluster_address(shared_address(slot), target % Config::kCtasAlongRows);
    const uint32_t barrier = cluster_address(cta.ring.reduced(), target % Config::kCtasAlongRows);
#pragma unroll
    for (int q = 0; q < Config::kTokens / 8; ++q) {
      float2 largest = {fabsf(hidden[2 * q]), fabsf(hidden[2 * q + 1])};
#pragma unroll
      for (int lanes = 4; lanes < 32; lanes *= 2) {
        largest.x = fmaxf(largest.x, __shfl_xor_sync(~0u, largest.x, lanes));
        largest.y = fmaxf(largest.y, __shfl_xor_sync(~0u, largest.y, lanes));
      }
      const bool exists = 8 * q + cta.thread_token() < cta.tokens;
      if (exists && target < Config::kCtasAlongRows) store_cluster_counted(remote + 32 * q, largest, barrier);
    }
  }

  static __device__ float block_scale(const Cta<Config>& cta, const GemmParams& params, const float* maxima,
                                      int token) {
    float largest = 0.f;
#pragma unroll
    for (int i = 0; i < kMaxima; ++i) largest = fmaxf(largest, maxima[i * Config::kTokens + token]);
    const Fp8Scale scale = fp8_scale(largest);
    if (cta.row_rank == 0 && cta.token + token < params.tokens_padded) {
      const size_t block = cta.row / 2 / kScaleBlock;
      params.quantized_scales[block * params.tokens_padded + cta.token + token] =
          token < cta.tokens ? scale.scale : 0.f;
    }
    return scale.inverse;
  }

  static __device__ void quantize(const Cta<Config>& cta, const float* inverse, uint8_t* bytes,
                                  const float (&hidden)[Config::kTokens / 4]) {
    const int column = threadIdx.x / 32 * 8 + threadIdx.x % 32 / 4;
#pragma unroll
    for (int q = 0; q < Config::kTokens / 8; ++q) {
      const int token = 8 * q + cta.thread_token();
      const uint16_t pair = to_e4m3(hidden[2 * q] * inverse[token], hidden[2 * q + 1] * inverse[token + 1]);
      bytes[token * kColumns + column] = pair & 0xff;
      bytes[(token + 1) * kColumns + column] = pair >> 8;
    }
  }

  static __device__ void store(const Cta<Config>& cta, const GemmParams& params, const uint8_t* bytes) {
    constexpr int kWords = kColumns / 4;
    const int width = params.rows / 2, first_column = cta.row / 2;
    for (int item = threadIdx.x; item < cta.tokens * kWords; item += Config::kMathThreads) {
      const int token = item / kWords, word = item % kWords;
      uint8_t* target = params.quantized + static_cast<size_t>(cta.token + token) * width + first_column + word * 4;
      *reinterpret_cast<uint32_t*>(target) = reinterpret_cast<const uint32_t*>(bytes)[item];
    }
  }
};

}  // namespace fish::sm90
