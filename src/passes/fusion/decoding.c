/* A step of decoding becomes one node: query and key of one new row are rotated by their position,
 * key and value are written into caches, and attention reads these.
 *   k' = cache_write(k, rotary(a), at), v' = cache_write(v, b, at),
 *   y = attention(rotary(q), k', v', lengths) causal        ->   k', v', y = attention_step(...)
 * Preserves the sums of each output. */
#include "facula/ops.h"
#include "graph/attr.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "ops/attention_step.h"
#include "passes/common/each.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };
enum { X, COS, SIN, POSITIONS };

/* The rows that go into the cache v, which nothing reads but one attention; NULL: it is none. */
static fac_node *write_of(const fac_value *v) {
    const bool alone = v->uses && !v->uses->next;
    return v->node && FAC_IS(v->node, cache_write) && alone ? v->node : NULL;
}

/* Dims of 1 may go anywhere: elements stay in order. */
static bool keeps_order(const fac_node *n) {
    if (FAC_IS(n, reshape) || FAC_IS(n, unsqueeze) || FAC_IS(n, squeeze)) return true;
    if (!FAC_IS(n, transpose)) return false;
    const fac_dims *perm = fac_attr_at(n, "perm", FAC_A_DIMS), *d = &n->in[0]->type.dims;
    int64_t last = -1;
    for (int k = 0; perm && k < perm->n; k++) {
        if (d->d[perm->d[k]] == 1) continue;
        if (perm->d[k] < last) return false;
        last = perm->d[k];
    }
    return perm && perm->n == d->n;
}

/* What the views are of. */
static fac_value *before_views(fac_value *v) {
    while (fac_used_once(v) && v->node && v->node->nout == 1 && keeps_order(v->node))
        v = v->node->in[0];
    return v;
}

/* The node that rotates v; NULL: none does. */
static fac_node *rotary_of(const fac_value *v) {
    return fac_used_once(v) && v->node && FAC_IS(v->node, rotary) ? v->node : NULL;
}

static bool rotated_alike(const fac_node *a, const fac_node *b, int64_t groups) {
    const fac_rotary_opts *o = a->attrs, *p = b->attrs;
    const bool flat = b->in[X]->type.dims.n == 3;
    if (o->width != p->width || o->interleaved != p->interleaved) return false;
    if (flat && p->heads != groups) return false;
    for (int i = COS; i <= POSITIONS; i++)
        if (a->in[i] != b->in[i]) return false;
    return a->in[X]->type.dims.n == 4 || flat;
}

/* Attention of one row with lengths, causal, of which only the result is asked for. */
static bool is_step(const fac_node *n) {
    if (!FAC_IS(n, attention)) return false;
    const fac_attention_opts *o = n->attrs;
    const fac_dims *q = &n->in[Q]->type.dims;
    if (!o->causal || o->precision != FAC_NONE || !n->in[LENGTHS] || n->body[0]) return false;
    for (int i = MASK; i <= PAST_VALUE; i++)
        if (n->in[i]) return false;
    for (int k = 1; k < n->nout; k++)
        if (n->out[k] && (n->out[k]->uses || n->out[k]->roots)) return false;
    return n->out[0]->time == FAC_RUN && q->d[q->n == 4 ? 2 : 1] == 1;
}

static void settle_rotations(fac_value **in, int64_t groups, fac_attention_step_opts *o,
                             bool *fits) {
    fac_node *of_q = rotary_of(in[STEP_Q]);
    fac_value *rows = before_views(in[STEP_K]);
    fac_node *of_k = rotary_of(rows);
    *fits = true;
    if (!of_q) return;
    *fits = of_k && rotated_alike(of_q, of_k, groups);
    if (!*fits) return;
    const fac_rotary_opts *how = of_q->attrs;
    o->width = how->width;
    o->interleaved = how->interleaved;
    in[STEP_Q] = of_q->in[X];
    in[STEP_K] = of_k->in[X];
    for (int i = COS; i <= POSITIONS; i++) in[STEP_COS + i - COS] = of_q->in[i];
}

static void visit(fac_graph *to, fac_node *n, const fac_judge *by) {
    if (!is_step(n)) return;
    const fac_attention_opts *a = n->attrs;
    fac_node *keys = write_of(n->in[K]), *values = write_of(n->in[V]);
    if (!keys || !values || keys == values || keys->in[2] != values->in[2]) return;
    fac_attention_step_opts o = {
        .q_heads = a->q_heads, .scale = a->scale, .softcap = a->softcap, .window = a->window
    };
    fac_value *in[STEP_INPUTS] = { keys->in[0], values->in[0], keys->in[2],   n->in[Q],
                                   keys->in[1], values->in[1], n->in[LENGTHS] };
    bool fits;
    settle_rotations(in, keys->in[0]->type.dims.d[1], &o, &fits);
    if (!fits) return;
    fac_value *first = fac_emit(&fac_op_attention_step, &o, STEP_INPUTS, in);
    /* where it is not taken nothing reads it: the sweep takes it away */
    if (to->error.status || !first->node || !by->accept(by->self, first->node)) return;
    fac_node_named_as(first->node, n);
    fac_replace(n->out[0], fac_value_other(first, 2));
    fac_replace(keys->out[0], first);
    fac_replace(values->out[0], fac_value_other(first, 1));
}

fac_graph *fac_pass_decoding(const fac_graph *g, fac_accept *accept, void *self) {
    return fac_pass_each(g, visit, &(fac_judge){ .accept = accept, .self = self });
}
