/* See scatter.h. */
#include "ops/scatter.h"
#include <math.h>
#include <string.h>

const char *const fac_scatter_names[] = { "none", "add", "mul", "min", "max", NULL };

static double met_f(int reduction, double a, double b) {
    switch (reduction) {
    case FAC_SCATTER_ADD: return a + b;
    case FAC_SCATTER_MUL: return a * b;
    case FAC_SCATTER_MIN: return isnan(a) || a < b ? a : b;
    case FAC_SCATTER_MAX: return isnan(a) || a > b ? a : b;
    default: return b;
    }
}

static int64_t met_i(int reduction, bool is_unsigned, int64_t a, int64_t b) {
    const bool less = is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
    switch (reduction) {
    case FAC_SCATTER_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case FAC_SCATTER_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case FAC_SCATTER_MIN: return less ? a : b;
    case FAC_SCATTER_MAX: return less ? b : a;
    default: return b;
    }
}

void fac_scatter_put(int reduction, const fac_array *updates, int64_t from, fac_array *y, int64_t at) {
    if (y->f) y->f[at] = met_f(reduction, y->f[at], updates->f[from]);
    else y->i[at] = met_i(reduction, y->type.dtype == FAC_U64, y->i[at], updates->i[from]);
}

void fac_scatter_start(const fac_array *x, fac_array *y) {
    const size_t bytes = (size_t)fac_dims_count(&x->type.dims) * 8;
    if (!bytes) return;
    if (y->f) memcpy(y->f, x->f, bytes);
    else memcpy(y->i, x->i, bytes);
}

int fac_scatter_load(const fac_onnx_node *n, fac_graph *g) {
    const char *name = fac_onnx_text(n, "reduction", "none");
    for (int k = 0; fac_scatter_names[k]; k++)
        if (!strcmp(fac_scatter_names[k], name)) return k;
    fac_fail_graph(g, FAC_E_FORMAT, "%s: reduction is \"%s\", expected none, add, mul, min or max", n->type, name);
    return 0;
}
