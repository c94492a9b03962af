/* Long Fourier transforms from short ones, which are products with matrices.
 *
 * n = a b numbers are a transforms of b numbers and b transforms of a (Cooley and Tukey, "An
 * algorithm for the machine calculation of complex Fourier series", 1965).  n without factors is a
 * convolution with a chirp, since 2 j k = j^2 + k^2 - (k - j)^2 (Bluestein, "A linear filtering
 * approach to the computation of discrete Fourier transform", 1970), by transforms of 2^m numbers.
 * Tables are computed in f64; of 16 bits the work is done in f32. */
#include <math.h>
#include <string.h>
#include "base/memory.h"
#include "ops/constant.h"
#include "ops/dft.h"
#include "ops/grad.h"
#include "ops/spectrum.h"

enum { WHOLE = 128, PRIME = 512 }; /* the longest that are one product: with factors, and without */

/* ---- one product ---- */

double fac_transform_entry(const fac_transform *t, int64_t i, int part_in, int64_t k,
                           int part_out) {
    const bool real = t->inverse && t->onesided;
    const int64_t used = real ? t->n / 2 + 1 : t->n;
    if (i >= used) return 0;
    const int64_t turn = i % t->n * (k % t->n) % t->n; /* lengths have 31 bits */
    const double c = fac_turn_cos(turn, t->n), s = (t->inverse ? 1 : -1) * fac_turn_sin(turn, t->n);
    double v = c;
    if (part_in != part_out) v = part_in ? -s : s;
    if (real && i && 2 * i != t->n) v *= 2;
    return v;
}

static double *numbers(int64_t count) { return fac_alloc((size_t)count + 1, sizeof(double)); }
static fac_value *no_memory(fac_graph *g) {
    return fac_fail_graph(g, FAC_E_NOMEM, "dft: no memory for its tables");
}

/* [in cin, out cout] */
static fac_value *matrix(fac_graph *g, fac_dtype dtype, const fac_transform *t) {
    const int64_t rows = t->in * t->cin, columns = t->out * t->cout;
    double *to = numbers(rows * columns);
    if (!to) return no_memory(g);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            to[i * columns + k] = fac_transform_entry(t, i / t->cin, (int)(i % t->cin), k / t->cout,
                                                      (int)(k % t->cout));
    fac_value *v = fac_constant(g, dtype, fac_shape(rows, columns), to);
    fac_release(to);
    return v;
}

fac_value *fac_transform_whole(fac_value *x, const fac_transform *t) {
    fac_dims rows = x->type.dims, pairs = rows;
    rows.d[--rows.n - 1] = t->in * t->cin;
    pairs.d[pairs.n - 2] = t->out;
    pairs.d[pairs.n - 1] = t->cout;
    fac_value *m = matrix(x->graph, x->type.dtype, t);
    return fac_shaped(fac_matmul(fac_shaped(x, rows), m), pairs);
}

/* ---- complex numbers: [rows, n, 2], of real ones [rows, n, 1] ---- */

static int64_t size_of(const fac_value *v, int k) { return v->type.dims.d[k]; }
static fac_value *some(fac_value *v, int axis, int64_t from, int64_t to) {
    return fac_slice(v, axis, from, to, 1);
}

/* n numbers along dim 1: cut, or filled up with zeros. */
static fac_value *fitted(fac_value *v, int64_t n) {
    const int64_t more = n - size_of(v, 1);
    if (more <= 0) return more ? some(v, 1, 0, n) : v;
    return fac_pad(v, fac_ints(v->graph, fac_shape(0, 0, 0, 0, more, 0)), NULL, NULL,
                   FAC_PAD_CONSTANT);
}

/* Number i of every row times z[i], a pair. */
static fac_value *times(fac_value *v, const double *z) {
    const int64_t n = size_of(v, 1);
    double *c = numbers(2 * n), *s = c + n;
    if (!c) return no_memory(v->graph);
    for (int64_t i = 0; i < n; i++) {
        c[i] = z[2 * i];
        s[i] = z[2 * i + 1];
    }
    const fac_dims dims = fac_shape(1, n, 1);
    fac_value *cos = fac_constant(v->graph, v->type.dtype, dims, c);
    fac_value *sin = fac_constant(v->graph, v->type.dtype, dims, s);
    fac_release(c);
    fac_value *re = some(v, 2, 0, 1), *parts[2] = { fac_mul(re, cos), fac_mul(re, sin) };
    if (size_of(v, 2) == 2) {
        fac_value *im = some(v, 2, 1, 2);
        parts[0] = fac_sub(parts[0], fac_mul(im, sin));
        parts[1] = fac_add(parts[1], fac_mul(im, cos));
    }
    return fac_concat(parts, 2, 2);
}

static int64_t factor_of(int64_t n) {
    int64_t best = 1;
    for (int64_t k = 2; k * k <= n; k++)
        if (n % k == 0) best = k;
    return best;
}

static fac_value *transformed(fac_value *v, bool inverse);

/* e^(+-2 pi i j k / n) for j < b, k < a, at row j. */
static void twiddles(double *to, int64_t a, int64_t b, bool inverse) {
    const int64_t n = a * b;
    for (int64_t j = 0; j < b; j++)
        for (int64_t k = 0; k < a; k++) {
            *to++ = fac_turn_cos(j * k, n);
            *to++ = (inverse ? 1 : -1) * fac_turn_sin(j * k, n);
        }
}

/* Number i = b p + j is x[p, j]; number k of the result, k = q + a r, is y[r, q]. */
static fac_value *of_factors(fac_value *v, int64_t a, bool inverse) {
    const int64_t rows = size_of(v, 0), n = size_of(v, 1), b = n / a;
    const fac_dims swap = fac_shape(0, 2, 1, 3);
    double *z = numbers(2 * n);
    if (!z) return no_memory(v->graph);
    twiddles(z, a, b, inverse);
    v = fac_transpose(fac_shaped(v, fac_shape(rows, a, b, size_of(v, 2))), swap);
    v = transformed(fac_shaped(v, fac_shape(rows * b, a, size_of(v, 3))), inverse);
    v = times(fac_shaped(v, fac_shape(rows, n, 2)), z);
    fac_release(z);
    v = fac_transpose(fac_shaped(v, fac_shape(rows, b, a, 2)), swap);
    v = transformed(fac_shaped(v, fac_shape(rows * a, b, 2)), inverse);
    v = fac_transpose(fac_shaped(v, fac_shape(rows, a, b, 2)), swap);
    return fac_shaped(v, fac_shape(rows, n, 2));
}

/* ---- chirps ---- */

/* Numbers k = q + s (r p + j) of a transform of m r numbers, s of them side by side, for a prime r;
 * `turns`: the pairs e^(-2 pi i k / n), n = m r s. */
static void transform_stage(const double *x, double *y, int64_t m, int64_t r, int64_t s,
                            const double *turns) {
    const int64_t n = m * r * s;
    for (int64_t p = 0; p < m; p++)
        for (int64_t k = 0; k < r; k++)
            for (int64_t q = 0; q < s; q++) {
                double re = 0, im = 0;
                for (int64_t j = 0; j < r; j++) {
                    const double *from = x + 2 * (q + s * (p + m * j));
                    const double *w = turns + 2 * ((p * k * s + j * k % r * (n / r)) % n);
                    re += from[0] * w[0] - from[1] * w[1];
                    im += from[0] * w[1] + from[1] * w[0];
                }
                double *to = y + 2 * (q + s * (r * p + k));
                to[0] = re;
                to[1] = im;
            }
}

/* Pairs in place, in Stockham's order (src/backends/cpu/simd/fft.c says more of it). */
static bool transform_table(double *z, int64_t n) {
    double *work = numbers(4 * n), *turns = work + 2 * n, *x = z, *y = work;
    if (!work) return false;
    for (int64_t k = 0; k < n; k++) {
        turns[2 * k] = fac_turn_cos(k, n);
        turns[2 * k + 1] = -fac_turn_sin(k, n);
    }
    int64_t s = 1, r = 2;
    while (s < n) {
        while (n / s % r) r++;
        transform_stage(x, y, n / s / r, r, s, turns);
        s *= r;
        double *t = x;
        x = y;
        y = t;
    }
    if (x != z) memcpy(z, x, 2 * (size_t)n * sizeof *z);
    fac_release(work);
    return true;
}

/* turn: e^(-+pi i k^2 / n) for k < n; filter: the transform of what undoes it, from 1 - n to n - 1,
 * over its length. */
bool fac_transform_chirps(double *turn, double *filter, int64_t n, int64_t size, bool inverse) {
    memset(filter, 0, 2 * (size_t)size * sizeof *filter);
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = k * k % (2 * n); /* lengths have 24 bits */
        const double c = fac_turn_cos(at, 2 * n), s = fac_turn_sin(at, 2 * n);
        turn[2 * k] = c;
        turn[2 * k + 1] = inverse ? s : -s;
        for (int64_t to = k ? 2 : 1; to--;) {
            double *f = filter + 2 * (to ? size - k : k);
            f[0] = c / (double)size;
            f[1] = -turn[2 * k + 1] / (double)size;
        }
    }
    return transform_table(filter, size);
}

static fac_value *of_chirps(fac_value *v, bool inverse) {
    const int64_t n = size_of(v, 1);
    int64_t size = 1;
    while (size < 2 * n - 1) size *= 2;
    double *turn = numbers(2 * (n + size)), *filter = turn + 2 * n;
    if (!turn || !fac_transform_chirps(turn, filter, n, size, inverse)) {
        fac_release(turn);
        return no_memory(v->graph);
    }
    v = transformed(fitted(times(v, turn), size), false);
    v = transformed(times(v, filter), true);
    v = times(some(v, 1, 0, n), turn);
    fac_release(turn);
    return v;
}

/* ---- all of it ---- */

static fac_value *transformed(fac_value *v, bool inverse) {
    const int64_t n = size_of(v, 1), a = factor_of(n);
    const fac_transform t = { n, n, n, (int)size_of(v, 2), 2, inverse, false };
    if (n <= (a > 1 ? WHOLE : PRIME)) return fac_transform_whole(v, &t);
    return a > 1 ? of_factors(v, a, inverse) : of_chirps(v, inverse);
}

/* All n numbers of a spectrum whose second half mirrors the first.  The first one is real, and that
 * in the middle of an even n: their other parts do not count. */
static fac_value *mirrored(fac_value *v, int64_t n) {
    const int64_t half = n / 2 + 1;
    static const double conjugate[] = { 1, -1 };
    double *mask = numbers(2 * half);
    if (!mask) return no_memory(v->graph);
    for (int64_t k = 0; k < half; k++) {
        mask[2 * k] = 1;
        mask[2 * k + 1] = k && 2 * k != n;
    }
    v = fitted(v, half);
    v = fac_mul(v, fac_constant(v->graph, v->type.dtype, fac_shape(1, half, 2), mask));
    fac_release(mask);
    fac_value *rest = fac_slice(v, 1, n - half, 0, -1);
    rest = fac_mul(rest, fac_constant(v->graph, v->type.dtype, fac_shape(1, 1, 2), conjugate));
    return fac_concat((fac_value *[]){ v, rest }, 2, 1);
}

bool fac_transform_divides(const fac_transform *t) {
    return t->n > PRIME || (t->n > WHOLE && factor_of(t->n) > 1);
}

fac_value *fac_transform_parts(fac_value *x, const fac_transform *t) {
    const fac_dtype dtype = x->type.dtype;
    const bool real = t->inverse && t->onesided;
    fac_dims pairs = x->type.dims;
    const int last = pairs.n - 1;
    const int64_t rows = fac_dims_part(&pairs, 0, last - 1);
    pairs.d[last - 1] = t->out;
    pairs.d[last] = t->cout;
    fac_value *v = fac_grad_as(fac_shaped(x, fac_shape(rows, t->in, t->cin)), fac_grad_wide(dtype));
    v = real ? mirrored(v, t->n) : fitted(v, t->n);
    v = transformed(v, t->inverse);
    if (real) v = some(v, 2, 0, 1);
    if (t->out < t->n) v = some(v, 1, 0, t->out);
    return fac_shaped(fac_grad_as(v, dtype), pairs);
}
