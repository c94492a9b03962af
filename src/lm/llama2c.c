/* Models of llama2.c, version 0: seven i32 (width, hidden, layers, heads, heads of keys,
 * vocabulary, context), then f32: the table, and each kind of weight for all layers.  A negative
 * vocabulary: the head has a matrix of its own.  Two tables of angles stand before it, which are
 * made anew here. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "lm/lm.h"
#include "tensor/tensor_internal.h"
#include "tensor/weights.h"

enum { HEAD = 28 };

typedef struct reader {
    fac_file *f;
    fac_weights *w;
    size_t at;
    fac_error *err;
} reader;

static fac_status add(reader *r, const char *name, fac_dims dims) {
    fac_tensor *t;
    const fac_type type = { FAC_F32, dims };
    FAC_TRY(fac_tensor_from_file(r->f, r->at, type, NULL, &t, r->err));
    r->at += fac_type_bytes(&type);
    return fac_weights_add(r->w, name, strlen(name), t, r->err);
}

/* The same weight of all layers. */
static fac_status add_all(reader *r, const char *stem, int64_t layers, fac_dims dims) {
    char name[64];
    for (int64_t k = 0; k < layers; k++) {
        snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)k, stem);
        FAC_TRY(add(r, name, dims));
    }
    return FAC_OK;
}

static fac_status read_weights(reader *r, const fac_lm_config *c, bool own_head) {
    const int64_t keys = c->kv_heads * c->head;
    const struct {
        const char *stem;
        fac_dims dims;
    } kinds[] = {
        { "attn_norm", fac_shape(c->width) },
        { "attn_q", fac_shape(c->width, c->width) },
        { "attn_k", fac_shape(keys, c->width) },
        { "attn_v", fac_shape(keys, c->width) },
        { "attn_output", fac_shape(c->width, c->width) },
        { "ffn_norm", fac_shape(c->width) },
        { "ffn_gate", fac_shape(c->hidden, c->width) },
        { "ffn_down", fac_shape(c->width, c->hidden) },
        { "ffn_up", fac_shape(c->hidden, c->width) },
    };
    FAC_TRY(add(r, "token_embd.weight", fac_shape(c->vocabulary, c->width)));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        FAC_TRY(add_all(r, kinds[k].stem, c->layers, kinds[k].dims));
    FAC_TRY(add(r, "output_norm.weight", fac_shape(c->width)));
    r->at += (size_t)(c->context * c->head) * sizeof(float);
    return own_head ? add(r, "output.weight", fac_shape(c->vocabulary, c->width)) : FAC_OK;
}

static bool in_range(const int32_t n[7]) {
    for (int k = 0; k < 7; k++)
        if (n[k] < 1 || n[k] > 1 << 24) return false;
    return n[2] <= 4096 && n[0] % n[3] == 0 && n[3] % n[4] == 0 && n[0] / n[3] % 2 == 0;
}

/* An empty list of weights: what the reader of files makes of a file of no tensors has no use here.
 */
fac_status fac_lm_read_llama2c(fac_lm *m, fac_file *f, fac_error *err) {
    int32_t n[7];
    if (fac_file_size(f) < HEAD)
        return fac_raise(err, FAC_E_FORMAT, "no language model: not GGUF or llama2.c's .bin");
    memcpy(n, fac_file_data(f), sizeof n);
    const bool own_head = n[5] < 0;
    if (own_head) n[5] = n[5] == INT32_MIN ? 0 : -n[5];
    if (!in_range(n))
        return fac_raise(err, FAC_E_FORMAT, "no language model: not GGUF or llama2.c's .bin");
    m->c = (fac_lm_config){ .family = "llama",
                            .is = FAC_LM_NEIGHBOURS,
                            .width = n[0],
                            .hidden = n[1],
                            .layers = n[2],
                            .heads = n[3],
                            .kv_heads = n[4],
                            .vocabulary = n[5],
                            .context = n[6],
                            .head = n[0] / n[3],
                            .rotary = n[0] / n[3],
                            .eps = 1e-5,
                            .base = 10000,
                            .factor = 1 };
    m->files = fac_alloc(1, sizeof *m->files);
    if (!m->files || !(m->files[0] = fac_weights_new()))
        return fac_raise_memory(err, "a language model");
    m->nfiles = 1;
    reader r = { f, m->files[0], HEAD, err };
    FAC_TRY(read_weights(&r, &m->c, own_head));
    if (r.at != fac_file_size(f))
        return fac_raise(err, FAC_E_FORMAT,
                         "no language model of llama2.c: %zu bytes instead of %zu",
                         fac_file_size(f), r.at);
    return FAC_OK;
}
