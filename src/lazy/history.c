/* Histories: what an op was made from, and which contents its gradient will read. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "grad/reverse.h"
#include "graph/build.h"
#include "lazy/lazy_internal.h"

enum { BITS = 64, MOST_SAVES = 8192 };

bool fac_history_wanted(int n, fac_lazy *const in[], unsigned flags) {
    if (flags & FAC_RECORD_NO_GRAD) return false;
    for (int i = 0; i < n; i++)
        if (in[i] && in[i]->requires) return true;
    return false;
}

/* ---- noting ---- */

static size_t text_bytes(const fac_op *op, const void *attrs) {
    size_t n = 0;
    for (const fac_attr *a = op->attrs; attrs && a && a->name; a++) {
        const char *s = NULL;
        if (a->kind == FAC_A_TEXT) memcpy(&s, (const char *)attrs + a->at, sizeof s);
        if (s) n += strlen(s) + 1;
    }
    return n;
}

static void copy_texts(const fac_op *op, char *attrs, char *to) {
    for (const fac_attr *a = op->attrs; a && a->name; a++) {
        const char *s = NULL;
        if (a->kind == FAC_A_TEXT) memcpy(&s, attrs + a->at, sizeof s);
        if (!s) continue;
        const size_t n = strlen(s) + 1;
        memcpy(to, s, n);
        memcpy(attrs + a->at, &to, sizeof to);
        to += n;
    }
}

static fac_status note_bodies(fac_made *m, const fac_node *node, fac_error *err) {
    for (int k = 0; k < 2; k++) {
        if (!node->body[k]) continue;
        const bool shared = node->op->is & FAC_OP_FLOW;
        m->body[k] = shared ? fac_graph_share(node->body[k]) : fac_graph_clone(node->body[k]);
        if (!m->body[k]) return fac_raise_memory(err, "a history");
    }
    return FAC_OK;
}

static uint64_t assigned_of(const fac_lazy *x) {
    return x && x->made->kind == FAC_MADE_STATE ? x->made->assigned : 0;
}

fac_status fac_history_note(fac_made *m, const fac_op *op, const void *attrs, const fac_node *node,
                            int nin, fac_lazy *const in[], fac_error *err) {
    const size_t texts = op ? text_bytes(op, attrs) : 0,
                 own = op ? (op->attrs_size + 7) / 8 * 8 : 0;
    char *block = fac_alloc((size_t)nin * (sizeof *m->in + sizeof *m->versions) + own + texts, 1);
    if (!block) return fac_raise_memory(err, "a history");
    m->in = (fac_lazy **)(void *)block;
    m->versions = (uint64_t *)(void *)(m->in + nin);
    m->attrs = m->versions + nin;
    m->op = op;
    if (own && attrs) memcpy(m->attrs, attrs, op->attrs_size);
    if (texts) copy_texts(op, m->attrs, (char *)m->attrs + own);
    m->nin = nin;
    m->nports = node ? node->nports : nin;
    for (int i = 0; i < nin; i++) {
        m->in[i] = in[i];
        m->versions[i] = assigned_of(in[i]);
        if (in[i]) fac_made_retain(in[i]->made);
    }
    return node ? note_bodies(m, node, err) : FAC_OK;
}

/* ---- which contents gradients read ---- */

typedef struct saves {
    uint64_t in, out;
} saves;

static bool needs_gradient(const fac_lazy *x) {
    return x && x->requires && fac_dtype_get(x->type.dtype)->kind == 'f';
}

static uint64_t bit(int i) { return (uint64_t)1 << (i < BITS - 1 ? i : BITS - 1); }

static fac_hash saves_key(const fac_made *m) {
    fac_hash h = fac_hash_int(fac_hash_start(37), (uint64_t)(uintptr_t)m->op);
    h = fac_attrs_hash(h, m->op, m->attrs);
    for (int i = 0; i < m->nin; i++) {
        const fac_lazy *x = m->in[i];
        h = fac_hash_int(h, !x ? 0
                               : (uint64_t)x->type.dtype << 8 | (uint64_t)needs_gradient(x) << 4 |
                                     (uint64_t)x->type.dims.n << 16 | 1);
        for (int k = 0; x && k < x->type.dims.n; k++)
            h = fac_hash_int(h, (uint64_t)x->type.dims.d[k]);
        if (!x || x->made->kind != FAC_MADE_INTS || fac_type_bytes(&x->type) > 128) continue;
        h = fac_hash_bytes(h, fac_tensor_data(x->tensor), fac_type_bytes(&x->type));
    }
    return h;
}

static fac_value *stand_in(fac_graph *g, const fac_lazy *x) {
    if (x->made->kind == FAC_MADE_INTS) return fac_const(g, x->tensor);
    fac_contents c;
    fac_value *v = fac_leaf_new(g, FAC_INPUT, NULL, x->type, NULL);
    if (v && fac_lazy_recorded(x) && fac_known_numbers(x->value, &c)) fac_knows(v, &c);
    return v;
}

static fac_graph *copy_body(const fac_made *m, int k) {
    if (!m->body[k]) return NULL;
    return m->op->is & FAC_OP_FLOW ? fac_graph_share(m->body[k]) : fac_graph_clone(m->body[k]);
}

/* m's op once more, of these values. */
static fac_node *emit_again(fac_graph *g, const fac_made *m, fac_value *const in[]) {
    fac_graph *body[2] = { copy_body(m, 0), copy_body(m, 1) };
    fac_node *n = fac_node_build(
        g, &(fac_emission){ m->op, m->attrs, m->nin, m->nports, in, { body[0], body[1] }, NULL });
    if (n) fac_node_link(n);
    for (int k = 0; k < 2 && !n; k++) fac_graph_free(body[k]);
    return n;
}

/* Is v read by anything but its own node, for more than its shape? */
static bool is_read(const fac_value *v, const fac_node *but) {
    for (const fac_use *u = v->uses; u; u = u->next)
        if (u->node != but && !(fac_port_flags(u->node, u->input) & FAC_SHAPE_ONLY)) return true;
    return false;
}

/* Emits the gradient into a graph of its own and looks what it reads. */
static saves try_gradient(const fac_made *m, fac_graph *g, fac_value **room, bool *needs) {
    saves s = { 0, 0 };
    fac_value **in = room, **dx = in + m->nin;
    for (int i = 0; i < m->nin; i++) in[i] = m->in[i] ? stand_in(g, m->in[i]) : NULL;
    fac_node *n = g->error.status ? NULL : emit_again(g, m, in);
    if (!n) return s;
    fac_value **dy = fac_arena_alloc(&g->arena, (size_t)n->nout + (size_t)n->nin, sizeof *dy);
    if (!dy) return s;
    dx = dy + n->nout;
    for (int k = 0; k < n->nout; k++) {
        const bool differs = fac_dtype_get(n->out[k]->type.dtype)->kind == 'f';
        if (differs) dy[k] = fac_leaf_new(g, FAC_INPUT, NULL, n->out[k]->type, NULL);
    }
    for (int i = 0; i < n->nin; i++) needs[i] = i < m->nin && needs_gradient(m->in[i]);
    fac_reverse r = { .g = g };
    fac_reverse_node(&r, n, needs, dy, dx);
    fac_reverse_end(&r);
    for (int i = 0; i < m->nin; i++)
        if (in[i] && is_read(in[i], n)) s.in |= bit(i);
    for (int k = 0; k < n->nout; k++)
        if (is_read(n->out[k], n)) s.out |= bit(k);
    for (int i = 0; i < n->nin; i++)
        for (int j = 0; j < m->nin && dx[i]; j++)
            if (dx[i] == in[j]) s.in |= bit(j);
    for (int i = 0; i < n->nin; i++)
        if (dx[i] && dx[i]->node == n) s.out |= bit(dx[i]->index);
    return s;
}

static int port_count(const fac_op *op) {
    int n = 0;
    while (op->in && op->in[n].name) n++;
    return n;
}

static fac_status find_saves(fac_recorder *r, const fac_made *m, saves *out, fac_error *err) {
    const fac_hash key = saves_key(m);
    saves *s = fac_keys_get(&r->saves, key);
    if (s) {
        *out = *s;
        return FAC_OK;
    }
    const size_t most = (size_t)m->nin + (size_t)port_count(m->op) + 1;
    fac_graph *g = fac_graph_new();
    fac_value **room = fac_alloc(2 * most, sizeof *room);
    bool *needs = fac_alloc(most, sizeof *needs);
    s = fac_alloc(1, sizeof *s);
    const bool ok = g && room && needs && s;
    if (ok) *out = *s = try_gradient(m, g, room, needs);
    if (r->saves.n >= MOST_SAVES) fac_keys_clear(&r->saves, fac_release);
    if (!ok || !fac_keys_put(&r->saves, key, s)) fac_release(s);
    fac_graph_free(g);
    fac_release(room);
    fac_release(needs);
    return ok ? FAC_OK : fac_raise_memory(err, "a history");
}

fac_status fac_history_keep(fac_made *m, fac_error *err) {
    if (m->kept || !m->nin || m->kind != FAC_MADE_OP) return FAC_OK;
    saves s;
    FAC_TRY(find_saves(m->r, m, &s, err));
    m->keep_in = s.in;
    m->keep_out = s.out;
    m->kept = true;
    for (int i = 0; i < m->nin; i++)
        if (m->in[i] && (s.in & bit(i))) m->in[i]->keeps++;
    for (int k = 0; k < m->nout; k++)
        if (s.out & bit(k)) m->cell[k].keeps++;
    return FAC_OK;
}

/* ---- ops whose segment is over ---- */

/* Zeros of its type, of which only the shape may be read. */
static fac_value *shape_of_lost(fac_graph *g, const fac_lazy *x) {
    return fac_expand_to(fac_number(g, x->type.dtype, 0), fac_ints(g, x->type.dims));
}

static const fac_lazy *unaliased(const fac_lazy *x) {
    while (x->made->kind == FAC_MADE_ALIAS) x = x->made->in[0];
    return x;
}

static bool has_contents(const fac_made *m, int i) {
    const fac_lazy *x = unaliased(m->in[i]);
    if (assigned_of(m->in[i]) != m->versions[i]) return false;
    return x->tensor || x->made->kind == FAC_MADE_NUMBER || fac_lazy_recorded(x);
}

fac_status fac_history_node(fac_made *m, fac_node **out, fac_error *err) {
    fac_recorder *r = m->r;
    if (m->node && m->epoch == r->epoch) {
        *out = m->node;
        return FAC_OK;
    }
    FAC_TRY(fac_segment_open(r, err));
    fac_value **in = fac_arena_alloc(&r->g->arena, (size_t)m->nin, sizeof *in);
    if (!in) return fac_raise_memory(err, "a gradient");
    for (int i = 0; i < m->nin; i++) {
        if (!m->in[i]) continue;
        if (has_contents(m, i))
            FAC_TRY(fac_segment_value(m->in[i], &in[i], err));
        else
            in[i] = shape_of_lost(r->g, m->in[i]);
    }
    *out = r->g->error.status ? NULL : emit_again(r->g, m, in);
    return *out ? FAC_OK : fac_segment_error(r, err);
}

static fac_status check_lost(const fac_made *m, const fac_node *n, fac_error *err) {
    for (int i = 0; i < m->nin; i++) {
        if (!m->in[i] || has_contents(m, i) || !is_read(n->in[i], n)) continue;
        if (assigned_of(m->in[i]) != m->versions[i])
            return fac_raise(err, FAC_E_ARGUMENT,
                             "the gradient of %s reads input %d, a state that was assigned since",
                             m->op->name, i);
        return fac_raise(err, FAC_E_INTERNAL,
                         "the gradient of %s reads input %d, which was not kept", m->op->name, i);
    }
    return FAC_OK;
}

/* A result that was not kept is made again: its inputs must be there. */
static fac_status check_complete(const fac_made *m, fac_error *err) {
    for (int i = 0; i < m->nin; i++)
        if (m->in[i] && !has_contents(m, i))
            return fac_raise(err, FAC_E_INTERNAL,
                             "the gradient of %s reads a result that was not kept", m->op->name);
    return FAC_OK;
}

fac_status fac_history_done(fac_made *m, fac_node *n, fac_error *err) {
    fac_recorder *r = m->r;
    if (n == m->node && m->epoch == r->epoch) return FAC_OK;
    FAC_TRY(check_lost(m, n, err));
    for (int k = 0; k < n->nout && k < m->nout; k++) {
        fac_value *v;
        if (!is_read(n->out[k], n)) continue;
        if (!m->cell[k].tensor) {
            FAC_TRY(check_complete(m, err));
            continue;
        }
        FAC_TRY(fac_segment_value(&m->cell[k], &v, err));
        fac_replace(n->out[k], v);
    }
    return r->g->error.status ? fac_segment_error(r, err) : FAC_OK;
}
