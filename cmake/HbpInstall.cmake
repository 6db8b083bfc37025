# Installs headers, the libraries, find_package(hbp) with its components, and a .pc file for each library.
include(CMakePackageConfigHelpers)
# The .pc files find their folders from where they lie, so that an installed tree can move.
file(RELATIVE_PATH HBP_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
set(HBP_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/hbp)

# The library TARGET, called NAME in files; its targets are an export of their own, which a user may lack the needs of.
function(hbp_install target name)
  install(TARGETS ${target} EXPORT ${name}Targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT library)
  install(EXPORT ${name}Targets NAMESPACE hbp:: DESTINATION ${HBP_CMAKE_DIR} COMPONENT development)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()
hbp_install(hbp hbp)
if(HBP_IO)
  if(HBP_HWLOC)
    set(HBP_PC_HWLOC " hwloc")
  endif()
  if(HBP_HAS_ZSTD)
    set(HBP_PC_ZSTD " libzstd")
  endif()
  hbp_install(hbp_io hbp-io)
endif()
if(HBP_HAS_GLPK)
  hbp_install(hbp_glpk hbp-glpk)
endif()
install(DIRECTORY include/hbp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")

set(HBP_PACKAGE_STATIC ON)
if(BUILD_SHARED_LIBS)
  set(HBP_PACKAGE_STATIC OFF)
endif()
configure_package_config_file(cmake/hbpConfig.cmake.in ${PROJECT_BINARY_DIR}/hbpConfig.cmake
  INSTALL_DESTINATION ${HBP_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hbpConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hbpConfig.cmake ${PROJECT_BINARY_DIR}/hbpConfigVersion.cmake
  cmake/HbpDependencies.cmake DESTINATION ${HBP_CMAKE_DIR} COMPONENT development)

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
