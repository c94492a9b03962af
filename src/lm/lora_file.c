/* Adapters in files as peft has them: adapter_config.json and adapter_model.safetensors. */
#include <stdio.h>
#include <string.h>
#include <cjson/cJSON.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/quote.h"
#include "facula/file.h"
#include "facula/read.h"
#include "lm/lora.h"
#include "tensor/weights.h"

enum { LARGEST = 1 << 20 };
static const char config_name[] = "adapter_config.json",
                  weights_name[] = "adapter_model.safetensors";

static fac_status join(char to[4096], const char *folder, const char *name, fac_error *err) {
    const int n = snprintf(to, 4096, "%s/%s", folder, name);
    if (n > 0 && n < 4096) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT, "%s: a path that is too long", folder);
}

/* "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight" */
static const char *peft_name(const fac_lm *m, const char *stem, int64_t layer, const char *which,
                             char to[400]) {
    char canonical[64], plain[256];
    snprintf(canonical, sizeof canonical, "%s.weight", stem);
    const char *name = fac_lm_name_hf(m, canonical, layer, plain);
    const size_t n = name ? strlen(name) - strlen(".weight") : 0;
    if (!name) return NULL;
    snprintf(to, 400, "base_model.model.%.*s.lora_%s.weight", (int)n, name, which);
    return to;
}

/* ---- writing ---- */

typedef struct list {
    char **names;
    fac_tensor **tensors;
    size_t n, room_names, room;
} list;

static void free_list(list *l) {
    for (size_t k = 0; k < l->n; k++) {
        fac_release(l->names[k]);
        fac_tensor_free(l->tensors[k]);
    }
    fac_release(l->names);
    fac_release(l->tensors);
}

/* Takes the tensor. */
static fac_status append(list *l, const char *name, fac_tensor *t, fac_error *err) {
    char *copy = fac_copy_text(name);
    const bool room = copy && fac_reserve(&l->names, &l->room_names, l->n + 1, sizeof *l->names) &&
                      fac_reserve(&l->tensors, &l->room, l->n + 1, sizeof *l->tensors);
    if (!room) {
        fac_release(copy);
        fac_tensor_free(t);
        return fac_raise_memory(err, "the list of adapters");
    }
    l->names[l->n] = copy;
    l->tensors[l->n++] = t;
    return FAC_OK;
}

static fac_status add(const fac_lm *m, const char *stem, int64_t layer, list *l, fac_error *err) {
    char name[400], canonical[64];
    fac_tensor *a = fac_lora_get(m, stem, layer, "lora_a"),
               *b = fac_lora_get(m, stem, layer, "lora_b"), *rows;
    if (!a || !b) return FAC_OK;
    if (!peft_name(m, stem, layer, "A", name))
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s: peft has no name for it", stem);
    FAC_TRY(append(l, name, fac_tensor_retain(a), err));
    snprintf(canonical, sizeof canonical, "%s.weight", stem);
    FAC_TRY(fac_lm_by_heads(m, canonical, true, b, &rows, err));
    return append(l, peft_name(m, stem, layer, "B", name), rows, err);
}

static fac_status put_weights(const fac_lm *m, const char *path, fac_error *err) {
    list l = { 0 };
    fac_status status = FAC_OK;
    for (int k = 0; fac_lora_stem(k); k++)
        for (int64_t layer = 0; layer < m->c.layers && !status; layer++)
            status = add(m, fac_lora_stem(k), layer, &l, err);
    if (!status)
        status = fac_safetensors_save(path, (int)l.n, (const char *const *)l.names, l.tensors, err);
    free_list(&l);
    return status;
}

/* The last part of peft's name of a layer that has an adapter. */
static void put_target(const fac_lm *m, const char *stem, fac_text *t) {
    char name[400];
    if (!fac_lora_get(m, stem, 0, "lora_a") || !peft_name(m, stem, 0, "A", name)) return;
    name[strlen(name) - strlen(".lora_A.weight")] = 0;
    const char *last = strstr(name, ".mlp."), *part = strrchr(name, '.') + 1;
    const bool both = !strcmp(part, "c_proj"); /* GPT-2 has two of that name */
    if (both) part = last ? "mlp.c_proj" : "attn.c_proj";
    fac_text_add(t, t->n && t->s[t->n - 1] == '"' ? ", " : "");
    fac_text_quote(t, part, strlen(part));
}

static fac_status put_config(const fac_lm *m, const char *path, const char *base, fac_error *err) {
    fac_text t = { 0 };
    const bool transposed = !strcmp(m->c.family, "gpt2");
    fac_text_add(&t, "{\n  \"peft_type\": \"LORA\",\n  \"task_type\": \"CAUSAL_LM\",\n"
                     "  \"base_model_name_or_path\": ");
    if (base)
        fac_text_quote(&t, base, strlen(base));
    else
        fac_text_add(&t, "null");
    fac_text_print(&t,
                   ",\n  \"bias\": \"none\",\n  \"fan_in_fan_out\": %s,\n"
                   "  \"inference_mode\": true,\n  \"init_lora_weights\": true,\n"
                   "  \"lora_alpha\": %g,\n  \"lora_dropout\": %g,\n  \"r\": %lld,\n"
                   "  \"target_modules\": [",
                   transposed ? "true" : "false", m->lora.alpha, m->lora.dropout,
                   (long long)m->lora.rank);
    for (int k = 0; fac_lora_stem(k); k++) put_target(m, fac_lora_stem(k), &t);
    fac_text_add(&t, "]\n}\n");
    const fac_status status =
        t.failed ? fac_raise_memory(err, "%s", config_name) : fac_file_write(path, t.s, t.n, err);
    fac_text_free(&t);
    return status;
}

fac_status fac_lm_lora_save(const fac_lm *m, const char *folder, const char *base, fac_error *err) {
    char path[4096];
    if (!m->lora.rank) return fac_raise(err, FAC_E_ARGUMENT, "the model has no adapters");
    FAC_TRY(join(path, folder, config_name, err));
    FAC_TRY(put_config(m, path, base, err));
    FAC_TRY(join(path, folder, weights_name, err));
    return put_weights(m, path, err);
}

/* ---- reading ---- */

static bool is_empty(const cJSON *j) {
    return !j || cJSON_IsNull(j) || cJSON_IsFalse(j) ||
           (!cJSON_GetArraySize(j) && !cJSON_IsString(j) && !cJSON_IsTrue(j) && !cJSON_IsNumber(j));
}

/* Kinds of adapters that compute something else. */
static fac_status refuse(const cJSON *root, fac_error *err) {
    static const char *const others[] = { "use_dora",        "use_rslora",
                                          "rank_pattern",    "alpha_pattern",
                                          "modules_to_save", "layer_replication",
                                          "megatron_config", "trainable_token_indices",
                                          "lora_bias" };
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "peft_type"));
    const char *bias = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "bias"));
    if (!type || strcmp(type, "LORA"))
        return fac_raise(err, FAC_E_UNSUPPORTED, "adapters of the type \"%.40s\": LORA is known",
                         type ? type : "?");
    if (bias && strcmp(bias, "none"))
        return fac_raise(err, FAC_E_UNSUPPORTED, "adapters with bias \"%.40s\"", bias);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (!is_empty(cJSON_GetObjectItemCaseSensitive(root, others[k])))
            return fac_raise(err, FAC_E_UNSUPPORTED, "adapters with %s", others[k]);
    return FAC_OK;
}

static fac_status read_config(const cJSON *root, fac_lora *o, fac_error *err) {
    const cJSON *r = cJSON_GetObjectItemCaseSensitive(root, "r"),
                *alpha = cJSON_GetObjectItemCaseSensitive(root, "lora_alpha"),
                *dropout = cJSON_GetObjectItemCaseSensitive(root, "lora_dropout");
    FAC_TRY(refuse(root, err));
    if (!cJSON_IsNumber(r) || !(r->valuedouble >= 1 && r->valuedouble <= 4096))
        return fac_raise(err, FAC_E_FORMAT, "there is no rank r of 1 to 4096");
    o->rank = (int64_t)r->valuedouble;
    o->alpha = cJSON_IsNumber(alpha) ? alpha->valuedouble : 8;
    o->dropout = cJSON_IsNumber(dropout) ? dropout->valuedouble : 0;
    if (o->alpha > 0 && o->dropout >= 0 && o->dropout < 1) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT, "adapters of alpha %g, dropout %g", o->alpha, o->dropout);
}

static fac_status load_config(const char *path, fac_lora *o, fac_error *err) {
    char *text;
    size_t bytes;
    FAC_TRY(fac_read_text(path, LARGEST, FAC_READ_FILE, &text, &bytes, err));
    cJSON *root = cJSON_ParseWithLength(text, bytes);
    fac_read_free(text);
    fac_status status = cJSON_IsObject(root) ? read_config(root, o, err)
                                             : fac_raise(err, FAC_E_FORMAT, "is no JSON");
    cJSON_Delete(root);
    return status ? fac_raise_in(err, status, "%s", path) : FAC_OK;
}

/* One of the two, [rank, in] or [out, rank], as f32 in our order of rows. */
static fac_status take(fac_lm *m, const char *stem, int64_t layer, bool second, fac_tensor *t,
                       fac_dims want, fac_error *err) {
    char canonical[64];
    fac_tensor *floats, *rows;
    const fac_dims d = fac_tensor_type(t).dims;
    if (!fac_dims_equal(&d, &want))
        return fac_raise(err, FAC_E_FORMAT, "%s, layer %lld: an adapter of another shape", stem,
                         (long long)layer);
    FAC_TRY(fac_tensor_convert(t, FAC_F32, &floats, err));
    snprintf(canonical, sizeof canonical, "%s.weight", stem);
    fac_status status = FAC_OK;
    if (second)
        status = fac_lm_by_heads(m, canonical, false, floats, &rows, err);
    else
        rows = fac_tensor_retain(floats);
    fac_tensor_free(floats);
    if (status) return status;
    return fac_lora_put(m, stem, layer, second ? "lora_b" : "lora_a", rows, err);
}

/* Both of a layer, if the file has them. */
static fac_status take_layer(fac_lm *m, const char *stem, int64_t layer, int64_t rank,
                             const fac_weights *w, int *found, fac_error *err) {
    char name[400];
    fac_tensor *matrix, *a, *b;
    FAC_TRY(fac_lora_matrix(m, stem, layer, &matrix, err));
    if (!matrix || !peft_name(m, stem, layer, "A", name)) return FAC_OK;
    a = fac_weights_find(w, name);
    b = fac_weights_find(w, peft_name(m, stem, layer, "B", name));
    if (!a && !b) return FAC_OK;
    if (!a || !b) return fac_raise(err, FAC_E_FORMAT, "%s: one half of an adapter alone", name);
    const fac_dims d = fac_tensor_type(matrix).dims;
    *found += 2;
    FAC_TRY(take(m, stem, layer, false, a, fac_shape(rank, d.d[1]), err));
    return take(m, stem, layer, true, b, fac_shape(d.d[0], rank), err);
}

static fac_status take_all(fac_lm *m, const fac_lora *o, const fac_weights *w, fac_error *err) {
    int found = 0;
    for (int k = 0; fac_lora_stem(k); k++)
        for (int64_t layer = 0; layer < m->c.layers; layer++)
            FAC_TRY(take_layer(m, fac_lora_stem(k), layer, o->rank, w, &found, err));
    if (found == fac_weights_count(w) && found) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT, "%d tensors, of which %d belong to layers of this model",
                     fac_weights_count(w), found);
}

fac_status fac_lm_lora_load(fac_lm *m, const char *folder, fac_error *err) {
    char path[4096];
    fac_lora o = { 0 };
    fac_weights *w;
    if (m->lora.rank) return fac_raise(err, FAC_E_ARGUMENT, "the model has adapters already");
    FAC_TRY(join(path, folder, config_name, err));
    FAC_TRY(load_config(path, &o, err));
    FAC_TRY(join(path, folder, weights_name, err));
    FAC_TRY(fac_weights_load(path, &w, err));
    fac_status status = take_all(m, &o, w, err);
    fac_weights_free(w);
    if (status) return fac_raise_in(err, status, "%s", path);
    m->lora = o;
    return FAC_OK;
}
