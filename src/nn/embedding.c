/* fac_nn_embedding: rows of a table by their numbers, and the table. */
#include "nn/nn_internal.h"

/* The row of the padding starts as zeros. */
static void clear_row(const fac_value *w, int64_t row) {
    const size_t room = fac_type_bytes(&w->type), size = room / (size_t)w->type.dims.d[0];
    fac_graph *g = w->graph;
    fac_error err = { 0 };
    fac_tensor *view = NULL, *zero = NULL;
    const fac_dims dims = fac_shape(w->type.dims.d[1]);
    fac_status status = fac_tensor_view(w->tensor, dims, NULL, row * dims.d[0], &view, &err);
    if (!status) status = fac_tensor_new(NULL, w->type.dtype, dims, &zero, &err);
    if (!status) status = fac_tensor_write(view, fac_tensor_data(zero), size, &err);
    if (status) fac_graph_raise(g, status, "%s: %s", w->name, err.text);
    fac_tensor_free(view);
    fac_tensor_free(zero);
}

static fac_value *embedding(fac_value *ids, int64_t count, int features,
                            const fac_nn_embedding_opts *o) {
    fac_graph *g = ids->graph;
    const int64_t row = o->padding_idx < 0 ? o->padding_idx + count : o->padding_idx;
    if (count < 1 || features < 1 || (o->padding && (row < 0 || row >= count)))
        return fac_graph_raise(g, FAC_E_ARGUMENT,
                               "%s: an embedding of %lld rows with %d features, padding_idx %lld",
                               g->scope, (long long)count, features, (long long)o->padding_idx);
    const bool chosen = o->weight.kind != FAC_INIT_DEFAULT;
    fac_value *w = fac_nn_leaf(g, FAC_PARAM, "weight", o->dtype ? o->dtype : FAC_F32,
                               fac_shape(count, features),
                               chosen ? o->weight : (fac_init){ FAC_INIT_NORMAL, .std = 1 });
    if (g->error.status || !o->padding) return fac_gather(w, ids, 0);
    if (!g->source) clear_row(w, row);
    fac_value *y = fac_gather(w, ids, 0), *padding = fac_number(g, ids->type.dtype, (double)row);
    fac_value *padded = fac_unsqueeze(fac_equal(ids, padding), fac_shape(-1));
    return fac_where(padded, fac_stop(y), y); /* the same numbers, without a gradient */
}

fac_value *fac_nn_embedding(fac_value *ids, const char *name, int64_t count, int features,
                            const fac_nn_embedding_opts *opts) {
    static const fac_nn_embedding_opts defaults;
    fac_graph *g = ids->graph;
    if (g->error.status) return g->poison;
    fac_graph_push(g, name);
    fac_value *y = embedding(ids, count, features, opts ? opts : &defaults);
    fac_graph_pop(g);
    return y;
}
