/* Fourier transforms of as many signals as a vector has lanes, one in each lane: no shuffles, and a
 * turn is the same number for all lanes.  Stockham's order (Swarztrauber, "FFT algorithms for
 * vector computers", 1984): a stage of radix r takes n = r m elements at distance s,
 *   y[q + s (r p + k)] = e^(-2 pi i p k / n) sum, j < r, of e^(-2 pi i j k / r) x[q + s (p + m j)]
 * for p < m and q < s; the next one has n / r and s r.  What comes out is in order. */
#include "backends/cpu/simd/vector.h"

/* A complex element in memory is a vector of real parts, then one of imaginary ones. */
typedef struct cvec {
    vec re, im;
} cvec;

INLINE cvec get_from(const float *x, int64_t im, int64_t i) {
    return (cvec){ load(x + 2 * i * VL), load(x + 2 * i * VL + im) };
}
INLINE void put_to(float *x, int64_t im, int64_t i, cvec v) {
    store(x + 2 * i * VL, v.re);
    store(x + 2 * i * VL + im, v.im);
}
INLINE cvec get(const float *x, int64_t i) { return get_from(x, VL, i); }
INLINE void put(float *x, int64_t i, cvec v) { put_to(x, VL, i, v); }
INLINE cvec plus(cvec a, cvec b) { return (cvec){ a.re + b.re, a.im + b.im }; }
INLINE cvec minus(cvec a, cvec b) { return (cvec){ a.re - b.re, a.im - b.im }; }
INLINE cvec times(cvec a, vec x) { return (cvec){ a.re * x, a.im * x }; }
INLINE cvec minus_i(cvec a) { return (cvec){ a.im, -a.re }; } /* times -i */
INLINE cvec rotated(cvec a, vec c, vec s) {
    return (cvec){ a.re * c - a.im * s, a.re * s + a.im * c };
}

/* ---- transforms of 2, 3, 4, 5, 8 and of odd primes ---- */

INLINE void two(cvec *a) {
    const cvec x = a[0];
    a[0] = plus(x, a[1]);
    a[1] = minus(x, a[1]);
}

INLINE void three(cvec *a) {
    const vec half = all(0.5f), sine = all(0.86602540378443864676f);
    const cvec sum = plus(a[1], a[2]), side = times(minus_i(minus(a[1], a[2])), sine);
    const cvec middle = minus(a[0], times(sum, half));
    a[0] = plus(a[0], sum);
    a[1] = plus(middle, side);
    a[2] = minus(middle, side);
}

INLINE void four(cvec *a0, cvec *a1, cvec *a2, cvec *a3) {
    const cvec even = plus(*a0, *a2), odd = plus(*a1, *a3);
    const cvec even_gap = minus(*a0, *a2), odd_gap = minus_i(minus(*a1, *a3));
    *a0 = plus(even, odd);
    *a1 = plus(even_gap, odd_gap);
    *a2 = minus(even, odd);
    *a3 = minus(even_gap, odd_gap);
}

INLINE void five(cvec *a) {
    const vec c1 = all(0.30901699437494742410f), c2 = all(-0.80901699437494742410f);
    const vec s1 = all(0.95105651629515357212f), s2 = all(0.58778525229247312917f);
    const cvec outer = plus(a[1], a[4]), inner = plus(a[2], a[3]);
    const cvec outer_gap = minus(a[1], a[4]), inner_gap = minus(a[2], a[3]);
    const cvec first = plus(a[0], plus(times(outer, c1), times(inner, c2)));
    const cvec second = plus(a[0], plus(times(outer, c2), times(inner, c1)));
    const cvec side = minus_i(plus(times(outer_gap, s1), times(inner_gap, s2)));
    const cvec other = minus_i(minus(times(outer_gap, s2), times(inner_gap, s1)));
    a[0] = plus(a[0], plus(outer, inner));
    a[1] = plus(first, side);
    a[2] = plus(second, other);
    a[3] = minus(second, other);
    a[4] = minus(first, side);
}

/* Two of 4; half of what comes out is rotated by eighths. */
INLINE void eight(cvec *a) {
    const vec h = all(0.70710678118654752440f);
    four(&a[0], &a[2], &a[4], &a[6]);
    four(&a[1], &a[3], &a[5], &a[7]);
    const cvec b1 = times((cvec){ a[3].re + a[3].im, a[3].im - a[3].re }, h), b2 = minus_i(a[5]);
    const cvec b3 = times((cvec){ a[7].im - a[7].re, -a[7].re - a[7].im }, h), b0 = a[1];
    const cvec e0 = a[0], e1 = a[2], e2 = a[4], e3 = a[6];
    a[0] = plus(e0, b0);
    a[4] = minus(e0, b0);
    a[1] = plus(e1, b1);
    a[5] = minus(e1, b1);
    a[2] = plus(e2, b2);
    a[6] = minus(e2, b2);
    a[3] = plus(e3, b3);
    a[7] = minus(e3, b3);
}

/* cos and sin of 2 pi k / r, k <= r / 2 */
typedef struct odd_turns {
    float c[7], s[7];
} odd_turns;
static const odd_turns of7 = {
    { 1, 0.62348980185873353053f, -0.22252093395631440429f, -0.90096886790241912624f },
    { 0, 0.78183148246802980871f, 0.97492791218182360702f, 0.43388373911755812048f }
};
static const odd_turns of11 = {
    { 1, 0.84125353283118116886f, 0.41541501300188642553f, -0.14231483827328514044f,
      -0.65486073394528506406f, -0.95949297361449738989f },
    { 0, 0.54064081745559758211f, 0.90963199535451837141f, 0.98982144188093273238f,
      0.75574957435425828377f, 0.28173255684142969772f }
};
static const odd_turns of13 = {
    { 1, 0.88545602565320989590f, 0.56806474673115580251f, 0.12053668025532305335f,
      -0.35460488704253562597f, -0.74851074817110109863f, -0.97094181742605202716f },
    { 0, 0.46472317204376854566f, 0.82298386589365639458f, 0.99270887409805399280f,
      0.93501624268541482344f, 0.66312265824079520238f, 0.23931566428755776715f }
};

/* Elements j and r - j meet the same cosines, and sines of the other sign. */
INLINE void odd(const int r, cvec *a, const odd_turns *t) {
    cvec sum[7], gap[7], all_of = a[0], first = a[0];
    UNROLL for (int j = 1; j <= r / 2; j++) {
        sum[j] = plus(a[j], a[r - j]);
        gap[j] = minus(a[j], a[r - j]);
        all_of = plus(all_of, sum[j]);
    }
    a[0] = all_of;
    UNROLL for (int k = 1; k <= r / 2; k++) {
        cvec even = first, side = { all(0), all(0) };
        UNROLL for (int j = 1; j <= r / 2; j++) {
            const int at = j * k % r, back = at > r / 2;
            const vec c = all(t->c[back ? r - at : at]);
            const vec s = all(back ? -t->s[r - at] : t->s[at]);
            even = plus(even, times(sum[j], c));
            side = plus(side, times(gap[j], s));
        }
        side = minus_i(side);
        a[k] = plus(even, side);
        a[r - k] = minus(even, side);
    }
}

INLINE void transform_of(const int r, cvec *a) {
    if (r == 2)
        two(a);
    else if (r == 3)
        three(a);
    else if (r == 4)
        four(&a[0], &a[1], &a[2], &a[3]);
    else if (r == 5)
        five(a);
    else if (r == 7)
        odd(7, a, &of7);
    else if (r == 8)
        eight(a);
    else if (r == 11)
        odd(11, a, &of11);
    else
        odd(13, a, &of13);
}

/* ---- stages ---- */

typedef struct level {
    int64_t m, s, im; /* im: from real to imaginary parts */
} level;

INLINE void stage(const int r, const float *x, float *y, const level *l, const float *turns) {
    const int64_t m = l->m, s = l->s, im = l->im;
    for (int64_t p = 0; p < m; p++) {
        const float *w = turns + 2 * p * (r - 1);
        for (int64_t q = 0; q < s; q++) {
            cvec a[13];
            UNROLL for (int j = 0; j < r; j++) a[j] = get_from(x, im, q + s * (p + m * j));
            transform_of(r, a);
            UNROLL for (int k = 1; k < r; k++) if (p) a[k] =
                rotated(a[k], all(w[2 * (k - 1)]), all(w[2 * (k - 1) + 1]));
            UNROLL for (int k = 0; k < r; k++) put_to(y, im, q + s * (r * p + k), a[k]);
        }
    }
}

static void any_stage(int r, const float *x, float *y, const level *l, const float *turns) {
    if (r == 2)
        stage(2, x, y, l, turns);
    else if (r == 3)
        stage(3, x, y, l, turns);
    else if (r == 4)
        stage(4, x, y, l, turns);
    else if (r == 5)
        stage(5, x, y, l, turns);
    else if (r == 7)
        stage(7, x, y, l, turns);
    else if (r == 8)
        stage(8, x, y, l, turns);
    else if (r == 11)
        stage(11, x, y, l, turns);
    else
        stage(13, x, y, l, turns);
}

/* The inverse is the same with real and imaginary parts in each other's place. */
static float *transform(const fac_fft *f, bool inverse, float *a, float *b) {
    const float *turns = f->turns;
    const int64_t first = inverse ? VL : 0;
    level l = { f->n, 1, inverse ? -VL : VL };
    for (int k = 0; k < f->stages; k++) {
        const int r = f->radix[k];
        float *x = a;
        l.m /= r;
        any_stage(r, a + first, b + first, &l, turns);
        turns += 2 * l.m * (r - 1);
        l.s *= r;
        a = b;
        b = x;
    }
    return a;
}

/* ---- before and after ---- */

/* Element i of every signal times w[i]. */
static void window(float *x, const float *w, int64_t n) {
    for (int64_t i = 0; i < n; i++) store(x + i * VL, load(x + i * VL) * all(w[i]));
}

/* Real elements become complex ones, from the last one on: they lie in the same memory. */
static void widen(float *x, int64_t n) {
    for (int64_t i = n; i-- > 0;) put(x, i, (cvec){ load(x + i * VL), all(0) });
}

INLINE void put_part(float *to, vec v, int lanes) {
    if (lanes == VL)
        store(to, v);
    else
        store_some(to, v, lanes);
}

static void whole(const fac_fft_out *o, const float *z) {
    for (int64_t k = 0; k < o->bins; k++) {
        const cvec v = get(z, k);
        put_part(o->re + k * o->row, v.re, o->lanes);
        put_part(o->im + k * o->row, v.im, o->lanes);
    }
}

/* Of 2 m real elements, which the transform took for m complex ones: with Z' conjugate to Z[m - k],
 *   X[k] = (Z[k] + Z') / 2 - i e^(-pi i k / m) (Z[k] - Z') / 2 */
INLINE cvec apart(const float *z, int64_t m, const float *turns, int64_t k) {
    const vec half = all(0.5f);
    const cvec v = get(z, k == m ? 0 : k);
    const cvec u = get(z, k ? m - k : 0);
    const cvec other = { u.re, -u.im };
    const cvec even = times(plus(v, other), half), odd = times(minus_i(minus(v, other)), half);
    return plus(even, rotated(odd, all(turns[2 * k]), all(turns[2 * k + 1])));
}

static void halves(const fac_fft_out *o, const float *z, int64_t m, const float *turns) {
    for (int64_t k = 0; k <= m && k < o->bins; k++) {
        const cvec v = apart(z, m, turns, k);
        const int64_t back = 2 * m - k;
        put_part(o->re + k * o->row, v.re, o->lanes);
        put_part(o->im + k * o->row, v.im, o->lanes);
        if (!k || k == m || back >= o->bins) continue;
        put_part(o->re + back * o->row, v.re, o->lanes);
        put_part(o->im + back * o->row, -v.im, o->lanes);
    }
}

extern const fac_fft_kernels FAC_SIMD(fac_fft);
#if defined(__AVX512F__) || defined(__aarch64__)
enum { LARGEST = 8 };
#else
enum { LARGEST = 4 }; /* eight complex elements are more than sixteen registers hold */
#endif
const fac_fft_kernels FAC_SIMD(fac_fft) = { LARGEST, window, widen, transform, whole, halves };
