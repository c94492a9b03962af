/* Inputs and outputs of the nodes of a file: who makes them, which shape they have, how many bytes
 * they are. */
#include "base/error.h"
#include "onnx/listing/listing.h"
#include "onnx/opaque.h"

/* ---- values ---- */

static const fac_definition *definition(const fac_listing_place *at, const char *name) {
    return at->main ? fac_table_get(&at->main->names, name) : NULL;
}

static const fac_value *value_of(const fac_listing_place *at, const char *name) {
    const fac_definition *d = definition(at, name);
    return d && d->ready && d->value && !fac_value_opaque(d->value) ? d->value : NULL;
}

bool fac_listing_built(const fac_listing_place *at, const fac_proto_node *n) {
    for (size_t k = 0; at->main && k < n->in.n; k++) {
        const fac_definition *d = definition(at, n->in.at[k]);
        if (d && fac_value_opaque(d->value)) return true; /* it had no chance */
    }
    for (size_t k = 0; at->main && k < n->out.n; k++) {
        const fac_definition *d = definition(at, n->out.at[k]);
        if (!d || !d->value) continue;
        return !d->value->node || strcmp(d->value->node->op->name, "opaque") != 0;
    }
    return true;
}

static bool made_by_constant(const fac_listing_place *at, const fac_definition *d) {
    return d->maker == FAC_MADE_BY_NODE && !strcmp(at->main->nodes->at[d->node].type, "Constant");
}

/* Of the file, and not of a run. */
static bool is_stored(const fac_listing_place *at, const char *name) {
    const fac_definition *d = definition(at, name);
    if (!d) return false;
    if (d->maker == FAC_MADE_BY_TENSOR || made_by_constant(at, d)) return true;
    return d->value && d->value->time != FAC_RUN && d->value->leaf != FAC_INPUT;
}

/* ---- types ---- */

typedef struct shape_sink {
    fac_onnx_dim *to;
    int n;
} shape_sink;

static bool add_dim(void *self, uint64_t bits, fac_bytes unused) {
    shape_sink *s = self;
    (void)unused;
    s->to[s->n++] = (fac_onnx_dim){ (int64_t)bits, NULL };
    return true;
}

static bool count_dim(void *self, uint64_t bits, fac_bytes unused) {
    (void)bits, (void)unused;
    return ++*(int *)self, true;
}

static fac_status type_of_tensor(fac_onnx_listing *l, const fac_proto_tensor *t, fac_onnx_arg *a,
                                 fac_error *err) {
    shape_sink s = { 0 };
    int rank = 0;
    FAC_TRY(
        fac_proto_each(t->self, FAC_PROTO_TENSOR_DIMS, FAC_PROTO_VARINTS, count_dim, &rank, err));
    if (!(s.to = fac_arena_alloc(&l->arena, (size_t)rank + 1, sizeof *s.to)))
        return fac_raise_memory(err, "the list of nodes");
    FAC_TRY(fac_proto_each(t->self, FAC_PROTO_TENSOR_DIMS, FAC_PROTO_VARINTS, add_dim, &s, err));
    a->dims = s.to;
    a->rank = rank;
    a->dtype = fac_proto_dtype_name(t->type);
    return FAC_OK;
}

static fac_status type_of_value(fac_onnx_listing *l, const fac_graph *g, const fac_value *v,
                                fac_onnx_arg *a, fac_error *err) {
    const fac_dims *d = &v->type.dims;
    fac_onnx_dim *dims = fac_arena_alloc(&l->arena, (size_t)d->n + 1, sizeof *dims);
    if (!dims) return fac_raise_memory(err, "the list of nodes");
    for (int k = 0; k < d->n; k++) {
        const char *name = fac_is_symbol(g, d->d[k]) ? fac_symbol_name(g, d->d[k]) : NULL;
        const bool open = d->d[k] < 0, named = name && *name != '?';
        dims[k] = (fac_onnx_dim){ open ? -1 : d->d[k], NULL };
        if (!named) continue;
        dims[k].name = fac_arena_text(&l->arena, name);
        if (!dims[k].name) return fac_raise_memory(err, "the list of nodes");
    }
    a->dims = dims;
    a->rank = d->n;
    a->dtype = fac_proto_dtype_name(fac_proto_dtype_number(v->type.dtype));
    return FAC_OK;
}

/* What a graph declares of a value; false: nothing. */
static const fac_proto_value *declared_in(const fac_proto_graph *g, const char *name) {
    const fac_proto_values *lists[] = { &g->infos, &g->out, &g->in };
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < lists[k]->n; i++)
            if (!strcmp(lists[k]->at[i].name, name)) return &lists[k]->at[i];
    return NULL;
}

static fac_status type_of_declared(fac_onnx_listing *l, const fac_proto_value *v, fac_onnx_arg *a,
                                   fac_error *err) {
    const fac_proto_dense *t = &v->type.dense;
    if (!fac_proto_has(v->type.has, FAC_PROTO_TYPE_DENSE)) return FAC_OK;
    if (t->type) a->dtype = fac_proto_dtype_name(t->type);
    if (!fac_proto_has(t->has, FAC_PROTO_DENSE_SHAPE)) return FAC_OK;
    fac_onnx_dim *dims = fac_arena_alloc(&l->arena, t->shape.dims.n + 1, sizeof *dims);
    if (!dims) return fac_raise_memory(err, "the list of nodes");
    for (size_t k = 0; k < t->shape.dims.n; k++) {
        const fac_proto_dim *d = &t->shape.dims.at[k];
        const bool known = fac_proto_has(d->has, FAC_PROTO_DIM_VALUE) && d->value >= 0;
        dims[k] = (fac_onnx_dim){ known ? d->value : -1,
                                  *d->param ? fac_arena_text(&l->arena, d->param) : NULL };
        if (*d->param && !dims[k].name) return fac_raise_memory(err, "the list of nodes");
    }
    a->dims = dims;
    a->rank = (int)t->shape.dims.n;
    return FAC_OK;
}

/* Bits of an element by ONNX's word; 0: it has no size of its own. */
static int bits_of(const char *dtype) {
    static const struct {
        const char *name;
        int bits;
    } sizes[] = { { "float", 32 },         { "double", 64 },        { "complex64", 64 },
                  { "complex128", 128 },   { "bool", 8 },           { "bfloat16", 16 },
                  { "float8e4m3fn", 8 },   { "float8e4m3fnuz", 8 }, { "float8e5m2", 8 },
                  { "float8e5m2fnuz", 8 }, { "float8e8m0", 8 },     { "float4e2m1", 4 },
                  { "float16", 16 },       { "int8", 8 },           { "int16", 16 },
                  { "int32", 32 },         { "int64", 64 },         { "uint8", 8 },
                  { "uint16", 16 },        { "uint32", 32 },        { "uint64", 64 },
                  { "int4", 4 },           { "uint4", 4 },          { "int2", 2 },
                  { "uint2", 2 } };
    for (size_t k = 0; dtype && k < sizeof sizes / sizeof *sizes; k++)
        if (!strcmp(sizes[k].name, dtype)) return sizes[k].bits;
    return 0;
}

static double bytes_of(const fac_onnx_arg *a) {
    double n = a->rank < 0 ? 0 : 1;
    for (int k = 0; k < a->rank; k++) n *= a->dims[k].size < 0 ? 1 : (double)a->dims[k].size;
    const double bits = n * bits_of(a->dtype);
    return (double)(int64_t)((bits + 7) / 8);
}

/* ---- arguments ---- */

static fac_status find_type(fac_onnx_listing *l, const fac_listing_place *at, const char *name,
                            fac_onnx_arg *a, fac_error *err) {
    const fac_definition *d = definition(at, name);
    const fac_value *v = value_of(at, name);
    const fac_proto_graph *g = at->main ? &at->im->model.graph : at->graph;
    const fac_proto_value *said = NULL;
    if (d && d->maker == FAC_MADE_BY_TENSOR) return type_of_tensor(l, d->tensor, a, err);
    if (v) return type_of_value(l, at->im->g, v, a, err);
    if (at->main) said = fac_table_get(&at->im->declared, name);
    for (size_t k = 0; g && !at->main && k < g->tensors.n; k++)
        if (!strcmp(g->tensors.at[k].name, name))
            return type_of_tensor(l, &g->tensors.at[k], a, err);
    if (!said && g) said = declared_in(g, name);
    return said ? type_of_declared(l, said, a, err) : FAC_OK;
}

static fac_status find_arg(fac_onnx_listing *l, const fac_listing_place *at, const char *name,
                           fac_onnx_arg *a, fac_error *err) {
    *a = (fac_onnx_arg){ .name = fac_arena_text(&l->arena, name), .rank = -1 };
    if (!a->name) return fac_raise_memory(err, "the list of nodes");
    if (*name) FAC_TRY(find_type(l, at, name, a, err));
    a->bytes = bytes_of(a);
    return FAC_OK;
}

static fac_onnx_role role_of(const fac_listing_place *at, const fac_proto_node *n, int input,
                             const fac_onnx_arg *a) {
    static const char *const products[] = { "Conv",       "ConvTranspose", "Gemm",
                                            "DeformConv", "FusedConv",     "FusedGemm" };
    if (!*a->name || !is_stored(at, a->name)) return FAC_ONNX_DATA;
    const bool floats = a->dtype && (strstr(a->dtype, "float") || !strcmp(a->dtype, "double"));
    if (!floats || a->rank < 1) return FAC_ONNX_STORED;
    for (size_t k = 0; input == 2 && k < sizeof products / sizeof *products; k++)
        if (!strcmp(products[k], n->type)) return FAC_ONNX_BIAS;
    return FAC_ONNX_WEIGHT;
}

/* Does an input that says sizes come from nodes that compute? */
static bool is_reshaped(const fac_listing_place *at, const fac_proto_node *n, int64_t opset) {
    const fac_spelling *s = at->main ? fac_import_spelling(at->im, n, opset) : NULL;
    if (!s || !s->op || !s->op->in) return false; /* some operators are no op of ours */
    for (size_t k = 0; k < n->in.n && s->op->in[k].name; k++) {
        const fac_definition *d = definition(at, n->in.at[k]);
        if (!(s->op->in[k].is & FAC_HOST) || !d || d->maker != FAC_MADE_BY_NODE) continue;
        if (!made_by_constant(at, d)) return true;
    }
    return false;
}

/* ---- sums ---- */

static bool is_size(const fac_listing_place *at, const fac_onnx_arg *a) {
    const fac_value *v = value_of(at, a->name);
    return v && v->known && a->dtype && strstr(a->dtype, "int");
}

static void add_result(fac_onnx_listing *l, const fac_listing_place *at, const fac_onnx_arg *a) {
    fac_onnx_sums *s = &l->sums;
    if (!*a->name) return;
    if (a->rank < 0)
        s->unknown++;
    else if (is_size(at, a))
        *(a->rank ? &s->shapes : &s->scalars) += a->bytes;
    else if (is_stored(at, a->name))
        s->prepared += a->bytes;
    else
        s->results += a->bytes;
    if (a->reshaped) s->reshaped += a->bytes;
}

fac_status fac_listing_leaves(fac_onnx_listing *l, fac_body *main, fac_error *err) {
    const fac_listing_place at = { main->im, main, NULL, main->opsets, "" };
    const fac_proto_graph *g = &main->im->model.graph;
    fac_onnx_arg a;
    for (size_t k = 0; k < g->in.n; k++) {
        const fac_definition *d = definition(&at, g->in.at[k].name);
        if (d && d->maker == FAC_MADE_BY_TENSOR) continue; /* up to IR 3, weights are inputs too */
        FAC_TRY(find_arg(l, &at, g->in.at[k].name, &a, err));
        l->sums.inputs += a.bytes;
    }
    for (size_t k = 0; k < g->tensors.n; k++) {
        FAC_TRY(find_arg(l, &at, g->tensors.at[k].name, &a, err));
        l->sums.weights += a.bytes;
    }
    return FAC_OK;
}

fac_status fac_listing_args(fac_onnx_listing *l, const fac_listing_place *at,
                            const fac_proto_node *n, fac_onnx_listed *to, fac_error *err) {
    fac_onnx_arg *in = fac_arena_alloc(&l->arena, n->in.n + 1, sizeof *in);
    fac_onnx_arg *out = fac_arena_alloc(&l->arena, n->out.n + 1, sizeof *out);
    const bool reshaped = is_reshaped(at, n, to->opset);
    if (!in || !out) return fac_raise_memory(err, "the list of nodes");
    for (size_t k = 0; k < n->in.n; k++) {
        FAC_TRY(find_arg(l, at, n->in.at[k], &in[k], err));
        in[k].role = role_of(at, n, (int)k, &in[k]);
    }
    for (size_t k = 0; k < n->out.n; k++) {
        FAC_TRY(find_arg(l, at, n->out.at[k], &out[k], err));
        out[k].reshaped = reshaped && out[k].rank > 0;
        if (at->main && strcmp(n->type, "Constant")) add_result(l, at, &out[k]);
    }
    to->in = in;
    to->nin = (int)n->in.n;
    to->out = out;
    to->nout = (int)n->out.n;
    return FAC_OK;
}
