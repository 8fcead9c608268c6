#include "fish/check.h"

#include <cuda_runtime.h>
#include <stdexcept>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <vector>

namespace fish {
namespace {

template <class Range>
std::string list(const Range& values) {
  std::string text = "[";
  for (const int64_t value : values) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + "]";
}

std::vector<int64_t> contiguous_strides(std::initializer_list<int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes.begin()[i]) strides[i] = stride;
  return strides;
}

bool is_contiguous_of(const Tensor& tensor, std::initializer_list<int64_t> sizes) {
  if (static_cast<size_t>(tensor.dim()) != sizes.size()) return false;
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes.begin()[i]) {
    const int64_t size = sizes.begin()[i];
    if (tensor.size(i) != size || (size != 1 && tensor.stride(i) != stride)) return false;
  }
  return true;
}

struct NamedDtype {
  Dtype dtype;
  const char* name;
  int32_t (*torch_dtype)();
};

constexpr NamedDtype kDtypes[] = {
    {Dtype::kBf16, "bfloat16", aoti_torch_dtype_bfloat16},
    {Dtype::kFp32, "float32", aoti_torch_dtype_float32},
    {Dtype::kE4m3, "float8_e4m3fn", aoti_torch_dtype_float8_e4m3fn},
    {Dtype::kInt32, "int32", aoti_torch_dtype_int32},
};

// Dtypes that no op takes, but that people pass.
struct OtherDtype {
  const char* name;
  int32_t (*torch_dtype)();
};

constexpr OtherDtype kOtherDtypes[] = {
    {"float16", aoti_torch_dtype_float16},
    {"float64", aoti_torch_dtype_float64},
    {"float8_e5m2", aoti_torch_dtype_float8_e5m2},
    {"uint8", aoti_torch_dtype_uint8},
    {"int8", aoti_torch_dtype_int8},
    {"int64", aoti_torch_dtype_int64},
};

int32_t torch_dtype_of(const Tensor& tensor) {
  int32_t dtype = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &dtype));
  return dtype;
}

const NamedDtype& find(Dtype dtype) {
  for (const NamedDtype& entry : kDtypes) {
    if (entry.dtype == dtype) return entry;
  }
  throw std::logic_error("a dtype is missing from kDtypes");
}

std::string name_of(int32_t torch_dtype) {
  for (const NamedDtype& entry : kDtypes) {
    if (entry.torch_dtype() == torch_dtype) return entry.name;
  }
  for (const OtherDtype& entry : kOtherDtypes) {
    if (entry.torch_dtype() == torch_dtype) return entry.name;
  }
  return "dtype number " + std::to_string(torch_dtype);
}

[[noreturn]] void fail(const std::string& message) { throw std::runtime_error(message); }

}  // namespace

void check_tensor(const Tensor& tensor, const TensorSpec& spec, int device_index) {
  const std::string name = spec.name;
  if (!tensor.is_cuda() || tensor.get_device_index() != device_index) {
    fail(name + ": expected a tensor on cuda:" + std::to_string(device_index) + ", found one on " +
         (tensor.is_cuda() ? "cuda:" + std::to_string(tensor.get_device_index()) : "another kind of device"));
  }
  if (torch_dtype_of(tensor) != find(spec.dtype).torch_dtype()) {
    fail(name + ": expected " + find(spec.dtype).name + ", found " + name_of(torch_dtype_of(tensor)));
  }
  if (!is_contiguous_of(tensor, spec.sizes)) {
    fail(name + ": expected shape " + list(spec.sizes) + " with strides " + list(contiguous_strides(spec.sizes)) +
         ", found shape " + list(tensor.sizes()) + " with strides " + list(tensor.strides()));
  }
  const auto past = reinterpret_cast<uintptr_t>(tensor.data_ptr()) % spec.alignment;
  if (past != 0) {
    fail(name + ": expected an address that is a multiple of " + std::to_string(spec.alignment) + " bytes, found one " +
         std::to_string(past) + " past it (a slice of a larger tensor?)");
  }
}

void check_size(const char* name, int64_t value, int64_t divisor, int64_t limit) {
  if (value < 1 || value > limit || value % divisor != 0) {
    fail(std::string(name) + ": expected a multiple of " + std::to_string(divisor) + " from " +
         std::to_string(divisor) + " to " + std::to_string(limit) + ", found " + std::to_string(value));
  }
}

void check_capability(const char* op, int device_index, int capability) {
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device_index);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device_index);
  if (major * 10 + minor != capability) {
    fail(std::string(op) + ": compiled for compute capability " + std::to_string(capability / 10) + "." +
         std::to_string(capability % 10) + ", cuda:" + std::to_string(device_index) + " has " + std::to_string(major) +
         "." + std::to_string(minor));
  }
}

void check_launch(const char* op, int cuda_error) {
  const auto error = static_cast<cudaError_t>(cuda_error);
  if (error != cudaSuccess) fail(std::string(op) + ": the launch failed: " + cudaGetErrorString(error));
}

}  // namespace fish
