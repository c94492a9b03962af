# Install: headers, both libraries, the command, pkg-config and CMake packages.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(DIRECTORY include/facula DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/gen/facula DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS facula_static facula_shared
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET facula)
  install(TARGETS facula RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# the way from the library folder back to the prefix, so that an installed tree may be moved
string(REGEX REPLACE "[^/]+" ".." FACULA_LIB_TO_PREFIX "${CMAKE_INSTALL_LIBDIR}")
configure_file(cmake/facula.pc.in facula.pc @ONLY)
configure_file(cmake/faculaConfig.cmake.in faculaConfig.cmake @ONLY)
write_basic_package_version_file(faculaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/facula.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/faculaConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/faculaConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/facula)
