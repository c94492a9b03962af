/* ONNX's If: one of two bodies.  With a condition that is known its expansion is that body. */
#include <stdio.h>
#include <string.h>
#include "graph/onnx_flow.h"
#include "graph/onnx_write.h"
#include "ops/cost.h"
#include "ops/flow.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* What then_body makes of cond, in[0..n) where cond (a bool scalar) is true, else what else_body
 * makes of them: closed graphs with these inputs and as many outputs, of equal types; sizes may
 * differ, and are known when the graph runs then.  g takes them over. */
void fac_if(fac_graph *g, fac_value *cond, fac_graph *then_body, fac_graph *else_body, int n,
            fac_value *const in[], fac_value *out[]);
#endif

static const fac_port in[] = { { "cond", FAC_BOOLS, 0 },
                               { "x", FAC_ANY, FAC_OPTIONAL | FAC_VARIADIC },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_ANY, FAC_VARIADIC }, { 0 } };

/* Which body: 0 or 1; -1 unknown before the run. */
static int chosen(const fac_node *n) {
    bool is;
    return fac_flow_always(n->in[0], &is) ? !is : -1;
}

/* ---- types ---- */

/* Output k of body b. */
static void take(fac_node *n, fac_flow f[2], int b, int k) {
    n->out[k]->type = fac_flow_type(&f[b], (size_t)k);
    n->out[k]->guess = f[b].body->outputs[k].value->guess;
}

/* Output k of either.  Which number of dims it has shows when the condition is known. */
static bool join(fac_node *n, fac_flow f[2], int k) {
    fac_value *y = n->out[k];
    take(n, f, 1, k);
    const fac_type b = y->type;
    const fac_guess guess = y->guess;
    take(n, f, 0, k);
    if (y->type.dtype != b.dtype)
        return fac_fail(n, FAC_E_UNSUPPORTED, "output %d is %s or %s", k,
                        fac_dtype_get(y->type.dtype)->name, fac_dtype_get(b.dtype)->name);
    if (guess > y->guess) y->guess = guess;
    if (y->type.dims.n != b.dims.n || y->guess == FAC_RANKLESS)
        return fac_rankless(y, b.dtype), true;
    for (int j = 0; j < b.dims.n; j++)
        if (y->type.dims.d[j] != b.dims.d[j]) y->type.dims.d[j] = fac_symbol(n->graph, NULL);
    return true;
}

static bool put_types(fac_node *n, fac_flow f[2]) {
    const int which = chosen(n);
    if (n->body[0]->noutputs != n->body[1]->noutputs)
        return fac_fail(n, FAC_E_ARGUMENT, "its bodies have %zu and %zu outputs",
                        n->body[0]->noutputs, n->body[1]->noutputs);
    if (!fac_node_outputs(n, (int)n->body[0]->noutputs)) return false;
    for (int k = 0; k < n->nout; k++) {
        if (which >= 0)
            take(n, f, which, k);
        else if (!join(n, f, k))
            return false;
    }
    return true;
}

static bool infer(fac_node *n) {
    fac_flow f[2] = { { 0 }, { 0 } };
    fac_flow_feed *feed = fac_arena_alloc(&n->graph->arena, (size_t)n->nin + 1, sizeof *feed);
    bool ok = feed != NULL;
    if (!ok) return fac_fail(n, FAC_E_NOMEM, "no memory for the types of its bodies");
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i]) return fac_fail(n, FAC_E_ARGUMENT, "input %d is missing", i);
        feed[i] = fac_flow_same(n->in[i]);
    }
    const fac_dims *d = &n->in[0]->type.dims;
    if (d->n > 1 || (d->n == 1 && d->d[0] >= 0 && d->d[0] != 1))
        return fac_fail(n, FAC_E_SHAPE, "cond must be one element");
    const int which = chosen(n); /* the other body need not even fit these sizes */
    for (int k = 0; k < 2 && ok; k++)
        ok = (which >= 0 && which != k) || fac_flow_open(&f[k], n, k, n->nin, feed);
    ok = ok && ((n->body[0] && n->body[1]) || fac_fail(n, FAC_E_ARGUMENT, "it lacks a body")) &&
         put_types(n, f);
    for (int k = 0; k < 2; k++)
        if (f[k].n) fac_flow_close(&f[k], ok);
    return ok;
}

/* ---- what it means ---- */

static int64_t expands(const fac_node *n) {
    const int which = chosen(n);
    return which < 0 ? 0 : fac_flow_nodes(n->body[which]) + 1;
}

static void expand(const fac_node *n, fac_value *y[]) {
    const int which = chosen(n);
    if (which >= 0)
        fac_flow_inline(n, n->body[which], NULL, n->in, y);
    else
        fac_fail((fac_node *)n, FAC_E_UNSUPPORTED, "its condition is not known before the run");
}

/* "dy.0"; in the gradient of a gradient that is taken, and it is "dy.0_2". */
static fac_value *input_for_dy(fac_graph *g, int j, const fac_value *y) {
    char want[24];
    snprintf(want, sizeof want, "dy.%d", j);
    const char *name = fac_graph_fresh(g, want);
    return name ? fac_input(g, name, y->type.dtype, y->type.dims)
                : fac_graph_raise(g, FAC_E_NOMEM, "no memory for a name");
}

/* The body's gradient: from its inputs and dy[] to what is needed of dx[]. */
static fac_graph *grad_body(const fac_node *n, int k, fac_value *const dy[]) {
    fac_graph *g = fac_graph_clone(n->body[k]);
    if (!g || g->error.status) return g;
    const size_t inputs = g->ninputs;
    fac_value *loss = NULL, **wrt = fac_arena_alloc(&g->arena, 2 * inputs + 1, sizeof *wrt),
              **dx = wrt + inputs;
    int count = 0;
    for (int j = 0; wrt && j < n->nout; j++) {
        if (!dy[j]) continue;
        fac_value *y = g->outputs[j].value, *d = input_for_dy(g, j, y);
        fac_value *part = fac_sum(fac_mul(y, d), (fac_dims){ 0 }, false);
        loss = loss ? fac_add(loss, part) : part;
    }
    for (size_t i = 0; wrt && i < inputs; i++)
        if (fac_needs(n, (int)i)) wrt[count++] = g->inputs[i];
    while (g->noutputs) g->outputs[--g->noutputs].value->roots--;
    if (!wrt)
        fac_graph_raise(g, FAC_E_NOMEM, "no memory for a gradient");
    else if (loss)
        fac_grad(loss, count, wrt, dx);
    for (int i = 0; i < count && !g->error.status; i++) {
        char name[24];
        snprintf(name, sizeof name, "dx.%d", i);
        fac_output(g, name, dx[i]);
    }
    fac_graph_sweep(g);
    return g;
}

/* An if of the gradients, where the condition is data. */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_graph *g = n->graph, *body[2];
    fac_value **all = fac_arena_alloc(&g->arena, (size_t)(2 * n->nin + n->nout), sizeof *all),
              **made = all + n->nin + n->nout;
    int count = 0, k = 0;
    if (!all) {
        fac_graph_raise(g, FAC_E_NOMEM, "if: no memory for its gradient");
        return;
    }
    for (int i = 1; i < n->nin; i++) all[count++] = n->in[i];
    for (int j = 0; j < n->nout; j++)
        if (dy[j]) all[count++] = dy[j];
    for (int i = 0; i < 2; i++)
        if (!(body[i] = grad_body(n, i, dy)))
            fac_graph_raise(g, FAC_E_NOMEM, "if: no memory for its gradient");
    fac_if(g, n->in[0], body[0], body[1], count, all, made);
    for (int i = 0; i < n->nin; i++)
        if (fac_needs(n, i)) dx[i] = made[k++];
}

/* The more expensive of the two: which one runs is known in the run only. */
static void cost(const fac_node *n, fac_cost *c) {
    fac_cost each[2];
    memset(each, 0, sizeof each);
    for (int k = 0; k < 2; k++) fac_flow_cost(n->body[k], 1, &each[k]);
    *c = each[chosen(n) >= 0 ? chosen(n) : each[1].macs > each[0].macs];
    fac_cost_bytes(n, c);
}

/* ---- ONNX ---- */

/* With a condition that is known nothing of the other branch counts, which may not even fit the
 * sizes at hand. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[], fac_value *y[]) {
    bool is;
    if (fac_flow_always(ins[0], &is)) {
        fac_onnx_body_inputs(n, is ? "else_branch" : "then_branch");
        fac_onnx_body_here(n, is ? "then_branch" : "else_branch", n->nout, y);
        return;
    }
    fac_onnx_outer outer = { (fac_value *[8]){ ins[0] }, 1,
                             8 }; /* input 0 of the bodies: the condition */
    if (fac_onnx_body_inputs(n, "then_branch") < 0 || fac_onnx_body_inputs(n, "else_branch") < 0)
        return;
    fac_graph *yes = fac_onnx_body(n, "then_branch", 0, NULL, &outer);
    fac_graph *no = yes ? fac_onnx_body(n, "else_branch", 0, NULL, &outer) : NULL;
    if (yes && no) fac_onnx_body_complete(yes, 0, &outer);
    fac_value **made = no ? fac_arena_alloc(&g->arena, yes->noutputs, sizeof *made) : NULL;
    if (!made || yes->noutputs != no->noutputs || yes->noutputs < (size_t)n->nout) {
        if (no)
            fac_fail_graph(g, made ? FAC_E_FORMAT : FAC_E_NOMEM,
                           "%d outputs of If, whose branches have %zu and %zu", n->nout,
                           yes->noutputs, no->noutputs);
        fac_graph_free(yes);
        fac_graph_free(no);
        return;
    }
    fac_if(g, ins[0], yes, no, outer.n - 1, outer.v + 1, made);
    for (int k = 0; k < n->nout; k++) y[k] = made[k];
}

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *cond = fac_onnx_ranked(w, n->in[0], 0), *first = fac_onnx_name(w, n->out[0]);
    fac_onnx_put(w, "If", 1, &cond, first ? first : "");
    for (int k = 1; k < n->nout; k++) fac_onnx_put_out(w, fac_onnx_name(w, n->out[k]));
    fac_onnx_put_body(w, "then_branch", n, 0, 0);
    fac_onnx_put_body(w, "else_branch", n, 1, 0);
    return true;
}

static const fac_onnx_attr names[] = { { "then_branch", NULL }, { "else_branch", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "If", 1, 0, names, load, 0 }, { 0 } };
static const fac_case cases[] = {
    { "if(bool(1), f32[2,3], f32[3]) {t0 = mul(x1, x2); t0} {t0 = add(x1, x2); t0}", -2, 2, 1e-6 },
    { "if(bool(0), f64[2], f64[2]) {t0 = mul(x1, x2); t0, x1} {t0 = exp(x1); t0, x2}", -2, 2,
      1e-6 },
    { 0 }
};

const fac_op fac_op_if = {
    .name = "if",
    .doc = "one body or the other",
    .in = in,
    .out = out,
    .is = FAC_OP_BODIES | FAC_OP_FLOW,
    .infer = infer,
    .expand = expand,
    .expands = expands,
    .grad = grad,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

void fac_if(fac_graph *g, fac_value *cond, fac_graph *then_body, fac_graph *else_body, int n,
            fac_value *const in_[], fac_value *out_[]) {
    const int count = then_body ? (int)then_body->noutputs : 0;
    fac_value **all = g && n >= 0 ? fac_arena_alloc(&g->arena, (size_t)n + 1, sizeof *all) : NULL;
    fac_value *y = g ? g->poison : NULL;
    if (all) {
        all[0] = cond;
        for (int i = 0; i < n; i++) all[1 + i] = in_[i];
        y = fac_emit_body(g, &fac_op_if, NULL, n + 1, n + 1, all, then_body, else_body);
    } else {
        fac_graph_free(then_body);
        fac_graph_free(else_body);
        if (g) fac_graph_raise(g, FAC_E_NOMEM, "if: no memory for %d inputs", n);
    }
    fac_flow_outputs(y, count, out_);
}
