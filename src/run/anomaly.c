/* The first node that makes NaN or infinity: a program with opts.detect_anomaly looks at every
 * result of every step.
 *
 * An infinity that a constant brings in is meant (the -inf of a mask), and so is one made from such
 * a value; NaN never is. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "backends/transfer.h"
#include "run/run.h"
#include "plan/plan.h"

typedef struct count {
    int64_t nan, inf, of;
} count;

static count count_plain(fac_dtype dtype, const char *from, int64_t n) {
    enum { BLOCK = 512 };
    double x[BLOCK];
    size_t size = (size_t)fac_dtype_get(dtype)->block_bytes;
    count c = { .of = n };
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t now = n - at < BLOCK ? n - at : BLOCK;
        fac_convert(FAC_F64, x, dtype, from + (size_t)at * size, (size_t)now);
        for (int64_t i = 0; i < now; i++) {
            c.nan += isnan(x[i]) != 0;
            c.inf += isinf(x[i]) != 0;
        }
    }
    return c;
}

/* Of an operand where it lies; nothing but floats can be wrong. */
static fac_status count_bad(const fac_plan *plan, const fac_operand *o, fac_span at, count *out,
                            fac_error *err) {
    *out = (count){ 0 };
    if (!at.memory || fac_dtype_get(o->type.dtype)->kind != 'f') return FAC_OK;
    const size_t bytes = fac_type_bytes(&o->type);
    const int64_t n = fac_dims_count(&o->type.dims);
    if (fac_in_sight(plan->device) && fac_layout_is_plain(&o->layout, &o->type.dims)) {
        const char *from =
            (const char *)plan->device->backend->host(plan->device, at.memory) + at.at;
        *out = count_plain(
            o->type.dtype,
            from + (size_t)o->layout.offset * (size_t)fac_dtype_get(o->type.dtype)->block_bytes, n);
        return FAC_OK;
    }
    char *copy = fac_alloc(bytes ? bytes : 1, 1);
    if (!copy) return fac_raise(err, FAC_E_NOMEM, "no memory to look at %zu bytes", bytes);
    fac_status status = fac_fetch(plan->device, &o->type, at, &o->layout, copy, err);
    if (!status) *out = count_plain(o->type.dtype, copy, n);
    fac_release(copy);
    return status;
}

/* Of input i of a step.  What was packed for it is not looked at but for a leaf, which has its
 * contents elsewhere. */
static fac_status count_input(const fac_plan *plan, const fac_step *s, int i, fac_span at,
                              count *out, fac_error *err) {
    const fac_value *v = s->problem->node->in[i];
    *out = (count){ 0 };
    if (v && v->tensor && fac_tensor_contiguous(v->tensor) && fac_tensor_data(v->tensor)) {
        if (fac_dtype_get(v->type.dtype)->kind == 'f')
            *out = count_plain(v->type.dtype, fac_tensor_data(v->tensor),
                               fac_dims_count(&v->type.dims));
        return FAC_OK;
    }
    return i < 32 && s->packed >> i & 1 ? FAC_OK
                                        : count_bad(plan, &s->problem->in[i], at, out, err);
}

static void say(const count *c, fac_text *to) {
    if (c->nan) fac_text_print(to, "%lld NaN", (long long)c->nan);
    if (c->inf) fac_text_print(to, "%s%lld infinite", c->nan ? " and " : "", (long long)c->inf);
    fac_text_print(to, " of %lld values", (long long)c->of);
}

/* ---- which part of a step it is ---- */

/* What reads what n makes: marks, by id of a node, what follows from n.  Nodes stand in a
 * topological order. */
static void follow(const fac_node *n, bool *follows) {
    follows[n->id] = true;
    for (const fac_node *m = n->next; m; m = m->next)
        for (int i = 0; i < m->nin && !follows[m->id]; i++)
            follows[m->id] = m->in[i] && m->in[i]->node && follows[m->in[i]->node->id];
}

/* "forward", "backward of layer1.conv", "update of fc.weight". */
static void part_of(const fac_node *n, fac_text *to) {
    const fac_graph *g = n->graph;
    bool *follows = fac_alloc((size_t)g->ids + 1, sizeof *follows), output = false;
    const char *first = NULL;
    int reached = 0;
    if (follows) follow(n, follows);
    for (size_t i = 0; follows && i < g->noutputs; i++)
        output |= g->outputs[i].value->node && follows[g->outputs[i].value->node->id];
    for (size_t i = 0; follows && i < g->nparams; i++) {
        const fac_value *p = g->params[i];
        if (!p->next || !p->next->node || !follows[p->next->node->id]) continue;
        /* moments are called as their parameter and something: "fc.weight.exp_avg" */
        if (!first || strncmp(p->name, first, strlen(first))) reached++, first = p->name;
    }
    fac_release(follows);
    if (output || !reached)
        fac_text_add(to, "forward");
    else if (n->scope)
        fac_text_print(to, "backward of %s", n->scope);
    else if (reached == 1)
        fac_text_print(to, "for the update of %s", first);
    else
        fac_text_add(to, "backward");
}

/* ---- the message ---- */

static fac_status found(const fac_plan *plan, const fac_step *s, int k, const count *c,
                        const fac_span *in, fac_error *err) {
    const fac_problem *q = s->problem;
    const fac_node *n = q->node;
    fac_text t = { 0 };
    bool finite = true;
    fac_text_print(&t, "%s (", n->op->name);
    part_of(n, &t);
    fac_text_add(&t, ") made ");
    say(c, &t);
    fac_text_add(&t, ", ");
    fac_type_print(n->graph, &q->out[k].type, &t);
    for (int i = 0; i < q->nin; i++) {
        count own;
        fac_status status = count_input(plan, s, i, in[i], &own, err);
        if (status) {
            fac_text_free(&t);
            return status;
        }
        if (!own.nan && !own.inf) continue;
        finite = false;
        const char *port = fac_port_name(n, i);
        fac_text_print(&t, "; its input %s has ",
                       n->in[i]->name ? n->in[i]->name
                       : port         ? port
                                      : "of the epilogue");
        say(&own, &t);
    }
    fac_status status =
        fac_raise(err, FAC_E_ARGUMENT, "anomaly: %s%s", t.failed ? n->op->name : t.s,
                  finite ? "; its inputs are finite" : "");
    fac_text_free(&t);
    return status;
}

fac_status fac_anomaly(const fac_plan *plan, const fac_step *s, const fac_span *in,
                       const fac_span *out, bool *meant, fac_error *err) {
    const fac_problem *q = s->problem;
    if (s->kind != FAC_STEP_RUN || !q->node->graph) return FAC_OK;
    bool excused = false;
    for (int i = 0; i < q->nin; i++) {
        const fac_value *v = q->node->in[i];
        count c = { 0 };
        if (v && v->leaf == FAC_CONST) FAC_TRY(count_input(plan, s, i, in[i], &c, err));
        excused |= v && (meant[v->id] || c.inf);
    }
    for (int k = 0; k < q->nout; k++) {
        count c;
        if (s->out[k].root < 0) continue;
        FAC_TRY(count_bad(plan, &q->out[k], out[k], &c, err));
        if (c.nan || (c.inf && !excused)) return found(plan, s, k, &c, in, err);
        meant[q->node->out[k]->id] = c.inf != 0;
    }
    return FAC_OK;
}
