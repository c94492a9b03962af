/* See whole.h. */
#include "backends/cpu/reduce/whole.h"
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#define AVX2 __attribute__((target("avx2,fma")))
#if defined(__clang__)
#define AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
#else
#define AVX512                                                                                     \
    __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,prefer-vector-width=512")))
#endif
#endif

#define SUM(a, b) ((T)((a) + (b)))
#define PROD(a, b) ((T)((U)(a) * (U)(b))) /* u16 would become int, which must not overflow */
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define ABOVE(a, b) ((a) > (b))
#define BELOW(a, b) ((a) < (b))

#define ROWS(NAME, TARGET, TYPE, F)                                                                \
    TARGET static void NAME(const void *x_, int64_t size, int64_t n, void *y_) {                   \
        typedef TYPE T;                                                                            \
        typedef uint64_t U;                                                                        \
        const T *x = x_;                                                                           \
        for (int64_t i = 0; i < n; i++, x += size) {                                               \
            T y = x[0];                                                                            \
            for (int64_t k = 1; k < size; k++) y = F(y, x[k]);                                     \
            ((T *)y_)[i] = y;                                                                      \
            (void)sizeof(U);                                                                       \
        }                                                                                          \
    }
#define COLUMNS(NAME, TARGET, TYPE, F)                                                             \
    TARGET static void NAME(const void *x_, int64_t size, int64_t stride, int64_t n, void *y_) {   \
        typedef TYPE T;                                                                            \
        typedef uint64_t U;                                                                        \
        const T *restrict x = x_;                                                                  \
        T *restrict y = y_;                                                                        \
        (void)sizeof(U);                                                                           \
        memcpy(y, x, (size_t)n * sizeof *y);                                                       \
        for (int64_t k = 1; k < size; k++)                                                         \
            for (int64_t i = 0; i < n; i++) y[i] = F(y[i], x[k * stride + i]);                     \
    }
#define FIND(NAME, TYPE)                                                                           \
    static void NAME(const void *x_, int64_t size, int64_t n, const void *y_, int last,            \
                     int64_t *place) {                                                             \
        const TYPE *x = x_, *y = y_;                                                               \
        for (int64_t i = 0; i < n; i++, x += size) {                                               \
            int64_t k = last ? size - 1 : 0;                                                       \
            while (x[k] != y[i]) k += last ? -1 : 1;                                               \
            place[i] = k;                                                                          \
        }                                                                                          \
    }
#define PLACES(NAME, TARGET, TYPE, WINS)                                                           \
    TARGET static void NAME(const void *x_, int64_t size, int64_t stride, int64_t n, void *y_,     \
                            int last, int64_t *place_) {                                           \
        const TYPE *restrict x = x_;                                                               \
        TYPE *restrict y = y_;                                                                     \
        int64_t *restrict place = place_;                                                          \
        memcpy(y, x, (size_t)n * sizeof *y);                                                       \
        memset(place, 0, (size_t)n * sizeof *place);                                               \
        for (int64_t k = 1; k < size; k++)                                                         \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const TYPE v = x[k * stride + i];                                                  \
                const int wins = WINS(v, y[i]) | (last & (v == y[i]));                             \
                y[i] = wins ? v : y[i];                                                            \
                place[i] = wins ? k : place[i];                                                    \
            }                                                                                      \
    }

#define OF_ISA(ISA, TARGET, NAME, TYPE)                                                            \
    ROWS(sum_##NAME##ISA, TARGET, TYPE, SUM)                                                       \
    ROWS(prod_##NAME##ISA, TARGET, TYPE, PROD) ROWS(max_##NAME##ISA, TARGET, TYPE, MAX)            \
        ROWS(min_##NAME##ISA, TARGET, TYPE, MIN) COLUMNS(sums_##NAME##ISA, TARGET, TYPE, SUM)      \
            COLUMNS(prods_##NAME##ISA, TARGET, TYPE, PROD)                                         \
                COLUMNS(maxs_##NAME##ISA, TARGET, TYPE, MAX)                                       \
                    COLUMNS(mins_##NAME##ISA, TARGET, TYPE, MIN)                                   \
                        PLACES(most_##NAME##ISA, TARGET, TYPE, ABOVE)                              \
                            PLACES(least_##NAME##ISA, TARGET, TYPE, BELOW)

#define ROW_OF(ISA, NAME, U)                                                                       \
    {                                                                                              \
        { sum_##U##ISA, prod_##U##ISA, max_##NAME##ISA, min_##NAME##ISA },                         \
            { sums_##U##ISA, prods_##U##ISA, maxs_##NAME##ISA, mins_##NAME##ISA }, find_##NAME, {  \
            most_##NAME##ISA, least_##NAME##ISA                                                    \
        }                                                                                          \
    }

/* Sums and products that wrap are those of unsigned numbers. */
#if defined(AVX2)
#define OF_TYPE(NAME, TYPE)                                                                        \
    FIND(find_##NAME, TYPE)                                                                        \
    OF_ISA(_base, , NAME, TYPE) OF_ISA(_avx2, AVX2, NAME, TYPE)                                    \
        OF_ISA(_avx512, AVX512, NAME, TYPE)
#define TABLE(NAME, U)                                                                             \
    { ROW_OF(_base, NAME, U), ROW_OF(_avx2, NAME, U), ROW_OF(_avx512, NAME, U) }
#else
#define OF_TYPE(NAME, TYPE) FIND(find_##NAME, TYPE) OF_ISA(_base, , NAME, TYPE)
#define TABLE(NAME, U)                                                                             \
    { ROW_OF(_base, NAME, U), ROW_OF(_base, NAME, U), ROW_OF(_base, NAME, U) }
#endif

OF_TYPE(u8, uint8_t)
OF_TYPE(u16, uint16_t)
OF_TYPE(u32, uint32_t)
OF_TYPE(u64, uint64_t)

/* Of signed numbers only what differs. */
#define SIGNED_ISA(ISA, TARGET, NAME, TYPE)                                                        \
    ROWS(max_##NAME##ISA, TARGET, TYPE, MAX)                                                       \
    ROWS(min_##NAME##ISA, TARGET, TYPE, MIN) COLUMNS(maxs_##NAME##ISA, TARGET, TYPE, MAX)          \
        COLUMNS(mins_##NAME##ISA, TARGET, TYPE, MIN) PLACES(most_##NAME##ISA, TARGET, TYPE, ABOVE) \
            PLACES(least_##NAME##ISA, TARGET, TYPE, BELOW)
#if defined(AVX2)
#define SIGNED(NAME, TYPE)                                                                         \
    FIND(find_##NAME, TYPE)                                                                        \
    SIGNED_ISA(_base, , NAME, TYPE) SIGNED_ISA(_avx2, AVX2, NAME, TYPE)                            \
        SIGNED_ISA(_avx512, AVX512, NAME, TYPE)
#else
#define SIGNED(NAME, TYPE) FIND(find_##NAME, TYPE) SIGNED_ISA(_base, , NAME, TYPE)
#endif
SIGNED(i8, int8_t)
SIGNED(i16, int16_t)
SIGNED(i32, int32_t)
SIGNED(i64, int64_t)

const fac_whole_type *fac_whole_kernels(fac_dtype dtype, int isa) {
    static const fac_whole_type types[][FAC_ISAS] = { TABLE(u8, u8),   TABLE(u16, u16),
                                                      TABLE(u32, u32), TABLE(u64, u64),
                                                      TABLE(i8, u8),   TABLE(i16, u16),
                                                      TABLE(i32, u32), TABLE(i64, u64) };
    static const struct {
        fac_dtype dtype;
        int row;
    } rows[] = { { FAC_U8, 0 }, { FAC_BOOL, 0 }, { FAC_U16, 1 }, { FAC_U32, 2 }, { FAC_U64, 3 },
                 { FAC_I8, 4 }, { FAC_I16, 5 },  { FAC_I32, 6 }, { FAC_I64, 7 } };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].dtype == dtype) return &types[rows[k].row][isa];
    return NULL;
}
