# assay::spec: standard library and toml++; nlohmann-json is compiled in and not part of the interface.
# toml++ header-only: distributions also ship it as a shared library, which the program would then need at run time.
find_path(ASSAY_TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
find_package(nlohmann_json REQUIRED)

file(GLOB_RECURSE spec_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/spec/*.cpp)
add_library(assay_spec STATIC ${spec_sources})
add_library(assay::spec ALIAS assay_spec)
set_target_properties(assay_spec PROPERTIES EXPORT_NAME spec)
target_compile_features(assay_spec PUBLIC cxx_std_20)
# <assay/...> is what users are promised; the headers of spec/ that it includes are found behind it.
target_include_directories(assay_spec PUBLIC
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/assay/internal>)
# Random numbers have the same bits everywhere: no fused multiply-adds where the processor has them.
set_source_files_properties(${CMAKE_SOURCE_DIR}/spec/random/philox.cpp PROPERTIES COMPILE_OPTIONS -ffp-contract=off
                            SKIP_PRECOMPILE_HEADERS ON)
target_link_libraries(assay_spec
  PRIVATE $<BUILD_INTERFACE:assay_own_code>  $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)

assay_batch(assay_spec)
if(ASSAY_BATCH)
  target_precompile_headers(assay_spec PRIVATE <algorithm> <array> <charconv> <cmath> <filesystem> <fstream> <functional>
                            <map> <optional> <set> <span> <string> <variant> <vector>)
endif()
target_include_directories(assay_spec SYSTEM PRIVATE ${ASSAY_TOMLPLUSPLUS_INCLUDE})

# Models and hardware facts are TOML files of the repository, built into the library so that a lone program knows them.
file(GLOB spec_facts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/spec/models/*.toml ${CMAKE_SOURCE_DIR}/spec/hardware/*.toml)
set(facts_source ${CMAKE_BINARY_DIR}/generated/spec/facts_data.cpp)
add_custom_command(
  OUTPUT ${facts_source}
  COMMAND ${CMAKE_COMMAND} -DOUT=${facts_source} -DROOT=${CMAKE_SOURCE_DIR} "-DFILES=${spec_facts}"
          -P ${CMAKE_SOURCE_DIR}/cmake/EmbedFacts.cmake
  DEPENDS ${spec_facts} ${CMAKE_SOURCE_DIR}/cmake/EmbedFacts.cmake
  VERBATIM)
target_sources(assay_spec PRIVATE ${facts_source})
