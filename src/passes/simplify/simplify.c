/* What means the same in fewer steps. */
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/casts.h"
#include "passes/passes.h"
#include "passes/common/single.h"

/* One operand is a one-element constant equal to x, or that at every place, as gradients of sums
 * begin with, and the other already has the result's type: that other one. */
static fac_value *other_than(const fac_node *n, fac_value *const in[], double x, bool commutes) {
    double c;
    for (int i = commutes ? 0 : 1; i < 2; i++) {
        const fac_value *number = FAC_IS(in[i]->node, expand) ? in[i]->node->in[0] : in[i];
        if (fac_const_number(number, &c) && c == x &&
            in[1 - i]->type.dtype == n->out[0]->type.dtype &&
            fac_dims_equal(&in[1 - i]->type.dims, &n->out[0]->type.dims))
            return in[1 - i];
    }
    return NULL;
}

/* sigmoid(x) * x, where the sigmoid has no other reader. */
static fac_value *silu(const fac_node *n, fac_value *const in[]) {
    for (int i = 0; i < 2; i++) {
        fac_node *s = in[i]->node;
        if (FAC_IS(s, sigmoid) && s->in[0] == in[1 - i] && fac_used_once(n->in[i]))
            return fac_silu(in[1 - i]);
    }
    return NULL;
}

/* Windows of one element at every place: an average of what is there, and its gradient the same the
 * other way. */
static bool pools_nothing(const fac_node *n) {
    const bool forward = FAC_IS(n, avg_pool2d);
    if (!forward && !FAC_IS(n, avg_pool2d_grad)) return false;
    const int64_t *kernel = fac_attr_ints(n, "kernel"), *pad = fac_attr_ints(n, "pad");
    return kernel[0] == 1 && kernel[1] == 1 && !(pad[0] | pad[1] | pad[2] | pad[3]) &&
           fac_dims_equal(&n->in[forward ? 0 : 1]->type.dims, &n->out[0]->type.dims);
}

/* Of a where whose constant condition is the same at every place: what it chooses. */
static fac_value *chosen(const fac_node *n, fac_value *const in[]) {
    enum { MOST = 4096 };
    bool flag[MOST];
    const fac_value *c = in[0];
    const int64_t count = fac_dims_count(&c->type.dims);
    if (c->leaf != FAC_CONST || !c->tensor || c->type.dtype != FAC_BOOL) return NULL;
    if (count < 1 || count > MOST) return NULL;
    if (fac_tensor_read(c->tensor, flag, (size_t)count * sizeof *flag, NULL)) return NULL;
    for (int64_t k = 1; k < count; k++)
        if (flag[k] != flag[0]) return NULL;
    fac_value *v = in[flag[0] ? 1 : 2];
    const fac_type *y = &n->out[0]->type;
    return v->type.dtype == y->dtype && fac_dims_equal(&v->type.dims, &y->dims) ? v : NULL;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    (void)self;
    (void)to;
    fac_value *v = NULL;
    if (FAC_IS(n, identity) || FAC_IS(n, stop))
        v = in[0];
    else if (FAC_IS(n, cast))
        v = in[0]->type.dtype == n->out[0]->type.dtype ? in[0] : fac_cast_once(n, in);
    else if (FAC_IS(n, dropout) && !fac_attr_flag(n, "training") && !n->out[1]->uses &&
             !n->out[1]->roots) {
        out[0] = in[0]; /* inference; nobody asks for the mask */
        return true;
    } else if (FAC_IS(n, sum_like) && fac_dims_equal(&in[0]->type.dims, &n->out[0]->type.dims))
        v = in[0];
    else if (pools_nothing(n))
        v = in[FAC_IS(n, avg_pool2d) ? 0 : 1];
    else if (FAC_IS(n, where))
        v = chosen(n, in);
    else if (FAC_IS(n, mul)) {
        v = silu(n, in);
        v = v ? v : other_than(n, in, 1, true);
    } else if (FAC_IS(n, div))
        v = other_than(n, in, 1, false);
    else if (FAC_IS(n, transpose) || FAC_IS(n, reshape) || FAC_IS(n, expand) ||
             FAC_IS(n, sum_like)) {
        /* a shape that changes nothing; transposing must also keep the order, which only rank 0 and
         * 1 promise */
        if (fac_dims_equal(&in[0]->type.dims, &n->out[0]->type.dims) &&
            (!FAC_IS(n, transpose) || in[0]->type.dims.n < 2))
            v = in[0];
    }
    if (!v || n->nout != 1) return false;
    out[0] = v;
    return true;
}

fac_graph *fac_pass_simplify(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL);
}
