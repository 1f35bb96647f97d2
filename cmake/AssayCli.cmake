# The small program `assay`: spec verbs, report, doctor. No libtorch, starts in milliseconds.
file(GLOB cli_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/impl/cli/*.cpp ${CMAKE_SOURCE_DIR}/impl/report/*.cpp)
list(FILTER cli_sources EXCLUDE REGEX "main\\.cpp$")
if(cli_sources)
  add_library(assay_cli STATIC ${cli_sources})
  set_source_files_properties(${CMAKE_SOURCE_DIR}/impl/cli/arguments.cpp ${CMAKE_SOURCE_DIR}/impl/cli/program.cpp
                              PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # as in AssaySpec.cmake
  target_link_libraries(assay_cli PUBLIC assay_spec PRIVATE assay_own_code)
  target_compile_definitions(assay_cli PRIVATE ASSAY_VERSION="${PROJECT_VERSION}")
endif()
if(EXISTS ${CMAKE_SOURCE_DIR}/impl/cli/assay_main.cpp)
  add_executable(assay ${CMAKE_SOURCE_DIR}/impl/cli/assay_main.cpp)
  target_link_libraries(assay PRIVATE assay_cli assay_own_code)
  install(TARGETS assay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
