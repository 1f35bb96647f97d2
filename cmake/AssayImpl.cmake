# assay::impl: libtorch tensors, CUDA kernels, ranks; and the program `assay-train`.
# The toolchain file written by ci/setup gives ASSAY_TORCH_ROOT and ASSAY_NVIDIA_LIBRARY_DIRS. libtorch is taken as
# headers and shared libraries: its own package file would add its own CUDA architectures and flags to ours.
if(NOT ASSAY_TORCH_ROOT)
  message(FATAL_ERROR "ASSAY_TORCH_ROOT is not set: run `ci/setup`, which writes .toolchain/assay-toolchain.cmake, "
                      "and configure with `cmake --preset release`")
endif()
if(CMAKE_VERSION VERSION_LESS 3.31)
  message(FATAL_ERROR "CUDA sources need CMake >= 3.31 (this is ${CMAKE_VERSION}): use .toolchain/bin/cmake")
endif()
option(ASSAY_CUDA "Compile the CUDA kernels; OFF: `assay-train` computes on CPUs alone" ON)
set(ASSAY_CUDA_ARCHITECTURES 80-real 90a-real 100 CACHE STRING
    "GPUs to compile kernels for; fewer build faster, e.g. 90a-real for H100 and H200")
set(architectures)
if(ASSAY_CUDA)
  set(architectures ${ASSAY_CUDA_ARCHITECTURES})
  set(CMAKE_CUDA_ARCHITECTURES ${architectures})
  set(CMAKE_CUDA_STANDARD 20)
  enable_language(CUDA)
else()
  message(STATUS "without CUDA kernels (ASSAY_CUDA=OFF): assay-train computes on CPUs alone")
endif()
find_package(CUDAToolkit 13.0 REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)

add_library(assay_torch INTERFACE)
target_include_directories(assay_torch SYSTEM INTERFACE ${ASSAY_TORCH_ROOT}/include
                           ${ASSAY_TORCH_ROOT}/include/torch/csrc/api/include)
target_link_directories(assay_torch INTERFACE ${ASSAY_TORCH_ROOT}/lib ${ASSAY_NVIDIA_LIBRARY_DIRS})
# libtorch exports a std::filesystem of its own whose parts are missing (remove_all calls address 0). The first library
# that a program names wins: the system's. It is named ahead of everything, and again just before libtorch: on Ubuntu
# 24.04 (g++ 13.3) the first did not put it ahead in the programs, why is not known; with both its functions are taken.
target_link_options(assay_torch INTERFACE -Wl,--push-state,--no-as-needed,-lstdc++,--pop-state)
target_link_libraries(assay_torch INTERFACE -lstdc++ -Wl,--no-as-needed torch torch_cpu torch_cuda c10 c10_cuda -Wl,--as-needed)
foreach(folder IN LISTS ASSAY_NVIDIA_LIBRARY_DIRS)
  target_link_options(assay_torch INTERFACE -Wl,-rpath-link,${folder})
endforeach()
# One run path for build and install tree, which have the same folders. For another one CMake fills up what the build has
# with colons until it is as long as what the install gets, and the loader takes the empty entry behind a colon for the
# current folder. tests/cli/binaries_test.cpp reads what comes out.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib" "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}" ${ASSAY_TORCH_ROOT}/lib ${ASSAY_NVIDIA_LIBRARY_DIRS})
list(REMOVE_DUPLICATES CMAKE_INSTALL_RPATH)

file(GLOB_RECURSE impl_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/impl/*.cpp)
list(FILTER impl_sources EXCLUDE REGEX "/impl/(cli|report)/")
file(GLOB_RECURSE kernel_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/impl/*.cu)
# Grouped GEMMs for Hopper by CUTLASS, whose headers ci/setup keeps beside the toolchain. They are compiled for that GPU
# alone, and without the headers not at all: then ATen's grouped GEMM serves.
set(grouped_gemm ${CMAKE_SOURCE_DIR}/impl/ops/grouped_linear/grouped_gemm.cu)
list(REMOVE_ITEM kernel_sources ${grouped_gemm})
file(STRINGS ${CMAKE_SOURCE_DIR}/ci/toolchain/cutlass.txt cutlass_version REGEX "^nvidia-cutlass==")
string(REPLACE "nvidia-cutlass==" "" cutlass_version "${cutlass_version}")
file(REAL_PATH ${CMAKE_SOURCE_DIR}/.toolchain toolchain_folder)
cmake_path(GET toolchain_folder PARENT_PATH toolchain_home)
find_path(ASSAY_CUTLASS_INCLUDE cutlass/cutlass.h PATHS ${toolchain_home}/cutlass-${cutlass_version}/include NO_DEFAULT_PATH)
add_library(assay_impl SHARED ${impl_sources})
if(ASSAY_CUDA)
  target_sources(assay_impl PRIVATE ${kernel_sources})
endif()
if(ASSAY_CUTLASS_INCLUDE AND "90a-real" IN_LIST architectures)
  add_library(assay_grouped_gemm OBJECT ${grouped_gemm})
  set_target_properties(assay_grouped_gemm PROPERTIES CUDA_ARCHITECTURES 90a-real POSITION_INDEPENDENT_CODE ON)
  target_include_directories(assay_grouped_gemm SYSTEM PRIVATE ${ASSAY_CUTLASS_INCLUDE})
  target_include_directories(assay_grouped_gemm PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(assay_grouped_gemm PRIVATE --expt-relaxed-constexpr)
  target_sources(assay_impl PRIVATE $<TARGET_OBJECTS:assay_grouped_gemm>)
elseif(NOT ASSAY_CUTLASS_INCLUDE)
  message(STATUS "no headers of CUTLASS ${cutlass_version} beside ${toolchain_folder}: grouped GEMMs by ATen (ci/setup fetches them)")
endif()
add_library(assay::impl ALIAS assay_impl)
# The cuBLASLt that libtorch itself uses, by its own name: two copies in one process would not share a handle. It is found
# here and linked by name: as a path its folder would enter the run path again, against the order given above.
find_library(ASSAY_CUBLASLT NAMES libcublasLt.so.13 PATHS ${ASSAY_NVIDIA_LIBRARY_DIRS} ${CUDAToolkit_LIBRARY_DIR}
             NO_DEFAULT_PATH REQUIRED)
# NCCL likewise: the copy that libtorch links, by name, with the header that came with it, ahead of any of the system's.
set_source_files_properties(${CMAKE_SOURCE_DIR}/impl/comm/nccl_communicator.cpp PROPERTIES
                            INCLUDE_DIRECTORIES ${ASSAY_NCCL_ROOT}/include)
# Gloo, which libtorch has inside: the header of its process group includes <gloo/...>, which the wheel leaves out.
set_source_files_properties(${CMAKE_SOURCE_DIR}/impl/comm/gloo_communicator.cpp PROPERTIES INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/impl/comm)
# And cuDNN, whose headers ATen's own ones include.
set_source_files_properties(${CMAKE_SOURCE_DIR}/impl/ops/attention/cudnn_graph.cpp ${CMAKE_SOURCE_DIR}/impl/ops/attention/attention_cudnn.cpp
                            PROPERTIES INCLUDE_DIRECTORIES ${ASSAY_CUDNN_ROOT}/include)
target_link_libraries(assay_impl PUBLIC assay_spec assay_torch CUDA::cudart Threads::Threads
                                 PRIVATE assay_own_code -l:libcublasLt.so.13 -l:libcudnn.so.9 -l:libnccl.so.2 fmt::fmt-header-only
                                 nlohmann_json::nlohmann_json)
target_compile_definitions(assay_impl PRIVATE ASSAY_VERSION="${PROJECT_VERSION}")
target_precompile_headers(assay_impl PRIVATE $<$<COMPILE_LANGUAGE:CXX>:<ATen/ATen.h$<ANGLE-R>>)
set_target_properties(assay_impl PROPERTIES CUDA_SEPARABLE_COMPILATION OFF)
list(JOIN architectures " " architectures)
set_source_files_properties(${CMAKE_SOURCE_DIR}/impl/machine/architectures.cpp PROPERTIES
  COMPILE_DEFINITIONS "ASSAY_COMPILED_ARCHITECTURES=\"${architectures}\"" SKIP_UNITY_BUILD_INCLUSION ON)
# Initial weights have the CPU's bits: no fused multiply-adds. The kernels that take longest to compile stay apart, the others are one batch.
target_compile_options(assay_impl PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
set_source_files_properties(${CMAKE_SOURCE_DIR}/impl/ops/init/init.cu PROPERTIES COMPILE_OPTIONS --fmad=false)
foreach(kernel IN ITEMS cross_entropy/cross_entropy qk_norm/qk_norm quantise/quantise quantise/quantise_fused rms_norm/rms_norm router/router)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/impl/ops/${kernel}.cu PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endforeach()
assay_batch(assay_impl)
# CPU loops: vectorised by `omp simd` and vector types, threads of the OpenMP runtime that libtorch uses too. No loop
# reads errno or floating-point exception flags. x86-64-v3 is AVX2 and FMA, any server or desktop processor since about
# 2015. OpenMP is linked by name: as a path it would enter the run path, ahead of libtorch's copy of the same library.
find_package(OpenMP REQUIRED COMPONENTS CXX)
target_compile_options(assay_impl PRIVATE
  $<$<COMPILE_LANGUAGE:CXX>:${OpenMP_CXX_FLAGS};-fno-math-errno;-fno-trapping-math>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(assay_impl PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-march=x86-64-v3>)
endif()
target_link_libraries(assay_impl PRIVATE ${OpenMP_CXX_LIB_NAMES})
# A program that instantiates the same templates with other flags (a test) does not replace the library's.
target_link_options(assay_impl PRIVATE LINKER:-Bsymbolic-functions)

if(EXISTS ${CMAKE_SOURCE_DIR}/impl/cli/train_main.cpp)
  add_executable(assay-train ${CMAKE_SOURCE_DIR}/impl/cli/train_main.cpp ${CMAKE_SOURCE_DIR}/impl/cli/bench/bench_main.cpp
    ${CMAKE_SOURCE_DIR}/impl/cli/generate/generate_main.cpp)
  target_link_libraries(assay-train PRIVATE assay_impl assay_cli assay_own_code)
  assay_batch(assay-train)
  install(TARGETS assay-train RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(TARGETS assay_impl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
