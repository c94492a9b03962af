/* Keys of nodes: by the ops around them, by the parameters that they read, by their names. */
#include <ctype.h>
#include <string.h>
#include "report/cost/report.h"
#include "report/diff/match.h"

/* Of what it computes, bodies aside (they may hold constants by their address). */
static fac_hash own_hash(uint64_t seed, const fac_node *n) {
    fac_hash h = fac_hash_text(fac_hash_start(seed), n->op->name);
    h = fac_attrs_hash(h, n->op, n->attrs);
    h = fac_hash_int(h, (uint64_t)n->nin << 32 | (uint64_t)n->nout);
    for (int k = 0; k < 2; k++)
        h = fac_hash_int(h, n->body[k] ? (uint64_t)n->body[k]->nodes + 1 : 0);
    return h;
}

/* Leaves are known by their ids in the first model; the second one's go by their mates there. */
static fac_hash leaf_hash(const fac_diff_side *s, bool second, const fac_value *v, fac_hash h) {
    if (v->leaf == FAC_CONST) return fac_contents_hash(fac_hash_int(h, 1), v);
    const fac_value *of_a = second ? s->leaf[v->id] : v;
    if (second ? of_a != NULL : s->leaf[v->id] != NULL)
        return fac_hash_int(fac_hash_int(h, 2), of_a->id);
    return fac_hash_int(fac_hash_int(h, second ? 4 : 3), v->id);
}

void fac_match_hash_down(const fac_diff_side *s, bool second, fac_hash *to) {
    for (int p = 0; p < s->n; p++) {
        const fac_node *n = s->nodes[p];
        fac_hash h = own_hash(11, n);
        for (int i = 0; i < n->nin; i++) {
            const fac_value *v = n->in[i];
            if (!v)
                h = fac_hash_int(h, 0);
            else if (v->node)
                h = fac_hash_int(fac_hash_join(h, to[s->place[v->node->id]]), (uint64_t)v->index);
            else
                h = leaf_hash(s, second, v, h);
        }
        to[p] = h;
    }
}

static void add_hash(fac_hash *sum, fac_hash h) {
    sum->a += h.a;
    sum->b += h.b;
}

void fac_match_hash_up(const fac_diff_side *s, bool second, fac_hash *to) {
    for (int p = s->n - 1; p >= 0; p--) {
        const fac_node *n = s->nodes[p];
        fac_hash h = own_hash(13, n), readers = to[p];
        for (int i = 0; i < n->nin; i++)
            if (n->in[i] && !n->in[i]->node)
                h = leaf_hash(s, second, n->in[i], fac_hash_int(h, (uint64_t)i));
        for (int k = 0; k < n->nout; k++)
            for (const fac_use *u = n->out[k]->uses; u; u = u->next) {
                const fac_hash user = fac_hash_join(fac_hash_start(17), to[s->place[u->node->id]]);
                add_hash(&readers, fac_hash_int(user, (uint64_t)k << 32 | (uint64_t)u->input));
            }
        to[p] = fac_hash_join(h, readers);
    }
}

void fac_match_hash_ends(const fac_diff_side *s, bool second, fac_hash *to) {
    for (int p = 0; p < s->n; p++) to[p] = (fac_hash){ 0, 0 };
    for (size_t i = 0; i < s->g->noutputs; i++) {
        const fac_value *v = s->g->outputs[i].value;
        if (v->node)
            add_hash(&to[s->place[v->node->id]],
                     fac_hash_int(fac_hash_int(fac_hash_start(19), i), (uint64_t)v->index));
    }
    for (size_t i = 0; i < s->g->nparams; i++) {
        const fac_value *v = s->g->params[i]->next;
        if (v && v->node)
            add_hash(&to[s->place[v->node->id]],
                     leaf_hash(s, second, s->g->params[i], fac_hash_start(23)));
    }
}

void fac_match_hash_params(const fac_diff_side *s, bool second, fac_hash *to) {
    for (int p = 0; p < s->n; p++) {
        const fac_node *n = s->nodes[p];
        fac_hash h = fac_hash_text(fac_hash_start(29), n->op->name);
        bool any = false;
        for (int i = 0; i < n->nin; i++) {
            const fac_value *v = n->in[i];
            if (!v || v->node || v->leaf == FAC_CONST || v->leaf == FAC_INPUT || !s->leaf[v->id])
                continue;
            h = leaf_hash(s, second, v, fac_hash_int(h, (uint64_t)i));
            any = true;
        }
        to[p] = any ? h : (fac_hash){ 0, 0 };
    }
}

static bool is_numbered(const char *name) {
    const size_t n = strlen(name);
    return !n || isdigit((unsigned char)name[n - 1]);
}

/* Of what it is called; "" is no name. */
static fac_hash name_hash(const fac_node *n, const char *name, size_t length) {
    if (!length) return (fac_hash){ 0, 0 };
    return fac_hash_text(fac_hash_bytes(fac_hash_start(31), name, length), n->op->name);
}

/* Its module; our own files have the op after it. */
static size_t module_length(const char *path, const char *op) {
    const size_t length = strlen(path), tail = strlen(op);
    const bool ends =
        length > tail + 1 && path[length - tail - 1] == '.' && !strcmp(path + length - tail, op);
    return ends ? length - tail - 1 : length;
}

bool fac_match_hash_names(const fac_diff_side *s, fac_match_naming by, fac_arena *memory,
                          fac_hash *to) {
    for (int p = 0; p < s->n; p++) {
        const fac_node *n = s->nodes[p];
        const char *name = by == FAC_MATCH_MODULE ? fac_module_path(memory, n)
                           : n->name              ? n->name
                                                  : "";
        if (!name) return false;
        if (by == FAC_MATCH_GIVEN && is_numbered(name)) name = "";
        to[p] = name_hash(n, name,
                          by == FAC_MATCH_MODULE ? module_length(name, n->op->name) : strlen(name));
    }
    return true;
}
