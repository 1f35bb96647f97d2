# The package: `find_package(assay COMPONENTS spec)` gives assay::spec.
include(CMakePackageConfigHelpers)
install(TARGETS assay_spec EXPORT assay-spec ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT assay-spec NAMESPACE assay:: FILE assay-spec.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/assay)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/assay DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
# Users are promised <assay/...> alone; the headers behind it lie where their folder says so.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/spec DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay/internal
        FILES_MATCHING PATTERN "*.hpp")
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/assay-config.cmake.in
  ${CMAKE_BINARY_DIR}/assay-config.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/assay)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/assay-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/assay-config.cmake ${CMAKE_BINARY_DIR}/assay-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/assay)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
