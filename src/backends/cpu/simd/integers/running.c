/* Running sums: see integers.h.  What does not fit wraps, so widths are all that matters. */
#include "backends/cpu/device/integers.h"
#include "backends/cpu/simd/widen.h"

enum { COLUMNS = 256 };

#define NAME running_8
#define T uint8_t
#define WIDE(t, first, step) 0
#define SUM uint8_t
#include "backends/cpu/simd/integers/running.h"
#define NAME running_16
#define T uint16_t
#define WIDE(t, first, step) 0
#define SUM uint16_t
#include "backends/cpu/simd/integers/running.h"
#define NAME running_32
#define T uint32_t
#define WIDE(t, first, step) 0
#define SUM uint32_t
#include "backends/cpu/simd/integers/running.h"
#define NAME running_64
#define T uint64_t
#define WIDE(t, first, step) 0
#define SUM uint64_t
#include "backends/cpu/simd/integers/running.h"
/* Lines of f32 side by side, some vectors of them at a time with their sums in registers. */
static int64_t wide_f32(const fac_running *t, int64_t first, int64_t step) {
    enum { SUMS = 4 };
    int64_t at = 0;
    for (; at + SUMS * VD <= t->n; at += SUMS * VD) {
        const float *x = (const float *)t->x + first + at;
        float *y = (float *)t->y + first + at;
        dvec sum[SUMS] = { { 0 } };
        for (int64_t k = 0; k < t->size; k++, x += step, y += step)
            UNROLL for (int c = 0; c < SUMS; c++) {
                const dvec next = sum[c] + widen_f32(x + c * VD);
                const hvec to = __builtin_convertvector(t->exclusive ? sum[c] : next, hvec);
                memcpy(y + c * VD, &to, sizeof to);
                sum[c] = next;
            }
    }
    return at;
}
#define NAME running_f32
#define WIDE wide_f32
#define T float
#define SUM double
#include "backends/cpu/simd/integers/running.h"
#define NAME running_f64
#define WIDE(t, first, step) 0
#define T double
#define SUM double
#include "backends/cpu/simd/integers/running.h"

extern fac_running_kernel *const FAC_SIMD(fac_running_kernels)[FAC_CONVERT_TYPES];
fac_running_kernel *const FAC_SIMD(fac_running_kernels)[FAC_CONVERT_TYPES] = {
    [FAC_F32] = running_f32, [FAC_F64] = running_f64, [FAC_I8] = running_8, [FAC_I16] = running_16,
    [FAC_I32] = running_32,  [FAC_I64] = running_64,  [FAC_U8] = running_8, [FAC_U16] = running_16,
    [FAC_U32] = running_32,  [FAC_U64] = running_64,
};
