# The small program `assay`: spec verbs, report, doctor. No libtorch, starts in milliseconds.
set(ASSAY_CHECKPOINT_FILES data_file.cpp durable_file.cpp export.cpp folder.cpp input_file.cpp inspect.cpp manifest.cpp newest_whole.cpp partial_folder.cpp
    reshard.cpp safetensors_file.cpp slice_file.cpp stored_state.cpp weight_folder.cpp)
file(GLOB_RECURSE cli_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/impl/cli/*.cpp ${CMAKE_SOURCE_DIR}/impl/report/*.cpp)
list(FILTER cli_sources EXCLUDE REGEX "main\\.cpp$")
# What reads and writes checkpoints without tensors: `assay checkpoint`. The trainer's library has these sources, too.
list(TRANSFORM ASSAY_CHECKPOINT_FILES PREPEND ${CMAKE_SOURCE_DIR}/impl/checkpoint/)
list(APPEND cli_sources ${ASSAY_CHECKPOINT_FILES} ${CMAKE_SOURCE_DIR}/impl/run/start/resume_request.cpp)
# And what reads token files: `assay data`.
set(ASSAY_DATA_FILES data/checked_ids.cpp data/data_files.cpp data/foreign_file.cpp data/megatron_index.cpp data/npy_header.cpp data/opened_file.cpp
    data/token_file.cpp data/token_format.cpp logs/plain_output.cpp logs/progress_line.cpp logs/terminal.cpp machine/cgroup.cpp machine/output_folder.cpp machine/standard_streams.cpp)
list(TRANSFORM ASSAY_DATA_FILES PREPEND ${CMAKE_SOURCE_DIR}/impl/)
list(APPEND cli_sources ${ASSAY_DATA_FILES})
if(cli_sources)
  add_library(assay_cli STATIC ${cli_sources})
  target_link_libraries(assay_cli PUBLIC assay_spec PRIVATE assay_own_code)
  assay_batch(assay_cli)
  if(ASSAY_BATCH)
    target_precompile_headers(assay_cli REUSE_FROM assay_spec)
  endif()
  target_compile_definitions(assay_cli PRIVATE ASSAY_VERSION="${PROJECT_VERSION}")
endif()
if(EXISTS ${CMAKE_SOURCE_DIR}/impl/cli/assay_main.cpp)
  add_executable(assay ${CMAKE_SOURCE_DIR}/impl/cli/assay_main.cpp)
  target_link_libraries(assay PRIVATE assay_cli assay_own_code)
  install(TARGETS assay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
