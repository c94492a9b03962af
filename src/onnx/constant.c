/* A Constant: one attribute, a tensor or numbers or texts, as a constant of the graph. */
#include <string.h>
#include "base/error.h"
#include "onnx/import.h"

typedef struct collected {
    fac_tensor *t;
    void *to;
    size_t n, size;
    fac_arena *arena;
    bool failed;
} collected;

static bool count_one(void *self, uint64_t bits, fac_bytes b) {
    (void)bits, (void)b;
    return ++*(size_t *)self, true;
}

static bool collect(void *self, uint64_t bits, fac_bytes b) {
    collected *c = self;
    if (c->arena) { /* texts */
        char *s = b.n && memchr(b.p, 0, b.n) ? NULL : fac_arena_alloc(c->arena, b.n + 1, 1);
        c->failed |= !s;
        if (s && b.n) memcpy(s, b.p, b.n);
        ((char **)c->to)[c->n++] = s;
    } else
        memcpy((char *)c->to + c->size * c->n++, &bits, c->size);
    return !c->failed;
}

/* Numbers or texts of an attribute as a tensor of one dim, or of none. */
static fac_status constant_of(fac_import *im, const fac_proto_attr *a, int64_t kind,
                              fac_tensor **out, fac_error *err) {
    bool texts = kind == FAC_PROTO_STRING || kind == FAC_PROTO_STRINGS;
    bool reals = kind == FAC_PROTO_FLOAT || kind == FAC_PROTO_FLOATS;
    bool one = kind == FAC_PROTO_FLOAT || kind == FAC_PROTO_INT || kind == FAC_PROTO_STRING;
    fac_dtype dtype = FAC_I64;
    fac_proto_wire wire = FAC_PROTO_VARINTS;
    int field = FAC_PROTO_ATTR_INTS;
    if (texts) {
        dtype = FAC_TEXT;
        wire = FAC_PROTO_WINDOWS;
        field = FAC_PROTO_ATTR_TEXTS;
    } else if (reals) {
        dtype = FAC_F32;
        wire = FAC_PROTO_FIXED32S;
        field = FAC_PROTO_ATTR_FLOATS;
    }
    size_t count = one, size = (size_t)fac_dtype_get(dtype)->block_bytes;
    uint64_t bits = (uint64_t)a->i;
    if (reals) memcpy(&bits, &a->f, sizeof a->f);
    if (texts) size = sizeof(char *);
    if (!one) FAC_TRY(fac_proto_each(a->self, field, wire, count_one, &count, err));
    collected c = { .size = size,
                    .arena = texts ? &im->arena : NULL,
                    .to = fac_arena_alloc(&im->arena, count, size) };
    if (!c.to) return fac_raise_memory(err, "a constant");
    if (one)
        collect(&c, bits, a->s);
    else
        FAC_TRY(fac_proto_each(a->self, field, wire, collect, &c, err));
    if (c.failed) return fac_raise(err, FAC_E_UNSUPPORTED, "a text with a zero byte");
    fac_dims dims = one ? (fac_dims){ 0 } : fac_shape((int64_t)count);
    FAC_TRY(fac_tensor_new(NULL, dtype, dims, out, err));
    fac_status status = fac_tensor_write(*out, c.to, count * size, err);
    if (status) fac_tensor_free(*out);
    return status;
}

static const struct {
    const char *name;
    int64_t kind;
} constants[] = { { "value", FAC_PROTO_TENSOR },         { "value_float", FAC_PROTO_FLOAT },
                  { "value_floats", FAC_PROTO_FLOATS },  { "value_int", FAC_PROTO_INT },
                  { "value_ints", FAC_PROTO_INTS },      { "value_string", FAC_PROTO_STRING },
                  { "value_strings", FAC_PROTO_STRINGS } };

fac_status fac_import_constant(const fac_body *b, const fac_proto_node *n, fac_value *out[],
                               fac_error *err) {
    fac_import *im = b->im;
    fac_tensor *t;
    if (n->attrs.n != 1 || n->out.n != 1)
        return fac_raise(err, FAC_E_FORMAT, "Constant with %zu attributes and %zu outputs",
                         n->attrs.n, n->out.n);
    const char *name = n->attrs.at[0].name;
    const fac_proto_attr *a = fac_import_attr(b, n, name);
    if (!a)
        return fac_raise(err, FAC_E_FORMAT,
                         "attribute %s refers to one that the call does not have", name);
    int64_t kind = fac_import_attr_kind(a);
    for (size_t k = 0; k < sizeof constants / sizeof *constants; k++) {
        if (strcmp(constants[k].name, name)) continue;
        if (constants[k].kind != kind)
            return fac_raise(err, FAC_E_FORMAT, "attribute %s is of kind %s", name,
                             fac_import_attr_kind_name(kind));
        if (kind == FAC_PROTO_TENSOR) {
            FAC_TRY(fac_import_attr_tensor(im, a, &t, err));
            out[0] = fac_const(b->g, t);
        } else {
            FAC_TRY(constant_of(im, a, kind, &t, err));
            out[0] = fac_const(b->g, t);
            fac_tensor_free(t);
        }
        return fac_graph_check(b->g, err);
    }
    return fac_raise(err, FAC_E_UNSUPPORTED, "attribute %s of Constant is not supported", name);
}
