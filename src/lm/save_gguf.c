/* Writing a model as a GGUF file, its matrices in a type of choice, or in those that they had.
 *
 * Tables of tokens (embedding and head) are the last to bear few bits: with 4 and 5 bits they
 * get 8.  What has one dim, and matrices whose rows are not whole blocks, stay f32.  Llama's q and
 * k have the rows of each head in pairs there, as llama.cpp rotates them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/file.h"
#include "lm/lm.h"
#include "tensor/tensor_internal.h"
#include "tensor/weights.h"
#include "text/gguf_write.h"

static const struct {
    const char *name;
    fac_dtype type, tables;
    uint32_t file_type;
} schemes[] = {
    { "f32", FAC_F32, FAC_F32, 0 },     { "f16", FAC_F16, FAC_F16, 1 },
    { "bf16", FAC_BF16, FAC_BF16, 32 }, { "q8_0", FAC_Q8_0, FAC_Q8_0, 7 },
    { "q5_1", FAC_Q5_1, FAC_Q8_0, 9 },  { "q5_0", FAC_Q5_0, FAC_Q8_0, 8 },
    { "q4_1", FAC_Q4_1, FAC_Q8_0, 3 },  { "q4_0", FAC_Q4_0, FAC_Q8_0, 2 },
};
enum { SCHEMES = sizeof schemes / sizeof *schemes, ALIGNED = 32, MOST_NAME = 256 };

const char *fac_lm_scheme(int i) { return i >= 0 && i < SCHEMES ? schemes[i].name : NULL; }

static uint32_t id_of(fac_dtype t) {
    static const uint32_t ids[FAC_DTYPES] = {
        [FAC_F32] = 0,  [FAC_F16] = 1,  [FAC_Q4_0] = 2, [FAC_Q4_1] = 3,
        [FAC_Q5_0] = 6, [FAC_Q5_1] = 7, [FAC_Q8_0] = 8, [FAC_BF16] = 30
    };
    return ids[t];
}

/* ---- which tensors ---- */

typedef struct entry {
    char name[MOST_NAME];
    fac_tensor *t;
    fac_type type;
    uint64_t at;
} entry;
typedef struct writing {
    fac_lm *m;
    int scheme; /* -1: each in the type that its file has it in */
    entry *all;
    size_t n, room;
    fac_error *err;
} writing;

static bool is_table(const char *name) {
    return !strncmp(name, "token_embd.", 11) || !strncmp(name, "output.", 7);
}

static fac_dtype type_had(const writing *w, const char *canonical, int64_t layer) {
    char name[300];
    const fac_tensor *t = fac_lm_in_file(w->m, canonical, layer, name);
    return t ? fac_tensor_type(t).dtype : FAC_F32;
}

static fac_dtype type_for(const writing *w, const char *name, const fac_dims *d) {
    const fac_dtype type = is_table(name) ? schemes[w->scheme].tables : schemes[w->scheme].type;
    if (d->n < 2 || strstr(name, "position") || strstr(name, "token_types")) return FAC_F32;
    return d->d[d->n - 1] % fac_dtype_get(type)->block_elements ? FAC_F32 : type;
}

static fac_status add(writing *w, const char *canonical, int64_t layer) {
    fac_tensor *t;
    FAC_TRY(fac_lm_weight(w->m, canonical, layer, false, &t, w->err));
    if (!t) return FAC_OK;
    if (!fac_reserve(&w->all, &w->room, w->n + 1, sizeof *w->all))
        return fac_raise_memory(w->err, "names");
    entry *e = &w->all[w->n++];
    fac_lm_name_gguf(w->m, canonical, layer, e->name);
    e->t = t;
    e->type = fac_tensor_type(t);
    e->type.dtype =
        w->scheme < 0 ? type_had(w, canonical, layer) : type_for(w, e->name, &e->type.dims);
    if (e->type.dtype == FAC_F32 || id_of(e->type.dtype)) return FAC_OK;
    return fac_raise(w->err, FAC_E_UNSUPPORTED,
                     "%s is %s, which is read and not written: say a scheme, such as q8_0", e->name,
                     fac_dtype_get(e->type.dtype)->name);
}

static fac_status add_both(writing *w, const char *stem, int64_t layer) {
    char name[MOST_NAME];
    snprintf(name, sizeof name, "%s.weight", stem);
    FAC_TRY(add(w, name, layer));
    snprintf(name, sizeof name, "%s.bias", stem);
    return add(w, name, layer);
}

static fac_status list(writing *w) {
    static const char *const angles[] = { "rope_freqs.weight", "rope_factors_short.weight",
                                          "rope_factors_long.weight" };
    for (int k = 0; k < 3; k++) FAC_TRY(add(w, angles[k], 0));
    for (int64_t layer = -1; layer < w->m->c.layers; layer++)
        for (int k = 0; fac_lm_stem(k); k++) {
            const bool inside = strchr(fac_lm_stem(k), '%');
            if (inside == (layer >= 0)) FAC_TRY(add_both(w, fac_lm_stem(k), inside ? layer : 0));
        }
    uint64_t at = 0;
    for (size_t k = 0; k < w->n; k++) {
        w->all[k].at = at;
        at += (fac_type_bytes(&w->all[k].type) + ALIGNED - 1) / ALIGNED * ALIGNED;
    }
    return FAC_OK;
}

/* ---- keys ---- */

static void put_config(fac_gguf_head *h, const fac_lm_config *c, uint32_t file_type) {
    char name[100];
#define KEY(suffix) (snprintf(name, sizeof name, "%s." suffix, c->family), name)
    fac_gguf_put_text(h, "general.architecture", c->family);
    fac_gguf_put_int(h, "general.file_type", file_type);
    fac_gguf_put_int(h, KEY("block_count"), c->layers);
    fac_gguf_put_int(h, KEY("embedding_length"), c->width);
    fac_gguf_put_int(h, KEY("feed_forward_length"), c->hidden);
    fac_gguf_put_int(h, KEY("attention.head_count"), c->heads);
    fac_gguf_put_int(h, KEY("attention.head_count_kv"), c->kv_heads);
    fac_gguf_put_int(h, KEY("attention.key_length"), c->head);
    fac_gguf_put_int(h, KEY("attention.value_length"), c->head);
    fac_gguf_put_int(h, KEY("context_length"), c->context);
    fac_gguf_put_int(h, KEY("vocab_size"), c->vocabulary);
    fac_gguf_put_real(h,
                      c->is & FAC_LM_LAYER_NORM ? KEY("attention.layer_norm_epsilon")
                                                : KEY("attention.layer_norm_rms_epsilon"),
                      c->eps);
    if (!(c->is & FAC_LM_LEARNED)) fac_gguf_put_int(h, KEY("rope.dimension_count"), c->rotary);
    if (!(c->is & FAC_LM_LEARNED)) fac_gguf_put_real(h, KEY("rope.freq_base"), c->base);
    if (!strcmp(c->family, "gemma3"))
        fac_gguf_put_real(h, KEY("rope.local.freq_base"), c->local_base);
    if (c->factor != 1) fac_gguf_put_real(h, KEY("rope.scaling.factor"), c->factor);
    if (c->before > 0)
        fac_gguf_put_int(h, KEY("rope.scaling.original_context_length"), (int64_t)c->before);
    if (c->stretch > 0) fac_gguf_put_real(h, KEY("rope.scaling.attn_factor"), c->stretch);
    if (c->scale > 0) fac_gguf_put_real(h, KEY("attention.scale"), c->scale);
    if (c->window > 0) fac_gguf_put_int(h, KEY("attention.sliding_window"), c->window);
    if (c->cap > 0) fac_gguf_put_real(h, KEY("attn_logit_softcapping"), c->cap);
    if (c->last_cap > 0) fac_gguf_put_real(h, KEY("final_logit_softcapping"), c->last_cap);
    if (c->is & FAC_LM_PARALLEL) fac_gguf_put_flag(h, KEY("use_parallel_residual"), true);
#undef KEY
}

static void put_tensors(fac_gguf_head *h, const writing *w) {
    for (size_t k = 0; k < w->n; k++) {
        const entry *e = &w->all[k];
        fac_gguf_put_name(h, e->name);
        fac_gguf_put_number(h, (uint64_t)e->type.dims.n, 4);
        for (int d = e->type.dims.n; d-- > 0;)
            fac_gguf_put_number(h, (uint64_t)e->type.dims.d[d], 8);
        fac_gguf_put_number(h, id_of(e->type.dtype), 4);
        fac_gguf_put_number(h, e->at, 8);
    }
}

/* ---- contents ---- */

/* (head, half, pair) as (head, pair, half): as a rotation of neighbours reads them. */
static fac_status paired(const writing *w, const entry *e, fac_tensor *t, fac_tensor **out) {
    const fac_dims d = fac_tensor_type(t).dims;
    const int64_t D = w->m->c.head, width = d.n > 1 ? d.d[1] : 1, H = d.d[0] / D;
    const bool q = strstr(e->name, "attn_q.") || strstr(e->name, "attn_k.");
    if (!q || strcmp(w->m->c.family, "llama") || w->m->c.is & FAC_LM_NEIGHBOURS) {
        *out = fac_tensor_retain(t);
        return FAC_OK;
    }
    fac_tensor *view;
    FAC_TRY(fac_tensor_view(t, fac_shape(H, D / 2, 2, width),
                            (int64_t[]){ D * width, width, D / 2 * width, 1 }, 0, &view, w->err));
    const fac_status status = fac_tensor_copy_contiguous(view, out, w->err);
    fac_tensor_free(view);
    return status;
}

static fac_status put_tensor(const writing *w, const entry *e, fac_writer *to) {
    static const char zeros[ALIGNED];
    fac_tensor *plain = NULL, *permuted = NULL, *flat = NULL, *made = NULL;
    fac_status status = fac_tensor_convert(e->t, FAC_F32, &plain, w->err);
    if (!status) status = paired(w, e, plain, &permuted);
    if (!status) status = fac_tensor_view(permuted, e->type.dims, NULL, 0, &flat, w->err);
    if (!status) status = fac_tensor_convert(flat, e->type.dtype, &made, w->err);
    if (!status) status = fac_tensor_put(made, to, w->err);
    const size_t rest = ALIGNED - fac_type_bytes(&e->type) % ALIGNED;
    if (!status && rest < ALIGNED) status = fac_writer_put(to, zeros, rest, w->err);
    fac_tensor_free(plain);
    fac_tensor_free(permuted);
    fac_tensor_free(flat);
    fac_tensor_free(made);
    return status ? fac_raise_in(w->err, status, "%s", e->name) : FAC_OK;
}

static fac_status put_file(writing *w, const fac_gguf_head *h, const char *path) {
    static const char zeros[ALIGNED];
    fac_writer *to;
    uint32_t version = 3;
    const uint64_t counts[2] = { w->n, h->keys };
    FAC_TRY(fac_writer_open(path, &to, w->err));
    fac_status status = fac_writer_put(to, "GGUF", 4, w->err);
    if (!status) status = fac_writer_put(to, &version, 4, w->err);
    if (!status) status = fac_writer_put(to, counts, sizeof counts, w->err);
    if (!status) status = fac_writer_put(to, h->text.s, h->text.n, w->err);
    const size_t rest = ALIGNED - (24 + h->text.n) % ALIGNED;
    if (!status && rest < ALIGNED) status = fac_writer_put(to, zeros, rest, w->err);
    for (size_t k = 0; k < w->n && !status; k++) status = put_tensor(w, &w->all[k], to);
    if (status)
        fac_writer_cancel(to);
    else
        status = fac_writer_close(to, w->err);
    return status;
}

/* What general.file_type says: the scheme, or what most weights are. */
static uint32_t file_type(const writing *w) {
    if (w->scheme >= 0) return schemes[w->scheme].file_type;
    const char *most = fac_lm_about(w->m).weights;
    for (int k = 0; k < SCHEMES; k++)
        if (!strcmp(schemes[k].name, most)) return schemes[k].file_type;
    return 0;
}

/* path NULL: only as far as it is known whether it can be written. */
static fac_status write(writing *w, const fac_tokenizer *t, const char *path) {
    fac_gguf_head h = { 0 };
    fac_status status = list(w);
    put_config(&h, &w->m->c, file_type(w));
    if (!status) status = fac_tokenizer_put_gguf(t, &h, w->err);
    put_tensors(&h, w);
    if (!status && h.text.failed) status = fac_raise_memory(w->err, "the head of a GGUF file");
    if (!status && path) status = put_file(w, &h, path);
    fac_text_free(&h.text);
    return status;
}

fac_status fac_lm_save_gguf(fac_lm *m, const fac_tokenizer *t, const char *scheme, const char *path,
                            fac_error *err) {
    writing w = { .m = m, .scheme = -1, .err = err };
    for (int k = 0; k < SCHEMES && scheme; k++)
        if (!strcmp(schemes[k].name, scheme)) w.scheme = k;
    if (scheme && w.scheme < 0)
        return fac_raise(err, FAC_E_ARGUMENT, "a scheme \"%.40s\": none of that name", scheme);
    const fac_status status = write(&w, t, path);
    fac_release(w.all);
    return status;
}

fac_status fac_lm_quantize(const char *path, const char *scheme, const char *out, fac_error *err) {
    fac_tokenizer *t = NULL;
    fac_lm *m = NULL;
    if (!scheme) return fac_raise(err, FAC_E_ARGUMENT, "no scheme");
    FAC_TRY(fac_tokenizer_load(path, &t, err));
    fac_status status = fac_lm_load(path, NULL, NULL, &m, err);
    if (!status) status = fac_lm_save_gguf(m, t, scheme, out, err);
    fac_lm_free(m);
    fac_tokenizer_free(t);
    return status;
}
