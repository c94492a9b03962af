/* Which results need no memory of their own: those that may be written over an input that dies, and
 * the next contents of a parameter, written straight to the parameter when everybody else who reads
 * its old contents has run. */
#include <stdlib.h>
#include <string.h>
#include "backends/device.h"
#include "base/memory.h"
#include "op_list.h"
#include "ref/ref.h"
#include "plan/schedule.h"

/* The op of each element of output k reads no other element of input i, and nothing reads input i
 * after that.  The reference driver goes through a body node by node, so it may write one output
 * before another one's operands were read. */
static bool element_by_element(const fac_node *n, const fac_solver *solver, int i, int k) {
    if (solver == &fac_solver_ref && n->nout > 1) return false;
    if (n->op->is & FAC_OP_PARTS) return i == k;
    if (!FAC_IS(n, group)) return n->op->is & FAC_OP_INPLACE;
    const fac_graph *body =
        n->body[0]; /* its nodes run in any order, so one of them must have both */
    const fac_node *maker = body->outputs[k].value->node;
    if (!maker || !(maker->op->is & FAC_OP_INPLACE) || body->inputs[i]->roots) return false;
    for (const fac_use *u = body->inputs[i]->uses; u; u = u->next)
        if (u->node != maker) return false;
    return true;
}

/* May output k be written to this root: whatever the step reads there lies exactly as the output
 * will. */
static bool may_write(const fac_node *n, const fac_step *step, int root, int k) {
    const fac_problem *q = step->problem;
    const fac_operand *y = &q->out[k];
    for (int j = 0; j < k; j++)
        if (step->out[j].root == root) return false;
    for (int i = 0; i < q->nin; i++) {
        const fac_operand *x = &q->in[i];
        if (step->in[i].root != root) continue;
        if (!element_by_element(n, step->solver, i, k) || x->type.dtype != y->type.dtype)
            return false;
        if (!fac_dims_equal(&x->type.dims, &y->type.dims)) return false;
        if (!fac_layout_equal(&x->layout, &y->layout, &y->type.dims)) return false;
    }
    return true;
}

static int over_input(const fac_scheduler *s, const fac_node *n, const fac_step *step, int k) {
    const fac_operand *y = &step->problem->out[k];
    if (!(n->op->is & (FAC_OP_INPLACE | FAC_OP_PARTS))) return -1;
    for (int i = 0; i < n->nin; i++) {
        int root = step->in[i].root;
        if (!n->in[i] || root < 0 || root != s->at[n->in[i]->id].slot.root) continue;
        const fac_root *r = &s->plan->roots[root];
        if (r->kind != FAC_ROOT_ARENA || r->pending != 0 ||
            r->bytes < fac_layout_bytes(&y->layout, &y->type))
            continue;
        if (may_write(n, step, root, k)) return root;
    }
    return -1;
}

/* A parameter whose next contents output k is: its root, when it may be written over now. */
static int over_parameter(fac_scheduler *s, const fac_node *n, const fac_step *step, int k) {
    const fac_operand *y = &step->problem->out[k];
    if (!fac_layout_is_plain(&y->layout, &y->type.dims) || y->layout.offset) return -1;
    for (const fac_value *p = s->becomes[n->out[k]->id]; p; p = s->becomes[p->id]) {
        if (y->type.dtype != p->type.dtype || fac_lay_early(s, p)) continue;
        int root = s->at[p->id].slot.root;
        const fac_root *r = &s->plan->roots[root];
        if (r->kind == FAC_ROOT_TENSOR && r->pending == 0 && may_write(n, step, root, k))
            return root;
    }
    return -1;
}

int fac_in_place(fac_scheduler *s, const fac_node *n, const fac_step *step, int k) {
    if (s->plan->no_inplace || s->plan->observed) return -1;
    int root = over_parameter(s, n, step, k);
    return root >= 0 ? root : over_input(s, n, step, k);
}

/* ---- who becomes what ---- */

typedef struct holder {
    const fac_storage *storage;
    const fac_value *leaf;
} holder;

static int by_storage(const void *a, const void *b) {
    const fac_storage *x = ((const holder *)a)->storage, *y = ((const holder *)b)->storage;
    return (x > y) - (x < y);
}

static int by_id(const void *a, const void *b) {
    const fac_value *x = ((const holder *)a)->leaf, *y = ((const holder *)b)->leaf;
    return (x->id > y->id) - (x->id < y->id);
}

/* Parameters whose storage no other leaf reads: the others can only be copied to when the run is
 * over. */
bool fac_becomes(fac_scheduler *s) {
    const fac_graph *g = s->plan->graph;
    size_t n = 0, alone = 0;
    holder *all = fac_alloc(2 * (g->nparams + g->nconsts) + 1, sizeof *all),
           *own = all + g->nparams + g->nconsts;
    if (!all) return false;
    for (size_t i = 0; i < g->nparams; i++)
        all[n++] = (holder){ fac_tensor_storage(g->params[i]->tensor), g->params[i] };
    for (size_t i = 0; i < g->nconsts; i++)
        if (g->consts[i]->tensor)
            all[n++] = (holder){ fac_tensor_storage(g->consts[i]->tensor), g->consts[i] };
    qsort(all, n, sizeof *all, by_storage);
    for (size_t i = 0; i < n; i++) {
        bool shared = (i > 0 && all[i - 1].storage == all[i].storage) ||
                      (i + 1 < n && all[i + 1].storage == all[i].storage);
        if (!shared && all[i].leaf->next) own[alone++] = all[i];
    }
    qsort(own, alone, sizeof *own, by_id); /* addresses must not decide what a plan is */
    while (alone-- > 0) {
        const fac_value *p = own[alone].leaf;
        if (p->next->leaf != FAC_NOT_LEAF) continue;
        s->becomes[p->id] = s->becomes[p->next->id];
        s->becomes[p->next->id] = p;
    }
    fac_release(all);
    return true;
}
