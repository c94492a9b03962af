/* The attributes of a node as text, and after them those that it leaves to ONNX's defaults. */
#include "base/error.h"
#include "base/optional.h"
#include "onnx/listing/listing.h"

enum { SHOWN = 64 }; /* elements of a list that are written out */

/* ---- values as text ---- */

typedef struct writer {
    fac_text *to;
    size_t n;
    bool real;
} writer;

static void separate(writer *w) {
    if (w->n++) fac_text_add(w->to, w->n <= SHOWN ? "," : "");
    if (w->n == SHOWN + 1) fac_text_add(w->to, ",...");
}

static bool add_number(void *self, uint64_t bits, fac_bytes unused) {
    writer *w = self;
    const uint32_t word = (uint32_t)bits;
    float x;
    (void)unused;
    separate(w);
    if (w->n > SHOWN) return true;
    memcpy(&x, &word, sizeof x);
    if (w->real)
        fac_text_print(w->to, "%.9g", (double)x);
    else
        fac_text_print(w->to, "%lld", (long long)bits);
    return true;
}

/* Bytes that would end or move a line become question marks. */
static void add_bytes(fac_text *to, fac_bytes b) {
    enum { MOST = 256 };
    for (size_t k = 0; k < b.n && k < MOST; k++)
        fac_text_print(to, "%c", b.p[k] < 32 || b.p[k] >= 127 ? '?' : b.p[k]);
    if (b.n > MOST) fac_text_print(to, "... (%zu bytes)", b.n);
}

static bool add_words(void *self, uint64_t unused, fac_bytes b) {
    writer *w = self;
    (void)unused;
    separate(w);
    if (w->n <= SHOWN) add_bytes(w->to, b);
    return true;
}

static void add_tensor(fac_import *im, const fac_proto_attr *a, fac_text *to) {
    enum { FEW = 8 };
    double x[FEW];
    fac_tensor *t, *wide = NULL;
    if (fac_import_attr_tensor(im, a, &t, NULL)) {
        fac_text_add(to, "a tensor of a type that is not ours");
        return;
    }
    const fac_type type = fac_tensor_type(t);
    const int64_t n = fac_dims_count(&type.dims);
    fac_type_print(im->g, &type, to);
    if (n < 1 || n > FEW || type.dtype == FAC_TEXT || fac_tensor_convert(t, FAC_F64, &wide, NULL))
        return;
    if (!fac_tensor_read(wide, x, (size_t)n * sizeof *x, NULL))
        for (int64_t k = 0; k < n; k++) fac_text_print(to, "%s%.9g", k ? "," : " ", x[k]);
    fac_tensor_free(wide);
}

static fac_status write_value(fac_import *im, const fac_proto_attr *a, int64_t kind, fac_text *to,
                              fac_error *err) {
    writer w = { to, 0, kind == FAC_PROTO_FLOATS };
    if (*a->ref)
        fac_text_print(to, "@%s", a->ref);
    else if (kind == FAC_PROTO_INT)
        fac_text_print(to, "%lld", (long long)a->i);
    else if (kind == FAC_PROTO_FLOAT)
        fac_text_print(to, "%.9g", (double)a->f);
    else if (kind == FAC_PROTO_STRING)
        add_bytes(to, a->s);
    else if (kind == FAC_PROTO_TENSOR)
        add_tensor(im, a, to);
    else if (kind == FAC_PROTO_GRAPH && a->graph)
        fac_text_print(to, "a graph of %zu nodes", a->graph->nodes.n);
    else if (kind == FAC_PROTO_INTS)
        return fac_proto_each(a->self, FAC_PROTO_ATTR_INTS, FAC_PROTO_VARINTS, add_number, &w, err);
    else if (kind == FAC_PROTO_FLOATS)
        return fac_proto_each(a->self, FAC_PROTO_ATTR_FLOATS, FAC_PROTO_FIXED32S, add_number, &w,
                              err);
    else if (kind == FAC_PROTO_STRINGS)
        return fac_proto_each(a->self, FAC_PROTO_ATTR_TEXTS, FAC_PROTO_WINDOWS, add_words, &w, err);
    return FAC_OK;
}

static fac_status take_attr(fac_onnx_listing *l, fac_import *im, const fac_proto_attr *a,
                            fac_onnx_said *to, fac_error *err) {
    const int64_t kind = fac_import_attr_kind(a);
    fac_text text = { 0 };
    FAC_TRY(write_value(im, a, kind, &text, err));
    *to = (fac_onnx_said){ fac_arena_text(&l->arena, a->name), fac_import_attr_kind_name(kind),
                           text.failed ? NULL : fac_arena_text(&l->arena, fac_text_or(text.s, "")),
                           true };
    fac_text_free(&text);
    return to->name && to->value ? FAC_OK : fac_raise_memory(err, "the attributes of a node");
}

/* ---- defaults ---- */

static bool has_attr(const fac_proto_node *n, const char *name) {
    for (size_t k = 0; k < n->attrs.n; k++)
        if (!strcmp(n->attrs.at[k].name, name)) return true;
    return false;
}

static int elements(const char *list) {
    int n = 1;
    for (; *list; list++) n += *list == ',';
    return n;
}

/* Dims of the plane: of the kernel, the data, or the weight. */
static int plane_of(const fac_onnx_listed *node, const fac_onnx_said *said) {
    for (int k = 0; k < node->nattrs; k++)
        if (!strcmp(said[k].name, "kernel_shape")) return elements(said[k].value);
    for (int k = 0; k < node->nin && k < 2; k++)
        if (node->in[k].rank > 2) return node->in[k].rank - 2;
    return 1;
}

/* "*1" -> "1,1"; pads have two sides. */
static const char *default_text(fac_onnx_listing *l, const fac_onnx_listed *node,
                                const fac_onnx_said *said, const fac_onnx_default *d) {
    fac_text text = { 0 };
    const int n = plane_of(node, said) * (strcmp(d->attr, "pads") ? 1 : 2);
    if (*d->value != '*') return d->value;
    for (int k = 0; k < n; k++) fac_text_print(&text, "%s%s", k ? "," : "", d->value + 1);
    const char *copy = text.failed ? NULL : fac_arena_text(&l->arena, text.s);
    fac_text_free(&text);
    return copy;
}

static bool applies(const fac_onnx_default *d, const fac_onnx_listed *node) {
    return !strcmp(d->type, node->type) && !strcmp(d->domain, node->domain) &&
           node->opset >= d->since && (!d->until || node->opset <= d->until);
}

static size_t count_defaults(const fac_onnx_listed *node) {
    size_t n = 0;
    for (const fac_onnx_default *d = fac_onnx_defaults; d->type; d++) n += applies(d, node);
    return n;
}

fac_status fac_listing_attrs(fac_onnx_listing *l, const fac_listing_place *at,
                             const fac_proto_node *n, fac_onnx_listed *to, fac_error *err) {
    const size_t room = n->attrs.n + count_defaults(to) + 1;
    fac_onnx_said *said = fac_arena_alloc(&l->arena, room, sizeof *said);
    if (!said) return fac_raise_memory(err, "the attributes of a node");
    for (size_t k = 0; k < n->attrs.n; k++)
        FAC_TRY(take_attr(l, at->im, &n->attrs.at[k], &said[to->nattrs++], err));
    for (const fac_onnx_default *d = fac_onnx_defaults; d->type; d++) {
        if (!applies(d, to) || has_attr(n, d->attr)) continue;
        said[to->nattrs] = (fac_onnx_said){ d->attr, "", default_text(l, to, said, d), false };
        if (!said[to->nattrs++].value) return fac_raise_memory(err, "the attributes of a node");
    }
    to->attrs = said;
    return FAC_OK;
}
