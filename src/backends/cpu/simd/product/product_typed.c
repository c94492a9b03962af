/* Products of f64, and of integers modulo 2^32 and 2^64: see fac_typed_tile in simd_products.h. */
#include "backends/cpu/simd/rows.h"

#define T double
#define NAME product_f64
#include "backends/cpu/simd/product/product_type.h"
#define T uint32_t
#define NAME product_u32
#include "backends/cpu/simd/product/product_type.h"
#define T uint64_t
#define NAME product_u64
#include "backends/cpu/simd/product/product_type.h"

extern const fac_typed_kernels FAC_SIMD(fac_typed);
const fac_typed_kernels FAC_SIMD(fac_typed) = { product_f64, product_u32, product_u64 };
