#include "sm90/decode_gemm/launch.cuh"

template <>
cudaError_t fish::sm90::w8a16_gemm<8>(const Plan& plan, const Operands& operands, const GemmParams& params,
                                      cudaStream_t stream) {
  return launch_plan<kW8a16Plans, 8, 2, StoreEpilogue>(plan, operands, params, stream);
}
