# What the libraries link, as targets: libhbp threads alone, libhbp-io what files and probes need, libhbp-glpk GLPK.
# Also part of the installed package, for static libraries.
find_package(Threads REQUIRED)

# For libhbp-io, with hwloc where `with_hwloc` is true. The variable `missing` of the caller names what is not there.
macro(hbp_find_io_dependencies missing with_hwloc)
  set(${missing} "")
  set(hbp_io_needs ZLIB::ZLIB EXPAT::EXPAT)
  find_package(PkgConfig QUIET)
  find_package(ZLIB QUIET)
  find_package(EXPAT QUIET)
  if(${with_hwloc})
    list(APPEND hbp_io_needs PkgConfig::HWLOC)
    if(PkgConfig_FOUND)
      pkg_check_modules(HWLOC QUIET IMPORTED_TARGET hwloc>=2.4)
    endif()
  endif()
  foreach(needed ${hbp_io_needs})
    if(NOT TARGET ${needed})
      string(REGEX REPLACE ".*::" "" name ${needed})
      string(TOLOWER ${name} name)
      list(APPEND ${missing} ${name})
    endif()
  endforeach()
endmacro()

# GLPK brings neither a .pc file nor a CMake package.
find_path(GLPK_INCLUDE_DIR glpk.h)
find_library(GLPK_LIBRARY glpk)
mark_as_advanced(GLPK_INCLUDE_DIR GLPK_LIBRARY)
if(GLPK_INCLUDE_DIR AND GLPK_LIBRARY AND NOT TARGET GLPK::GLPK)
  add_library(GLPK::GLPK UNKNOWN IMPORTED)
  set_target_properties(GLPK::GLPK PROPERTIES
    IMPORTED_LOCATION ${GLPK_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${GLPK_INCLUDE_DIR})
endif()
