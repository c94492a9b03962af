/* A model as a folder that Hugging Face's transformers reads: config.json and model.safetensors. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/file.h"
#include "lm/lm.h"
#include "tensor/tensor_internal.h"
#include "tensor/weights.h"

/* ---- config.json ---- */

static void gpt2(fac_text *t, const fac_lm_config *c) {
    fac_text_print(t,
                   "{\n  \"architectures\": [\"GPT2LMHeadModel\"],\n  \"model_type\": \"gpt2\",\n"
                   "  \"n_layer\": %lld,\n  \"n_head\": %lld,\n  \"n_embd\": %lld,\n"
                   "  \"n_inner\": %lld,\n  \"n_positions\": %lld,\n  \"n_ctx\": %lld,\n",
                   (long long)c->layers, (long long)c->heads, (long long)c->width,
                   (long long)c->hidden, (long long)c->context, (long long)c->context);
    fac_text_print(t,
                   "  \"vocab_size\": %lld,\n  \"layer_norm_epsilon\": %g,\n"
                   "  \"activation_function\": \"gelu_new\",\n  \"tie_word_embeddings\": true,\n"
                   "  \"bos_token_id\": null,\n  \"eos_token_id\": null,\n",
                   (long long)c->vocabulary, c->eps);
}

static void llama(fac_text *t, const fac_lm_config *c) {
    fac_text_print(t,
                   "{\n  \"architectures\": [\"LlamaForCausalLM\"],\n  \"model_type\": \"llama\",\n"
                   "  \"num_hidden_layers\": %lld,\n  \"num_attention_heads\": %lld,\n"
                   "  \"num_key_value_heads\": %lld,\n  \"hidden_size\": %lld,\n"
                   "  \"intermediate_size\": %lld,\n  \"max_position_embeddings\": %lld,\n",
                   (long long)c->layers, (long long)c->heads, (long long)c->kv_heads,
                   (long long)c->width, (long long)c->hidden, (long long)c->context);
    fac_text_print(t,
                   "  \"vocab_size\": %lld,\n  \"rms_norm_eps\": %g,\n  \"rope_theta\": %g,\n"
                   "  \"hidden_act\": \"silu\",\n  \"tie_word_embeddings\": true,\n"
                   "  \"bos_token_id\": null,\n  \"eos_token_id\": null,\n",
                   (long long)c->vocabulary, c->eps, c->base);
}

/* Of fresh models; those of folders keep theirs. */
static fac_status put_config(const fac_lm *m, const char *path, fac_error *err) {
    fac_text t = { 0 };
    if (m->settings) return fac_file_write(path, m->settings, strlen(m->settings), err);
    if (!strcmp(m->c.family, "llama"))
        llama(&t, &m->c);
    else
        gpt2(&t, &m->c);
    fac_text_print(&t, "  \"torch_dtype\": \"float32\"\n}\n");
    const fac_status status =
        t.failed ? fac_raise_memory(err, "config.json") : fac_file_write(path, t.s, t.n, err);
    fac_text_free(&t);
    return status;
}

/* ---- weights ---- */

typedef struct list {
    fac_lm *m;
    fac_table seen; /* names of the files whose tensors are in the list */
    char **names;
    fac_tensor **tensors;
    size_t n, room, room_names;
    fac_error *err;
} list;

/* Takes the tensor. */
static fac_status append(list *l, const char *name, fac_tensor *t) {
    char *copy = fac_arena_text(&l->m->arena, name);
    const bool room = fac_reserve(&l->names, &l->room_names, l->n + 1, sizeof *l->names) &&
                      fac_reserve(&l->tensors, &l->room, l->n + 1, sizeof *l->tensors);
    if (!copy || !room || !fac_table_put(&l->seen, copy, t)) {
        fac_tensor_free(t);
        return fac_raise_memory(l->err, "the list of weights");
    }
    l->names[l->n] = copy;
    l->tensors[l->n++] = t;
    return FAC_OK;
}

/* A weight as the file has it, where loading transposed or shifted it: *out is a new reference. */
static fac_status as_stored(const list *l, const char *canonical, fac_tensor *t, fac_tensor **out) {
    const fac_lm_config *c = &l->m->c;
    const bool matrix = fac_tensor_type(t).dims.n == 2 && !strstr(canonical, "embd");
    const bool norm = strstr(canonical, "norm.weight");
    const bool transposed =
        c->is & FAC_LM_TRANSPOSED || (l->m->fresh && !strcmp(c->family, "gpt2"));
    if (norm && c->is & FAC_LM_PLUS_ONE) return fac_lm_shifted(t, -1, out, l->err);
    if (matrix && transposed && strncmp(canonical, "output.", 7))
        return fac_lm_transposed(t, out, l->err);
    return fac_lm_by_heads(l->m, canonical, true, t, out, l->err);
}

/* As the file has it: in its order, and rounded to its type. */
static fac_status add(list *l, const char *canonical, int64_t layer) {
    char name[300], plain[256];
    fac_tensor *t, *back, *as, *old = fac_lm_in_file(l->m, canonical, layer, name);
    if (!old) return FAC_OK;
    FAC_TRY(fac_lm_weight(l->m, canonical, layer, false, &t, l->err));
    FAC_TRY(as_stored(l, canonical, t, &back));
    fac_status status = fac_tensor_convert(back, fac_tensor_type(old).dtype, &as, l->err);
    fac_tensor_free(back);
    if (status) return status;
    return append(l, l->m->settings ? name : fac_lm_name_hf(l->m, canonical, layer, plain), as);
}

static fac_status add_both(list *l, const char *stem, int64_t layer) {
    char name[64];
    snprintf(name, sizeof name, "%s.weight", stem);
    FAC_TRY(add(l, name, layer));
    snprintf(name, sizeof name, "%s.bias", stem);
    return add(l, name, layer);
}

/* What the model has no use for, such as masks that are buffers, stays as it was. */
static fac_status add_others(list *l) {
    for (size_t f = 0; f < l->m->nfiles && l->m->settings; f++)
        for (int k = 0; k < fac_weights_count(l->m->files[f]); k++) {
            const char *name = fac_weights_name(l->m->files[f], k);
            fac_tensor *t = fac_weights_tensor(l->m->files[f], k);
            if (!fac_table_get(&l->seen, name)) FAC_TRY(append(l, name, fac_tensor_retain(t)));
        }
    return FAC_OK;
}

static fac_status collect(list *l) {
    for (int64_t layer = -1; layer < l->m->c.layers; layer++)
        for (int k = 0; fac_lm_stem(k); k++) {
            const bool inside = strchr(fac_lm_stem(k), '%');
            if (inside == (layer >= 0)) FAC_TRY(add_both(l, fac_lm_stem(k), inside ? layer : 0));
        }
    return add_others(l);
}

static fac_status put_weights(fac_lm *m, const char *path, fac_error *err) {
    list l = { .m = m, .err = err };
    fac_status status = collect(&l);
    if (!status)
        status = fac_safetensors_save(path, (int)l.n, (const char *const *)l.names, l.tensors, err);
    for (size_t k = 0; k < l.n; k++) fac_tensor_free(l.tensors[k]);
    fac_release(l.names);
    fac_release(l.tensors);
    fac_table_free(&l.seen);
    return status;
}

fac_status fac_lm_save(fac_lm *m, const char *folder, fac_error *err) {
    char path[4096];
    if (!m->settings && !m->fresh)
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "a model from a file has no config.json: it is written as GGUF");
    FAC_TRY(fac_lm_path(path, folder, "config.json", err));
    FAC_TRY(put_config(m, path, err));
    FAC_TRY(fac_lm_path(path, folder, "model.safetensors", err));
    return put_weights(m, path, err);
}
