/* x (1 + erf(x / sqrt 2)) / 2, spelled out as exporters do below opset 20, becomes one gelu, which
 * joins the product before it, and  x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2,  as GPT-2
 * has it, one gelu_tanh.  Hendrycks and Gimpel 2016.
 *
 * The half stands after the product with x, or at either of its factors. */
#include <float.h>
#include <math.h>
#include "facula/ops.h"
#include "op_list.h"
#include "passes/passes.h"
#include "passes/common/single.h"

/* Made by op, and read by one node alone. */
static bool only_of(fac_both v, const fac_op *op) {
    return fac_both_made_by(v, op) && fac_used_once(v.was);
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

/* x of x^3, as a power or as x x x; NULL: v is something else. */
static fac_value *cube_root(fac_both v) {
    if (only_of(v, &fac_op_pow))
        return is_number(fac_both_in(v, 1).now, 3) ? fac_both_in(v, 0).now : NULL;
    for (int i = 0; i < 2 && only_of(v, &fac_op_mul); i++) {
        const fac_both square = fac_both_in(v, i);
        fac_value *x = fac_both_in(v, 1 - i).now;
        if (!only_of(square, &fac_op_mul)) continue;
        if (fac_both_in(square, 0).now == x && fac_both_in(square, 1).now == x) return x;
    }
    return NULL;
}

/* Is v  1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))? */
static bool bell_of_tanh(fac_both v, fac_value **x) {
    fac_both tanh, scaled, sum, cube;
    if (!only_of(v, &fac_op_add) || !without(v, 1, &tanh) || !only_of(tanh, &fac_op_tanh))
        return false;
    scaled = fac_both_in(tanh, 0);
    if (!only_of(scaled, &fac_op_mul) || !without(scaled, 0.79788456080286535588, &sum))
        return false;
    for (int i = 0; i < 2 && only_of(sum, &fac_op_add); i++) {
        const fac_both term = fac_both_in(sum, i);
        *x = fac_both_in(sum, 1 - i).now;
        if (!only_of(term, &fac_op_mul) || !without(term, 0.044715, &cube)) continue;
        if (cube_root(cube) == *x) return true;
    }
    return false;
}

/* The gelu of  x (1 + erf(x / sqrt 2)),  the factors in either order; NULL: it is another product.
 */
static fac_value *product(fac_both a, fac_both b) {
    for (int i = 0; i < 2; i++) {
        const fac_both factor = i ? b : a;
        const fac_both other = i ? a : b;
        fac_value *x = NULL;
        if (bell(factor, &x) && x == other.now) return fac_gelu(x);
        if (bell_of_tanh(factor, &x) && x == other.now) return fac_gelu_tanh(x);
    }
    return NULL;
}

/* v / 2 of v, which nothing else reads. */
static bool half(fac_both v, fac_both *of) {
    return only_of(v, &fac_op_mul) && without(v, 0.5, of);
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    (void)self, (void)to;
    if (!FAC_IS(n, mul) || n->out[0]->time != FAC_RUN) return false;
    if (fac_node_guess(n) == FAC_RANKLESS) return false;
    if (n->out[0]->type.dtype != FAC_F32 && n->out[0]->type.dtype != FAC_F64) return false;
    fac_value *y = NULL;
    for (int i = 0; i < 2 && !y; i++) {
        const fac_both a = { n->in[i], in[i] }, b = { n->in[1 - i], in[1 - i] };
        fac_both inner;
        if (is_number(a.now, 0.5) && only_of(b, &fac_op_mul))
            y = product(fac_both_in(b, 0), fac_both_in(b, 1));
        else if (half(a, &inner))
            y = product(inner, b);
    }
    if (!y || !fac_dims_equal(&y->type.dims, &n->out[0]->type.dims)) return false;
    out[0] = y;
    return true;
}

fac_graph *fac_pass_gelu(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit, .blind = true }, NULL);
}
