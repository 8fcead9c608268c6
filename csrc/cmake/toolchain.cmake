# Where the compiler and PyTorch's headers come from. nvcc may be a toolkit's or the one of the PyPI wheels (nvidia-cuda-nvcc);
# PyTorch is looked up without importing it, so that its libraries need not load on the build machine.
execute_process(
  COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/find_dependencies.py
  OUTPUT_VARIABLE dependencies OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
list(GET dependencies 0 wheel_toolkit)
list(GET dependencies 1 torch_include)
if(NOT TORCH_INCLUDE_DIRECTORY)
  set(TORCH_INCLUDE_DIRECTORY ${torch_include})
endif()
if(NOT EXISTS ${TORCH_INCLUDE_DIRECTORY}/torch/csrc/stable/library.h)
  message(FATAL_ERROR "PyTorch's headers are not at '${TORCH_INCLUDE_DIRECTORY}': install torch>=2.11 beside this build, "
                      "or pass -DTORCH_INCLUDE_DIRECTORY=")
endif()
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND wheel_toolkit)
  set(CMAKE_CUDA_COMPILER ${wheel_toolkit}/bin/nvcc)
  set(CUDAToolkit_ROOT ${wheel_toolkit})
  # The wheels carry libcudart.so.13 without the name that -lcudart looks for.
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cudart)
  file(CREATE_LINK ${wheel_toolkit}/lib/libcudart.so.13 ${CMAKE_BINARY_DIR}/cudart/libcudart.so SYMBOLIC)
  set(CMAKE_CUDA_FLAGS_INIT "-L${CMAKE_BINARY_DIR}/cudart -L${wheel_toolkit}/lib")
  set(CUDA_CUDART_LIBRARY ${CMAKE_BINARY_DIR}/cudart/libcudart.so)
  set(CUDA_CUDART ${CMAKE_BINARY_DIR}/cudart/libcudart.so CACHE FILEPATH "" FORCE)
endif()
