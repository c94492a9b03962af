/* In mixed precision norms compute in f32 between narrow products:  narrow(norm(widen(x)))  and
 * narrow(norm(x)).  Kernels compute in f32 whatever they read and write, so the first is the norm
 * of x in the narrow type, with the same bits, and the second a norm whose body is the cast. */
#include "facula/ops.h"
#include "op_list.h"
#include "passes/common/casts.h"
#include "passes/passes.h"
#include "passes/common/single.h"

enum { PORTS = 3 };

typedef struct norms {
    fac_accept *accept;
    void *self;
} norms;

/* The norm that the cast n alone reads; NULL: there is none, or something reads its statistics. */
static fac_node *norm_before(const fac_node *n, fac_value *const in[]) {
    static const fac_op *const names[] = { &fac_op_layer_norm, &fac_op_rms_norm, &fac_op_group_norm,
                                           &fac_op_instance_norm, NULL };
    const fac_node *was = n->in[0]->node;
    fac_node *m = in[0]->node;
    if (!m || !was || !fac_op_is_one_of(m->op, names) || m->op != was->op || m->body[0] ||
        m->nin > PORTS)
        return NULL;
    if (in[0]->index || !fac_used_once(n->in[0])) return NULL;
    for (int k = 1; k < was->nout; k++)
        if (was->out[k] && (was->out[k]->uses || was->out[k]->roots)) return NULL;
    return m;
}

/* The norm in the narrow type of what is widened before it; NULL: nothing is. */
static fac_value *narrow_norm(const fac_node *m, fac_dtype low) {
    fac_node *widen = m->in[0]->node;
    fac_value *args[PORTS] = { NULL };
    if (m->in[0]->type.dtype != FAC_F32 || !widen || !fac_is_float_cast(widen)) return NULL;
    if (widen->in[0]->type.dtype != low || fac_dtype_get(low)->bits > 16) return NULL;
    for (int i = 1; i < m->nin; i++) args[i] = m->in[i];
    args[0] = widen->in[0];
    return fac_emit(m->op, m->attrs, m->nin, args);
}

static fac_value *with_body(fac_graph *to, const fac_node *m, fac_dtype low) {
    const fac_type *t = &m->out[0]->type;
    fac_value *args[PORTS] = { NULL };
    fac_graph *body = fac_graph_new();
    for (int i = 0; i < m->nin; i++) args[i] = m->in[i];
    if (body) fac_output(body, "y", fac_cast(fac_input(body, "x0", t->dtype, t->dims), low));
    if (!body || body->error.status) {
        fac_graph_raise(to, FAC_E_NOMEM, "no memory for the cast after %s", m->op->name);
        fac_graph_free(body);
        return NULL;
    }
    return fac_emit_body(to, m->op, m->attrs, m->nin, m->nports, args, body, NULL);
}

static bool taken(const norms *s, const fac_node *m, fac_value *v) {
    if (!v || !v->node || !s->accept(s->self, v->node)) return false;
    v->node->name = fac_arena_text(&v->graph->arena, m->name);
    v->node->scope = fac_arena_text(&v->graph->arena, m->scope);
    return true;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    const norms *s = self;
    if (!fac_is_float_cast(n)) return false;
    const fac_node *m = norm_before(n, in);
    if (!m) return false;
    const fac_dtype low = n->out[0]->type.dtype;
    out[0] = narrow_norm(m, low);
    if (taken(s, m, out[0])) return true;
    out[0] = with_body(to, m, low);
    return taken(s, m, out[0]);
}

fac_graph *fac_pass_norm_casts(const fac_graph *g, fac_accept *accept, void *self) {
    norms s = { accept, self };
    return fac_graph_rebuild(g, &(fac_rebuild){ .self = &s, .visit = visit }, NULL);
}
