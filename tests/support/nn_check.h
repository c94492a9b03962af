/* Parity with PyTorch: numbers that C and Python make alike, and digests of tensors.
 * tests/golden/make/golden_nn_layers.py has the same formulas. */
#ifndef FACULA_NN_CHECK_H
#define FACULA_NN_CHECK_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "facula/nn.h"
#include "facula/program.h"
#include "graph/graph_internal.h"

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

/* Number i of a name, in -1..1: FNV-1a of the name, then SplitMix64. */
static inline double number_of(const char *name, int64_t i) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    h += 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return (double)((h ^ (h >> 31)) >> 11) * 0x1p-52 - 1;
}

static inline bool ends(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* First values that keep activations in bounds: matrices within sqrt(3 / fan_in), scales around 1,
 * the rest small. */
static inline double first_value(const char *name, const fac_dims *d, int64_t i) {
    const double x = number_of(name, i);
    if (d->n >= 2) return x * sqrt(3 / ((double)fac_dims_count(d) / (double)d->d[0]));
    return ends(name, ".weight") || ends(name, "running_var") ? 1 + 0.2 * x : 0.2 * x;
}

/* A tensor of numbers by a formula. */
static inline fac_tensor *tensor_of(fac_type type, const char *name,
                                    double (*value)(const char *, const fac_dims *, int64_t)) {
    const int64_t n = fac_dims_count(&type.dims);
    double *x = calloc((size_t)n + 1, sizeof *x);
    fac_tensor *wide = NULL, *t = NULL;
    for (int64_t i = 0; i < n; i++) x[i] = value(name, &type.dims, i);
    OK(fac_tensor_new(NULL, FAC_F64, type.dims, &wide, &err));
    OK(fac_tensor_write(wide, x, (size_t)n * sizeof *x, &err));
    OK(fac_tensor_convert(wide, type.dtype, &t, &err));
    fac_tensor_free(wide);
    free(x);
    return t;
}

static inline double plain(const char *name, const fac_dims *d, int64_t i) {
    (void)d;
    return number_of(name, i);
}

/* For fac_nn_source. */
static inline fac_tensor *formula(void *self, const char *name, fac_type type, fac_error *e) {
    (void)self, (void)e;
    return tensor_of(type, name, first_value);
}

/* ---- digests: two products with fixed vectors, and the sum of magnitudes that bounds their
 * rounding ---- */

typedef struct digest {
    double a, b, size;
    bool noise; /* PyTorch's own f32 is off: rounding decides the number (Adam where the true
                   gradient is 0) */
} digest;

static inline digest digest_of(const fac_tensor *t) {
    fac_type type = fac_tensor_type(t);
    digest d = { 0 };
    fac_tensor *wide = NULL;
    OK(fac_tensor_convert(t, FAC_F64, &wide, &err));
    const double *x = fac_tensor_data(wide);
    for (int64_t i = 0; i < fac_dims_count(&type.dims); i++) {
        d.a += x[i] * number_of("a", i);
        d.b += x[i] * number_of("b", i);
        d.size += fabs(x[i]);
    }
    fac_tensor_free(wide);
    return d;
}

/* The golden file: "case NAME" and lines "TENSOR a b size [noise]"; lines that begin with # are
 * comments. */
static inline FILE *golden_open(const char *file) {
    char path[512];
    snprintf(path, sizeof path, "%s/golden/%s", TEST_DIR, file);
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s cannot be read", path);
    return f;
}

/* The next line of the case at hand; false before the next case and at the end. */
static inline bool golden_next(FILE *f, char name[128], digest *d) {
    char line[512];
    long at = ftell(f);
    while (fgets(line, sizeof line, f)) {
        if (*line == '#') continue;
        if (!strncmp(line, "case ", 5)) {
            fseek(f, at, SEEK_SET);
            return false;
        }
        if (sscanf(line, "%127s %lf %lf %lf", name, &d->a, &d->b, &d->size) != 4)
            fail_msg("golden: %s", line);
        d->noise = strstr(line, " noise") != NULL;
        return true;
    }
    return false;
}

static inline bool golden_case(FILE *f, char name[128]) {
    char line[512];
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "case %127s", name) == 1) return true;
    return false;
}

static inline void same_digest(const char *what, const char *tensor, digest have, digest want,
                               double tolerance) {
    const double limit = tolerance * fmax(1, want.size);
    if (!(fabs(have.a - want.a) <= limit && fabs(have.b - want.b) <= limit &&
          fabs(have.size - want.size) <= limit))
        fail_msg("%s: %s is %.12g %.12g %.12g, PyTorch has %.12g %.12g %.12g (tolerance %g)", what,
                 tensor, have.a, have.b, have.size, want.a, want.b, want.size, limit);
}
#endif
