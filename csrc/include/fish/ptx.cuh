// The PTX instructions the kernels are made of, one thin function each. Nothing here decides anything.
#pragma once

#include <cstdint>
#include <cuda.h>
#include <cuda_bf16.h>

namespace fish {

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// --- mbarrier --------------------------------------------------------------------------------------------------------

__device__ __forceinline__ void barrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

// Makes initialised barriers visible to the copy engine and to the other CTAs of the cluster.
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void barrier_expect_bytes(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// --- copy engine -----------------------------------------------------------------------------------------------------

// L2 eviction priorities as the copy engine takes them.
constexpr uint64_t kEvictFirst = 0x12F0000000000000ull;  // weights: read once a step
constexpr uint64_t kEvictLast = 0x14F0000000000000ull;   // activations: every CTA reads them

// Fetches a map before its first use, which would otherwise wait for it.
__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Copies the box at column x, row y of a 2-D tensor map to shared memory and counts its bytes on the barrier.
__device__ __forceinline__ void copy_box(uint32_t destination, const CUtensorMap* map, int x, int y, uint32_t barrier,
                                         uint64_t eviction) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(destination),
      "l"(map), "r"(x), "r"(y), "r"(barrier), "l"(eviction)
      : "memory");
}

// Copies contiguous bytes; both addresses and the size are multiples of 16.
__device__ __forceinline__ void copy_bytes(uint32_t destination, const void* source, uint32_t bytes, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(destination),
      "l"(source), "r"(bytes), "r"(barrier)
      : "memory");
}

// Copies one float without passing through registers; finished after copied_floats_wait().
__device__ __forceinline__ void copy_float(uint32_t destination, const float* source) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(destination), "l"(source) : "memory");
}
__device__ __forceinline__ void copied_floats_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// --- programmatic dependent launch -----------------------------------------------------------------------------------

// Blocks until the kernels before this one in the stream have ended and their writes are visible.
__device__ __forceinline__ void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Lets the next kernel start as soon as every CTA of this grid has said so. One thread a CTA is enough.
__device__ __forceinline__ void let_next_kernel_start() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// --- clusters --------------------------------------------------------------------------------------------------------

// The relaxed form does not wait for the thread's outstanding loads; .release does, and then costs a cold load.
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// The address of the same shared variable in another CTA of the cluster.
__device__ __forceinline__ uint32_t cluster_address(uint32_t address, int rank) {
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  return remote;
}

// Stores to the shared memory of a CTA of the cluster and counts the 8 bytes on a barrier there.
__device__ __forceinline__ void store_cluster_counted(uint32_t address, float2 value, uint32_t barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(address),
               "f"(value.x), "f"(value.y), "r"(barrier)
               : "memory");
}

// Copies from this CTA's shared memory to another's and counts the bytes on a barrier there. The source is read until
// then.
__device__ __forceinline__ void copy_to_cluster(uint32_t destination, uint32_t source, uint32_t bytes,
                                                uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(destination),
      "r"(source), "r"(bytes), "r"(barrier)
      : "memory");
}

// Makes this thread's ordinary stores to shared memory visible to the copy engine.
__device__ __forceinline__ void fence_shared_for_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// --- named barriers --------------------------------------------------------------------------------------------------

template <int kThreads>
__device__ __forceinline__ void sync_threads(int name) {
  asm volatile("bar.sync %0, %1;" ::"r"(name), "n"(kThreads) : "memory");
}

// --- loads and conversions -------------------------------------------------------------------------------------------

// Two floats to two e4m3, round to nearest even, saturating at ±448; `low` lands in the low byte. NaN stays NaN.
__device__ __forceinline__ uint16_t to_e4m3(float low, float high) {
  uint16_t packed;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(high), "f"(low));
  return packed;
}

// Two e4m3 to bf16x2. Exact: e4m3 fits in f16, and its three mantissa bits in bf16.
__device__ __forceinline__ uint32_t e4m3_to_bf16(uint16_t packed) {
  uint32_t half_pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(half_pair) : "h"(packed));
  float low, high;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
      : "=f"(low), "=f"(high)
      : "r"(half_pair));
  uint32_t bf16_pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bf16_pair) : "f"(high), "f"(low));
  return bf16_pair;
}

__device__ __forceinline__ float2 bf16_to_float(uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
}

}  // namespace fish
