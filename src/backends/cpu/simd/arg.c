/* Places of the largest element, along rows and along columns: see fac_arg_lines in simd.h.  NaN is above everything. */
#include <stdbool.h>
#include "backends/cpu/simd/vector.h"

INLINE ivec above(vec a, vec b) { return (a > b) | ((a != a) & (b == b)); }
INLINE bool above_one(float a, float b) { return a > b || (a != a && b == b); }
INLINE vec choose(ivec mask, vec yes, vec no) { return (vec)(((ivec)yes & mask) | ((ivec)no & ~mask)); }
INLINE ivec choose_int(ivec mask, ivec yes, ivec no) { return (yes & mask) | (no & ~mask); }

/* Whether what comes later takes the place. */
INLINE ivec takes(vec v, vec best, const bool last) { return last ? ~above(best, v) : above(v, best); }
INLINE bool takes_one(float v, float best, bool last) { return last ? !above_one(best, v) : above_one(v, best); }

/* Lane k sees the elements k, k + VL, ... */
INLINE int64_t row(const float *x, int64_t n, const float sign, const bool last) {
    float best = sign * x[0];
    int64_t at = 0, i = 1;
    if (n >= 2 * VL) {
        vec top = sign * load(x);
        ivec place, now;
        for (int k = 0; k < VL; k++) now[k] = k;
        place = now;
        for (i = VL; i + VL <= n; i += VL) {
            const vec v = sign * load(x + i);
            now += VL;
            const ivec take = takes(v, top, last);
            top = choose(take, v, top);
            place = choose_int(take, now, place);
        }
        best = top[0], at = place[0];
        for (int k = 1; k < VL; k++) {
            const bool more = above_one(top[k], best), equal = !more && !above_one(best, top[k]);
            if (more || (equal && (last ? place[k] > at : place[k] < at))) best = top[k], at = place[k];
        }
    }
    for (; i < n; i++)
        if (takes_one(sign * x[i], best, last)) best = sign * x[i], at = i;
    return at;
}

INLINE void columns(const fac_arg_lines *t, int64_t j, const float sign, const bool last) {
    vec top = sign * load(t->x + j);
    ivec place = { 0 };
    for (int32_t r = 1; r < (int32_t)t->n; r++) {
        const vec v = sign * load(t->x + r * t->stride + j);
        const ivec take = takes(v, top, last);
        top = choose(take, v, top);
        place = choose_int(take, place * 0 + r, place);
    }
    for (int k = 0; k < VL; k++) t->to[j + k] = place[k];
}

static int64_t one_column(const fac_arg_lines *t, const float *x, float sign) {
    float best = sign * x[0];
    int64_t at = 0;
    for (int64_t r = 1; r < t->n; r++)
        if (takes_one(sign * x[r * t->stride], best, t->last)) best = sign * x[r * t->stride], at = r;
    return at;
}

extern fac_arg_kernel FAC_SIMD(fac_arg);
void FAC_SIMD(fac_arg)(const fac_arg_lines *t) {
    const float sign = t->least ? -1 : 1;
    if (t->stride == 1) {
        for (int64_t k = 0; k < t->lines; k++)
            t->to[k] = t->last ? row(t->x + k * t->n, t->n, sign, true) : row(t->x + k * t->n, t->n, sign, false);
        return;
    }
    int64_t j = 0;
    for (; j + VL <= t->lines; j += VL) {
        if (t->last) columns(t, j, sign, true);
        else columns(t, j, sign, false);
    }
    for (; j < t->lines; j++) t->to[j] = one_column(t, t->x + j, sign);
}
