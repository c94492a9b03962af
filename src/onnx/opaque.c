/* The op of nodes that cannot be built, and how the importer puts them: see opaque.h.
 *
 * opaque(shape of each result..., operands...): a shape is a list of numbers and symbols, so that
 * sizes are bound as everywhere. `dtypes` says the types of the results, - for one of which nothing
 * is known; that has the type u8[0]. */
#include "onnx/opaque.h"
#include <stdio.h>
#include "base/error.h"
#include "base/optional.h"

typedef struct attrs {
    const char *type, *domain, *dtypes;
} attrs;
#define AT(member) offsetof(attrs, member)
static const fac_attr table[] = {
    { "type", FAC_A_TEXT, AT(type), 0, 0, 0, 0, NULL, "the operator, as the file calls it" },
    { "domain", FAC_A_TEXT, AT(domain), 0, 0, 0, 0, NULL, "its domain" },
    { "dtypes", FAC_A_TEXT, AT(dtypes), 0, 0, 0, 0, NULL, "element types of the results" },
    { 0 }
};
static const fac_port ports_in[] = { { "x", FAC_ANY, FAC_OPTIONAL | FAC_VARIADIC }, { 0 } };
static const fac_port ports_out[] = { { "y", FAC_ANY, FAC_VARIADIC }, { 0 } };

/* ---- the op ---- */

/* The k-th word of "f32,-,i64"; its length is 0 after the last. */
static size_t word(const char **list, int k) {
    const char *s = *list;
    for (; k && *s; k--) {
        s += strcspn(s, ",");
        s += *s == ',';
    }
    *list = s;
    return strcspn(s, ",");
}

static int words(const char *list) {
    int n = 1;
    for (; *list; list++) n += *list == ',';
    return n;
}

static fac_dtype dtype_at(const char *list, int k) {
    char name[16];
    const size_t n = word(&list, k);
    snprintf(name, sizeof name, "%.*s", (int)n, list);
    return *name == '-' ? FAC_NONE : fac_dtype_find(name);
}

static bool infer_one(fac_node *n, const char *dtypes, int k) {
    fac_contents shape;
    fac_type t = { dtype_at(dtypes, k), { 0 } };
    if (t.dtype == FAC_NONE)
        t = (fac_type){ FAC_U8, fac_shape(0) };
    else if (!fac_known(n->in[k], &shape) || shape.n > FAC_DIMS)
        return fac_fail(n, FAC_E_SHAPE, "the shape of result %d is not known", k);
    else
        for (; t.dims.n < shape.n; t.dims.n++) t.dims.d[t.dims.n] = shape.v[t.dims.n];
    n->out[k]->type = t;
    return true;
}

static bool infer(fac_node *n) {
    const attrs *a = n->attrs;
    const int count = a->dtypes ? words(a->dtypes) : 0;
    if (!count || n->nin < count)
        return fac_fail(n, FAC_E_ARGUMENT, "needs the shape of each result");
    bool good = fac_node_outputs(n, count);
    for (int k = 0; good && k < count; k++) good = infer_one(n, a->dtypes, k);
    return good;
}

static const fac_op opaque = { .name = "opaque",
                               .doc = "an operator that is not ours",
                               .in = ports_in,
                               .out = ports_out,
                               .attrs = table,
                               .attrs_size = sizeof(attrs),
                               .is = FAC_OP_NO_GRAD | FAC_OP_BARRIER | FAC_OP_OPAQUE,
                               .infer = infer };

bool fac_value_opaque(const fac_value *v) {
    if (!v || !v->node || v->node->op != &opaque) return false;
    return dtype_at(((const attrs *)v->node->attrs)->dtypes, v->index) == FAC_NONE;
}

/* ---- what the file declares ---- */

fac_status fac_import_declared(fac_import *im, fac_error *err) {
    const fac_proto_values *lists[] = { &im->model.graph.infos, &im->model.graph.out };
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k]->n; i++)
            if (!fac_table_put(&im->declared, lists[k]->at[i].name, &lists[k]->at[i]))
                return fac_raise_memory(err, "the types of values");
    return FAC_OK;
}

/* The declared type; FAC_NONE: there is none that we can say. */
static fac_type declared(fac_body *b, const char *name) {
    const fac_proto_value *v = b->function || !*name ? NULL : fac_table_get(&b->im->declared, name);
    fac_type t = { FAC_NONE, { 0 } };
    if (!v || !fac_proto_has(v->type.has, FAC_PROTO_TYPE_DENSE)) return t;
    if (!fac_proto_has(v->type.dense.has, FAC_PROTO_DENSE_SHAPE)) return t;
    const fac_dtype dtype = fac_proto_dtype(v->type.dense.type);
    if (dtype != FAC_NONE && !fac_import_dims(b->im, v, &t.dims, NULL)) t.dtype = dtype;
    return t;
}

/* ---- building ---- */

bool fac_import_forgives(const fac_body *b, fac_status status) {
    return fac_import_lenient(b->im) && !b->around && status == FAC_E_UNSUPPORTED;
}

/* The value of an operand; NULL: absent, or not to be had. */
static fac_value *operand(fac_body *b, const fac_proto_node *n, size_t k) {
    fac_value *v = NULL;
    if (!*n->in.at[k] || fac_body_value(b, n->in.at[k], n, k, &v, NULL)) {
        if (b->g->error.status != FAC_E_NOMEM) b->g->error = (fac_error){ 0 };
        return NULL;
    }
    return v;
}

static fac_value *build(fac_body *b, const attrs *a, const fac_type *types, int count,
                        const fac_proto_node *n) {
    const size_t operands = n ? n->in.n : 0, room = (size_t)count + operands;
    fac_value **all = fac_arena_alloc(&b->im->arena, room, sizeof *all);
    if (!all) return NULL;
    for (int k = 0; k < count; k++)
        all[k] = types[k].dtype == FAC_NONE ? NULL : fac_ints(b->g, types[k].dims);
    for (size_t k = 0; k < operands; k++) all[(size_t)count + k] = operand(b, n, k);
    return fac_emit_body(b->g, &opaque, a, (int)room, (int)room, all, NULL, NULL);
}

/* "f32,-": the types as an attribute. */
static const char *list_dtypes(fac_graph *g, const fac_type *types, int n) {
    fac_text t = { 0 };
    for (int k = 0; k < n; k++) {
        if (k) fac_text_add(&t, ",");
        fac_text_add(&t, types[k].dtype == FAC_NONE ? "-" : fac_dtype_get(types[k].dtype)->name);
    }
    const char *copy = t.failed ? NULL : fac_arena_text(&g->arena, fac_text_or(t.s, "-"));
    fac_text_free(&t);
    return copy;
}

static fac_status emit(fac_body *b, const char *type, const char *domain, const fac_type *types,
                       int count, const fac_proto_node *n, fac_value *out[], fac_error *err) {
    attrs a = { fac_arena_text(&b->g->arena, type), fac_arena_text(&b->g->arena, domain),
                list_dtypes(b->g, types, count) };
    fac_value *y = a.type && a.domain && a.dtypes ? build(b, &a, types, count, n) : NULL;
    if (!y) return fac_raise_memory(err, "a node");
    FAC_TRY(fac_graph_check(b->g, err));
    for (int k = 0; k < count; k++) out[k] = y->node->out[k];
    return FAC_OK;
}

fac_status fac_import_opaque(fac_body *b, const fac_proto_node *n, fac_value *out[],
                             fac_error *err) {
    const int count = n->out.n ? (int)n->out.n : 1;
    fac_type *types = fac_arena_alloc(&b->im->arena, (size_t)count, sizeof *types);
    fac_value **made = fac_arena_alloc(&b->im->arena, (size_t)count, sizeof *made);
    if (!types || !made) return fac_raise_memory(err, "a node");
    if (err) *err = (fac_error){ 0 };
    b->g->error = (fac_error){ 0 };
    for (size_t k = 0; k < n->out.n; k++) types[k] = declared(b, n->out.at[k]);
    FAC_TRY(emit(b, n->type, fac_import_domain(n->domain), types, count, n, made, err));
    for (size_t k = 0; k < n->out.n; k++) out[k] = made[k];
    return FAC_OK;
}

fac_status fac_import_opaque_input(fac_body *b, const fac_proto_value *v, fac_value **out,
                                   fac_error *err) {
    const fac_type none = { FAC_NONE, { 0 } };
    if (err) *err = (fac_error){ 0 };
    b->g->error = (fac_error){ 0 };
    FAC_TRY(emit(b, "input", "", &none, 1, NULL, out, err));
    fac_value_name_set(*out, v->name);
    return fac_graph_check(b->g, err);
}
