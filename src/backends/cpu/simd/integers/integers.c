/* Elementwise loops of whole numbers in their own type: see integers.h.  The compiler makes vectors
 * of them. */
#include "backends/cpu/device/integers.h"
#include "backends/cpu/simd/vector.h"

#define JOIN(a, b) FAC_JOIN(a, b)

#define IN1 const T *xs = in[0];
#define IN2 IN1 const T *ys = in[1];
#define IN3 IN2 const T *zs = in[2];
#define AT1 const T x = xs[i];
#define AT2 AT1 const T y = ys[i];
#define AT3 AT2 const T z = zs[i];
#define MAP(FUNCTION, RESULT, N, ...)                                                              \
    static void FUNCTION(size_t n, const void *const *in, const double *p, void *out) {            \
        IN##N RESULT *to = out;                                                                    \
        (void)p;                                                                                   \
        IN_PLACE for (size_t i = 0; i < n; i++) { AT##N to[i] = __VA_ARGS__; }                     \
    }

#define NAME 8
#define T uint8_t
#include "backends/cpu/simd/integers/integer_width.h"
#define NAME 16
#define T uint16_t
#include "backends/cpu/simd/integers/integer_width.h"
#define NAME 32
#define T uint32_t
#include "backends/cpu/simd/integers/integer_width.h"
#define NAME 64
#define T uint64_t
#include "backends/cpu/simd/integers/integer_width.h"

#define NAME i8
#define T int8_t
#include "backends/cpu/simd/integers/integer_order.h"
#define NAME i16
#define T int16_t
#include "backends/cpu/simd/integers/integer_order.h"
#define NAME i32
#define T int32_t
#include "backends/cpu/simd/integers/integer_order.h"
#define NAME i64
#define T int64_t
#include "backends/cpu/simd/integers/integer_order.h"
#define NAME u8
#define T uint8_t
#include "backends/cpu/simd/integers/integer_order.h"
#define NAME u16
#define T uint16_t
#include "backends/cpu/simd/integers/integer_order.h"
#define NAME u32
#define T uint32_t
#include "backends/cpu/simd/integers/integer_order.h"
#define NAME u64
#define T uint64_t
#include "backends/cpu/simd/integers/integer_order.h"

#define NAME i8
#define T int8_t
#define REAL float
#define S 1
#include "backends/cpu/simd/integers/integer_ratio.h"
#define NAME i16
#define T int16_t
#define REAL float
#define S 1
#include "backends/cpu/simd/integers/integer_ratio.h"
#define NAME i32
#define T int32_t
#define REAL double
#define S 1
#include "backends/cpu/simd/integers/integer_ratio.h"
#define NAME u8
#define T uint8_t
#define REAL float
#define S 0
#include "backends/cpu/simd/integers/integer_ratio.h"
#define NAME u16
#define T uint16_t
#define REAL float
#define S 0
#include "backends/cpu/simd/integers/integer_ratio.h"

#define ABS(W)                                                                                     \
    static void abs_##W(size_t n, const void *const *in, const double *p, void *out) {             \
        const int##W##_t *x = in[0];                                                               \
        uint##W##_t *to = out;                                                                     \
        (void)p;                                                                                   \
        IN_PLACE for (size_t i = 0; i < n; i++) to[i] =                                            \
            (uint##W##_t)(x[i] < 0 ? 0u - (uint##W##_t)x[i] : (uint##W##_t)x[i]);                  \
    }
ABS(8)
ABS(16)
ABS(32)
ABS(64)

#define T uint8_t
MAP(flag_and, uint8_t, 2, (x != 0) & (y != 0))
MAP(flag_or, uint8_t, 2, (x != 0) | (y != 0))
MAP(flag_xor, uint8_t, 2, (x != 0) ^ (y != 0))
MAP(flag_not, uint8_t, 1, x == 0)
MAP(flag_equal, uint8_t, 2, (x != 0) == (y != 0))
#undef T
#define T float
MAP(equal_f32, uint8_t, 2, x == y)
MAP(less_f32, uint8_t, 2, x < y)
MAP(less_equal_f32, uint8_t, 2, x <= y)
#undef T

/* The number of bits, the name, and the loops that only some types have. */
#define TYPE(W, NAME, ABS_OF, ...)                                                                 \
    {                                                                                              \
        [FAC_INTEGER_ADD] = add_##W, [FAC_INTEGER_SUB] = sub_##W, [FAC_INTEGER_MUL] = mul_##W,     \
        [FAC_INTEGER_NEG] = neg_##W, [FAC_INTEGER_ABS] = ABS_OF, [FAC_INTEGER_AND] = and_##W,      \
        [FAC_INTEGER_OR] = or_##W, [FAC_INTEGER_XOR] = xor_##W, [FAC_INTEGER_NOT] = not_##W,       \
        [FAC_INTEGER_MAX] = max_##NAME, [FAC_INTEGER_MIN] = min_##NAME,                            \
        [FAC_INTEGER_CLIP] = clip_##NAME, [FAC_INTEGER_EQUAL] = equal_##W,                         \
        [FAC_INTEGER_LESS] = less_##NAME, [FAC_INTEGER_LESS_EQUAL] = less_equal_##NAME,            \
        [FAC_INTEGER_WHERE] = where_##W, __VA_ARGS__                                               \
    }
#define RATIOS(NAME)                                                                               \
    [FAC_INTEGER_DIV] = div_##NAME, [FAC_INTEGER_MOD] = mod_##NAME, [FAC_INTEGER_REM] = rem_##NAME
#define NO_RATIOS [FAC_INTEGER_DIV] = NULL
extern fac_convert_kernel *const FAC_SIMD(fac_converts)[FAC_CONVERT_TYPES][FAC_CONVERT_TYPES];
extern fac_fill_kernel FAC_SIMD(fac_fill);
extern fac_running_kernel *const FAC_SIMD(fac_running_kernels)[FAC_CONVERT_TYPES];
extern const fac_integer_kernels FAC_SIMD(fac_integer_kernels);
const fac_integer_kernels FAC_SIMD(fac_integer_kernels) = {
    .loop = { TYPE(8, i8, abs_8, RATIOS(i8)), TYPE(16, i16, abs_16, RATIOS(i16)),
              TYPE(32, i32, abs_32, RATIOS(i32)), TYPE(64, i64, abs_64, NO_RATIOS),
              TYPE(8, u8, NULL, RATIOS(u8)), TYPE(16, u16, NULL, RATIOS(u16)),
              TYPE(32, u32, NULL, NO_RATIOS), TYPE(64, u64, NULL, NO_RATIOS) },
    .flag = { flag_and, flag_or, flag_xor, flag_not, flag_equal },
    .f32 = { [FAC_INTEGER_EQUAL] = equal_f32,
             [FAC_INTEGER_LESS] = less_f32,
             [FAC_INTEGER_LESS_EQUAL] = less_equal_f32 },
    .convert = FAC_SIMD(fac_converts),
    .fill = FAC_SIMD(fac_fill),
    .running = FAC_SIMD(fac_running_kernels),
};
