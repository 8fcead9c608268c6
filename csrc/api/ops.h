// The ops of this library as PyTorch's dispatcher calls them. Their schemas live in fish_engine/kernels/ops.py.
#pragma once

#include <cuda_runtime.h>
#include <optional>
#include <torch/csrc/stable/tensor.h>

namespace fish {

using torch::stable::Tensor;

// The stream that PyTorch would launch on.
cudaStream_t current_stream(int device_index);

void quantize_fp8(Tensor x, Tensor values, Tensor scales);
void silu_mul_quantize(Tensor gate_up, Tensor values, Tensor scales);
void rms_norm_quantize(Tensor x, std::optional<Tensor> residual, Tensor weight, double epsilon, Tensor values,
                       Tensor scales);

void fp8_gemm_blockscaled(Tensor x, Tensor x_scale, Tensor weight, Tensor weight_scale, std::optional<Tensor> residual,
                          Tensor out);
void w8a16_gemm_blockscaled(Tensor x, Tensor weight, Tensor weight_scale, std::optional<Tensor> residual, Tensor out);
void gate_up_swiglu_quantize(Tensor x, Tensor x_scale, Tensor weight, Tensor weight_scale, Tensor values,
                             Tensor scales);

void quantize_mxfp8(Tensor x, Tensor values, Tensor scales);
void mxfp8_gemm(Tensor x, Tensor x_scale, Tensor weight, Tensor weight_scale, Tensor out);

}  // namespace fish
