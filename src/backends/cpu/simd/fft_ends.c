/* What goes before and after the transforms of fft.c: chirps, halves of spectra, and the way
 * between memory and vectors.  Most is written once for two kinds of signals: L == VL, as many as a
 * vector has lanes, whose elements are taken one by one; and L == 1, one that is pairs, of which as
 * many as a vector has lanes are taken at once. */
#include "backends/cpu/simd/vector.h"

/* Each kernel is called with the kind as a constant. */
#define EITHER(call)                                                                               \
    do {                                                                                           \
        if (lanes == 1) {                                                                          \
            enum { L = 1 };                                                                        \
            call;                                                                                  \
        } else {                                                                                   \
            enum { L = VL };                                                                       \
            call;                                                                                  \
        }                                                                                          \
    } while (0)
#define STEP(L) ((L) == 1 ? VL : 1)

#if VL == 16
#define EVENS(a, b)                                                                                \
    __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODDS(a, b)                                                                                 \
    __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define LOWS(a, b)                                                                                 \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGHS(a, b)                                                                                \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define BACK(a) __builtin_shufflevector(a, a, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#elif VL == 8
#define EVENS(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODDS(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define LOWS(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGHS(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define BACK(a) __builtin_shufflevector(a, a, 7, 6, 5, 4, 3, 2, 1, 0)
#else
#define EVENS(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define ODDS(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define LOWS(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGHS(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define BACK(a) __builtin_shufflevector(a, a, 3, 2, 1, 0)
#endif

/* ---- elements ---- */

typedef struct cvec {
    vec re, im;
} cvec;

INLINE int least(int64_t left) { return left < VL ? (int)left : VL; }

INLINE cvec pairs(const float *x) {
    const vec a = load(x), b = load(x + VL);
    return (cvec){ EVENS(a, b), ODDS(a, b) };
}
INLINE void put_pairs(float *x, cvec v) {
    store(x, LOWS(v.re, v.im));
    store(x + VL, HIGHS(v.re, v.im));
}

/* Element i, or i to i + many - 1. */
INLINE cvec get(const int L, const float *x, int64_t i, int many) {
    if (L == VL) return (cvec){ load(x + 2 * i * VL), load(x + (2 * i + 1) * VL) };
    if (many == VL) return pairs(x + 2 * i);
    float some[2 * VL] = { 0 };
    memcpy(some, x + 2 * i, 2 * (size_t)many * sizeof *x);
    return pairs(some);
}
INLINE void put(const int L, float *x, int64_t i, int many, cvec v) {
    if (L == VL) {
        store(x + 2 * i * VL, v.re);
        store(x + (2 * i + 1) * VL, v.im);
    } else if (many == VL) {
        put_pairs(x + 2 * i, v);
    } else {
        float some[2 * VL];
        put_pairs(some, v);
        memcpy(x + 2 * i, some, 2 * (size_t)many * sizeof *x);
    }
}

/* Element i, or i, i - 1 and so on. */
INLINE cvec get_back(const int L, const float *x, int64_t i, int many) {
    if (L == VL) return get(L, x, i, many);
    float some[2 * VL] = { 0 };
    if (many < VL) memcpy(some + 2 * (VL - many), x + 2 * (i - many + 1), 2 * (size_t)many * 4);
    const cvec v = pairs(many < VL ? some : x + 2 * (i - VL + 1));
    return (cvec){ BACK(v.re), BACK(v.im) };
}
INLINE void put_back(const int L, float *x, int64_t i, int many, cvec v) {
    float some[2 * VL];
    if (L == VL) {
        put(L, x, i, many, v);
        return;
    }
    v = (cvec){ BACK(v.re), BACK(v.im) };
    put_pairs(many < VL ? some : x + 2 * (i - VL + 1), v);
    if (many < VL) memcpy(x + 2 * (i - many + 1), some + 2 * (VL - many), 2 * (size_t)many * 4);
}

/* z[i] for all lanes, or z[i] to z[i + many - 1]. */
INLINE cvec factors(const int L, const float *z, int64_t i, int many) {
    return L == VL ? (cvec){ all(z[2 * i]), all(z[2 * i + 1]) } : get(1, z, i, many);
}
INLINE cvec product(cvec a, cvec z) {
    return (cvec){ a.re * z.re - a.im * z.im, a.re * z.im + a.im * z.re };
}

/* ---- numbers ---- */

INLINE void times_of(const int L, float *x, int64_t n, const float *z, vec sign) {
    for (int64_t i = 0; i < n; i += STEP(L)) {
        const int many = least(n - i);
        cvec w = factors(L, z, i, many);
        w.im *= sign;
        put(L, x, i, many, product(get(L, x, i, many), w));
    }
}
static void times(int lanes, float *x, int64_t n, const float *z, bool conjugate) {
    const vec sign = all(conjugate ? -1.f : 1.f);
    EITHER(times_of(L, x, n, z, sign));
}

INLINE void scale_of(const int L, float *x, int64_t n, vec re, vec im) {
    for (int64_t i = 0; i < n; i += STEP(L)) {
        const int many = least(n - i);
        const cvec v = get(L, x, i, many);
        put(L, x, i, many, (cvec){ v.re * re, v.im * im });
    }
}
static void scale(int lanes, float *x, int64_t n, float re, float im) {
    EITHER(scale_of(L, x, n, all(re), all(im)));
}

/* From the last ones on: they lie in the same memory. */
INLINE void widen_of(const int L, float *x, int64_t n) {
    for (int64_t i = (n - 1) / STEP(L) * STEP(L); i >= 0; i -= STEP(L)) {
        const int many = least(n - i);
        const vec re = L == 1 && many < VL ? load_some(x + i, many) : load(x + i * L);
        put(L, x, i, many, (cvec){ re, all(0) });
    }
}
static void widen(int lanes, float *x, int64_t n) { EITHER(widen_of(L, x, n)); }

INLINE void narrow_of(const int L, float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += STEP(L)) {
        const int many = least(n - i);
        const vec re = get(L, x, i, many).re;
        if (L == 1 && many < VL)
            store_some(x + i, re, many);
        else
            store(x + i * L, re);
    }
}
static void narrow(int lanes, float *x, int64_t n) { EITHER(narrow_of(L, x, n)); }

/* ---- halves of spectra ---- */

/* The first bin is real, and that in the middle of an even n: their other parts do not count. */
INLINE void mirror_of(const int L, float *x, int64_t n) {
    memset(x + L, 0, (size_t)L * sizeof *x);
    if (n % 2 == 0) memset(x + (n + 1) * L, 0, (size_t)L * sizeof *x);
    for (int64_t i = 1; i < (n + 1) / 2; i += STEP(L)) {
        const int many = least((n + 1) / 2 - i);
        const cvec v = get(L, x, i, many);
        put_back(L, x, n - i, many, (cvec){ v.re, -v.im });
    }
}
static void mirror(int lanes, float *x, int64_t n) { EITHER(mirror_of(L, x, n)); }

/* With X' conjugate to X[m - k]:  Z[k] = X[k] + X' + i e^(pi i k / m) (X[k] - X'), times `by` */
INLINE void join_of(const int L, const float *x, float *z, int64_t m, const float *turns,
                    float by) {
    for (int l = 0; l < L; l++) {
        const float first = by * x[l], last = by * x[2 * m * L + l];
        z[l] = first + last;
        z[L + l] = first - last;
    }
    for (int64_t k = 1; k < m; k += STEP(L)) {
        const int many = least(m - k);
        const cvec a = get(L, x, k, many), b = get_back(L, x, m - k, many);
        const cvec w = factors(L, turns, k, many);
        const cvec odd = product((cvec){ a.re - b.re, a.im + b.im }, (cvec){ w.re, -w.im });
        put(L, z, k, many, (cvec){ (a.re + b.re - odd.im) * by, (a.im - b.im + odd.re) * by });
    }
}
static void join(int lanes, const float *x, float *z, int64_t m, const float *turns, float by) {
    EITHER(join_of(L, x, z, m, turns, by));
}

/* With Z' conjugate to Z[m - k]:  X[k] = (Z[k] + Z' - i e^(-pi i k / m) (Z[k] - Z')) / 2 */
INLINE void apart_of(const int L, const float *z, float *x, int64_t bins, int64_t m,
                     const float *turns) {
    const vec half = all(0.5f);
    for (int l = 0; l < L; l++) {
        const float re = z[l], im = z[L + l];
        x[l] = re + im;
        x[L + l] = 0;
        if (bins <= m) continue;
        x[2 * m * L + l] = re - im;
        x[(2 * m + 1) * L + l] = 0;
    }
    const int64_t end = bins < m ? bins : m;
    for (int64_t k = 1; k < end; k += STEP(L)) {
        const int many = least(end - k);
        const cvec a = get(L, z, k, many), b = get_back(L, z, m - k, many);
        const cvec odd = product((cvec){ a.im + b.im, b.re - a.re }, factors(L, turns, k, many));
        put(L, x, k, many, (cvec){ (a.re + b.re + odd.re) * half, (a.im - b.im + odd.im) * half });
    }
    for (int64_t k = m + 1; k < bins; k += STEP(L)) {
        const int many = least(bins - k);
        const cvec v = get_back(L, x, 2 * m - k, many);
        put(L, x, k, many, (cvec){ v.re, -v.im });
    }
}
static void apart(int lanes, const float *z, float *x, int64_t bins, int64_t m,
                  const float *turns) {
    EITHER(apart_of(L, z, x, bins, m, turns));
}

/* ---- signals side by side ---- */

static void bring_some(const float *x, int64_t stride, int parts, float *to, int64_t n,
                       int signals) {
    for (int64_t i = 0; i < n; i++)
        for (int p = 0; p < parts; p++)
            for (int l = 0; l < VL; l++)
                to[(i * parts + p) * VL + l] = l < signals ? x[i * stride + l * parts + p] : 0;
}

static void bring(const float *x, int64_t stride, int parts, float *to, int64_t n, int signals) {
    if (signals < VL) {
        bring_some(x, stride, parts, to, n, signals);
        return;
    }
    for (int64_t i = 0; i < n && parts == 1; i++) store(to + i * VL, load(x + i * stride));
    for (int64_t i = 0; i < n && parts == 2; i++) put(VL, to, i, VL, pairs(x + i * stride));
}

static void take_some(const float *from, int64_t n, float *x, int64_t stride, int parts,
                      int signals) {
    for (int64_t i = 0; i < n; i++)
        for (int p = 0; p < parts; p++)
            for (int l = 0; l < signals; l++)
                x[i * stride + l * parts + p] = from[(i * parts + p) * VL + l];
}

static void take(const float *from, int64_t n, float *x, int64_t stride, int parts, int signals) {
    if (signals < VL) {
        take_some(from, n, x, stride, parts, signals);
        return;
    }
    for (int64_t i = 0; i < n && parts == 1; i++) store(x + i * stride, load(from + i * VL));
    for (int64_t i = 0; i < n && parts == 2; i++) put_pairs(x + i * stride, get(VL, from, i, VL));
}

static void twiddle(float *x, int64_t n, const float *z, bool conjugate) {
    const vec sign = all(conjugate ? -1.f : 1.f);
    for (int64_t i = 0; i < n; i++) {
        cvec w = get(VL, z, i, VL);
        w.im *= sign;
        put(VL, x, i, VL, product(get(VL, x, i, VL), w));
    }
}

extern const fac_fft_ends FAC_SIMD(fac_fft_ends);
const fac_fft_ends FAC_SIMD(fac_fft_ends) = { times, scale, widen, narrow, mirror,
                                              join,  apart, bring, take,   twiddle };
