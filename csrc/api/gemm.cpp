// The GEMM ops as PyTorch calls them: check, describe, choose, launch.
#include <optional>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>

#include "fish/check.h"
#include "ops.h"
#include "plan.h"
#include "sm90/decode_gemm/gemm.h"

namespace fish {
namespace {

constexpr int64_t kMaxTokens = 8192;
constexpr int64_t kMaxRows = 1 << 20;
constexpr int64_t kMaxColumns = 1 << 15;

int64_t blocks_of(int64_t size) { return (size + 127) / 128; }

struct Shape {
  int64_t tokens, columns, rows;
  int device;
};

// x [M, K], weight [N, K]
Shape check_operands(const char* op, const Tensor& x, Dtype x_dtype, const Tensor& weight, const Tensor& weight_scale) {
  if (x.dim() != 2 || weight.dim() != 2) {
    throw std::runtime_error("x and weight: expected 2 dimensions, found " + std::to_string(x.dim()) + " and " +
                             std::to_string(weight.dim()));
  }
  const Shape shape{x.size(0), x.size(1), weight.size(0), x.get_device_index()};
  check_size("tokens (rows of x)", shape.tokens, 1, kMaxTokens);
  check_size("K (columns of x)", shape.columns, 128, kMaxColumns);
  check_size("N (rows of weight)", shape.rows, 64, kMaxRows);
  check_tensor(x, {"x", x_dtype, {shape.tokens, shape.columns}}, shape.device);
  check_tensor(weight, {"weight", Dtype::kE4m3, {shape.rows, shape.columns}}, shape.device);
  check_tensor(weight_scale, {"weight_scale", Dtype::kFp32, {blocks_of(shape.rows), shape.columns / 128}, 4},
               shape.device);
  check_capability(op, shape.device, 90);
  return shape;
}

sm90::GemmParams params_of(const Shape& shape, const Tensor& weight_scale) {
  sm90::GemmParams params{};
  params.weight_scales = static_cast<const float*>(weight_scale.data_ptr());
  params.tokens = static_cast<int>(shape.tokens);
  params.tokens_padded = static_cast<int>((shape.tokens + 3) / 4 * 4);
  params.rows = static_cast<int>(shape.rows);
  params.blocks = static_cast<int>(shape.columns / 128);
  return params;
}

void add_activation_scales(sm90::GemmParams& params, const Tensor& x_scale, const Shape& shape) {
  check_tensor(x_scale, {"x_scale", Dtype::kFp32, {params.blocks, params.tokens_padded}}, shape.device);
  params.activation_scales = static_cast<const float*>(x_scale.data_ptr());
}

void add_output(sm90::GemmParams& params, const std::optional<Tensor>& residual, const Tensor& out,
                const Shape& shape) {
  check_tensor(out, {"out", Dtype::kBf16, {shape.tokens, shape.rows}}, shape.device);
  params.output = static_cast<__nv_bfloat16*>(out.data_ptr());
  if (residual.has_value()) {
    check_tensor(*residual, {"residual", Dtype::kBf16, {shape.tokens, shape.rows}}, shape.device);
    params.residual = static_cast<const __nv_bfloat16*>(residual->data_ptr());
  }
}

template <class Launch>
void run(const char* op, const sm90::Plan& plan, sm90::GemmParams& params, const Tensor& x, const Tensor& weight,
         const Shape& shape, const Launch& launch) {
  params.trigger_before_last = plan.trigger_before_last;
  const torch::stable::accelerator::DeviceGuard guard(shape.device);
  check_launch(op, launch(plan, {weight.data_ptr(), x.data_ptr()}, params, current_stream(shape.device)));
}

// Calls gemm<token tile of the plan>.
#define FISH_FOR_TOKEN_TILE(gemm)                                                                                   \
  [](const sm90::Plan& plan, const sm90::Operands& operands, const sm90::GemmParams& params, cudaStream_t stream) { \
    switch (plan.token_tile) {                                                                                      \
      case 8: return sm90::gemm<8>(plan, operands, params, stream);                                                 \
      case 16: return sm90::gemm<16>(plan, operands, params, stream);                                               \
      case 32: return sm90::gemm<32>(plan, operands, params, stream);                                               \
      case 64: return sm90::gemm<64>(plan, operands, params, stream);                                               \
      default: return sm90::gemm<128>(plan, operands, params, stream);                                              \
    }                                                                                                               \
  }

// Its tiles end at 64 tokens: bf16 activations take twice the shared memory.
cudaError_t w8a16(const sm90::Plan& plan, const sm90::Operands& operands, const sm90::GemmParams& params,
                  cudaStream_t stream) {
  switch (plan.token_tile) {
    case 8: return sm90::w8a16_gemm<8>(plan, operands, params, stream);
    case 16: return sm90::w8a16_gemm<16>(plan, operands, params, stream);
    case 32: return sm90::w8a16_gemm<32>(plan, operands, params, stream);
    default: return sm90::w8a16_gemm<64>(plan, operands, params, stream);
  }
}

}  // namespace

void fp8_gemm_blockscaled(Tensor x, Tensor x_scale, Tensor weight, Tensor weight_scale, std::optional<Tensor> residual,
                          Tensor out) {
  const Shape shape = check_operands("fp8_gemm_blockscaled", x, Dtype::kE4m3, weight, weight_scale);
  sm90::GemmParams params = params_of(shape, weight_scale);
  add_activation_scales(params, x_scale, shape);
  add_output(params, residual, out, shape);
  const sm90::Plan plan = sm90::fp8_plan(params.rows, static_cast<int>(shape.columns), params.tokens);
  run("fp8_gemm_blockscaled", plan, params, x, weight, shape, FISH_FOR_TOKEN_TILE(fp8_gemm));
}

void w8a16_gemm_blockscaled(Tensor x, Tensor weight, Tensor weight_scale, std::optional<Tensor> residual, Tensor out) {
  const Shape shape = check_operands("w8a16_gemm_blockscaled", x, Dtype::kBf16, weight, weight_scale);
  sm90::GemmParams params = params_of(shape, weight_scale);
  add_output(params, residual, out, shape);
  run("w8a16_gemm_blockscaled", sm90::w8a16_plan(params.rows, static_cast<int>(shape.columns), params.tokens), params,
      x, weight, shape, w8a16);
}

void gate_up_swiglu_quantize(Tensor x, Tensor x_scale, Tensor weight, Tensor weight_scale, Tensor values,
                             Tensor scales) {
  const Shape shape = check_operands("gate_up_swiglu_quantize", x, Dtype::kE4m3, weight, weight_scale);
  check_size("N (rows of weight: gate and up)", shape.rows, 256, kMaxRows);
  sm90::GemmParams params = params_of(shape, weight_scale);
  add_activation_scales(params, x_scale, shape);
  check_tensor(values, {"values", Dtype::kE4m3, {shape.tokens, shape.rows / 2}}, shape.device);
  check_tensor(scales, {"scales", Dtype::kFp32, {shape.rows / 2 / 128, params.tokens_padded}}, shape.device);
  params.quantized = static_cast<uint8_t*>(values.data_ptr());
  params.quantized_scales = static_cast<float*>(scales.data_ptr());
  run("gate_up_swiglu_quantize", sm90::gate_up_plan(params.rows, static_cast<int>(shape.columns), params.tokens),
      params, x, weight, shape, FISH_FOR_TOKEN_TILE(gate_up_swiglu));
}

}  // namespace fish
