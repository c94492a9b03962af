/* Bias, residual add and activation become part of the convolution or matrix product before them:
 * its bias port and its body (see fac_node.body).  Works along the chain: conv -> add -> relu is
 * fused in two steps, the first making conv {add(_, x1)}. */
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/casts.h"
#include "passes/passes.h"
#include "passes/common/single.h"

typedef struct epilogue {
    fac_accept *accept;
    void *self;
} epilogue;

enum { OPERANDS = 8 };

static bool anchor(const fac_node *n) {
    static const fac_op *const names[] = { &fac_op_conv2d,
                                           &fac_op_conv2d_grad_x,
                                           &fac_op_conv3d,
                                           &fac_op_conv_transpose2d,
                                           &fac_op_conv_transpose3d,
                                           &fac_op_linear,
                                           &fac_op_gemm,
                                           &fac_op_matmul,
                                           NULL };
    return n && fac_op_is_one_of(n->op, names) && n->out[0]->time == FAC_RUN && n->nin < OPERANDS;
}

/* The operand a of n as the result of an anchor that n alone reads, or NULL. */
static fac_node *before(const fac_node *n, fac_value *const in[], int a) {
    fac_node *m = in[a] ? in[a]->node : NULL;
    return anchor(m) && in[a]->index == 0 && fac_used_once(n->in[a]) ? m : NULL;
}

/* What only n reads of one value and numbers, such as the mask y > 0 of a ReLU's gradient: made
 * where it is used, it need not be written and read.  Which input of it is the value; -1: it is
 * something else. */
static int absorbed(const fac_node *n, fac_value *const in[], int i) {
    const fac_node *f = in[i]->node;
    int value = -1;
    if (!f || f->nin > OPERANDS || !f->op->map || f->body[0] || f->nout != 1 ||
        in[i]->time != FAC_RUN || !fac_used_once(n->in[i]))
        return -1;
    for (int k = 0; k < f->nin; k++) {
        if (f->in[k] && fac_is_number(f->in[k])) continue;
        if (value >= 0 || !f->in[k] || !fac_dims_equal(&f->in[k]->type.dims, &n->out[0]->type.dims))
            return -1;
        value = k;
    }
    return value;
}

/* The node f in the body, of value instead of its input k. */
static fac_value *rebuilt(fac_graph *body, const fac_node *f, int k, fac_value *value) {
    fac_value *ops[OPERANDS] = { NULL }, *made[1];
    for (int i = 0; i < f->nin; i++)
        if (i == k)
            ops[i] = value;
        else if (f->in[i])
            ops[i] = fac_const(body, f->in[i]->tensor);
    fac_node_copy(body, f, ops, made);
    return made[0];
}

static void no_memory(fac_graph *to, const fac_node *m) {
    fac_graph_raise(to, FAC_E_NOMEM, "no memory for what follows %s", m->op->name);
}

/* The anchor with n at the end of its body; NULL when that cannot be.  absorbs: with what
 * absorbed() finds; *some: it did. */
static fac_value *extend(fac_graph *to, fac_node *m, const fac_node *n, fac_value *const in[],
                         int a, bool absorbs, bool *some) {
    fac_value *args[OPERANDS + 1], *ops[OPERANDS], *made[1];
    int count = m->nin;
    fac_graph *body =
        m->body[0] ? fac_graph_rebuild(m->body[0], &(fac_rebuild){ .keep_dead = false }, NULL)
                   : fac_graph_new();
    if (!body || body->error.status == FAC_E_NOMEM) no_memory(to, m);
    if (!body || body->error.status || n->nout != 1 || n->nin > OPERANDS) {
        fac_graph_free(body);
        return NULL;
    }
    fac_value *last = m->body[0]
                          ? body->outputs[0].value
                          : fac_input(body, "x0", m->out[0]->type.dtype, m->out[0]->type.dims);
    for (int i = 0; i < m->nin; i++) args[i] = m->in[i];
    for (int i = 0; i < n->nin; i++) {
        if (i == a) {
            ops[i] = last;
        } else if (!in[i]) {
            ops[i] = NULL;
        } else if (fac_is_number(in[i])) {
            ops[i] = fac_const(body, in[i]->tensor);
        } else if (count < OPERANDS && in[i] != in[a]) {
            const int value = absorbs ? absorbed(n, in, i) : -1;
            fac_value *v = value < 0 ? in[i] : in[i]->node->in[value];
            char name[16];
            snprintf(name, sizeof name, "x%zu", body->ninputs);
            ops[i] = fac_input(body, name, v->type.dtype, v->type.dims);
            args[count++] = v;
            if (value >= 0) {
                ops[i] = rebuilt(body, in[i]->node, value, ops[i]);
                *some = true;
            }
        } else {
            fac_graph_free(body);
            return NULL;
        }
    }
    fac_node_copy(body, n, ops, made);
    if (m->body[0]) {
        body->outputs[0].value->roots--;
        body->outputs[0].value = made[0];
        made[0]->roots++;
    } else
        fac_output(body, "y", made[0]);
    if (body->error.status) {
        if (body->error.status == FAC_E_NOMEM) no_memory(to, m);
        fac_graph_free(body);
        return NULL;
    }
    return fac_emit_body(to, m->op, m->attrs, count, m->nports, args, body, NULL);
}

static void name_as(fac_value *v, const fac_node *n) {
    if (!v->node) return;
    v->node->name = fac_arena_text(&v->graph->arena, n->name); /* n may go away with its graph */
    v->node->scope = fac_arena_text(&v->graph->arena, n->scope);
}

/* conv + [C,1,1]: into the bias port, when both are known before the run. */
static fac_value *bias(fac_node *m, fac_value *other) {
    int rank = m->out[0]->type.dims.n;
    if (m->body[0] || !(FAC_IS(m, conv2d) || FAC_IS(m, conv3d)) || other->time == FAC_RUN ||
        m->nports < 3)
        return NULL;
    const fac_dims *d = &other->type.dims;
    int64_t k = m->out[0]->type.dims.d[1];
    if (fac_dims_count(d) != k || (k != 1 && (d->n < rank - 1 || d->d[d->n - rank + 1] != k)))
        return NULL;
    if (m->in[2] && m->in[2]->time == FAC_RUN) return NULL;
    fac_value *b = fac_reshape_sizes(other, fac_shape(k));
    fac_value *args[3] = { m->in[0], m->in[1], m->in[2] ? fac_add(m->in[2], b) : b };
    return fac_emit(m->op, m->attrs, 3, args);
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    epilogue *e = self;
    if (!(n->op->map || fac_is_float_cast(n)) || n->body[0] || n->nout != 1 ||
        n->out[0]->time != FAC_RUN)
        return false;
    bool add = FAC_IS(n, add);
    /* of two candidates the one built last: its other operand is certainly there */
    int best = -1;
    for (int a = 0; a < n->nin; a++) {
        fac_node *m = before(n, in, a);
        if (!m || !fac_dims_equal(&m->out[0]->type.dims, &n->out[0]->type.dims)) continue;
        if (best < 0 || m->id > in[best]->node->id) best = a;
    }
    for (int turn = 0; best >= 0 && turn < 2; turn++) {
        fac_node *m = in[best]->node;
        fac_value *v = add && n->nin == 2 && in[1 - best] ? bias(m, in[1 - best]) : NULL;
        for (int absorbs = 1; absorbs >= 0; absorbs--) {
            bool some = false;
            if (!v) v = extend(to, m, n, in, best, absorbs, &some);
            if (v && v->leaf != FAC_POISON && e->accept(e->self, v->node)) {
                name_as(v, m);
                out[0] = v;
                return true;
            }
            if (!some || (v && v->leaf == FAC_POISON)) break;
            v = NULL;
        }
        if (v && v->leaf == FAC_POISON) return false;
        /* the other operand of an add may be an anchor too */
        int other = n->nin == 2 ? 1 - best : -1;
        if (other < 0 || !before(n, in, other) ||
            !fac_dims_equal(&in[other]->type.dims, &n->out[0]->type.dims))
            break;
        best = other;
    }
    return false;
}

fac_graph *fac_pass_epilogue(const fac_graph *g, fac_accept *accept, void *self) {
    epilogue e = { accept, self };
    return fac_graph_rebuild(g, &(fac_rebuild){ .self = &e, .visit = visit }, NULL);
}
