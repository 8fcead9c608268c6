// The ring of stages between the copy engine and the tensor cores.
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
    return (block % Config::kWarpgroupsAlongK) * Config::kStages +
           (block / Config::kWarpgroupsAlongK) % Config::kStages;
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

}  // namespace fish::sm90
