/* Is an output of a conformance case what its file holds? */
#include <math.h>
#include <string.h>
#include "cli.h"
#include "measure/conformance.h"

void explain(result *r, verdict v, const fac_error *err) {
    r->v = v;
    snprintf(r->why, sizeof r->why, "%s", err->text);
}

/* The largest finite number of an output that is no integer. */
static double largest(const double *v, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(v[i]) && fabs(v[i]) > most) most = fabs(v[i]);
    return most;
}

/* What two right answers may differ by beside v, whatever the tolerances: two places of bf16, as
 * onnx's own runner has it (its data round after each step of a chain, which no fused kernel does),
 * one of f16, and in sums some roundings of the largest number, of which the data of the Fourier
 * transforms hold what should be 0. */
static double rounding(fac_dtype dtype, double v, double most) {
    if (dtype == FAC_BF16) return ldexp(fabs(v), -6);
    if (dtype == FAC_F16) return ldexp(fabs(v), -10);
    return dtype == FAC_F32 ? ldexp(most, -22) : 0;
}

static bool same_type(result *r, const char *output, const fac_type *a, const fac_type *b) {
    char x[128], y[128];
    if (a->dtype == b->dtype && fac_dims_equal(&a->dims, &b->dims)) return true;
    r->v = FAILED;
    snprintf(r->why, sizeof r->why, "output %s is %s[%s], expected %s[%s]", output,
             fac_dtype_get(a->dtype)->name, dims_text(NULL, &a->dims, x, sizeof x),
             fac_dtype_get(b->dtype)->name, dims_text(NULL, &b->dims, y, sizeof y));
    return false;
}

static void compare_texts(result *r, const char *output, char *const *got, char *const *want,
                          int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (!strcmp(got[i], want[i])) continue;
        r->v = FAILED;
        snprintf(r->why, sizeof r->why, "output %s[%lld] is \"%s\", expected \"%s\"", output,
                 (long long)i, got[i], want[i]);
        return;
    }
}

/* n numbers of one output, as double or, whole ones, as int64_t. */
typedef struct numbers {
    const void *got, *want;
    int64_t n;
    bool whole;
    fac_dtype dtype;
} numbers;

static double number(const numbers *x, const void *of, int64_t i) {
    return x->whole ? (double)((const int64_t *)of)[i] : ((const double *)of)[i];
}

/* By how much number i is off; infinite where that cannot be said. */
static double error_of(const numbers *x, int64_t i) {
    const double u = number(x, x->got, i), v = number(x, x->want, i);
    const bool same = x->whole ? ((const int64_t *)x->got)[i] == ((const int64_t *)x->want)[i]
                               : u == v || (isnan(u) && isnan(v));
    if (same) return 0;
    return isnan(u) || isnan(v) || isinf(u) || isinf(v) ? INFINITY : fabs(u - v);
}

static void compare_numbers(result *r, const char *output, const numbers *x, double rtol,
                            double atol) {
    const double most = x->whole ? 0 : largest(x->want, x->n);
    double worst = 0;
    int64_t bad = -1;
    for (int64_t i = 0; i < x->n; i++) {
        const double v = number(x, x->want, i), e = error_of(x, i);
        /* a bound by an infinity bounds nothing */
        const bool wrong = isinf(e) || e > atol + fmax(rtol * fabs(v), rounding(x->dtype, v, most));
        if (wrong && (bad < 0 || e > worst)) bad = i;
        worst = fmax(worst, e);
    }
    r->worst = fmax(r->worst, worst);
    if (bad < 0) return;
    r->v = FAILED;
    snprintf(r->why, sizeof r->why, "output %s[%lld] is %.9g, expected %.9g", output,
             (long long)bad, number(x, x->got, bad), number(x, x->want, bad));
}

void compare_output(result *r, const char *output, const fac_tensor *got, const fac_tensor *want,
                    double rtol, double atol) {
    const fac_type a = fac_tensor_type(got), b = fac_tensor_type(want);
    if (!same_type(r, output, &a, &b) || r->drawn) return;
    numbers x = { .n = fac_dims_count(&a.dims),
                  .whole = fac_dtype_get(a.dtype)->kind != 'f',
                  .dtype = a.dtype };
    if (a.dtype == FAC_TEXT) {
        compare_texts(r, output, fac_tensor_data(got), fac_tensor_data(want), x.n);
        return;
    }
    const fac_dtype as = x.whole ? FAC_I64 : FAC_F64;
    fac_tensor *s = NULL, *t = NULL;
    fac_error err = { 0 };
    if (fac_tensor_convert(got, as, &s, &err) || fac_tensor_convert(want, as, &t, &err)) {
        explain(r, FAILED, &err);
    } else {
        x.got = fac_tensor_data(s);
        x.want = fac_tensor_data(t);
        compare_numbers(r, output, &x, rtol, atol);
    }
    fac_tensor_free(s);
    fac_tensor_free(t);
}
