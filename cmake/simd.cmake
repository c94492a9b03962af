# Every <name>.c in src/backends/cpu/simd/ and its folders is compiled once per instruction set, as gen/simd/<name>_<isa>.c,
# with FAC_ISA naming it: FAC_SIMD(x) is x_avx512, x_avx2 or x_base (SSE2, NEON or whatever the compiler makes of vectors of 16
# bytes).
set(SIMD_ISAS base)
# The portable kernels compiled for a machine that has more, to compare them with its own: see bench/portable.py.
set(FACULA_PORTABLE_FLAGS "" CACHE STRING "flags of the portable kernels")
set(SIMD_FLAGS_base ${FACULA_PORTABLE_FLAGS})
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  list(APPEND SIMD_ISAS avx2 avx512)
  set(SIMD_FLAGS_avx2 -mavx2 -mfma -mf16c)
  set(SIMD_FLAGS_avx512 -mavx512f -mavx512vl -mavx512bw -mavx512dq -mfma)
endif()

# The register-blocked kernels need their accumulators left alone: gcc's predictive commoning and redundancy elimination keep
# overlapping loads in registers and spill accumulators instead (1.3 to 2 times slower), -ffast-math would split the
# accumulators.  Contracting a * b + c is all the freedom they need.
set(SIMD_FLAGS -O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND SIMD_FLAGS -fno-predictive-commoning -fno-tree-pre -fno-tree-slp-vectorize)
endif()

# With sanitizers every unrolled load has its checks, and these files would take minutes: there the kernels stay functions and loops.
if(FACULA_SANITIZE)
  set(SIMD_FLAGS -O1 -DFAC_ROLLED -ffp-contract=fast -fno-math-errno -fno-trapping-math)
endif()

if(CMAKE_C_COMPILER_ID MATCHES "Clang")             # it says so when a loop is not unrolled as it was asked to
  list(APPEND SIMD_FLAGS -Wno-pass-failed)
endif()

file(GLOB_RECURSE SIMD_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/backends/cpu/simd/*.c)
list(FILTER SOURCES EXCLUDE REGEX "/src/backends/cpu/simd/")
foreach(f ${SIMD_SOURCES})
  get_filename_component(n ${f} NAME_WE)
  file(RELATIVE_PATH path ${CMAKE_CURRENT_SOURCE_DIR}/src ${f})
  foreach(isa ${SIMD_ISAS})
    set(copy ${CMAKE_CURRENT_BINARY_DIR}/gen/simd/${n}_${isa}.c)
    file(CONFIGURE OUTPUT ${copy} CONTENT "#define FAC_ISA ${isa}\n#include \"${path}\"\n" @ONLY)
    set(own "")
    if(n STREQUAL "adam")               # its bits are those of ops that round one by one
      set(own -ffp-contract=off)
    endif()
    set_source_files_properties(${copy} PROPERTIES COMPILE_OPTIONS "${SIMD_FLAGS};${SIMD_FLAGS_${isa}};${own}")
    list(APPEND SOURCES ${copy})
  endforeach()
endforeach()
