/* Blocks of a transformer (Vaswani et al. 2017), with the parameters and the order of
 * torch.nn.TransformerEncoderLayer and TransformerDecoderLayer:
 *   x = norm(x + part(x)), or with norm_first x = x + part(norm(x)),   for attention, attention
 *       over memory, feed forward */
#include "nn/nn_internal.h"

typedef struct block {
    const fac_nn_transformer_opts *o;
    int heads, norms;  /* so far */
    fac_value *memory; /* NULL in an encoder */
} block;

typedef fac_value *part(fac_value *x, const block *b);

static fac_value *self_attention(fac_value *x, const block *b) {
    const fac_nn_transformer_opts *o = b->o;
    return fac_nn_multihead_attention(x, x, x, "self_attn", b->heads,
                                      &(fac_nn_attention_opts){ .batch_first = o->batch_first,
                                                                .no_bias = o->no_bias,
                                                                .causal = o->causal,
                                                                .dropout = o->dropout,
                                                                .mask = o->mask,
                                                                .lengths = o->lengths });
}

static fac_value *memory_attention(fac_value *x, const block *b) {
    const fac_nn_transformer_opts *o = b->o;
    return fac_nn_multihead_attention(x, b->memory, b->memory, "multihead_attn", b->heads,
                                      &(fac_nn_attention_opts){ .batch_first = o->batch_first,
                                                                .no_bias = o->no_bias,
                                                                .dropout = o->dropout,
                                                                .mask = o->memory_mask,
                                                                .lengths = o->memory_lengths });
}

static fac_value *feed_forward(fac_value *x, const block *b) {
    const fac_nn_transformer_opts *o = b->o;
    const fac_nn_linear_opts bias = { .no_bias = o->no_bias };
    if (x->graph->error.status) return x->graph->poison;
    const int64_t size = x->type.dims.d[x->type.dims.n - 1];
    x = fac_nn_linear_with(x, "linear1", o->feedforward ? o->feedforward : 2048, &bias);
    x = fac_nn_dropout((o->activation ? o->activation : fac_relu)(x), o->dropout);
    return fac_nn_linear_with(x, "linear2", (int)size, &bias);
}

static fac_value *norm(fac_value *x, block *b) {
    static const char *const names[] = { "norm1", "norm2", "norm3" };
    return fac_nn_layer_norm(x, names[b->norms++],
                             &(fac_nn_norm_opts){ .eps = b->o->eps, .no_bias = b->o->no_bias });
}

static fac_value *add(fac_value *x, part *make, block *b) {
    fac_value *y = fac_nn_dropout(make(b->o->norm_first ? norm(x, b) : x, b), b->o->dropout);
    y = fac_add(x, y);
    return b->o->norm_first ? y : norm(y, b);
}

static fac_value *layer(fac_value *x, fac_value *memory, const char *name, int heads,
                        const fac_nn_transformer_opts *opts) {
    static const fac_nn_transformer_opts defaults;
    fac_graph *g = x->graph;
    if (g->error.status) return g->poison;
    block b = { .o = opts ? opts : &defaults, .heads = heads, .memory = memory };
    fac_graph_push(g, name);
    x = add(x, self_attention, &b);
    if (memory) x = add(x, memory_attention, &b);
    x = add(x, feed_forward, &b);
    fac_graph_pop(g);
    return x;
}

fac_value *fac_nn_transformer_encoder_layer(fac_value *x, const char *name, int heads,
                                            const fac_nn_transformer_opts *opts) {
    return layer(x, NULL, name, heads, opts);
}

fac_value *fac_nn_transformer_decoder_layer(fac_value *x, fac_value *memory, const char *name,
                                            int heads, const fac_nn_transformer_opts *opts) {
    return layer(x, memory, name, heads, opts);
}
