/* Floats of another type, but for nodes that are to keep theirs.
 *
 * Values become `to` where they are made, but results of a kept node stay as they are and are cast by those readers that want
 * `to`, once for each type: two kept nodes in a row lose nothing between them.  A parameter that a kept node reads keeps its
 * type too. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "edit/edit.h"
#include "facula/ops.h"

typedef struct floats {
    const fac_float_opts *opts;
    unsigned char        *kept;         /* by id of a node    */
    fac_value           **cast;         /* by id of a value of the new graph: what it is as the other type */
    size_t                room;
    fac_float_report      report;
} floats;

static bool is_float(fac_dtype d) { return fac_dtype_get(d)->kind == 'f'; }

/* ---- casts ---- */

/* A value of the new graph as this type; the same cast serves all readers. */
static fac_value *as(floats *f, fac_graph *to, fac_value *v, fac_dtype dtype) {
    if (!v || v->type.dtype == dtype || to->error.status) return v;
    const size_t before = f->room;
    if (!fac_reserve(&f->cast, &f->room, (size_t)v->id + 1, sizeof *f->cast))
        return fac_graph_raise(to, FAC_E_NOMEM, "no memory for casts");
    if (f->room > before) memset(f->cast + before, 0, (f->room - before) * sizeof *f->cast);
    fac_value *made = f->cast[v->id];
    if (!made || made->type.dtype != dtype) {
        const char *scope = to->scope;
        to->scope = NULL;               /* the cast serves others too */
        made = f->cast[v->id] = fac_cast(v, dtype);
        to->scope = scope;
        f->report.casts++;
    }
    return made;
}

/* ---- leaves ---- */

static bool read_by_kept(const floats *f, const fac_value *v) {
    for (const fac_use *u = v->uses; u; u = u->next)
        if (f->kept[u->node->id]) return true;
    return false;
}

/* Numbers that are finite and no longer are, or not zero and now are. */
static fac_status compare(floats *f, const fac_tensor *before, const fac_tensor *after) {
    const fac_type type = fac_tensor_type(before);
    const size_t n = (size_t)fac_dims_count(&type.dims);
    fac_tensor *x = NULL, *y = NULL;
    fac_status s = fac_tensor_convert(before, FAC_F64, &x, NULL);
    if (!s) s = fac_tensor_convert(after, FAC_F64, &y, NULL);
    const double *a = s ? NULL : fac_tensor_data(x), *b = s ? NULL : fac_tensor_data(y);
    for (size_t k = 0; a && b && k < n; k++) {
        f->report.overflowed += isfinite(a[k]) && !isfinite(b[k]);
        f->report.vanished += a[k] != 0 && b[k] == 0;
    }
    fac_tensor_free(x);
    fac_tensor_free(y);
    return s;
}

static fac_value *float_leaf(void *self, fac_graph *to, const fac_value *v) {
    floats *f = self;
    const fac_dtype want = f->opts->to;
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    if (!is_float(v->type.dtype) || v->type.dtype == want) return NULL;
    if (v->leaf == FAC_INPUT) return f->opts->keep_ports ? NULL : fac_input(to, v->name, want, v->type.dims);
    if (!v->tensor || read_by_kept(f, v)) return NULL;
    if (fac_tensor_convert(v->tensor, want, &t, &err)) return fac_graph_raise(to, err.status, "%s", err.text);
    fac_value *made = NULL;
    if (compare(f, v->tensor, t)) fac_graph_raise(to, FAC_E_NOMEM, "no memory to compare %s", v->name ? v->name : "a constant");
    else made = v->leaf == FAC_PARAM ? fac_param(to, v->name, t)
              : v->leaf == FAC_STATE ? fac_state(to, v->name, t) : fac_const(to, t);
    if (made && v->leaf == FAC_CONST) fac_value_name_set(made, v->name);
    fac_tensor_free(t);
    f->report.tensors++;
    return made ? made : to->poison;
}

/* ---- nodes ---- */

static const fac_attr *dtype_attr(const fac_op *op) {
    const fac_attr *a = op->attrs;
    while (a && a->name && a->kind != FAC_A_DTYPE) a++;
    return a && a->name ? a : NULL;
}

/* Attributes that say a float type (cast, random, one of constants) say the new one. */
static bool attrs_as(fac_graph *to, fac_node *n, fac_dtype want) {
    const fac_attr *a = dtype_attr(n->op);
    if (!a || !is_float(*(const fac_dtype *)(const void *)((const char *)n->attrs + a->at))) return true;
    char *attrs = fac_arena_alloc(&to->arena, 1, n->op->attrs_size);
    if (!attrs) return fac_graph_raise(to, FAC_E_NOMEM, "%s: no memory for attributes", n->op->name), false;
    memcpy(attrs, n->attrs, n->op->attrs_size);
    *(fac_dtype *)(void *)(attrs + a->at) = want;
    n->attrs = attrs;
    return true;
}

static bool float_node(void *self, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    floats *f = self;
    const bool kept = f->kept[n->id];
    fac_node other = *n;
    fac_value **args = fac_arena_alloc(&to->arena, (size_t)n->nin + 1, sizeof *args);
    if (!args) return fac_graph_raise(to, FAC_E_NOMEM, "%s: no memory for operands", n->op->name), false;
    for (int i = 0; i < n->nin; i++) {
        args[i] = in[i];
        if (in[i] && is_float(n->in[i]->type.dtype)) args[i] = as(f, to, in[i], kept ? n->in[i]->type.dtype : f->opts->to);
    }
    if (!kept && !attrs_as(to, &other, f->opts->to)) return false;
    fac_node_copy(to, &other, args, out);
    return true;
}

static void float_outputs(floats *f, fac_graph *to, const fac_graph *from) {
    for (size_t k = 0; k < to->noutputs && !to->error.status; k++) {
        fac_graph_out *o = &to->outputs[k];
        const fac_dtype was = from->outputs[k].value->type.dtype;
        if (!is_float(was)) continue;
        fac_value *v = as(f, to, o->value, f->opts->keep_ports ? was : f->opts->to);
        o->value->roots--;
        v->roots++;
        o->value = v;
    }
}

/* ---- all ---- */

static fac_status mark(floats *f, const fac_graph *g, fac_error *err) {
    f->kept = fac_alloc((size_t)g->ids + 1, 1);
    if (!f->kept) return fac_raise(err, FAC_E_NOMEM, "no memory to mark nodes");
    for (int k = 0; k < f->opts->nkeep; k++) {
        unsigned char *marks = NULL;
        int n;
        FAC_TRY(fac_edit_nodes(g, f->opts->keep[k], &marks, &n, err));
        for (uint32_t i = 0; i < g->ids; i++) f->kept[i] |= marks[i];
        fac_release(marks);
    }
    for (const fac_node *n = g->first; n; n = n->next) f->report.kept += f->kept[n->id];
    return FAC_OK;
}

fac_status fac_graph_floats_but(const fac_graph *g, const fac_float_opts *opts, fac_float_report *report, fac_graph **out,
                                fac_error *err) {
    if (!is_float(opts->to)) return fac_raise(err, FAC_E_DTYPE, "%s is not a type of floats", fac_dtype_get(opts->to)->name);
    floats f = { .opts = opts };
    fac_status status = mark(&f, g, err);
    fac_graph *to = status ? NULL : fac_graph_rebuild(g, &(fac_rebuild){ .self = &f, .visit = float_node, .leaf = float_leaf },
                                                      NULL);
    if (to && !to->error.status) float_outputs(&f, to, g);
    if (!status) status = fac_edit_give(to, out, err);
    if (!status && report) *report = f.report;
    fac_release(f.kept);
    fac_release(f.cast);
    return status;
}

fac_status fac_graph_floats(const fac_graph *g, fac_dtype to, fac_graph **out, fac_error *err) {
    return fac_graph_floats_but(g, &(fac_float_opts){ .to = to }, NULL, out, err);
}
