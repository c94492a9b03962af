/* See svm.h. */
#include "ops/ml/svm.h"
#include <string.h>
#include "base/error.h"
#include "graph/graph_internal.h"

enum { GAMMA, COEF0, DEGREE };

static fac_value *products(fac_value *x, fac_value *v) {
    return fac_matmul(x, fac_transpose(v, fac_shape(1, 0)));
}

/* |x - v|^2 = |x|^2 + |v|^2 - 2 x.v, with both seen from the middle of the vectors, so that little
 * cancels. */
static fac_value *distances(fac_value *x, const double *vectors, int64_t count, int64_t features) {
    fac_graph *g = fac_value_graph(x);
    double *moved = fac_arena_alloc(&g->arena, (size_t)(count * features), sizeof *moved);
    double *middle = fac_arena_alloc(&g->arena, (size_t)features, sizeof *middle);
    if (!moved || !middle)
        return fac_fail_graph(g, FAC_E_NOMEM, "no memory for %lld support vectors",
                              (long long)count);
    for (int64_t k = 0; k < count * features; k++)
        middle[k % features] += vectors[k] / (double)count;
    for (int64_t f = 0; f < features; f++) middle[f] = (double)(float)middle[f];
    for (int64_t k = 0; k < count * features; k++) moved[k] = vectors[k] - middle[k % features];
    fac_value *v = fac_ml_numbers(g, x->type.dtype, fac_shape(count, features), moved);
    x = fac_sub(x, fac_ml_numbers(g, x->type.dtype, fac_shape(features), middle));
    fac_value *of_x = fac_reduce_sum_square(x, fac_shape(1), true),
              *of_v = fac_reduce_sum_square(v, fac_shape(1), false);
    fac_value *d = fac_sub(fac_add(of_x, of_v), fac_mul(products(x, v), fac_number_as(x, 2)));
    return fac_max(d, fac_number_as(x, 0));
}

fac_value *fac_ml_kernel(const fac_onnx_node *n, fac_value *x, const double *vectors, int64_t count,
                         int64_t features) {
    fac_graph *g = fac_value_graph(x);
    const char *type = fac_onnx_text(n, "kernel_type", "LINEAR");
    const fac_ml_reals given = fac_ml_reals_of(n, g, "kernel_params");
    double p[3] = { 0 };
    for (int k = 0; k < 3 && k < given.n; k++) p[k] = given.v[k];
    if (!strcmp(type, "RBF"))
        return fac_exp(
            fac_mul(distances(x, vectors, count, features), fac_number_as(x, -p[GAMMA])));
    fac_value *y =
        products(x, fac_ml_numbers(g, x->type.dtype, fac_shape(count, features), vectors));
    if (!strcmp(type, "LINEAR")) return y;
    y = fac_add(fac_mul(y, fac_number_as(x, p[GAMMA])), fac_number_as(x, p[COEF0]));
    if (!strcmp(type, "POLY")) return fac_pow(y, fac_number_as(x, p[DEGREE]));
    if (!strcmp(type, "SIGMOID")) return fac_tanh(y);
    fac_fail_graph(g, FAC_E_FORMAT, "kernel_type is \"%s\"", type);
    return NULL;
}
