/* Steps of fac_reduce: what of a graph may change, and the graph that has it changed. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "graph/attr.h"
#include "report/reduce/reduce.h"
#include "tensor/tensor_internal.h"

/* ---- attributes ---- */

static size_t size_of(const fac_attr *a) {
    const size_t count = a->count ? (size_t)a->count : 1;
    switch (a->kind) {
    case FAC_A_INT:
    case FAC_A_REAL:
        return 8 * count;
    case FAC_A_FLAG:
        return sizeof(bool);
    case FAC_A_ENUM:
        return sizeof(int);
    case FAC_A_DTYPE:
        return sizeof(fac_dtype);
    case FAC_A_DIMS:
        return sizeof(fac_dims);
    case FAC_A_TEXT:
        return sizeof(char *);
    case FAC_A_REALS:
        return sizeof(fac_reals);
    }
    return 0;
}

/* Whether an attribute says what nobody would have to say: 0 in the struct means the default, and
 * is replaced by it at once. */
static bool is_default(const fac_attr *a, const void *attrs) {
    const char *at = (const char *)attrs + a->at;
    for (int k = 0; k < (a->count ? a->count : 1); k++) {
        if (a->kind == FAC_A_INT) {
            if ((double)((const int64_t *)(const void *)at)[k] != a->zero_means) return false;
        } else if (a->kind == FAC_A_REAL) {
            const double x = ((const double *)(const void *)at)[k];
            if (x < a->zero_means || x > a->zero_means) return false;
        }
    }
    if (a->kind == FAC_A_INT || a->kind == FAC_A_REAL) return true;
    for (size_t k = 0; k < size_of(a); k++)
        if (at[k]) return false;
    return true;
}

/* ---- weights ---- */

static bool is_weight(const fac_value *v) {
    return (v->leaf == FAC_PARAM || v->leaf == FAC_STATE) &&
           fac_dtype_get(v->type.dtype)->kind == 'f' && v->tensor;
}

enum {
    STEPS = 256
}; /* random weights are multiples of 1/256 from -1 on: few digits, exact in every type */

static double new_weight(fac_step_kind kind, uint64_t seed, uint32_t id, int64_t i) {
    if (kind == FAC_LESS_ZEROS) return 0;
    return kind == FAC_LESS_ONES
               ? 1
               : (double)(fac_random_bits(seed, id, (uint64_t)i) % (2 * STEPS)) / STEPS - 1;
}

/* What a tensor holds: the simplest kind that fits.  FAC_LESS_KINDS: anything else. */
static fac_step_kind contents_of(const fac_value *v) {
    fac_tensor *wide = NULL;
    bool zeros = true, ones = true, small = true;
    if (fac_tensor_convert(v->tensor, FAC_F64, &wide, NULL)) return FAC_LESS_ZEROS;
    const double *x = fac_tensor_data(wide);
    for (int64_t i = 0; x && i < fac_dims_count(&v->type.dims); i++) {
        const double scaled = x[i] * STEPS;
        zeros &= x[i] >= 0 && x[i] <= 0;
        ones &= x[i] >= 1 && x[i] <= 1;
        small &= scaled >= -STEPS && scaled < STEPS && (double)(int64_t)scaled >= scaled &&
                 (double)(int64_t)scaled <= scaled;
    }
    fac_tensor_free(wide);
    if (zeros) return FAC_LESS_ZEROS;
    if (ones) return FAC_LESS_ONES;
    return small ? FAC_LESS_RANDOM : FAC_LESS_KINDS;
}

/* ---- what may change ---- */

typedef struct atoms {
    fac_atom *at;
    size_t n, room;
    bool failed;
} atoms;

static void add(atoms *a, fac_atom x) {
    if (!fac_reserve(&a->at, &a->room, a->n + 1, sizeof *a->at))
        a->failed = true;
    else
        a->at[a->n++] = x;
}

static fac_value *bypass_of(const fac_node *n) {
    for (int i = 0; i < n->nin && n->nout == 1; i++)
        if (n->in[i] && n->in[i]->type.dtype == n->out[0]->type.dtype &&
            fac_dims_equal(&n->in[i]->type.dims, &n->out[0]->type.dims))
            return n->in[i];
    return NULL;
}

static void node_atoms(const fac_graph *g, fac_step_kind kind, atoms *to) {
    for (const fac_node *n = g->first; n; n = n->next) {
        if (kind == FAC_LESS_NODES || (kind == FAC_LESS_BYPASS && bypass_of(n)))
            add(to, (fac_atom){ .id = n->id });
        for (int i = 0; i < n->nports && kind == FAC_LESS_OPTIONAL; i++)
            if (n->in[i] && (fac_port_flags(n, i) & FAC_OPTIONAL))
                add(to, (fac_atom){ .id = n->id, .at = i });
        for (int k = 0; kind == FAC_LESS_ATTRS && n->op->attrs && n->op->attrs[k].name; k++)
            if (!is_default(&n->op->attrs[k], n->attrs))
                add(to, (fac_atom){ .id = n->id, .at = k });
    }
}

/* The targets of one size: 1, 2, half of it. */
static void size_atoms(atoms *to, uint32_t id, int at, int64_t d) {
    const int64_t smaller[] = { 1, 2, d / 2 };
    for (int k = 0; k < 3 && (d > 1 || d < 0); k++)
        if ((d < 0 && k == 0) || (d > smaller[k] && smaller[k] >= 1 && (k < 2 || d > 5)))
            add(to, (fac_atom){ .id = id, .at = at, .from = d, .to = smaller[k] });
}

/* Dims of single inputs, then sizes wherever they stand. */
static void all_sizes(const fac_graph *g, atoms *to) {
    atoms seen = { 0 };
    for (size_t i = 0; i < g->ninputs; i++)
        for (int k = 0; k < g->inputs[i]->type.dims.n; k++)
            size_atoms(to, g->inputs[i]->id, k, g->inputs[i]->type.dims.d[k]);
    for (size_t i = 0; i < g->ninputs + g->nparams; i++) {
        const fac_value *v = i < g->ninputs ? g->inputs[i] : g->params[i - g->ninputs];
        for (int k = 0; k < v->type.dims.n; k++) {
            bool known = false;
            for (size_t j = 0; j < seen.n && !known; j++)
                known = seen.at[j].from == v->type.dims.d[k];
            if (known) continue;
            add(&seen, (fac_atom){ .from = v->type.dims.d[k] });
            size_atoms(to, 0, -1, v->type.dims.d[k]);
        }
    }
    to->failed |= seen.failed;
    fac_release(seen.at);
}

fac_status fac_reduce_atoms(const fac_graph *g, fac_step_kind kind, fac_atom **out, size_t *n,
                            fac_error *err) {
    atoms a = { 0 };
    if (kind == FAC_LESS_OUTPUTS)
        for (size_t k = 0; k < g->noutputs && g->noutputs > 1; k++)
            add(&a, (fac_atom){ .at = (int)k });
    else if (kind == FAC_LESS_SIZES)
        all_sizes(g, &a);
    else if (kind >= FAC_LESS_ZEROS)
        for (size_t k = 0; k < g->nparams; k++) {
            if (is_weight(g->params[k]) && contents_of(g->params[k]) > kind)
                add(&a, (fac_atom){ .id = g->params[k]->id });
        }
    else
        node_atoms(g, kind, &a);
    if (a.failed) {
        fac_release(a.at);
        return fac_raise_memory(err, "the steps of a search");
    }
    *out = a.at;
    *n = a.n;
    return FAC_OK;
}

/* ---- the graph without them ---- */

typedef struct change {
    fac_step_kind kind;
    const fac_atom *atoms;
    size_t n;
    uint64_t seed;
    uint8_t *marked; /* by id of a node or value of the old graph */
    bool broken;
} change;

static fac_value *resized(const change *c, fac_graph *to, const fac_value *v) {
    fac_dims d = v->type.dims;
    bool changed = false;
    const fac_atom *a = c->atoms;
    for (int k = 0; k < d.n; k++)
        if (d.d[k] == a->from && (a->at < 0 || (v->id == a->id && a->at == k))) {
            d.d[k] = a->to;
            changed = true;
        }
    if (!changed) return NULL;
    if (v->leaf == FAC_INPUT) return fac_input(to, v->name, v->type.dtype, d);
    fac_tensor *view = NULL, *t = NULL;
    fac_error err = { 0 };
    fac_status status =
        fac_tensor_view(v->tensor, d, fac_tensor_strides(v->tensor), 0, &view, &err);
    if (!status) status = fac_tensor_copy_contiguous(view, &t, &err);
    fac_value *made = status                 ? fac_graph_raise(to, status, "%s", err.text)
                      : v->leaf == FAC_PARAM ? fac_param(to, v->name, t)
                                             : fac_state(to, v->name, t);
    fac_tensor_free(view);
    fac_tensor_free(t);
    return made;
}

static fac_value *leaf(void *self, fac_graph *to, const fac_value *v) {
    change *c = self;
    if (c->kind == FAC_LESS_SIZES) return v->leaf == FAC_CONST ? NULL : resized(c, to, v);
    if (c->kind < FAC_LESS_ZEROS || !c->marked[v->id] || v->leaf == FAC_CONST) return NULL;
    fac_tensor *wide = NULL, *t = NULL;
    fac_error err = { 0 };
    fac_status status = fac_tensor_new(NULL, FAC_F64, v->type.dims, &wide, &err);
    double *x = status ? NULL : fac_tensor_memory(wide);
    for (int64_t i = 0; x && i < fac_dims_count(&v->type.dims); i++)
        x[i] = new_weight(c->kind, c->seed, v->id, i);
    if (!status) status = fac_tensor_convert(wide, v->type.dtype, &t, &err);
    fac_value *made = status                 ? fac_graph_raise(to, status, "%s", err.text)
                      : v->leaf == FAC_PARAM ? fac_param(to, v->name, t)
                                             : fac_state(to, v->name, t);
    fac_tensor_free(wide);
    fac_tensor_free(t);
    return made;
}

static void leave(change *c, fac_graph *to, const fac_node *n, fac_value *out[]) {
    for (int k = 0; k < n->nout; k++) {
        char name[300];
        const fac_value *v = n->out[k];
        const char *own = v->name ? v->name : "in";
        if (v->type.dtype == FAC_NONE) continue;
        snprintf(name, sizeof name, "%.280s", own);
        for (int i = 2; fac_table_get(&to->names, name); i++)
            snprintf(name, sizeof name, "%.280s_%d", own, i);
        out[k] = fac_input(to, name, v->type.dtype, v->type.dims);
    }
    c->broken |= to->error.status != 0;
}

static bool changed_node(change *c, fac_graph *to, const fac_node *n, fac_value *const in[],
                         fac_value *out[]) {
    fac_node copy = *n;
    char *attrs = fac_arena_alloc(&to->arena, 1, n->op->attrs_size + 1);
    fac_value **args = fac_arena_alloc(&to->arena, (size_t)n->nin + 1, sizeof *args);
    if (!attrs || !args) return fac_graph_raise(to, FAC_E_NOMEM, "no memory for a node"), true;
    memcpy(attrs, n->attrs, n->op->attrs_size);
    for (int i = 0; i < n->nin; i++) args[i] = in[i];
    for (size_t k = 0; k < c->n; k++) {
        if (c->atoms[k].id != n->id) continue;
        if (c->kind == FAC_LESS_OPTIONAL)
            args[c->atoms[k].at] = NULL;
        else
            memset(attrs + n->op->attrs[c->atoms[k].at].at, 0,
                   size_of(&n->op->attrs[c->atoms[k].at]));
    }
    copy.attrs = attrs;
    fac_node_copy(to, &copy, args, out);
    return true;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    change *c = self;
    if (!c->marked[n->id]) return false;
    if (c->kind == FAC_LESS_NODES) {
        leave(c, to, n, out);
    } else if (c->kind == FAC_LESS_BYPASS) {
        const fac_value *from = bypass_of(n);
        for (int i = 0; i < n->nin; i++)
            if (from && n->in[i] == from) out[0] = in[i];
    } else if (c->kind == FAC_LESS_OPTIONAL || c->kind == FAC_LESS_ATTRS) {
        return changed_node(c, to, n, in, out);
    }
    return out[0] != NULL;
}

static void mark(const change *c) {
    for (size_t k = 0; k < c->n; k++)
        if (c->kind != FAC_LESS_OUTPUTS && c->kind != FAC_LESS_SIZES) c->marked[c->atoms[k].id] = 1;
}

static bool has_output(const fac_graph *g, const char *name) {
    for (size_t k = 0; k < g->noutputs; k++)
        if (!strcmp(g->outputs[k].name, name)) return true;
    return false;
}

static void give(fac_graph *to, const char *name, fac_value *v) {
    char text[300];
    if (!v || v->leaf == FAC_POISON) return;
    snprintf(text, sizeof text, "%.280s", name ? name : "out");
    for (int i = 2; has_output(to, text); i++)
        snprintf(text, sizeof text, "%.280s_%d", name ? name : "out", i);
    fac_output(to, text, v);
}

static bool feeds_marked(const change *c, const fac_value *v) {
    for (const fac_use *u = v->uses; u; u = u->next)
        if (c->marked[u->node->id]) return true;
    return false;
}

/* The outputs that are left; what fed the nodes that left, too. */
static void give_outputs(const change *c, const fac_graph *g, fac_graph *to, fac_value **map,
                         bool dangling) {
    fac_forget_outputs(to);
    for (size_t k = 0; k < g->noutputs; k++) {
        const fac_value *v = g->outputs[k].value;
        bool gone = c->kind == FAC_LESS_NODES && v->node && c->marked[v->node->id];
        for (size_t i = 0; i < c->n && c->kind == FAC_LESS_OUTPUTS; i++)
            gone |= c->atoms[i].at == (int)k;
        if (!gone) give(to, g->outputs[k].name, map[v->id]);
    }
    for (const fac_node *n = g->first; n && dangling; n = n->next)
        for (int k = 0; k < n->nout && !c->marked[n->id]; k++)
            if (!n->out[k]->roots && feeds_marked(c, n->out[k]))
                give(to, n->out[k]->name, map[n->out[k]->id]);
}

/* A model whose outputs are nothing but its inputs computes nothing. */
static bool is_model(const fac_graph *g) { return g->noutputs && g->nodes; }

fac_graph *fac_reduce_apply(const fac_graph *g, fac_step_kind kind, const fac_atom *changed,
                            size_t n, bool dangling, uint64_t seed) {
    fac_value **map = NULL;
    change c = { kind, changed, n, seed, fac_alloc((size_t)g->ids + 1, 1), false };
    if (!c.marked) return NULL;
    mark(&c);
    fac_graph *cut = fac_graph_rebuild(
        g,
        &(fac_rebuild){
            .self = &c, .visit = visit, .leaf = leaf, .keep_dead = true, .blind = true },
        &map);
    if (cut && !cut->error.status) give_outputs(&c, g, cut, map, dangling);
    fac_release(c.marked);
    if (cut) fac_graph_sweep(cut);
    if (cut && !cut->error.status) fac_drop_unread_inputs(cut);
    const bool good = cut && !cut->error.status && is_model(cut);
    fac_graph *whole = good ? fac_graph_clone(cut) : NULL; /* without the names that are gone */
    fac_graph_free(cut);
    return whole;
}
