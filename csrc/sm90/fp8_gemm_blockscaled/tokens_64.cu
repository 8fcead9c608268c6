#include "sm90/decode_gemm/launch.cuh"

template <>
cudaError_t fish::sm90::fp8_gemm<64>(const Plan& plan, const Operands& operands, const GemmParams& params,
                                     cudaStream_t stream) {
  return launch_plan<kFp8Plans, 64, 1, StoreEpilogue>(plan, operands, params, stream);
}
