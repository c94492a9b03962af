/* Solver "group": independent elementwise nodes, the updates of all parameters say, in few
 * launches.
 *
 * Nodes that say the same of operands that lie alike (contiguous, or single numbers) are sets of
 * one launch, as many as its arguments have room for; each other node is a launch of its own. */
#include <string.h>
#include "backends/opencl/elementwise/elementwise.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph_internal.h"
#include "op_list.h"

/* One node of the body: a problem whose operands are those of the group. */
typedef struct part {
    fac_problem problem;
    fac_operand operands[FAC_GPU_OPERANDS];
    int of[FAC_GPU_OPERANDS]; /* which operand of the group; inputs first */
    fac_gpu_walk walk;
    fac_cl_expression says;
    bool done;
} part;

/* Operand numbers by value id of the body, one more than they are; 0 is none. */
static int *operands_of(const fac_graph *body, int nin) {
    int *of = fac_alloc(body->ids, sizeof *of);
    for (size_t i = 0; of && i < body->ninputs; i++) of[body->inputs[i]->id] = (int)i + 1;
    for (size_t k = 0; of && k < body->noutputs; k++)
        of[body->outputs[k].value->id] = nin + (int)k + 1;
    return of;
}

static bool part_of(const fac_opencl *o, const fac_problem *p, const fac_node *n, const int *of,
                    part *to) {
    if (n->nin + n->nout > FAC_GPU_OPERANDS) return false;
    to->problem = (fac_problem){ .node = n,
                                 .precision = p->precision,
                                 .nin = n->nin,
                                 .nout = n->nout,
                                 .in = to->operands,
                                 .out = to->operands + n->nin };
    for (int i = 0; i < n->nin + n->nout; i++) {
        const fac_value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
        to->of[i] = v ? of[v->id] - 1 : -1;
        if (to->of[i] < 0 || (i < n->nin && to->of[i] >= p->nin)) return false;
        to->operands[i] = to->of[i] < p->nin ? p->in[to->of[i]] : p->out[to->of[i] - p->nin];
        if (to->operands[i].type.dtype == FAC_NONE) return false;
    }
    return fac_gpu_walk_of(&to->problem, &to->walk) &&
           fac_cl_expression_of(&to->problem, o->limits.fp64, &to->says);
}

static void free_parts(part *parts, int n) {
    for (int k = 0; parts && k < n; k++) fac_cl_expression_free(&parts[k].says);
    fac_release(parts);
}

/* All nodes of the body.  FAC_E_UNSUPPORTED: one is not elementwise; FAC_E_NOMEM: memory is gone.
 */
static fac_status parts_of(const fac_opencl *o, const fac_problem *p, part **out) {
    const fac_graph *body = p->node->body[0];
    int *of = operands_of(body, p->nin), n = 0;
    part *parts = fac_alloc((size_t)body->nodes + 1, sizeof *parts);
    fac_status status = of && parts ? FAC_OK : FAC_E_NOMEM;
    for (const fac_node *m = body->first; m && !status; m = m->next, n++)
        if (!part_of(o, p, m, of, &parts[n]))
            status = parts[n].says.lost ? FAC_E_NOMEM : FAC_E_UNSUPPORTED;
    fac_release(of);
    if (!status)
        *out = parts;
    else
        free_parts(parts, parts ? body->nodes : 0);
    return status;
}

static bool same_text(const fac_text *a, const fac_text *b) {
    return a->n == b->n && (!a->n || !memcmp(a->s, b->s, a->n));
}

/* Sets of one launch: the same text, and operands that lie alike along the one dim. */
static bool alike(const part *a, const part *b) {
    const fac_gpu_walk *v = &a->walk, *w = &b->walk;
    if (v->dims != 1 || w->dims != 1 || v->operands != w->operands ||
        a->problem.nin != b->problem.nin)
        return false;
    for (int i = 0; i < v->operands; i++) {
        const bool single =
            w->size[0] == 1 && a->operands[i].type.dims.n == b->operands[i].type.dims.n;
        if (a->operands[i].type.dtype != b->operands[i].type.dtype) return false;
        if (v->stride[i][0] != w->stride[i][0] && !single) return false;
        if (v->stride[i][0] != 0 && v->stride[i][0] != 1) return false;
    }
    return a->says.doubles == b->says.doubles &&
           same_text(&a->says.functions, &b->says.functions) &&
           same_text(&a->says.statements, &b->says.statements);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    part *parts;
    for (int i = 0; i < p->nin + p->nout; i++) {
        fac_operand *x = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        if (x->type.dtype != FAC_NONE && x->layout.block)
            x->layout = fac_layout_plain(&x->type.dims);
    }
    const fac_status status = parts_of(o, p, &parts);
    if (status == FAC_E_UNSUPPORTED) return false; /* make() says that memory is gone */
    if (!status) free_parts(parts, p->node->body[0]->nodes);
    offer->seconds = fac_cl_price(o, p, 1 + p->node->body[0]->nodes / FAC_CL_SETS);
    return true;
}

/* The launch of part k and all later ones that go with it. */
static fac_status add_sets(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, part *parts,
                           int n, int k, fac_error *err) {
    const fac_gpu_walk *walks[FAC_CL_SETS];
    int operand[FAC_CL_BUFFERS], sets = 0;
    const int most = fac_cl_sets_most(o, &parts[k].walk), operands = parts[k].walk.operands;
    for (int j = k; j < n && sets < most; j++) {
        if (parts[j].done || (j > k && !alike(&parts[k], &parts[j]))) continue;
        parts[j].done = true;
        if (!parts[j].walk.count) continue;
        for (int i = 0; i < operands; i++) operand[sets * operands + i] = parts[j].of[i];
        walks[sets++] = &parts[j].walk;
    }
    return sets ? fac_cl_elementwise_add(o, p, plan, &parts[k].says,
                                         &(fac_cl_sets){ sets, walks, operand }, err)
                : FAC_OK;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const int n = p->node->body[0]->nodes;
    part *parts;
    fac_status status = parts_of(o, p, &parts);
    if (status) return fac_raise(err, FAC_E_NOMEM, "group: no memory for %d nodes", n);
    for (int k = 0; k < n && !status; k++)
        if (!parts[k].done) status = add_sets(o, p, plan, parts, n, k, err);
    free_parts(parts, n);
    return status;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, p->node->body[0]->nodes, add, out, err);
}

const fac_solver fac_cl_group = { .name = "group",
                                  .op = &fac_op_group,
                                  .rank = 30,
                                  .offer = offer,
                                  .make = make,
                                  .done = fac_cl_plan_done,
                                  .run = fac_cl_plan_run };
