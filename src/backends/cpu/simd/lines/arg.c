/* Places of the largest element, along rows and along columns: see fac_arg_lines in simd.h.  NaN is
 * above everything. */
#include "backends/cpu/simd/lines/extreme.h"

INLINE ivec above(vec a, vec b) { return (a > b) | ((a != a) & (b == b)); }
INLINE bool above_one(float a, float b) { return a > b || (a != a && b == b); }
INLINE vec choose(ivec mask, vec yes, vec no) {
    return (vec)(((ivec)yes & mask) | ((ivec)no & ~mask));
}
INLINE ivec choose_int(ivec mask, ivec yes, ivec no) { return (yes & mask) | (no & ~mask); }

/* Whether what comes later takes the place. */
INLINE ivec takes(vec v, vec best, const bool last) {
    return last ? ~above(best, v) : above(v, best);
}
INLINE bool takes_one(float v, float best, bool last) {
    return last ? !above_one(best, v) : above_one(v, best);
}

/* Where the first (last) number is that equals one of them; where the first (last) NaN is, if that
 * is NaN. */
INLINE int64_t place_of(const float *x, int64_t n, const float value, const bool last) {
    enum { STEP = 4 * VL };
    const bool odd = value != value;
    const vec v = all(value);
    int64_t done = 0;
    for (; done + STEP <= n; done += STEP) {
        const float *at = last ? x + n - done - STEP : x + done;
        ivec hit = { 0 };
        UNROLL for (int k = 0; k < 4; k++) {
            const vec u = load(at + k * VL);
            hit |= odd ? u != u : u == v;
        }
        if (any_of(hit)) break;
    }
    for (;; done++) {
        const int64_t i = last ? n - 1 - done : done;
        if (odd ? x[i] != x[i] : x[i] == value) return i;
    }
}

/* The largest number is found at the speed of memory, block by block; then its place in the block
 * that has it. */
INLINE int64_t row(const float *x, int64_t n, const int least, const bool last) {
    enum { BLOCK = 4096 }; /* numbers that stay in the first cache */
    const float sign = least ? -1 : 1;
    float best = extreme_of(least, x, n < BLOCK ? n : BLOCK);
    int64_t at = 0;
    for (int64_t i = BLOCK; i < n; i += BLOCK) {
        const float top = extreme_of(least, x + i, n - i < BLOCK ? n - i : BLOCK);
        if (takes_one(sign * top, sign * best, last)) {
            best = top;
            at = i;
        }
    }
    return at + place_of(x + at, n - at < BLOCK ? n - at : BLOCK, best, last);
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
        if (takes_one(sign * x[r * t->stride], best, t->last)) {
            best = sign * x[r * t->stride];
            at = r;
        }
    return at;
}

extern fac_arg_kernel FAC_SIMD(fac_arg);
void FAC_SIMD(fac_arg)(const fac_arg_lines *t) {
    const float sign = t->least ? -1 : 1;
    if (t->stride == 1) {
        for (int64_t k = 0; k < t->lines; k++)
            t->to[k] = t->least ? row(t->x + k * t->n, t->n, 1, t->last)
                                : row(t->x + k * t->n, t->n, 0, t->last);
        return;
    }
    int64_t j = 0;
    for (; j + VL <= t->lines; j += VL) {
        if (t->last)
            columns(t, j, sign, true);
        else
            columns(t, j, sign, false);
    }
    for (; j < t->lines; j++) t->to[j] = one_column(t, t->x + j, sign);
}
