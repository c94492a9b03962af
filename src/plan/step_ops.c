/* The ops that a step does, as the model has them: what analyses and profiles count. */
#include "ops/bodies.h"
#include "op_list.h"
#include "ops/conv_pool.h"
#include "plan/plan.h"

static double elements_of(const fac_value *v) {
    const int64_t n = fac_dims_count(&v->type.dims);
    return n > 0 ? (double)n : 0;
}

/* Of a node: itself, unless its body is all that it means, and the nodes of its body or epilogue; a
 * body that runs more or less than once (if, loop) is part of its node; a convolution with its pool
 * is both.  to NULL: only how many. */
static int list_ops(const fac_node *n, double runs, fac_step_op *to) {
    const bool fused = n->op->cost == fac_bodies_cost,
               inside = fused || !(n->op->is & FAC_OP_BODIES);
    int count = 0;
    fac_conv_geom conv;
    fac_pool_geom pool;
    const bool both = fac_conv_pool_geometry(n, &conv, &pool); /* two nodes of the model */
    const double compared =
        both ? elements_of(n->out[0]) * (double)(pool.window[1].kernel * pool.window[2].kernel) : 0;
    if (!fused) {
        fac_cost cost = { 0 };
        if (n->op->cost && fac_node_guess(n) != FAC_RANKLESS) n->op->cost(n, &cost);
        const double made =
            both ? (double)(conv.N * conv.K * conv.P * conv.Q) : elements_of(n->out[0]);
        const double own = cost.other - compared;
        if (to)
            *to = (fac_step_op){ (both ? &fac_op_conv2d : n->op)->name, cost.macs * runs,
                                 own * runs, made * runs };
        count++;
    }
    if (both && to)
        to[count] = (fac_step_op){ fac_op_max_pool2d.name, 0, compared * runs,
                                   elements_of(n->out[0]) * runs };
    count += both;
    for (const fac_node *m = inside && n->body[0] ? n->body[0]->first : NULL; m; m = m->next)
        count += list_ops(m, runs, to ? to + count : NULL);
    return count;
}

bool fac_step_count(fac_plan *p, fac_step *s, int64_t runs) {
    const fac_node *n = s->problem->node;
    if (s->kind != FAC_STEP_RUN || !n->graph) return true;
    s->ndoes = list_ops(n, (double)runs, NULL);
    s->does = fac_arena_alloc(&p->memory, (size_t)s->ndoes + 1, sizeof *s->does);
    if (s->does) list_ops(n, (double)runs, s->does);
    return s->does != NULL;
}
