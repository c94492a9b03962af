/* Other sampling rates by sinc interpolation, as torchaudio does it: o = from / gcd, n = to / gcd;
 * one kernel for each of n places between o samples.  Coefficients are made in f64: in f32 they
 * cost 1.5e-5. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/data/sound.h"

enum { FASTEST = 10000000 }; /* Hz */

/* Filters in f64, and how they are applied. */
typedef struct filters {
    int64_t o, n, width, length; /* length = 2 width + o */
    double *at;                  /* [n, length] */
} filters;

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

/* The modified Bessel function of order 0, by its series. */
static double bessel(double x) {
    double sum = 1, term = 1;
    for (int k = 1; k < 200 && term > 1e-17 * sum; k++) {
        term *= x / 2 / k * (x / 2 / k);
        sum += term;
    }
    return sum;
}

static double window(fac_resample_quality q, double t, double zeros) {
    const double beta = 14.769656459379492;
    if (q == FAC_RESAMPLE_FAST) {
        const double c = cos(3.14159265358979323846 * t / zeros / 2);
        return c * c;
    }
    const double r = 1 - t / zeros * (t / zeros);
    return bessel(beta * sqrt(r > 0 ? r : 0)) / bessel(beta);
}

static double sinc(double x) {
    const double p = 3.14159265358979323846 * x;
    return x == 0 ? 1 : sin(p) / p;
}

static fac_status filters_new(int from, int to, fac_resample_quality q, filters *f,
                              fac_error *err) {
    if (from < 1 || to < 1 || from > FASTEST || to > FASTEST)
        return fac_raise(err, FAC_E_ARGUMENT, "resampling from %d to %d Hz", from, to);
    const double zeros = q == FAC_RESAMPLE_FAST ? 6 : 64,
                 rolloff = q == FAC_RESAMPLE_FAST ? 0.99 : 0.9475937167399596;
    const int64_t by = gcd(from, to);
    f->o = from / by;
    f->n = to / by;
    const double base = (double)(f->o < f->n ? f->o : f->n) * rolloff;
    f->width = (int64_t)ceil(zeros * (double)f->o / base);
    f->length = 2 * f->width + f->o;
    if (f->n > ((int64_t)1 << 27) / f->length)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "resampling from %d to %d Hz takes %lld filters of %lld numbers", from, to,
                         (long long)f->n, (long long)f->length);
    f->at = fac_alloc((size_t)(f->n * f->length), sizeof *f->at);
    if (!f->at) return fac_raise_memory(err, "filters from %d to %d Hz", from, to);
    for (int64_t j = 0; j < f->n; j++)
        for (int64_t i = 0; i < f->length; i++) {
            double t = ((double)(i - f->width) / (double)f->o - (double)j / (double)f->n) * base;
            t = fmin(fmax(t, -zeros), zeros);
            f->at[j * f->length + i] = sinc(t) * window(q, t, zeros) * base / (double)f->o;
        }
    return FAC_OK;
}

fac_status fac_resample_kernels(int from, int to, fac_resample_quality quality, int64_t *step,
                                int64_t *before, fac_tensor **out, fac_error *err) {
    filters f = { 0 };
    fac_tensor *wide = NULL;
    FAC_TRY(filters_new(from, to, quality, &f, err));
    fac_status status = fac_tensor_new(NULL, FAC_F64, fac_shape(f.n, f.length), &wide, err);
    if (!status)
        status = fac_tensor_write(wide, f.at, (size_t)(f.n * f.length) * sizeof *f.at, err);
    if (!status) status = fac_tensor_convert(wide, FAC_F32, out, err);
    fac_tensor_free(wide);
    fac_release(f.at);
    *step = f.o;
    *before = f.width;
    return status;
}

/* Sample k of the result: filter k % n at sample k / n o. */
static float sample(const filters *f, const float *x, int64_t size, int64_t k) {
    const double *h = f->at + k % f->n * f->length;
    const int64_t begin = k / f->n * f->o - f->width;
    const int64_t first = begin < 0 ? -begin : 0,
                  last = size - begin < f->length ? size - begin : f->length;
    double sum = 0;
    for (int64_t i = first; i < last; i++) sum += h[i] * x[begin + i];
    return (float)sum;
}

fac_status fac_resample(const float *x, int64_t n, int from, int to, fac_resample_quality quality,
                        fac_tensor **out, fac_error *err) {
    filters f = { 0 };
    fac_tensor *t = NULL;
    if (n < 0 || n > INT64_MAX / FASTEST)
        return fac_raise(err, FAC_E_ARGUMENT, "%lld samples", (long long)n);
    if (from == to) {
        FAC_TRY(fac_tensor_new(NULL, FAC_F32, fac_shape(n), &t, err));
        const fac_status status = fac_tensor_write(t, x, (size_t)n * sizeof *x, err);
        if (status)
            fac_tensor_free(t);
        else
            *out = t;
        return status;
    }
    FAC_TRY(filters_new(from, to, quality, &f, err));
    const int64_t count = (n * f.n + f.o - 1) / f.o;
    float *y = fac_alloc((size_t)count + 1, sizeof *y);
    for (int64_t k = 0; k < count && y; k++) y[k] = sample(&f, x, n, k);
    fac_release(f.at);
    fac_status status = y ? fac_tensor_new(NULL, FAC_F32, fac_shape(count), &t, err)
                          : fac_raise_memory(err, "%lld samples", (long long)count);
    if (!status) status = fac_tensor_write(t, y, (size_t)count * sizeof *y, err);
    fac_release(y);
    if (status)
        fac_tensor_free(t);
    else
        *out = t;
    return status;
}
