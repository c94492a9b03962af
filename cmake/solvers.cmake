# The solvers of a backend, gathered from its folder: each `const fac_solver fac_BACKEND_NAME = { ... .rank = N ... };`
# at the beginning of a line.  Makes gen/NAME_solvers.h, which declares them, and gen/NAME_solvers.c, the list by rank.
#   facula_solvers(NAME FOLDER PREFIX)
function(facula_solvers name folder prefix)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${folder}/*.c)
  set(keyed "")
  foreach(f ${files})
    file(READ ${f} text)
    string(REGEX MATCHALL "\nconst fac_solver ${prefix}[a-z0-9_]+ = {" all "${text}")
    list(LENGTH all count)
    if(count EQUAL 0)
      continue()
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${f})
    string(REGEX MATCHALL "\nconst fac_solver ${prefix}[a-z0-9_]+ = {[^;]*[.]rank = [0-9]+" ranked "${text}")
    list(LENGTH ranked with_rank)
    if(NOT count EQUAL with_rank)
      message(FATAL_ERROR "${f}: a solver has no .rank")
    endif()
    foreach(s ${ranked})
      string(REGEX REPLACE "^\nconst fac_solver (${prefix}[a-z0-9_]+) = .*$" "\\1" solver "${s}")
      string(REGEX REPLACE "^.*[.]rank = ([0-9]+)$" "\\1" rank "${s}")
      math(EXPR rank "1000000 + ${rank}")
      list(APPEND keyed "${rank} ${solver}")
    endforeach()
  endforeach()
  list(SORT keyed)
  set(declared "")
  set(listed "")
  foreach(k ${keyed})
    string(REGEX REPLACE "^[0-9]+ " "" solver "${k}")
    string(APPEND declared "extern const fac_solver ${solver};\n")
    string(APPEND listed "    &${solver},\n")
  endforeach()
  string(TOUPPER ${name} guard)
  file(CONFIGURE OUTPUT gen/${name}_solvers.h CONTENT "/* The solvers of a backend: made by cmake/solvers.cmake. */
#ifndef FACULA_${guard}_SOLVERS_H
#define FACULA_${guard}_SOLVERS_H
#include \"facula/backend.h\"
@declared@extern const fac_solver *const ${prefix}solvers[]; /* by rank; NULL-terminated */
#endif
" @ONLY)
  file(CONFIGURE OUTPUT gen/${name}_solvers.c CONTENT "#include <stddef.h>
#include \"${name}_solvers.h\"
const fac_solver *const ${prefix}solvers[] = {
@listed@    NULL
};
" @ONLY)
endfunction()

facula_solvers(cpu ${CMAKE_CURRENT_SOURCE_DIR}/src/backends/cpu fac_cpu_)
list(APPEND SOURCES ${CMAKE_CURRENT_BINARY_DIR}/gen/cpu_solvers.c)
if(OPENCL_INCLUDE)
  facula_solvers(opencl ${CMAKE_CURRENT_SOURCE_DIR}/src/backends/opencl fac_cl_)
  list(APPEND SOURCES ${CMAKE_CURRENT_BINARY_DIR}/gen/opencl_solvers.c)
endif()
