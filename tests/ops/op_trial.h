/* A problem of one op on a device: what its results should be, and whether they are. */
#ifndef FACULA_TESTS_OP_TRIAL_H
#define FACULA_TESTS_OP_TRIAL_H
#include "random_check.h"
#include "facula/backend.h"
#include "facula/ops.h"
#include "facula/program.h"
#include "graph/graph_internal.h"
#include "passes/passes.h"
#include "ref/ref.h"
#include "tensor/tensor_internal.h"

typedef struct trial {
    const char *text;
    fac_graph *g;
    double lo, hi, tolerance;
    fac_tensor *in[OPERANDS];
    fac_host want[OPERANDS]; /* what the reference driver says */
    int nin, nout;
} trial;

static inline double epsilon(fac_dtype d) {
    return d == FAC_F16    ? 0x1p-10
           : d == FAC_BF16 ? 0x1p-7
           : d == FAC_F32  ? 0x1p-23
           : d == FAC_F64  ? 0x1p-52
                           : 0;
}

/* ---- what rounding may do ----
 * Where terms cancel, an error is large beside their sum and small beside them.  A kernel that adds
 * well is as far off as the formula is on numbers that are off by their rounding unit (Higham 2002,
 * section 1.5), a few times for the roundings on its way.  How far that is the reference says. */

enum { DRAWS = 8 };
static const double TIMES = 4;

/* The next number of its own type or the previous one, or this one.  Numbers of 16 bits have a sign
 * and a size, which counts up from 0. */
static inline void move_bits(uint16_t *x, bool up) {
    const bool negative = *x >> 15;
    if (!(*x & 0x7FFF))
        *x = (uint16_t)(up ? 1 : 0x8001);
    else
        *x = (uint16_t)(*x + (up != negative ? 1 : -1));
}

static inline void move_number(fac_dtype d, void *all, int64_t i, bool up) {
    const double to = up ? INFINITY : -INFINITY;
    if (d == FAC_F64)
        ((double *)all)[i] = nextafter(((double *)all)[i], to);
    else if (d == FAC_F32)
        ((float *)all)[i] = nextafterf(((float *)all)[i], (float)to);
    else
        move_bits((uint16_t *)all + i, up);
}

static inline bool moves(fac_dtype d) {
    return d == FAC_F64 || d == FAC_F32 || d == FAC_F16 || d == FAC_BF16;
}

static inline double as_double(fac_dtype d, const void *all, int64_t i) {
    double x = 0;
    const size_t size = fac_dtype_get(d)->block_bytes;
    fac_convert(FAC_F64, &x, d, (const char *)all + (size_t)i * size, 1);
    return x;
}

static inline fac_tensor *moved(const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    fac_tensor *to = NULL;
    OK(fac_tensor_convert(t, type.dtype, &to, &err));
    if (!moves(type.dtype)) return to;
    void *all = (void *)(uintptr_t)fac_tensor_data(to);
    stream++;
    for (int64_t i = 0; i < fac_dims_count(&type.dims); i++) {
        const double u = fac_random_uniform(seed, stream, (uint64_t)i);
        if (u < 2.0 / 3 && isfinite(as_double(type.dtype, all, i)))
            move_number(type.dtype, all, i, u >= 1.0 / 3);
    }
    return to;
}

static inline fac_value *moved_leaf(void *self, fac_graph *to, const fac_value *v) {
    (void)self;
    if (v->leaf != FAC_PARAM || !v->tensor) return NULL;
    fac_tensor *t = moved(v->tensor);
    fac_value *made = fac_param(to, v->name, t);
    fac_tensor_free(t);
    return made;
}

/* The reference on such numbers. */
static inline void moved_results(const trial *t, fac_host want[OPERANDS]) {
    fac_tensor *x[OPERANDS];
    fac_host in[OPERANDS];
    fac_graph *simple = fac_pass_expand(t->g, NULL, NULL);
    fac_graph *g = fac_graph_rebuild(simple, &(fac_rebuild){ .leaf = moved_leaf }, NULL);
    for (int i = 0; i < t->nin; i++) {
        x[i] = moved(t->in[i]);
        in[i] = (fac_host){ fac_tensor_type(x[i]), (void *)(uintptr_t)fac_tensor_data(x[i]), NULL };
    }
    for (int k = 0; k < t->nout; k++) {
        want[k] =
            (fac_host){ t->want[k].type, calloc(1, fac_type_bytes(&t->want[k].type) + 8), NULL };
    }
    if (fac_graph_check(g, &err) || fac_ref_graph(g, in, want, &err))
        fail_msg("%s: %s", t->text, err.text);
    for (int i = 0; i < t->nin; i++) fac_tensor_free(x[i]);
    fac_graph_free(simple);
    fac_graph_free(g);
}

/* How far element e of output k moves then. */
static inline double spread(const trial *t, int k, int64_t e) {
    const fac_dtype dtype = t->want[k].type.dtype;
    double most = 0;
    if (!moves(dtype)) return 0;
    const double was = as_double(dtype, t->want[k].data, e);
    for (int draw = 0; draw < DRAWS; draw++) {
        fac_host want[OPERANDS];
        moved_results(t, want);
        most = fmax(most, fabs(as_double(dtype, want[k].data, e) - was));
        for (int i = 0; i < t->nout; i++) free(want[i].data);
    }
    return most;
}

static inline void compare(const trial *t, int k, const fac_tensor *y, const char *how) {
    fac_type type = fac_tensor_type(y);
    const fac_host *want = &t->want[k];
    if (type.dtype != want->type.dtype || !fac_dims_equal(&type.dims, &want->type.dims))
        fail_msg("%s (%s): output %d is %s with %d dims, the reference is %s with %d", t->text, how,
                 k, fac_dtype_get(type.dtype)->name, type.dims.n,
                 fac_dtype_get(want->type.dtype)->name, want->type.dims.n);
    int64_t n = fac_dims_count(&type.dims);
    bool real = kind(type.dtype) == 'f';
    double tolerance = fmax(t->tolerance, 4 * epsilon(type.dtype));
    fac_tensor *wide = NULL;
    OK(fac_tensor_convert(y, real ? FAC_F64 : FAC_I64, &wide, &err));
    int64_t *b = calloc((size_t)n + 1, sizeof *b);
    fac_convert(real ? FAC_F64 : FAC_I64, b, type.dtype, want->data, (size_t)n);
    double least =
        1; /* 16 bits: what sums of rounded numbers leave goes with the largest of them */
    for (int64_t e = 0; e < n && real && fac_dtype_get(type.dtype)->block_bytes == 2; e++)
        if (isfinite(((const double *)(void *)b)[e]))
            least = fmax(least, fabs(((const double *)(void *)b)[e]));
    for (int64_t e = 0; e < n; e++) {
        if (real) {
            double p = ((const double *)fac_tensor_data(wide))[e],
                   q = ((const double *)(void *)b)[e];
            bool same = isnan(p) || isnan(q) || isinf(p) || isinf(q)
                            ? p == q || (isnan(p) && isnan(q))
                            : fabs(p - q) <= tolerance * fmax(least, fabs(q));
            if (!same && fabs(p - q) <= TIMES * spread(t, k, e)) continue;
            if (!same)
                fail_msg("%s (%s): output %d[%lld] is %.9g, the reference has %.9g and moves by "
                         "%.3g",
                         t->text, how, k, (long long)e, p, q, spread(t, k, e));
        } else if (((const int64_t *)fac_tensor_data(wide))[e] != b[e]) {
            fail_msg("%s (%s): output %d[%lld] is %lld, the reference has %lld", t->text, how, k,
                     (long long)e, (long long)((const int64_t *)fac_tensor_data(wide))[e],
                     (long long)b[e]);
        }
    }
    free(b);
    fac_tensor_free(wide);
}

static inline void run(const trial *t, const fac_graph *g, fac_tensor *const in[],
                       fac_program_opts opts, const char *how) {
    fac_program *p = NULL;
    fac_tensor *out[OPERANDS] = { 0 };
    opts.precision = FAC_PRECISION_HIGHEST;
    if (fac_program_new(g, device, &opts, &p, &err) || fac_program_run(p, in, out, &err))
        fail_msg("%s (%s): %s", t->text, how, err.text);
    for (int k = 0; k < t->nout; k++) {
        compare(t, k, out[k], how);
        fac_tensor_free(out[k]);
    }
    fac_program_free(p);
}

/* The same graph with the op's own expansion in its place. */
static inline bool expansion(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                             fac_value *out[]) {
    if (n->op != self) return false;
    fac_node_expand(to, n, in, out);
    return true;
}

#endif
