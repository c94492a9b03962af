/* Products of one x with constant matrices, whose results only attention reads, become one product
 * with all of these side by side:
 *   q = x u + a, k = x v + b   ->   y = x [u v] + [a b],  q = y[.., :n],  k = y[.., n:]
 * Attention reads the slices where they stand.  Preserves the sums of each output. */
#include "facula/ops.h"
#include "op_list.h"
#include "passes/fusion/join_siblings.h"
#include "passes/passes.h"

enum { DEPTH = 8 }; /* of views between a product and what reads it */

/* All that read v, through views, are attentions, of their queries, keys and values. */
static bool feeds_attention(const fac_value *v, int depth) {
    if (!v->uses || v->roots || !depth) return false;
    for (const fac_use *u = v->uses; u; u = u->next) {
        if (FAC_IS(u->node, attention) && u->input < 3) continue;
        if (u->input || !u->node->op->view || u->node->nout != 1 ||
            !feeds_attention(u->node->out[0], depth - 1))
            return false;
    }
    return true;
}

/* The bias that the body adds; NULL: there is no body.  *known: it is one of the two. */
static fac_value *bias_of(const fac_node *n, bool *known) {
    const fac_graph *body = n->body[0];
    *known = !body;
    if (!body) return NULL;
    const fac_node *add = body->first;
    if (body->nodes != 1 || body->ninputs != 2 || !FAC_IS(add, add) || n->nin != 3) return NULL;
    fac_value *b = n->in[2];
    *known = b && b->time != FAC_RUN && b->type.dims.n == 1 &&
             b->type.dims.d[0] == n->in[1]->type.dims.d[1];
    return b;
}

static bool candidate(const fac_node *n) {
    bool known;
    if (!FAC_IS(n, matmul) || n->out[0]->time != FAC_RUN || n->in[0]->type.dims.n < 2) return false;
    const fac_value *w = n->in[1];
    if (w->time == FAC_RUN || w->type.dims.n != 2 || fac_dims_count(&w->type.dims) <= 0)
        return false;
    bias_of(n, &known);
    return known && feeds_attention(n->out[0], DEPTH);
}

static bool alike(const fac_node *a, const fac_node *b) {
    return !a->body[0] == !b->body[0] && a->in[1]->type.dtype == b->in[1]->type.dtype &&
           a->out[0]->type.dtype == b->out[0]->type.dtype;
}

static fac_graph *add_body(const fac_type *y, const fac_type *b) {
    fac_graph *body = fac_graph_new();
    if (!body) return NULL;
    fac_value *x0 = fac_input(body, "x0", y->dtype, y->dims),
              *x1 = fac_input(body, "x1", b->dtype, b->dims);
    fac_output(body, "y", fac_add(x0, x1));
    return body;
}

static fac_value *join(fac_graph *g, fac_node *const *all, int n, int *axis) {
    fac_value *w[FAC_SIBLINGS], *b[FAC_SIBLINGS];
    fac_type type = all[0]->out[0]->type;
    *axis = type.dims.n - 1;
    int64_t *const N = &type.dims.d[*axis];
    bool known;
    *N = 0;
    for (int i = 0; i < n; i++) {
        w[i] = all[i]->in[1];
        b[i] = bias_of(all[i], &known);
        *N += w[i]->type.dims.d[1];
    }
    fac_value *args[3] = { all[0]->in[0], fac_concat(w, n, 1), b[0] ? fac_concat(b, n, 0) : NULL };
    fac_graph *body = b[0] ? add_body(&type, &args[2]->type) : NULL;
    if (b[0] && !body) {
        fac_graph_raise(g, FAC_E_NOMEM, "no memory for a body of matmul");
        return NULL;
    }
    return fac_emit_body(g, all[0]->op, all[0]->attrs, b[0] ? 3 : 2, 2, args, body, NULL);
}

static void visit(fac_graph *to, fac_node *n, const fac_judge *by) {
    static const fac_siblings of = { candidate, alike, NULL, join };
    fac_join_siblings(to, n, &of, by);
}

fac_graph *fac_pass_sibling_products(const fac_graph *g, fac_accept *accept, void *self) {
    return fac_pass_each(g, visit, &(fac_judge){ .accept = accept, .self = self });
}
