#include "sm90/decode_gemm/launch.cuh"

template <>
cudaError_t fish::sm90::gate_up_swiglu<64>(const Plan& plan, const Operands& operands, const GemmParams& params,
                                           cudaStream_t stream) {
  return launch_plan<kGateUpPlans, 64, 1, SwigluEpilogue>(plan, operands, params, stream);
}
