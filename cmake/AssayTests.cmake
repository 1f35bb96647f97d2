# One program per layer (spec_tests, reference_tests, impl_tests, cli_tests), one CTest entry per test file.
# A test file states its labels on its first line: "// labels: unit golden". The layer is added to them.
find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)
set(ASSAY_RC_PARAMS "seed=20251121" CACHE STRING "RapidCheck parameters, RC_PARAMS, of every CTest entry")

file(GLOB_RECURSE support_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.cpp)
add_library(assay_test_support STATIC ${support_sources})
target_link_libraries(assay_test_support PUBLIC assay_spec GTest::gtest GTest::gmock rapidcheck
                                         PRIVATE assay_own_code nlohmann_json::nlohmann_json)
set_source_files_properties(${CMAKE_SOURCE_DIR}/tests/support/paths.cpp PROPERTIES COMPILE_DEFINITIONS
  "ASSAY_SOURCE_DIR=\"${CMAKE_SOURCE_DIR}\";ASSAY_BINARY_DIR=\"${CMAKE_BINARY_DIR}\"")

function(assay_test_layer layer)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${layer}/*_test.cpp)
  if(NOT tests)
    return()
  endif()
  add_executable(${layer}_tests ${tests})
  target_link_libraries(${layer}_tests PRIVATE assay_test_support assay_own_code
                        nlohmann_json::nlohmann_json ${ARGN})
  # Tests are compiled far more often than run: their own code is not what has to be fast.
  target_compile_options(${layer}_tests PRIVATE $<$<CONFIG:Release>:-O1>)
  target_precompile_headers(${layer}_tests PRIVATE <gtest/gtest.h> <rapidcheck/gtest.h>)
  foreach(test IN LISTS tests)
    file(STRINGS ${test} first LIMIT_COUNT 1)
    if(NOT first MATCHES "^// labels:( [a-z]+)+$")
      message(FATAL_ERROR "${test}: line 1 must state the labels, like \"// labels: unit golden\"")
    endif()
    string(REGEX REPLACE "^// labels: " "" labels "${first}")
    string(REPLACE " " ";" labels "${labels}")
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/tests ${test})
    string(REGEX REPLACE "_test\\.cpp$" "" entry "${name}")
    add_test(NAME ${entry} COMMAND ${layer}_tests --file=tests/${name})
    set_tests_properties(${entry} PROPERTIES LABELS "${layer};${labels}"
      ENVIRONMENT "RC_PARAMS=${ASSAY_RC_PARAMS};OMP_NUM_THREADS=1;OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1;OMPI_MCA_btl_vader_single_copy_mechanism=none"
      SKIP_RETURN_CODE 125)
  endforeach()
endfunction()

assay_test_layer(spec)
if(TARGET assay_reference)
  assay_test_layer(reference assay_reference)
endif()
if(TARGET assay)
  assay_test_layer(cli)
  if(TARGET cli_tests)
    target_link_libraries(cli_tests PRIVATE assay_cli)
    add_dependencies(cli_tests assay)
    if(TARGET assay-train)
      add_dependencies(cli_tests assay-train)
    endif()
  endif()
endif()
if(TARGET assay_impl)
  assay_test_layer(impl assay_impl assay_reference)
endif()
