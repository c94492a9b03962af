/* BERT (Devlin et al., https://arxiv.org/abs/1810.04805) and its heirs that give embeddings: every
 * token sees all others, norms come after sums, and a text is the mean of its tokens. */
#include <stdio.h>
#include "base/error.h"
#include "lm/build.h"
#include "tensor/tensor_internal.h"

static fac_value *attention(fac_lm_building *b, fac_value *x) {
    const fac_attention_opts o = { .q_heads = b->c->heads, .kv_heads = b->c->kv_heads };
    fac_value *q = fac_lm_linear(b, x, "blk.%d.attn_q"), *k = fac_lm_linear(b, x, "blk.%d.attn_k");
    fac_value *v = fac_lm_linear(b, x, "blk.%d.attn_v");
    return fac_lm_linear(b, fac_attention(q, k, v, NULL, NULL, NULL, NULL, &o),
                         "blk.%d.attn_output");
}

static fac_value *block(fac_lm_building *b, fac_value *x) {
    x = fac_lm_norm(b, fac_add(x, attention(b, x)), "blk.%d.attn_output_norm");
    fac_value *y =
        fac_lm_linear(b, fac_gelu(fac_lm_linear(b, x, "blk.%d.ffn_up")), "blk.%d.ffn_down");
    return fac_lm_norm(b, fac_add(x, y), "blk.%d.layer_output_norm");
}

/* Words, positions and the type of the first sentence. */
static fac_value *embeddings(fac_lm_building *b, fac_value *ids) {
    fac_value *words = fac_lm_rows(b, "token_embd.weight", ids);
    fac_value *places = fac_lm_rows(b, "position_embd.weight", fac_lm_counted(b, ids));
    fac_value *first = fac_lm_rows(b, "token_types.weight", fac_ints(b->g, fac_shape(0)));
    if (!words || !places || !first) return NULL;
    return fac_lm_norm(b, fac_add(fac_add(words, places), first), "token_embd_norm");
}

void fac_lm_encoder(fac_lm_building *b, int64_t batch) {
    fac_value *ids = fac_input(b->g, "ids", FAC_I64, fac_shape(batch, fac_symbol(b->g, "N")));
    fac_value *x = embeddings(b, ids);
    for (b->layer = 0; b->layer < b->c->layers && x && !b->status; b->layer++) {
        char name[32];
        snprintf(name, sizeof name, "blk.%lld", (long long)b->layer);
        fac_graph_push(b->g, name);
        x = block(b, x);
        fac_graph_pop(b->g);
    }
    if (!x) return;
    fac_value *mean = fac_mean(x, fac_shape(1), false);
    fac_value *length = fac_sqrt(fac_sum(fac_mul(mean, mean), fac_shape(1), true));
    fac_output(b->g, "embedding", fac_div(mean, fac_max(length, fac_number(b->g, FAC_F32, 1e-12))));
}

/* ---- running ---- */

static fac_status check(const fac_lm *m, const int32_t *ids, int64_t n, fac_error *err) {
    if (!(m->c.is & FAC_LM_ENCODER))
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "%s is no model of embeddings: BERT and its like are", m->c.family);
    if (n < 1 || n > m->c.context)
        return fac_raise(err, FAC_E_ARGUMENT, "a text of %lld tokens: 1 to %lld", (long long)n,
                         (long long)m->c.context);
    for (int64_t k = 0; k < n; k++)
        if (ids[k] < 0 || ids[k] >= m->c.vocabulary)
            return fac_raise(err, FAC_E_ARGUMENT, "token %d of %lld", ids[k],
                             (long long)m->c.vocabulary);
    return FAC_OK;
}

static fac_status run(fac_program *p, const int32_t *ids, int64_t n, float *to, fac_error *err) {
    fac_tensor *in, *out = NULL;
    void *data;
    FAC_TRY(fac_tensor_new(NULL, FAC_I64, fac_shape(1, n), &in, err));
    fac_status status = fac_tensor_begin_write(in, &data, err);
    for (int64_t k = 0; k < n && !status; k++) ((int64_t *)data)[k] = ids[k];
    if (!status) status = fac_program_run(p, &in, &out, err);
    const fac_type type = status ? (fac_type){ 0 } : fac_tensor_type(out);
    if (!status) status = fac_tensor_read(out, to, fac_type_bytes(&type), err);
    fac_tensor_free(in);
    fac_tensor_free(out);
    return status;
}

fac_status fac_lm_embed(fac_lm *m, const int32_t *ids, int64_t n, float *to, fac_error *err) {
    const fac_program_opts o = { .precision = m->opts.precision };
    fac_graph *g;
    FAC_TRY(check(m, ids, n, err));
    if (!m->encoder) {
        FAC_TRY(fac_lm_build(m, 1, m->context, NULL, &g, err));
        const fac_status status = fac_program_new(g, m->device, &o, &m->encoder, err);
        fac_graph_free(g);
        if (status) return status;
    }
    return run(m->encoder, ids, n, to, err);
}
