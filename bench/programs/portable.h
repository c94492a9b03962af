/* Included before everything in the portable kernels that bench/portable.py compiles for a machine
 * with AVX2: what they ask for AVX2's own code is not defined.  The header is included here since
 * it defines that anew. */
#include <immintrin.h>
#undef __AVX2__
