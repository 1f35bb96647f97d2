# assay::spec: standard library and toml++; nlohmann-json is compiled in and not part of the interface.
# toml++ header-only: distributions also ship it as a shared library, which the program would then need at run time.
find_path(ASSAY_TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
find_package(nlohmann_json REQUIRED)

file(GLOB_RECURSE spec_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/spec/*.cpp)
add_library(assay_spec STATIC ${spec_sources})
add_library(assay::spec ALIAS assay_spec)
set_target_properties(assay_spec PROPERTIES EXPORT_NAME spec)
target_compile_features(assay_spec PUBLIC cxx_std_20)
target_include_directories(assay_spec PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>
                                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/assay>)
# The spec preset compiles several sources as one, for the standard headers are most of its time. These stay apart: each
# log reader has functions of the same names in its unnamed namespace, and so do the other two.
file(GLOB log_readers ${CMAKE_SOURCE_DIR}/spec/audit/readers/*.cpp)
set_source_files_properties(${log_readers} ${CMAKE_SOURCE_DIR}/spec/claims/page.cpp ${CMAKE_SOURCE_DIR}/spec/hardware/hardware.cpp
                            PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_link_libraries(assay_spec
  PRIVATE $<BUILD_INTERFACE:assay_own_code>  $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)

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
