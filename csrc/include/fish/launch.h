// Launching with the attributes our kernels use, and describing matrices to the copy engine.
#pragma once

#include <atomic>
#include <cuda.h>
#include <cuda_runtime.h>

namespace fish {

// Whether kernels may start before the one ahead of them has ended. One switch for the process; results do not depend
// on it.
std::atomic<bool>& programmatic_launch();

struct LaunchShape {
  dim3 grid;
  int threads;
  int shared_bytes;
  int cluster;
  cudaStream_t stream;
};

template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), const LaunchShape& shape, const Arguments&... arguments) {
  if (shape.shared_bytes > 48 * 1024) {
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shape.shared_bytes);
    if (error != cudaSuccess) return error;
  }
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (programmatic_launch()) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {static_cast<unsigned>(shape.cluster), 1, 1};
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = dim3(shape.threads);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = shape.stream;
  config.attrs = attributes;
  config.numAttrs = count;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

// A row-major matrix cut into boxes of box_rows × 128 bytes, laid out in shared memory with the 128-byte swizzle. Rows
// past the end read as zeros.
struct MatrixView {
  const void* data;
  CUtensorMapDataType type;
  int element_bytes;
  int rows;
  int columns;
  int box_rows;
};

cudaError_t describe(const MatrixView& view, CUtensorMap* map);

}  // namespace fish
