# Installs headers, library, find_package(hbp) and hbp.pc.
include(CMakePackageConfigHelpers)
set(HBP_LIBRARIES hbp)
if(HBP_HAS_GLPK)
  list(APPEND HBP_LIBRARIES hbp_glpk)
endif()
install(TARGETS ${HBP_LIBRARIES} EXPORT hbpTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT library)
install(DIRECTORY include/hbp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")

set(HBP_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/hbp)
install(EXPORT hbpTargets NAMESPACE hbp:: DESTINATION ${HBP_CMAKE_DIR} COMPONENT development)
configure_package_config_file(cmake/hbpConfig.cmake.in ${PROJECT_BINARY_DIR}/hbpConfig.cmake
  INSTALL_DESTINATION ${HBP_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hbpConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hbpConfig.cmake ${PROJECT_BINARY_DIR}/hbpConfigVersion.cmake
  cmake/HbpDependencies.cmake DESTINATION ${HBP_CMAKE_DIR} COMPONENT development)

# The .pc files find their folders from where they lie, so that an installed tree can move.
file(RELATIVE_PATH HBP_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/hbp.pc.in ${PROJECT_BINARY_DIR}/hbp.pc @ONLY)
set(HBP_PC_FILES ${PROJECT_BINARY_DIR}/hbp.pc)
if(HBP_HAS_GLPK)
  configure_file(cmake/hbp-glpk.pc.in ${PROJECT_BINARY_DIR}/hbp-glpk.pc @ONLY)
  list(APPEND HBP_PC_FILES ${PROJECT_BINARY_DIR}/hbp-glpk.pc)
endif()
install(FILES ${HBP_PC_FILES} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
