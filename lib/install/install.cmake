# What meson.build of this folder does, for the build with CMake: installs the files that pkg-config and find_package()
# read. A parent project installs only what its programs need: the shared library, and nothing if the library is static.
set(cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rondo")
string(REGEX REPLACE "[^/]+" ".." to_prefix "${cmake_dir}")
string(REGEX REPLACE "[^/]+" ".." pkg_config_to_prefix "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
set(version ${rondo_VERSION})
set(abi ${rondo_abi})
set(kind STATIC)
if(BUILD_SHARED_LIBS)
  set(kind SHARED)
endif()
set(includedir "${CMAKE_INSTALL_INCLUDEDIR}")
set(definitions "")
set(cflags "")
if(RONDO_CHECKS)
  set(definitions RONDO_CHECKS)
  set(cflags -DRONDO_CHECKS)
endif()

# Installs TEMPLATE.in, which may name variables (@version@), as NAME into FOLDER.
function(rondo_install_file template name folder)
  configure_file("${template}.in" "${name}.in" @ONLY)
  file(GENERATE OUTPUT "install-$<CONFIG>/${name}" INPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}.in")
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/install-$<CONFIG>/${name}" DESTINATION "${folder}")
endfunction()

# Installs the library TARGET and its files for developers: the headers (HEADERS are arguments of install()), TARGET.pc
# with DESCRIPTION, REQUIRES and LIBS, and TEMPLATES for CMake.
function(rondo_install target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DESCRIPTION;REQUIRES;LIBS" "HEADERS;TEMPLATES")
  if(BUILD_SHARED_LIBS OR RONDO_INSTALL_HEADERS)
    install(TARGETS ${target}
      RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
      LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
      ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  endif()
  if(NOT RONDO_INSTALL_HEADERS)
    return()
  endif()
  install(${arg_HEADERS})
  set(file "${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:${target}>")
  foreach(template IN LISTS arg_TEMPLATES)
    get_filename_component(name "${template}" NAME)
    rondo_install_file("${template}" "${name}" "${cmake_dir}")
  endforeach()
  rondo_install_file("${rondo_SOURCE_DIR}/install/library.pc" ${target}.pc "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()

set(rondo_threads "")
if(CMAKE_USE_PTHREADS_INIT)
  set(rondo_threads -pthread)
endif()
# The headers of rondo-durable and rondo-calendar are installed with their libraries.
rondo_install(rondo
  DESCRIPTION "A timer library: one reusable timing wheel, its buckets ordered in a fibonacci heap"
  LIBS "${rondo_threads}"
  HEADERS DIRECTORY "${rondo_SOURCE_DIR}/../include/rondo" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    PATTERN durable.hpp EXCLUDE PATTERN calendar.hpp EXCLUDE
  TEMPLATES "${rondo_SOURCE_DIR}/install/rondoConfig.cmake" "${rondo_SOURCE_DIR}/install/rondoConfigVersion.cmake")
