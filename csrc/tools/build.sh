#!/usr/bin/env bash
# Builds the wheel of fish-kernels for both architectures, without a GPU, a CUDA toolkit or root: nvcc comes from PyPI.
#   csrc/tools/build.sh [python that has PyTorch]      → csrc/build/dist/fish_kernels-….whl
set -euo pipefail
csrc=$(cd "$(dirname "$0")/.." && pwd)
python=${1:-python3}
environment=$csrc/build/env

torch_include=$("$python" "$csrc/cmake/find_dependencies.py" | cut -d';' -f2)
if [[ -z $torch_include ]]; then
  echo "$python has no PyTorch: give the path of one that has, for example .venv/bin/python" >&2
  exit 1
fi
[[ -x $environment/bin/python ]] || "$python" -m venv "$environment"
# nvcc alone would pull newer nvvm and crt, which do not fit it.
"$environment/bin/pip" install -q "nvidia-cuda-nvcc==13.0.*" "nvidia-nvvm==13.0.*" "nvidia-cuda-crt==13.0.*" \
  "nvidia-cuda-cccl==13.0.*" "nvidia-cuda-runtime==13.0.*" "scikit-build-core>=0.11" "cmake>=3.26" "ninja>=1.11"
PATH=$environment/bin:$PATH "$environment/bin/pip" wheel -q --no-build-isolation --no-deps -w "$csrc/build/dist" "$csrc" \
  -C "cmake.define.TORCH_INCLUDE_DIRECTORY=$torch_include" -C "build-dir=$csrc/build/cmake"
ls "$csrc/build/dist"/*.whl
