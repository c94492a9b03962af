/* x (1 + erf(x / sqrt 2)) / 2, spelled out as exporters do below opset 20, becomes one gelu, which
 * joins the product before it.  Hendrycks and Gimpel 2016.
 *
 * The half stands behind the product with x, or at either of its factors. */
#include <float.h>
#include <math.h>
#include "facula/ops.h"
#include "op_list.h"
#include "passes/passes.h"
#include "passes/single.h"

/* Made by op, and read by one node alone. */
static bool only_of(fac_both v, const fac_op *op) {
    return fac_node_of(v.was->node, op) && fac_node_of(v.now->node, op) && fac_used_once(v.was);
}

/* c as the type rounds it. */
static bool is_number(const fac_value *v, double c) {
    double x;
    const double error = v->type.dtype == FAC_F64 ? 4 * DBL_EPSILON : FLT_EPSILON;
    return fac_const_number(v, &x) && fabs(x - c) <= error * c;
}

/* The factor of v that is not the number c. */
static bool without(fac_both v, double c, fac_both *rest) {
    for (int i = 0; i < 2; i++) {
        if (!is_number(fac_both_in(v, i).now, c)) continue;
        *rest = fac_both_in(v, 1 - i);
        return true;
    }
    return false;
}

/* Is v  1 + erf(x / sqrt 2)?  *x is what stands there. */
static bool bell(fac_both v, fac_value **x) {
    fac_both erf, inner;
    if (!only_of(v, &fac_op_add) || !without(v, 1, &erf) || !only_of(erf, &fac_op_erf))
        return false;
    const fac_both scaled = fac_both_in(erf, 0);
    if (only_of(scaled, &fac_op_div) &&
        is_number(fac_both_in(scaled, 1).now, 1.41421356237309504880)) {
        inner = fac_both_in(scaled, 0);
    } else if (!only_of(scaled, &fac_op_mul) || !without(scaled, 0.70710678118654752440, &inner)) {
        return false;
    }
    *x = inner.now;
    return true;
}

/* x of  x (1 + erf(x / sqrt 2)),  the factors in either order; NULL: it is another product. */
static fac_value *product(fac_both a, fac_both b) {
    fac_value *x = NULL;
    if (bell(b, &x) && x == a.now) return x;
    return bell(a, &x) && x == b.now ? x : NULL;
}

/* v / 2 of v, which nobody else reads. */
static bool half(fac_both v, fac_both *of) {
    return only_of(v, &fac_op_mul) && without(v, 0.5, of);
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    (void)self, (void)to;
    if (!FAC_IS(n, mul) || n->out[0]->time != FAC_RUN) return false;
    if (n->out[0]->type.dtype != FAC_F32 && n->out[0]->type.dtype != FAC_F64) return false;
    fac_value *x = NULL;
    for (int i = 0; i < 2 && !x; i++) {
        const fac_both a = { n->in[i], in[i] }, b = { n->in[1 - i], in[1 - i] };
        fac_both inner;
        if (is_number(a.now, 0.5) && only_of(b, &fac_op_mul))
            x = product(fac_both_in(b, 0), fac_both_in(b, 1));
        else if (half(a, &inner))
            x = product(inner, b);
    }
    if (!x || !fac_dims_equal(&x->type.dims, &n->out[0]->type.dims)) return false;
    out[0] = fac_gelu(x);
    return true;
}

fac_graph *fac_pass_gelu(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL);
}
