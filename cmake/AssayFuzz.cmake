# Fuzzing of every reader of text from outside: one program, `assay_fuzz`, and a short run of each target in CTest.
# ASSAY_FUZZ=libfuzzer (clang only, what ci/fuzz configures) links libFuzzer instead of our own blind driver.
set(ASSAY_FUZZ "driver" CACHE STRING "driver (any compiler) or libfuzzer (clang)")
set(ASSAY_FUZZ_SECONDS 5 CACHE STRING "seconds of the run of each target in CTest")
set(fuzz_targets log table mapping printed record model_toml hugging_face hardware config overrides safetensors json)

if(ASSAY_FUZZ STREQUAL "libfuzzer")
  add_executable(assay_fuzz ${CMAKE_SOURCE_DIR}/tests/fuzz/targets.cpp ${CMAKE_SOURCE_DIR}/tests/fuzz/libfuzzer_main.cpp)
  target_link_options(assay_fuzz PRIVATE -fsanitize=fuzzer)
else()
  add_executable(assay_fuzz ${CMAKE_SOURCE_DIR}/tests/fuzz/targets.cpp ${CMAKE_SOURCE_DIR}/tests/fuzz/driver_main.cpp)
  foreach(target IN LISTS fuzz_targets)
    set(corpora ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${target})
    add_test(NAME fuzz/${target} COMMAND assay_fuzz ${target} ${ASSAY_FUZZ_SECONDS} 20251121 ${corpora}
             WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
    set_tests_properties(fuzz/${target} PROPERTIES LABELS "spec;fuzz")
  endforeach()
endif()
target_link_libraries(assay_fuzz PRIVATE assay_spec assay_own_code)
