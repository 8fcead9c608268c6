// Checks of what an op was given, before anything is launched. Every message names the value and what would be right.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <torch/csrc/stable/tensor.h>

namespace fish {

using torch::stable::Tensor;

// Our own list: Tensor::scalar_type() pulls in symbols that libtorch 2.11 declares and does not export.
enum class Dtype { kBf16, kFp32, kE4m3, kInt32 };

struct TensorSpec {
  const char* name;
  Dtype dtype;
  std::initializer_list<int64_t> sizes;  // row-major, without gaps
  int alignment = 16;                    // bytes
};

// The tensor is on `device_index` and is what the spec says.
void check_tensor(const Tensor& tensor, const TensorSpec& spec, int device_index);

// `value` is a multiple of `divisor` and lies in [1, limit].
void check_size(const char* name, int64_t value, int64_t divisor, int64_t limit);

// The device can run kernels compiled for `capability` (90 = sm_90a, 120 = sm_120a).
void check_capability(const char* op, int device_index, int capability);

// Turns an error of a launch into an exception that names the op.
void check_launch(const char* op, int cuda_error);

}  // namespace fish
