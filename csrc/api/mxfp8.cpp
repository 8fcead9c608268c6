// The MXFP8 ops: check, then launch.
#include <torch/csrc/stable/accelerator.h>

#include "fish/check.h"
#include "ops.h"
#include "sm120/mxfp8_gemm/layout.h"
#include "sm120/mxfp8_gemm/mxfp8_gemm.h"

namespace fish {
namespace {

constexpr int64_t kMaxTokens = 8192;
constexpr int64_t kMaxRows = 1 << 20;
constexpr int64_t kMaxColumns = 1 << 15;

void check_scales(const Tensor& scales, const char* name, int64_t count, int64_t columns, int device) {
  check_tensor(scales, {name, Dtype::kInt32, {columns / 128, sm120::padded_to_4(static_cast<int>(count))}}, device);
}

void check_matrix(const Tensor& tensor, const char* name) {
  if (tensor.dim() != 2) {
    throw std::runtime_error(std::string(name) + ": expected 2 dimensions, found " + std::to_string(tensor.dim()));
  }
}

}  // namespace

void quantize_mxfp8(Tensor x, Tensor values, Tensor scales) {
  check_matrix(x, "x");
  const int64_t tokens = x.size(0), columns = x.size(1);
  const int device = x.get_device_index();
  check_size("tokens", tokens, 1, kMaxTokens);
  check_size("K (columns to quantise)", columns, 128, kMaxColumns);
  check_tensor(x, {"x", Dtype::kBf16, {tokens, columns}}, device);
  check_tensor(values, {"values", Dtype::kE4m3, {tokens, columns}}, device);
  check_scales(scales, "scales", tokens, columns, device);
  const torch::stable::accelerator::DeviceGuard guard(device);
  check_launch(
      "quantize_mxfp8",
      sm120::quantize_mxfp8(static_cast<const __nv_bfloat16*>(x.data_ptr()), static_cast<uint8_t*>(values.data_ptr()),
                            static_cast<uint32_t*>(scales.data_ptr()), static_cast<int>(tokens),
                            static_cast<int>(columns), current_stream(device)));
}

void mxfp8_gemm(Tensor x, Tensor x_scale, Tensor weight, Tensor weight_scale, Tensor out) {
  check_matrix(x, "x");
  check_matrix(weight, "weight");
  const int64_t tokens = x.size(0), columns = x.size(1), rows = weight.size(0);
  const int device = x.get_device_index();
  check_size("tokens (rows of x)", tokens, 1, kMaxTokens);
  check_size("K (columns of x)", columns, 128, kMaxColumns);
  check_size("N (rows of weight)", rows, sm120::kRows, kMaxRows);
  check_tensor(x, {"x", Dtype::kE4m3, {tokens, columns}}, device);
  check_tensor(weight, {"weight", Dtype::kE4m3, {rows, columns}}, device);
  check_scales(x_scale, "x_scale", tokens, columns, device);
  check_scales(weight_scale, "weight_scale", rows, columns, device);
  check_tensor(out, {"out", Dtype::kBf16, {tokens, rows}}, device);
  check_capability("mxfp8_gemm", device, 120);
  const torch::stable::accelerator::DeviceGuard guard(device);
  const sm120::MxGemmParams params{static_cast<const uint8_t*>(x.data_ptr()),
                                   static_cast<const uint32_t*>(x_scale.data_ptr()),
                                   static_cast<const uint8_t*>(weight.data_ptr()),
                                   static_cast<const uint32_t*>(weight_scale.data_ptr()),
                                   static_cast<__nv_bfloat16*>(out.data_ptr()),
                                   static_cast<int>(tokens),
                                   static_cast<int>(rows),
                                   static_cast<int>(columns)};
  check_launch("mxfp8_gemm", sm120::mxfp8_gemm(params, current_stream(device)));
}

}  // namespace fish
