/* fac_nn_multihead_attention: projections around the op attention, with the parameters of
 * torch.nn.MultiheadAttention. */
#include <math.h>
#include "nn/nn_internal.h"
#include "ops/shape.h"

enum { Q, K, V, PARTS };

/* q, k and v times their weights.  One weight holds all three where k and v have as many features
 * as q, and where they are the same value it is one product. */
static void project(fac_value *in[PARTS], int64_t size, bool has_bias) {
    static const char *const names[] = { "q_proj_weight", "k_proj_weight", "v_proj_weight" };
    const fac_init xavier = { .kind = FAC_INIT_XAVIER_UNIFORM };
    fac_value *x = in[Q], *w = NULL, *weight[PARTS], *b = NULL, *bias[PARTS] = { NULL };
    if (in[K]->type.dims.d[2] == size && in[V]->type.dims.d[2] == size)
        w = fac_nn_param(x, "in_proj_weight", fac_shape(PARTS * size, size), NULL, xavier);
    else
        for (int i = 0; i < PARTS; i++)
            weight[i] =
                fac_nn_param(x, names[i], fac_shape(size, in[i]->type.dims.d[2]), NULL, xavier);
    if (has_bias)
        b = fac_nn_param(x, "in_proj_bias", fac_shape(PARTS * size), NULL, fac_init_constant(0));
    if (w && in[K] == x && in[V] == x) {
        fac_split(fac_linear(x, w, b), 2, PARTS, in);
        return;
    }
    if (w) fac_split(w, 0, PARTS, weight);
    if (b) fac_split(b, 0, PARTS, bias);
    for (int i = 0; i < PARTS; i++) in[i] = fac_linear(in[i], weight[i], bias[i]);
}

/* N,1,1,T: true for the keys that a sequence has. */
static fac_value *present(fac_value *k, fac_value *lengths) {
    fac_graph *g = k->graph;
    fac_value *keys = fac_dim_of(k, 1);
    fac_value *at = fac_arange(fac_number(g, FAC_I64, 0), keys, fac_number(g, FAC_I64, 1));
    return fac_less(at, fac_unsqueeze(fac_cast(lengths, FAC_I64), fac_shape(1, 2, 3)));
}

/* The mask and the lengths in one; NULL: every key takes part. */
static fac_value *mask_of(fac_value *k, const fac_nn_attention_opts *o) {
    if (!o->lengths) return o->mask;
    fac_value *here = present(k, o->lengths);
    if (!o->mask) return here;
    if (o->mask->type.dtype == FAC_BOOL) return fac_and(here, o->mask);
    return fac_where(here, o->mask, fac_number(k->graph, o->mask->type.dtype, -INFINITY));
}

/* N,T,E -> N,heads,T,E/heads */
static fac_value *apart(fac_value *v, int heads) {
    return fac_transpose(fac_reshape(v, fac_shape(0, 0, heads, -1)), fac_shape(0, 2, 1, 3));
}

/* q, k and v N,T,E, projected. */
static fac_value *attend(fac_value *const in[PARTS], int heads, const fac_nn_attention_opts *o) {
    fac_value *mask = mask_of(in[K], o);
    fac_attention_opts how = { .q_heads = heads, .kv_heads = heads, .causal = o->causal };
    if (o->dropout == 0) return fac_attention(in[Q], in[K], in[V], mask, NULL, NULL, NULL, &how);
    how.scores = FAC_SCORES_SOFTMAX; /* what is dropped lies inside the op */
    fac_value *p =
        fac_value_other(fac_attention(in[Q], in[K], in[V], mask, NULL, NULL, NULL, &how), 3);
    fac_value *y = fac_matmul(fac_nn_dropout(p, o->dropout), apart(in[V], heads));
    return fac_reshape(fac_transpose(y, fac_shape(0, 2, 1, 3)), fac_shape(0, 0, -1));
}

static fac_value *multihead(fac_value *const given[PARTS], int heads,
                            const fac_nn_attention_opts *o) {
    fac_graph *g = given[Q]->graph;
    const fac_dims swap = fac_shape(1, 0, 2);
    fac_value *in[PARTS];
    for (int i = 0; i < PARTS; i++) {
        const fac_dims *d = &given[i]->type.dims;
        if (d->n != 3 || d->d[2] < 1 || heads < 1 || (i == Q && d->d[2] % heads))
            return fac_graph_raise(
                g, FAC_E_SHAPE,
                "%s: attention of %d heads: q, k and v must have three dims, the last of "
                "known size, that of q a multiple of the heads",
                g->scope, heads);
        in[i] = o->batch_first                  ? given[i]
                : i && given[i] == given[i - 1] ? in[i - 1]
                                                : fac_transpose(given[i], swap);
    }
    const int64_t size = in[Q]->type.dims.d[2];
    project(in, size, !o->no_bias);
    fac_value *y = attend(in, heads, o);
    if (!o->batch_first) y = fac_transpose(y, swap);
    return fac_nn_linear_with(
        y, "out_proj", (int)size,
        &(fac_nn_linear_opts){ .no_bias = o->no_bias, .bias = fac_init_constant(0) });
}

fac_value *fac_nn_multihead_attention(fac_value *q, fac_value *k, fac_value *v, const char *name,
                                      int heads, const fac_nn_attention_opts *opts) {
    static const fac_nn_attention_opts defaults;
    fac_graph *g = q->graph;
    if (g->error.status) return g->poison;
    fac_graph_push(g, name);
    fac_value *y = multihead((fac_value *[]){ q, k, v }, heads, opts ? opts : &defaults);
    fac_graph_pop(g);
    return y;
}
