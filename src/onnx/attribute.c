/* The attributes of a node, as load() functions ask for them. */
#include <limits.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "onnx/import.h"

/* ---- finding ---- */

/* In a function, an attribute may stand for one of the call: the call's own, else the function's
 * default. */
static const fac_proto_attr *referred(const fac_body *b, const char *ref) {
    if (!b->function) return NULL;
    const fac_proto_attr *a = fac_import_attr(b->outer, b->call, ref);
    for (size_t k = 0; !a && k < b->function->defaults.n; k++)
        if (!strcmp(b->function->defaults.at[k].name, ref)) a = &b->function->defaults.at[k];
    return a;
}

const fac_proto_attr *fac_import_attr(const fac_body *b, const fac_proto_node *n,
                                      const char *name) {
    for (size_t k = 0; k < n->attrs.n; k++) {
        const fac_proto_attr *a = &n->attrs.at[k];
        if (!strcmp(a->name, name)) return *a->ref ? referred(b, a->ref) : a;
    }
    return NULL;
}

int64_t fac_import_attr_kind(const fac_proto_attr *a) {
    static const struct {
        int field, kind;
    } fields[] = {
        { FAC_PROTO_ATTR_F, FAC_PROTO_FLOAT },   { FAC_PROTO_ATTR_I, FAC_PROTO_INT },
        { FAC_PROTO_ATTR_S, FAC_PROTO_STRING },  { FAC_PROTO_ATTR_T, FAC_PROTO_TENSOR },
        { FAC_PROTO_ATTR_G, FAC_PROTO_GRAPH },   { FAC_PROTO_ATTR_FLOATS, FAC_PROTO_FLOATS },
        { FAC_PROTO_ATTR_INTS, FAC_PROTO_INTS }, { FAC_PROTO_ATTR_TEXTS, FAC_PROTO_STRINGS }
    };
    if (a->type) return a->type;
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
        if (fac_proto_has(a->has, fields[k].field)) return fields[k].kind;
    return 0;
}

const char *fac_import_attr_kind_name(int64_t kind) {
    static const char *const names[] = { "undefined",      "float",   "int",    "string",
                                         "tensor",         "graph",   "floats", "ints",
                                         "strings",        "tensors", "graphs", "sparse tensor",
                                         "sparse tensors", "type",    "types" };
    return kind >= 0 && kind < (int64_t)(sizeof names / sizeof *names) ? names[kind] : "unknown";
}

/* The attribute if it is there and of this kind; a wrong kind is an error of the graph. */
static const fac_proto_attr *ask(const fac_onnx_node *n, const char *name, int64_t kind) {
    const fac_import_node *self = n->self;
    const fac_proto_node *proto = self->proto;
    for (size_t k = 0; k < proto->attrs.n; k++)
        if (!strcmp(proto->attrs.at[k].name, name)) self->asked[k] = true;
    const fac_proto_attr *a = fac_import_attr(self->body, proto, name);
    int64_t got = a ? fac_import_attr_kind(a) : kind;
    if (got == kind || !kind) return a;
    fac_fail_graph(self->body->g, FAC_E_FORMAT, "attribute %s is of kind %s, not %s", name,
                   fac_import_attr_kind_name(got), fac_import_attr_kind_name(kind));
    return NULL;
}

static fac_graph *graph_of(const fac_onnx_node *n) {
    return ((const fac_import_node *)n->self)->body->g;
}

/* ---- reading ---- */

bool fac_onnx_has(const fac_onnx_node *n, const char *attr) { return ask(n, attr, 0) != NULL; }

const char *fac_onnx_output(const fac_onnx_node *n, int k) {
    const fac_proto_names *names = &((const fac_import_node *)n->self)->proto->out;
    return (size_t)k < names->n ? names->at[k] : "";
}

fac_value *fac_onnx_named(const fac_onnx_node *n, const char *name) {
    fac_value *v = NULL;
    fac_error err = { 0 };
    return fac_body_value(((const fac_import_node *)n->self)->body, name, NULL, 0, &v, &err) ? NULL
                                                                                             : v;
}

int64_t fac_onnx_int(const fac_onnx_node *n, const char *attr, int64_t missing) {
    const fac_proto_attr *a = ask(n, attr, FAC_PROTO_INT);
    return a ? a->i : missing;
}

double fac_onnx_real(const fac_onnx_node *n, const char *attr, double missing) {
    const fac_proto_attr *a = ask(n, attr, FAC_PROTO_FLOAT);
    return a ? (double)a->f : missing;
}

/* A copy in the graph's memory: an op may keep it.  NULL after an error. */
static const char *keep_text(const fac_onnx_node *n, const char *attr, fac_bytes b) {
    fac_graph *g = graph_of(n);
    if (b.n && memchr(b.p, 0, b.n)) {
        fac_fail_graph(g, FAC_E_FORMAT, "attribute %s has a zero byte", attr);
        return NULL;
    }
    char *text = fac_arena_alloc(&g->arena, b.n + 1, 1);
    if (!text)
        fac_fail_graph(g, FAC_E_NOMEM, "no memory for attribute %s", attr);
    else if (b.n)
        memcpy(text, b.p, b.n);
    return text;
}

const char *fac_onnx_text(const fac_onnx_node *n, const char *attr, const char *missing) {
    const fac_proto_attr *a = ask(n, attr, FAC_PROTO_STRING);
    const char *text = a ? keep_text(n, attr, a->s) : NULL;
    return text ? text : missing;
}

/* The elements of a list attribute; what lies after `max` is only counted. */
typedef struct list {
    const fac_onnx_node *node;
    const char *attr;
    void *to;
    size_t n, max;
} list;

static bool add_int(void *self, uint64_t bits, fac_bytes unused) {
    list *l = self;
    (void)unused;
    if (l->n < l->max) ((int64_t *)l->to)[l->n] = (int64_t)bits;
    return l->n++ < l->max;
}

static bool add_real(void *self, uint64_t bits, fac_bytes unused) {
    list *l = self;
    (void)unused;
    const uint32_t word = (uint32_t)bits;
    float x;
    memcpy(&x, &word, sizeof x);
    if (l->n < l->max) ((double *)l->to)[l->n] = (double)x;
    return l->n++ < l->max;
}

static bool add_text(void *self, uint64_t unused, fac_bytes b) {
    list *l = self;
    (void)unused;
    if (l->n < l->max && !(((const char **)l->to)[l->n] = keep_text(l->node, l->attr, b)))
        return false;
    return l->n++ < l->max;
}

static int read_list(const fac_onnx_node *n, const char *attr, int64_t kind, int field,
                     fac_proto_wire wire, fac_proto_visit *add, void *to, int max) {
    const fac_proto_attr *a = ask(n, attr, kind);
    fac_error err;
    if (!a) return -1;
    list l = { n, attr, to, 0, max > 0 ? (size_t)max : 0 };
    fac_status status = fac_proto_each(a->self, field, wire, add, &l, &err);
    if (status)
        fac_fail_graph(graph_of(n), status, "attribute %s: %s", attr, err.text);
    else if (l.n > l.max)
        fac_fail_graph(graph_of(n), FAC_E_UNSUPPORTED, "attribute %s has more than %d elements",
                       attr, max);
    else if (!graph_of(n)->error.status)
        return (int)l.n;
    return -1;
}

static bool count_one(void *self, uint64_t bits, fac_bytes b) {
    (void)bits, (void)b;
    return ++*(int *)self < INT_MAX;
}

int fac_onnx_count(const fac_onnx_node *n, const char *attr) {
    static const struct {
        int64_t kind;
        int field;
        fac_proto_wire wire;
    } lists[] = { { FAC_PROTO_INTS, FAC_PROTO_ATTR_INTS, FAC_PROTO_VARINTS },
                  { FAC_PROTO_FLOATS, FAC_PROTO_ATTR_FLOATS, FAC_PROTO_FIXED32S },
                  { FAC_PROTO_STRINGS, FAC_PROTO_ATTR_TEXTS, FAC_PROTO_WINDOWS } };
    const fac_proto_attr *a = ask(n, attr, 0);
    fac_error err = { 0 };
    int count = 0;
    for (size_t k = 0; a && k < sizeof lists / sizeof *lists; k++) {
        if (fac_import_attr_kind(a) != lists[k].kind) continue;
        if (!fac_proto_each(a->self, lists[k].field, lists[k].wire, count_one, &count, &err))
            return count;
        fac_fail_graph(graph_of(n), err.status, "attribute %s: %s", attr, err.text);
    }
    return -1;
}

int fac_onnx_ints_long(const fac_onnx_node *n, const char *attr, int64_t *to, int max) {
    return read_list(n, attr, FAC_PROTO_INTS, FAC_PROTO_ATTR_INTS, FAC_PROTO_VARINTS, add_int, to,
                     max);
}

int fac_onnx_reals(const fac_onnx_node *n, const char *attr, double *to, int max) {
    return read_list(n, attr, FAC_PROTO_FLOATS, FAC_PROTO_ATTR_FLOATS, FAC_PROTO_FIXED32S, add_real,
                     to, max);
}

int fac_onnx_texts(const fac_onnx_node *n, const char *attr, const char **to, int max) {
    return read_list(n, attr, FAC_PROTO_STRINGS, FAC_PROTO_ATTR_TEXTS, FAC_PROTO_WINDOWS, add_text,
                     to, max);
}

fac_dims fac_onnx_ints(const fac_onnx_node *n, const char *attr) {
    fac_dims d = { 0 };
    int count = fac_onnx_ints_long(n, attr, d.d, FAC_DIMS);
    if (count < 0) return (fac_dims){ 0 };
    d.n = count;
    return d;
}

fac_dtype fac_onnx_dtype(const fac_onnx_node *n, const char *attr, fac_dtype missing) {
    const fac_proto_attr *a = ask(n, attr, FAC_PROTO_INT);
    if (!a) return missing;
    fac_dtype dtype = fac_proto_dtype(a->i);
    if (dtype != FAC_NONE) return dtype;
    fac_fail_graph(graph_of(n), FAC_E_UNSUPPORTED,
                   "attribute %s: element type %s (%lld) is not supported", attr,
                   fac_proto_dtype_name(a->i), (long long)a->i);
    return missing;
}

/* ---- tensors ---- */

fac_status fac_import_attr_tensor(fac_import *im, const fac_proto_attr *a, fac_tensor **out,
                                  fac_error *err) {
    fac_proto_tensor proto;
    fac_tensor *t;
    fac_bytes bytes = a->t.p ? a->t : (fac_bytes){ a->self.p, 0 };
    FAC_TRY(fac_proto_read_tensor(bytes, &im->arena, &proto, err));
    if (!fac_reserve(&im->tensors, &im->room_tensors, im->ntensors + 1, sizeof *im->tensors))
        return fac_raise_memory(err, "a tensor");
    FAC_TRY(fac_proto_to_tensor(&im->files, &proto, &t, err));
    im->tensors[im->ntensors++] = t;
    *out = t;
    return FAC_OK;
}

fac_tensor *fac_onnx_tensor(const fac_onnx_node *n, const char *attr) {
    const fac_proto_attr *a = ask(n, attr, FAC_PROTO_TENSOR);
    fac_tensor *t = NULL;
    fac_error err;
    if (!a) return NULL;
    fac_status status =
        fac_import_attr_tensor(((const fac_import_node *)n->self)->body->im, a, &t, &err);
    if (status) fac_fail_graph(graph_of(n), status, "attribute %s: %s", attr, err.text);
    return status ? NULL : t;
}
