// Adds the CUDA implementations to the ops that fish_engine/kernels/ops.py defines. Nothing else: no schema, no Python.
#include "api/ops.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>

#include "fish/launch.h"

namespace fish {

cudaStream_t current_stream(int device_index) {
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device_index, &stream));
  return static_cast<cudaStream_t>(stream);
}

}  // namespace fish

// Whether kernels may overlap the end of the kernel before them (programmatic dependent launch). On unless switched
// off.
extern "C" __attribute__((visibility("default"))) void fish_kernels_set_programmatic_launch(int enabled) {
  fish::programmatic_launch() = enabled != 0;
}

STABLE_TORCH_LIBRARY_IMPL(fish, CUDA, library) {
  library.impl("quantize_fp8", TORCH_BOX(&fish::quantize_fp8));
  library.impl("silu_mul_quantize", TORCH_BOX(&fish::silu_mul_quantize));
  library.impl("rms_norm_quantize", TORCH_BOX(&fish::rms_norm_quantize));
  library.impl("fp8_gemm_blockscaled", TORCH_BOX(&fish::fp8_gemm_blockscaled));
  library.impl("w8a16_gemm_blockscaled", TORCH_BOX(&fish::w8a16_gemm_blockscaled));
  library.impl("gate_up_swiglu_quantize", TORCH_BOX(&fish::gate_up_swiglu_quantize));
  library.impl("quantize_mxfp8", TORCH_BOX(&fish::quantize_mxfp8));
  library.impl("mxfp8_gemm", TORCH_BOX(&fish::mxfp8_gemm));
}
