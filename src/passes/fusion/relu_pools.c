/* The gradient of a max pool after relu is masked by what relu made, which is what the pool read:
 *
 *     where(y <= 0, 0, max_pool2d_grad(y, dy))     y = relu(..)
 *
 * Where a kernel looks for the maxima anyway it leaves out those that are not above 0
 * (max_pool2d_relu_grad): y and the gradient are read once less, and a batch norm after has no
 * mask to read.  Preserves every bit. */
#include "facula/ops.h"
#include "op_list.h"
#include "ops/shape.h"
#include "graph/attr.h"
#include "passes/common/each.h"
#include "passes/passes.h"
#include "passes/common/single.h"

static bool is_zero(const fac_value *v) {
    double number;
    return fac_scalar_known(v, &number) && number == 0;
}

static void fuse(fac_node *n, fac_accept *accept, void *self) {
    const fac_node *test = n->in[0]->node, *pool = n->in[2]->node;
    if (!FAC_IS(test, less_or_equal) || !FAC_IS(pool, max_pool2d_grad) || pool->body[0]) return;
    if (pool->in[0] != test->in[0] || !is_zero(test->in[1]) || !is_zero(n->in[1]) ||
        !fac_used_once(n->in[2]))
        return;
    const fac_type *dx = &n->in[2]->type, *to = &n->out[0]->type;
    if (dx->dtype != to->dtype || !fac_dims_equal(&dx->dims, &to->dims)) return;
    fac_value *y = fac_emit(&fac_op_max_pool2d_relu_grad, pool->attrs, 2, pool->in);
    if (!y->node || !accept(self, y->node)) return; /* nothing reads it: the sweep takes it away */
    fac_node_named_as(y->node, pool);
    y->node->stage = n->stage;
    fac_replace(n->out[0], y);
}

static void visit(fac_graph *to, fac_node *n, const fac_judge *by) {
    (void)to;
    if (FAC_IS(n, where) && n->out[0]->time == FAC_RUN) fuse(n, by->accept, by->self);
}

fac_graph *fac_pass_relu_pools(const fac_graph *g, fac_accept *accept, void *self) {
    return fac_pass_each(g, visit, &(fac_judge){ .accept = accept, .self = self });
}
