/* Floats of another type, but for nodes that are to keep theirs.
 *
 * Values become `to` where they are made, but results of a kept node stay as they are and are cast
 * by those readers that want `to`, once for each type: two kept nodes in a row lose nothing between
 * them.  A parameter that a kept node reads keeps its type too.  Numbers that the type cannot say
 * become its largest or its smallest that is not 0. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "edit/edit.h"
#include "facula/ops.h"
#include "passes/common/range.h"
#include "tensor/tensor_internal.h"

typedef struct floats {
    const fac_float_opts *opts;
    unsigned char *kept; /* by id of a node    */
    fac_value **cast;    /* by id of a value of the new graph: what it is as the other type */
    size_t room;
    fac_float_report report;
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
        to->scope = NULL; /* the cast serves others too */
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

/* Finite numbers stay finite, and those that are not 0 stay so: a mask of -1e9 hides what it
 * hid, and a divisor of 1e-8 is no 0. x: what it was; y: what it would be in f->opts->to. */
static double kept_apart(floats *f, double x, double y) {
    const fac_range r = fac_range_of(f->opts->to);
    const bool over = fac_range_over(r, x, y), under = fac_range_under(x, y);
    f->report.overflowed += over;
    f->report.vanished += under;
    if (over) return copysign(r.largest, x);
    return under ? copysign(r.smallest, x) : x;
}

/* The tensor as the type that is wanted. */
static fac_status convert(floats *f, const fac_tensor *from, fac_tensor **out, fac_error *err) {
    const fac_type type = fac_tensor_type(from);
    const size_t n = (size_t)fac_dims_count(&type.dims);
    const int64_t odd = f->report.overflowed + f->report.vanished;
    fac_tensor *x = NULL, *y = NULL, *made = NULL;
    void *data = NULL;
    fac_status s = fac_tensor_convert(from, f->opts->to, &made, err);
    if (!s) s = fac_tensor_convert(from, FAC_F64, &x, err);
    if (!s) s = fac_tensor_convert(made, FAC_F64, &y, err);
    if (!s) s = fac_tensor_begin_write(y, &data, err);
    const double *was = s ? NULL : fac_tensor_data(x);
    double *is = data;
    for (size_t k = 0; was && is && k < n; k++) is[k] = kept_apart(f, was[k], is[k]);
    if (!s && f->report.overflowed + f->report.vanished > odd) {
        fac_tensor_free(made);
        made = NULL;
        s = fac_tensor_convert(y, f->opts->to, &made, err);
    }
    fac_tensor_free(x);
    fac_tensor_free(y);
    if (!s)
        *out = made;
    else
        fac_tensor_free(made);
    return s;
}

static fac_value *float_leaf(void *self, fac_graph *to, const fac_value *v) {
    floats *f = self;
    const fac_dtype want = f->opts->to;
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    if (!is_float(v->type.dtype) || v->type.dtype == want) return NULL;
    if (v->leaf == FAC_INPUT && f->opts->keep_ports) return NULL;
    if (v->leaf == FAC_INPUT) {
        fac_value *in = fac_input(to, v->name, want, v->type.dims);
        if (in && in->leaf == FAC_INPUT) in->guess = v->guess;
        return in;
    }
    if (!v->tensor || read_by_kept(f, v)) return NULL;
    if (convert(f, v->tensor, &t, &err)) return fac_graph_raise(to, err.status, "%s", err.text);
    fac_value *made = v->leaf == FAC_PARAM   ? fac_param(to, v->name, t)
                      : v->leaf == FAC_STATE ? fac_state(to, v->name, t)
                                             : fac_const(to, t);
    if (made && v->leaf == FAC_CONST) fac_value_name_set(made, v->name);
    fac_tensor_free(t);
    f->report.tensors++;
    return made ? made : to->poison;
}

/* ---- nodes ---- */

/* Numbers among the attributes (epsilons, limits) mix with values of the type. */
static double number_as(floats *f, double x) {
    const fac_range r = fac_range_of(f->opts->to);
    return fabs(x) > r.largest    ? kept_apart(f, x, INFINITY)
           : fabs(x) < r.smallest ? kept_apart(f, x, 0)
                                  : x;
}

/* Attributes that say a float type (cast, random, one of constants) say the new one. */
static void attr_as(floats *f, const fac_attr *a, char *attrs) {
    fac_dtype *dtype = (fac_dtype *)(void *)(attrs + a->at);
    double *x = (double *)(void *)(attrs + a->at);
    if (a->kind == FAC_A_DTYPE && is_float(*dtype)) *dtype = f->opts->to;
    for (int k = 0; a->kind == FAC_A_REAL && k < (a->count ? a->count : 1); k++)
        x[k] = number_as(f, x[k]);
}

static bool attrs_as(floats *f, fac_graph *to, fac_node *n) {
    if (!n->op->attrs) return true;
    char *attrs = fac_arena_alloc(&to->arena, 1, n->op->attrs_size);
    if (!attrs)
        return fac_graph_raise(to, FAC_E_NOMEM, "%s: no memory for attributes", n->op->name), false;
    memcpy(attrs, n->attrs, n->op->attrs_size);
    for (const fac_attr *a = n->op->attrs; a->name; a++) attr_as(f, a, attrs);
    n->attrs = attrs;
    return true;
}

/* ---- bodies ---- */

static fac_graph *converted(floats *f, const fac_graph *g);

/* What runs inside of a node has its types. */
static bool bodies_as(floats *f, fac_graph *to, fac_node *n) {
    for (int k = 0; k < 2; k++) {
        if (!n->body[k]) continue;
        floats inner = { .opts = &(fac_float_opts){ .to = f->opts->to },
                         .kept = fac_alloc((size_t)n->body[k]->ids + 1, 1) };
        n->body[k] = inner.kept ? converted(&inner, n->body[k]) : NULL;
        f->report.tensors += inner.report.tensors;
        f->report.casts += inner.report.casts;
        f->report.overflowed += inner.report.overflowed;
        f->report.vanished += inner.report.vanished;
        fac_release(inner.kept);
        fac_release(inner.cast);
        if (!n->body[k])
            return fac_graph_raise(to, FAC_E_NOMEM, "%s: no memory for a body", n->op->name), false;
    }
    return true;
}

static bool float_node(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                       fac_value *out[]) {
    floats *f = self;
    const bool kept = f->kept[n->id];
    fac_node other = *n;
    fac_value **args = fac_arena_alloc(&to->arena, (size_t)n->nin + 1, sizeof *args);
    if (!args)
        return fac_graph_raise(to, FAC_E_NOMEM, "%s: no memory for operands", n->op->name), false;
    for (int i = 0; i < n->nin; i++) {
        args[i] = in[i];
        if (in[i] && is_float(n->in[i]->type.dtype))
            args[i] = as(f, to, in[i], kept ? n->in[i]->type.dtype : f->opts->to);
    }
    if (!kept && !attrs_as(f, to, &other)) return false;
    if (kept || bodies_as(f, to, &other)) fac_node_copy(to, &other, args, out);
    for (int k = 0; k < 2 && !kept; k++)
        if (other.body[k] != n->body[k]) fac_graph_free(other.body[k]);
    return !to->error.status;
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

static fac_graph *converted(floats *f, const fac_graph *g) {
    const fac_rebuild how = { .self = f, .visit = float_node, .leaf = float_leaf, .blind = true };
    fac_graph *to = fac_graph_rebuild(g, &how, NULL);
    if (to && !to->error.status) float_outputs(f, to, g);
    return to;
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

fac_status fac_graph_floats_but(const fac_graph *g, const fac_float_opts *opts,
                                fac_float_report *report, fac_graph **out, fac_error *err) {
    if (!is_float(opts->to))
        return fac_raise(err, FAC_E_DTYPE, "%s is not a type of floats",
                         fac_dtype_get(opts->to)->name);
    floats f = { .opts = opts };
    fac_status status = mark(&f, g, err);
    fac_graph *to = status ? NULL : converted(&f, g);
    if (!status) status = fac_edit_give(to, out, err);
    if (!status && report) *report = f.report;
    fac_release(f.kept);
    fac_release(f.cast);
    return status;
}

fac_status fac_graph_floats(const fac_graph *g, fac_dtype to, fac_graph **out, fac_error *err) {
    return fac_graph_floats_but(g, &(fac_float_opts){ .to = to }, NULL, out, err);
}
