/* A problem of one op on a device: what its results should be, and whether they are. */
#ifndef FACULA_TESTS_OP_TRIAL_H
#define FACULA_TESTS_OP_TRIAL_H
#include "random_check.h"
#include "facula/backend.h"
#include "facula/ops.h"
#include "facula/program.h"
#include "graph/graph_internal.h"
#include "ref/ref.h"
#include "tensor/tensor_internal.h"

typedef struct trial {
    const char *text;
    fac_graph  *g;
    double      lo, hi, tolerance;
    fac_tensor *in[OPERANDS];
    fac_host    want[OPERANDS];         /* what the reference driver says */
    int         nin, nout;
} trial;

static inline double epsilon(fac_dtype d) {
    return d == FAC_F16 ? 0x1p-10 : d == FAC_BF16 ? 0x1p-7 : d == FAC_F32 ? 0x1p-23 : d == FAC_F64 ? 0x1p-52 : 0;
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
    double least = 1;                   /* 16 bits: what sums of rounded numbers leave goes with the largest of them */
    for (int64_t e = 0; e < n && real && fac_dtype_get(type.dtype)->block_bytes == 2; e++)
        if (isfinite(((const double *)(void *)b)[e])) least = fmax(least, fabs(((const double *)(void *)b)[e]));
    for (int64_t e = 0; e < n; e++) {
        if (real) {
            double p = ((const double *)fac_tensor_data(wide))[e], q = ((const double *)(void *)b)[e];
            bool same = isnan(p) || isnan(q) || isinf(p) || isinf(q) ? p == q || (isnan(p) && isnan(q))
                : fabs(p - q) <= tolerance * fmax(least, fabs(q));
            if (!same) fail_msg("%s (%s): output %d[%lld] is %.9g, the reference has %.9g", t->text, how, k, (long long)e, p, q);
        } else if (((const int64_t *)fac_tensor_data(wide))[e] != b[e]) {
            fail_msg("%s (%s): output %d[%lld] is %lld, the reference has %lld", t->text, how, k, (long long)e,
                     (long long)((const int64_t *)fac_tensor_data(wide))[e], (long long)b[e]);
        }
    }
    free(b);
    fac_tensor_free(wide);
}

static inline void run(const trial *t, const fac_graph *g, fac_tensor *const in[], fac_program_opts opts, const char *how) {
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
static inline bool expansion(void *self, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    if (n->op != self) return false;
    fac_node_expand(to, n, in, out);
    return true;
}

#endif
