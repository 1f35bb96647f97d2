# Language level, warnings, hardening, ccache and output folders for our own code.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(ASSAY_CCACHE ccache)
if(ASSAY_CCACHE)
  # Precompiled headers need these to be cacheable; the base folder lets two clones share results.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${ASSAY_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# GCC collects its garbage whenever its memory has doubled, and then walks the precompiled header, 400 MB of libtorch's:
# below 1 GiB it is left alone. What is compiled is the same.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>)

# What an overflow or a stray write could do is made hard, in every program and library: position-independent programs,
# tables of addresses that are read-only once they are filled, no stack that may be executed, a guard value on the stack,
# and lengths that glibc checks. The last needs an optimising compiler, and AddressSanitizer has its own.
include(CheckPIESupported)
check_pie_supported()
add_link_options(LINKER:-z,relro,-z,now,-z,noexecstack)
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fstack-protector-strong>)
if(NOT ASSAY_SANITIZE)
  add_compile_options(
    "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>"
    "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<NOT:$<CONFIG:Debug>>>:-Xcompiler=-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=2>")
endif()

add_library(assay_own_code INTERFACE)
target_compile_options(assay_own_code INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Werror -Wshadow=local>
  # GCC 12 warns of overlaps, overflows and copies out of bounds in std::string that do not exist (GCC bug 105651).
  "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds>"
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${ASSAY_CCACHE}>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra -Werror=all-warnings>)
target_include_directories(assay_own_code INTERFACE ${CMAKE_SOURCE_DIR})
if(ASSAY_SANITIZE)
  # With a sanitizer's checks in between, GCC takes parts of std::regex and std::function for uninitialised (its manual,
  # "Instrumentation Options", warns of that).
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
                      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=address,undefined)
endif()

# assay_batch(TARGET): compiles ASSAY_BATCH sources of the target as one. A build from nothing is shorter so: most of a
# lone source's time are standard and libtorch headers, and functions of theirs that each source compiles again. Internal
# functions of a target's sources therefore have names of their own, and each test file a namespace. Paths in a batch are
# relative, so that clones share the compiler cache.
function(assay_batch target)
  if(ASSAY_BATCH)
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_RELOCATABLE ON UNITY_BUILD_BATCH_SIZE ${ASSAY_BATCH})
  endif()
endfunction()
