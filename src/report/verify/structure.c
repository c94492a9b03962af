/* Two models that are one graph, written out in the smallest ops with whole numbers computed: the
 * same ops with the same attributes on the same numbers.  That needs no run, so it holds where runs
 * show nothing: where all outputs are 0, or no input matters. */
#include "base/error.h"
#include "base/memory.h"
#include "report/diff/match.h"
#include "report/verify/verify.h"

/* ---- what a value is ---- */

/* Bodies hold no parameters, or their contents would have to be looked at. */
static bool is_closed(const fac_graph *g) {
    for (const fac_node *n = g->first; n; n = n->next)
        for (int k = 0; k < 2; k++)
            if (n->body[k] && (n->body[k]->nparams || !is_closed(n->body[k]))) return false;
    return true;
}

static fac_hash of_leaf(fac_hash h, const fac_value *v) {
    if (v->type.dtype == FAC_TEXT || !v->tensor) return fac_const_hash(h, v);
    return fac_contents_hash(h, v);
}

/* By id: what each value is made of. */
static void hash_values(const fac_graph *g, fac_hash *of) {
    for (size_t i = 0; i < g->ninputs; i++) {
        const fac_value *v = g->inputs[i];
        of[v->id] = fac_hash_int(fac_hash_start(1), i);
        of[v->id] = fac_hash_int(of[v->id], v->type.dtype);
    }
    for (const fac_node *n = g->first; n; n = n->next) {
        fac_hash h = fac_node_hash(fac_hash_start(2), n);
        for (int i = 0; i < n->nin; i++) {
            const fac_value *v = n->in[i];
            h = fac_hash_int(h, v != NULL);
            if (v && !v->node && v->leaf != FAC_INPUT)
                h = fac_hash_join(h, of_leaf(fac_hash_start(3), v));
            else if (v)
                h = fac_hash_join(h, of[v->id]);
        }
        for (int k = 0; k < n->nout; k++) {
            const fac_type *t = &n->out[k]->type;
            of[n->out[k]->id] = fac_hash_int(fac_hash_int(h, (uint64_t)k), t->dtype);
            for (int d = 0; d < t->dims.n; d++)
                of[n->out[k]->id] = fac_hash_int(of[n->out[k]->id], (uint64_t)t->dims.d[d]);
        }
    }
}

static fac_hash of_output(const fac_value *v, const fac_hash *of) {
    return v->node || v->leaf == FAC_INPUT ? of[v->id] : of_leaf(fac_hash_start(3), v);
}

/* 1: each output of a is that of b; -1: no memory. */
static int equal(const fac_graph *a, const fac_graph *b) {
    fac_hash *x = fac_alloc((size_t)a->ids + 1, sizeof *x),
             *y = fac_alloc((size_t)b->ids + 1, sizeof *y);
    int same = -1;
    if (x && y) {
        hash_values(a, x);
        hash_values(b, y);
        same = is_closed(a) && is_closed(b);
        for (size_t k = 0; k < a->noutputs; k++) {
            const fac_hash p = of_output(a->outputs[k].value, x);
            const fac_hash q = of_output(b->outputs[k].value, y);
            same &= p.a == q.a && p.b == q.b;
        }
    }
    fac_release(x);
    fac_release(y);
    return same;
}

/* Takes both and frees them; as equal(). */
static int equal_written_out(fac_graph *a, fac_graph *b) {
    fac_graph *x = NULL, *y = NULL;
    if (a) x = fac_written_out(a);
    if (b) y = fac_written_out(b);
    int answer = x && y ? 0 : -1;
    if (!answer && !fac_graph_check(x, NULL) && !fac_graph_check(y, NULL)) answer = equal(x, y);
    fac_graph_free(a);
    fac_graph_free(b);
    fac_graph_free(x);
    fac_graph_free(y);
    return answer;
}

/* In the types that they have, so that both round alike; and in f64, since an attribute that
 * becomes a constant of a narrow type there may be another number of that type. */
fac_status fac_verify_structure(const fac_trial *t, bool *same) {
    const fac_graph *a = t->a.graph, *b = t->b.graph;
    int answer = equal(a, b);
    if (!answer && fac_can_widen(a) && fac_can_widen(b)) {
        answer = equal_written_out(fac_graph_clone(a), fac_graph_clone(b));
        if (answer == 1) answer = equal_written_out(fac_widen(a, FAC_F64), fac_widen(b, FAC_F64));
    }
    *same = answer == 1;
    return answer < 0 ? fac_raise_memory(t->err, "a model") : FAC_OK;
}
