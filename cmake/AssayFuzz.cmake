# Fuzzing of every reader of text from outside: one program, `assay_fuzz`, and a short run of each target in CTest.
# ASSAY_FUZZ=libfuzzer (clang only, what ci/fuzz configures) links libFuzzer instead of our own blind driver.
set(ASSAY_FUZZ "driver" CACHE STRING "driver (any compiler) or libfuzzer (clang)")
set(ASSAY_FUZZ_SECONDS 5 CACHE STRING "seconds of the run of each target in CTest")
set(fuzz_targets log table mapping printed record model_toml hugging_face hardware config overrides safetensors json tokenizer prompt weight_index manifest token_file)
set(ASSAY_SHORT_FUZZ tokenizer prompt weight_index manifest token_file)  # two seconds in CTest
# What of the trainer reads texts and needs no tensor.
set(fuzz_readers ${CMAKE_SOURCE_DIR}/tests/fuzz/targets.cpp ${CMAKE_SOURCE_DIR}/impl/generate/byte_pairs.cpp ${CMAKE_SOURCE_DIR}/impl/generate/split_text.cpp
    ${CMAKE_SOURCE_DIR}/impl/generate/text_codec.cpp ${CMAKE_SOURCE_DIR}/impl/generate/tokenizer_file.cpp ${CMAKE_SOURCE_DIR}/impl/generate/unicode_ranges.cpp)

if(ASSAY_FUZZ STREQUAL "libfuzzer")
  add_executable(assay_fuzz ${fuzz_readers} ${CMAKE_SOURCE_DIR}/tests/fuzz/libfuzzer_main.cpp)
  target_link_options(assay_fuzz PRIVATE -fsanitize=fuzzer)
else()
  add_executable(assay_fuzz ${fuzz_readers} ${CMAKE_SOURCE_DIR}/tests/fuzz/driver_main.cpp)
  foreach(target IN LISTS fuzz_targets)
    set(corpora ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${target})
    set(seconds ${ASSAY_FUZZ_SECONDS})
    if(target IN_LIST ASSAY_SHORT_FUZZ)
      set(seconds 2)
    endif()
    add_test(NAME fuzz/${target} COMMAND assay_fuzz ${target} ${seconds} 20251121 ${corpora}
             WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
    set_tests_properties(fuzz/${target} PROPERTIES LABELS "spec;fuzz")
  endforeach()
endif()
assay_batch(assay_fuzz)
target_link_libraries(assay_fuzz PRIVATE assay_cli assay_spec assay_own_code)
target_compile_definitions(assay_fuzz PRIVATE ASSAY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")

# Whole commands on changed files: `ci/fuzz commands`, and half a minute among the slow tests.
if(TARGET assay)
  add_executable(fuzz_commands ${CMAKE_SOURCE_DIR}/tests/fuzz/commands_main.cpp)
  target_link_libraries(fuzz_commands PRIVATE assay_cli assay_spec assay_own_code)
  target_compile_definitions(fuzz_commands PRIVATE ASSAY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_dependencies(fuzz_commands assay)
  if(TARGET assay-train)
    add_dependencies(fuzz_commands assay-train)
  endif()
  add_test(NAME fuzz/commands COMMAND fuzz_commands $<TARGET_FILE:assay> 30 20251128)
  set_tests_properties(fuzz/commands PROPERTIES LABELS "cli;fuzz;slow" TIMEOUT 300)
endif()
