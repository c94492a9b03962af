# Install: headers, both libraries, the command with its manual and completions, pkg-config and
# CMake packages.  The command has the library inside, so it needs no rpath; programs with
# libfacula.so do where the loader does not look (see the end).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(DIRECTORY include/facula DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/gen/facula DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS facula_static facula_shared
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET facula)
  install(TARGETS facula RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# what the command writes of itself; another machine's command cannot be run here
if(TARGET facula AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
  set(MANUAL ${CMAKE_CURRENT_BINARY_DIR}/manual)
  add_custom_command(OUTPUT ${MANUAL}/stamp DEPENDS facula cmake/manual.cmake VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DFACULA=${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:facula>"
      -DOUT=${MANUAL} -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/manual.cmake
    COMMENT "Writing the manual and completions")
  add_custom_target(manual ALL DEPENDS ${MANUAL}/stamp)
  install(DIRECTORY ${MANUAL}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${MANUAL}/bash/facula
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${MANUAL}/zsh/_facula DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${MANUAL}/fish/facula.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

# the way from the library folder back to the prefix, so that an installed tree may be moved;
# absolute folders stay where they are
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(FACULA_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
  set(FACULA_PC_LIBDIR "${CMAKE_INSTALL_FULL_LIBDIR}")
  set(FACULA_PC_INCLUDEDIR "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
  set(FACULA_CMAKE_INCLUDE "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
else()
  string(REGEX REPLACE "[^/]+" ".." up "${CMAKE_INSTALL_LIBDIR}")
  set(FACULA_PC_PREFIX "\${pcfiledir}/../${up}")
  set(FACULA_PC_LIBDIR "\${pcfiledir}/..")
  set(FACULA_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
  set(FACULA_CMAKE_INCLUDE "\${FACULA_LIBDIR}/${up}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(cmake/facula.pc.in facula.pc @ONLY)
configure_file(cmake/faculaConfig.cmake.in faculaConfig.cmake @ONLY)
write_basic_package_version_file(faculaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/facula.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/faculaConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/faculaConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/facula)

install(CODE "set(libdir \"${CMAKE_INSTALL_LIBDIR}\")")
install(CODE [[
  if(NOT IS_ABSOLUTE "${libdir}")
    set(libdir "${CMAKE_INSTALL_PREFIX}/${libdir}")
  endif()
  message(STATUS "Programs find libfacula.so after `ldconfig` (as root) where the loader looks in "
          "${libdir}, as in /usr/local/lib;\n   elsewhere they are linked with "
          "$(pkg-config --variable=rpath facula), or LD_LIBRARY_PATH says it.")
]])
