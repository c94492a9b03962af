/* From one element type to another: see integers.h.  The compiler makes vectors of these loops. */
#include "backends/cpu/device/integers.h"
#include "backends/cpu/simd/vector.h"
#include "tensor/tensor_internal.h"

#define JOIN(a, b) FAC_JOIN(a, b)
#define CONVERT(FUNCTION, TO, FROM, VALUE)                                                         \
    static void FUNCTION(void *y_, const void *x_, int64_t n) {                                    \
        TO *restrict y = y_;                                                                       \
        const FROM *restrict x = x_;                                                               \
        for (int64_t i = 0; i < n; i++) y[i] = (TO)(VALUE);                                        \
    }

/* A whole number cut or extended to each width, as a float, as a bool. */
#define INTEGER(NAME, T)                                                                           \
    CONVERT(NAME##_to_8, uint8_t, T, x[i])                                                         \
    CONVERT(NAME##_to_16, uint16_t, T, x[i])                                                       \
    CONVERT(NAME##_to_32, uint32_t, T, x[i])                                                       \
    CONVERT(NAME##_to_64, uint64_t, T, x[i])                                                       \
    CONVERT(NAME##_to_f32, float, T, x[i])                                                         \
    CONVERT(NAME##_to_f64, double, T, x[i])                                                        \
    CONVERT(NAME##_to_flag, uint8_t, T, x[i] != 0)
INTEGER(i8, int8_t)
INTEGER(i16, int16_t)
INTEGER(i32, int32_t)
INTEGER(i64, int64_t)
INTEGER(u8, uint8_t)
INTEGER(u16, uint16_t)
INTEGER(u32, uint32_t)
INTEGER(u64, uint64_t)

CONVERT(flag_to_8, uint8_t, uint8_t, x[i] != 0)
CONVERT(flag_to_16, uint16_t, uint8_t, x[i] != 0)
CONVERT(flag_to_32, uint32_t, uint8_t, x[i] != 0)
CONVERT(flag_to_64, uint64_t, uint8_t, x[i] != 0)
CONVERT(flag_to_f32, float, uint8_t, x[i] != 0)
CONVERT(flag_to_f64, double, uint8_t, x[i] != 0)

/* Floats that an i32 holds, a part at a time; a part with others goes through fac_convert. */
enum { PART = 256 };
#define NARROW(FROM, FROM_TYPE, NAME, TO, TO_TYPE)                                                 \
    static void FROM##_to_##NAME(void *y_, const void *x_, int64_t n) {                            \
        TO *restrict y = y_;                                                                       \
        const FROM *restrict x = x_;                                                               \
        for (int64_t m; n > 0; n -= m, x += m, y += m) {                                           \
            int32_t fit = 1;                                                                       \
            m = n < PART ? n : PART;                                                               \
            for (int64_t i = 0; i < m; i++) {                                                      \
                const int32_t fits = (x[i] > -(FROM)0x1p31) & (x[i] < (FROM)0x1p31);               \
                fit &= fits;                                                                       \
                y[i] = (TO)(int32_t)(fits ? x[i] : 0);                                             \
            }                                                                                      \
            if (!fit) fac_convert(TO_TYPE, y, FROM_TYPE, x, (size_t)m);                            \
        }                                                                                          \
    }
#define FLOATS(FROM, FROM_TYPE)                                                                    \
    NARROW(FROM, FROM_TYPE, 8, uint8_t, FAC_U8)                                                    \
    NARROW(FROM, FROM_TYPE, 16, uint16_t, FAC_U16)                                                 \
    NARROW(FROM, FROM_TYPE, 32, uint32_t, FAC_U32)                                                 \
    NARROW(FROM, FROM_TYPE, 64, uint64_t, FAC_U64)                                                 \
    CONVERT(FROM##_to_flag, uint8_t, FROM, x[i] != 0)
FLOATS(float, FAC_F32)
FLOATS(double, FAC_F64)
CONVERT(float_to_f64, double, float, x[i])
CONVERT(double_to_f32, float, double, x[i])

/* Of one type from all others. */
#define TO_INTEGER(W)                                                                              \
    {                                                                                              \
        [FAC_F32] = float_to_##W, [FAC_F64] = double_to_##W, [FAC_I8] = i8_to_##W,                 \
        [FAC_I16] = i16_to_##W, [FAC_I32] = i32_to_##W, [FAC_I64] = i64_to_##W,                    \
        [FAC_U8] = u8_to_##W, [FAC_U16] = u16_to_##W, [FAC_U32] = u32_to_##W,                      \
        [FAC_U64] = u64_to_##W, [FAC_BOOL] = flag_to_##W                                           \
    }
#define TO_FLOAT(NAME, OTHER_TYPE, OTHER)                                                          \
    {                                                                                              \
        [OTHER_TYPE] = OTHER, [FAC_I8] = i8_to_##NAME, [FAC_I16] = i16_to_##NAME,                  \
        [FAC_I32] = i32_to_##NAME, [FAC_I64] = i64_to_##NAME, [FAC_U8] = u8_to_##NAME,             \
        [FAC_U16] = u16_to_##NAME, [FAC_U32] = u32_to_##NAME, [FAC_U64] = u64_to_##NAME,           \
        [FAC_BOOL] = flag_to_##NAME                                                                \
    }
extern fac_convert_kernel *const FAC_SIMD(fac_converts)[FAC_CONVERT_TYPES][FAC_CONVERT_TYPES];
fac_convert_kernel *const FAC_SIMD(fac_converts)[FAC_CONVERT_TYPES][FAC_CONVERT_TYPES] = {
    [FAC_F32] = TO_FLOAT(f32, FAC_F64, double_to_f32),
    [FAC_F64] = TO_FLOAT(f64, FAC_F32, float_to_f64),
    [FAC_I8] = TO_INTEGER(8),
    [FAC_I16] = TO_INTEGER(16),
    [FAC_I32] = TO_INTEGER(32),
    [FAC_I64] = TO_INTEGER(64),
    [FAC_U8] = TO_INTEGER(8),
    [FAC_U16] = TO_INTEGER(16),
    [FAC_U32] = TO_INTEGER(32),
    [FAC_U64] = TO_INTEGER(64),
    [FAC_BOOL] = { [FAC_F32] = float_to_flag,
                   [FAC_F64] = double_to_flag,
                   [FAC_I8] = i8_to_flag,
                   [FAC_I16] = i16_to_flag,
                   [FAC_I32] = i32_to_flag,
                   [FAC_I64] = i64_to_flag,
                   [FAC_U8] = u8_to_flag,
                   [FAC_U16] = u16_to_flag,
                   [FAC_U32] = u32_to_flag,
                   [FAC_U64] = u64_to_flag,
                   [FAC_BOOL] = flag_to_8 },
};

#define FILL(T)                                                                                    \
    {                                                                                              \
        T v, *restrict y = y_;                                                                     \
        memcpy(&v, x, sizeof v);                                                                   \
        for (int64_t i = 0; i < n; i++) y[i] = v;                                                  \
    }
extern fac_fill_kernel FAC_SIMD(fac_fill);
void FAC_SIMD(fac_fill)(size_t size, void *y_, const void *x, int64_t n) {
    if (size == 1)
        FILL(uint8_t)
    else if (size == 2)
        FILL(uint16_t)
    else if (size == 4)
        FILL(uint32_t)
    else
        FILL(uint64_t)
}
