#include "sm90/decode_gemm/launch.cuh"

template <>
cudaError_t fish::sm90::w8a16_gemm<16>(const Plan& plan, const Operands& operands, const GemmParams& params,
                                       cudaStream_t stream) {
  return launch_plan<kW8a16Plans, 16, 2, StoreEpilogue>(plan, operands, params, stream);
}
