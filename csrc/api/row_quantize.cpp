// The small ops between the GEMMs: check, then launch.
#include <torch/csrc/stable/accelerator.h>

#include "fish/check.h"
#include "ops.h"
#include "sm90/row_quantize/row_quantize.h"

namespace fish {
namespace {

constexpr int64_t kMaxTokens = 65535;   // a grid's second dimension
constexpr int64_t kMaxColumns = 16384;  // what 1024 threads hold in registers

sm90::QuantizedRows check_outputs(int64_t tokens, int64_t columns, const Tensor& values, const Tensor& scales,
                                  int device) {
  const int64_t padded = (tokens + 3) / 4 * 4;
  check_size("tokens", tokens, 1, kMaxTokens);
  check_size("K (columns to quantise)", columns, 128, kMaxColumns);
  check_tensor(values, {"values", Dtype::kE4m3, {tokens, columns}}, device);
  check_tensor(scales, {"scales", Dtype::kFp32, {columns / 128, padded}}, device);
  return {static_cast<uint8_t*>(values.data_ptr()), static_cast<float*>(scales.data_ptr()), static_cast<int>(tokens),
          static_cast<int>(padded), static_cast<int>(columns)};
}

const __nv_bfloat16* bf16(const Tensor& tensor) { return static_cast<const __nv_bfloat16*>(tensor.data_ptr()); }

void check_matrix(const Tensor& tensor, const char* name) {
  if (tensor.dim() != 2) {
    throw std::runtime_error(std::string(name) + ": expected 2 dimensions, found " + std::to_string(tensor.dim()));
  }
}

}  // namespace

void quantize_fp8(Tensor x, Tensor values, Tensor scales) {
  check_matrix(x, "x");
  const int device = x.get_device_index();
  check_tensor(x, {"x", Dtype::kBf16, {x.size(0), x.size(1)}}, device);
  const auto out = check_outputs(x.size(0), x.size(1), values, scales, device);
  const torch::stable::accelerator::DeviceGuard guard(device);
  check_launch("quantize_fp8", sm90::quantize_fp8(bf16(x), out, current_stream(device)));
}

void silu_mul_quantize(Tensor gate_up, Tensor values, Tensor scales) {
  check_matrix(gate_up, "gate_up");
  const int device = gate_up.get_device_index();
  check_size("columns of gate_up", gate_up.size(1), 256, 2 * kMaxColumns);
  check_tensor(gate_up, {"gate_up", Dtype::kBf16, {gate_up.size(0), gate_up.size(1)}}, device);
  const auto out = check_outputs(gate_up.size(0), gate_up.size(1) / 2, values, scales, device);
  const torch::stable::accelerator::DeviceGuard guard(device);
  check_launch("silu_mul_quantize", sm90::silu_mul_quantize(bf16(gate_up), out, current_stream(device)));
}

void rms_norm_quantize(Tensor x, std::optional<Tensor> residual, Tensor weight, double epsilon, Tensor values,
                       Tensor scales) {
  check_matrix(x, "x");
  const int device = x.get_device_index();
  check_tensor(x, {"x", Dtype::kBf16, {x.size(0), x.size(1)}}, device);
  check_tensor(weight, {"weight", Dtype::kBf16, {x.size(1)}}, device);
  if (residual.has_value()) {
    check_tensor(*residual, {"residual", Dtype::kBf16, {x.size(0), x.size(1)}}, device);
  }
  const auto out = check_outputs(x.size(0), x.size(1), values, scales, device);
  auto* residual_data = residual.has_value() ? static_cast<__nv_bfloat16*>(residual->data_ptr()) : nullptr;
  const torch::stable::accelerator::DeviceGuard guard(device);
  check_launch("rms_norm_quantize", sm90::rms_norm_quantize(bf16(x), residual_data, bf16(weight),
                                                            static_cast<float>(epsilon), out, current_stream(device)));
}

}  // namespace fish
