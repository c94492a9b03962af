# Every NAME.cl below src/backends/opencl becomes gen/cl_NAME.h: its text as the array fac_kernel_NAME.
file(GLOB_RECURSE KERNELS CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/backends/opencl/*.cl)
foreach(f ${KERNELS})
  get_filename_component(n ${f} NAME_WE)
  facula_embed(${f} fac_kernel_${n} ${CMAKE_CURRENT_BINARY_DIR}/gen/cl_${n}.h)
endforeach()
# Measured choices that the library brings along.
facula_embed(${CMAKE_CURRENT_SOURCE_DIR}/src/backends/shipped.wisdom fac_shipped_wisdom
             ${CMAKE_CURRENT_BINARY_DIR}/gen/shipped_wisdom.h)
