/* Loading a model: which files, their weights, and what of them must be transposed before `linear`
 * takes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cjson/cJSON.h>
#include "base/error.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "facula/read.h"
#include "lm/lm.h"
#include "tensor/tensor_internal.h"
#include "tensor/weights.h"

enum { USUAL_CONTEXT = 4096, LARGEST_CONFIG = 1 << 24, MOST_SLOTS = 256, MOST_FILES = 1000 };

/* ---- one weight ---- */

static fac_tensor *find(const fac_lm *m, const char *name) {
    for (size_t k = 0; k < m->nfiles; k++) {
        fac_tensor *t = fac_weights_find(m->files[k], name);
        if (t) return t;
    }
    return NULL;
}

static const char *why_not(const fac_lm *m, const char *name) {
    for (size_t k = 0; k < m->nfiles; k++)
        if (fac_weights_why(m->files[k], name)) return fac_weights_why(m->files[k], name);
    return NULL;
}

fac_status fac_lm_transposed(fac_tensor *t, fac_tensor **out, fac_error *err) {
    const fac_dims d = fac_tensor_type(t).dims;
    fac_tensor *view;
    FAC_TRY(fac_tensor_view(t, fac_shape(d.d[1], d.d[0]), (int64_t[]){ 1, d.d[1] }, 0, &view, err));
    const fac_status status = fac_tensor_copy_contiguous(view, out, err);
    fac_tensor_free(view);
    return status;
}

fac_status fac_lm_shifted(fac_tensor *t, float by, fac_tensor **out, fac_error *err) {
    FAC_TRY(fac_tensor_convert(t, FAC_F32, out, err));
    const fac_type type = fac_tensor_type(*out);
    float *x = fac_tensor_storage(*out)->host;
    for (int64_t k = 0; k < fac_dims_count(&type.dims); k++) x[k] += by;
    return FAC_OK;
}

static bool ends(const char *s, const char *with) {
    const size_t n = strlen(s), m = strlen(with);
    return n >= m && !strcmp(s + n - m, with);
}

/* What was made, as f32 where that is asked for. */
static fac_status as_floats(fac_status status, bool floats, fac_tensor **t, fac_error *err) {
    if (status || !floats || fac_tensor_type(*t).dtype == FAC_F32) return status;
    fac_tensor *made = *t;
    status = fac_tensor_convert(made, FAC_F32, t, err);
    fac_tensor_free(made);
    return status;
}

/* As `linear` and the norms take it: *out is a new reference. */
static fac_status as_used(const fac_lm *m, const char *canonical, bool floats, fac_tensor *t,
                          fac_tensor **out, fac_error *err) {
    const fac_type type = fac_tensor_type(t);
    const bool matrix = type.dims.n == 2 && !strstr(canonical, "embd"),
               qkv = strstr(canonical, "attn_qkv");
    if (ends(canonical, "norm.weight") && m->c.is & FAC_LM_PLUS_ONE)
        return fac_lm_shifted(t, 1, out, err);
    if (matrix && m->c.is & FAC_LM_TRANSPOSED && strncmp(canonical, "output.", 7))
        return as_floats(fac_lm_transposed(t, out, err), floats, out, err);
    if (qkv && m->c.is & FAC_LM_PER_HEAD)
        return as_floats(fac_lm_by_heads(m, canonical, false, t, out, err), floats, out, err);
    if ((floats && type.dtype != FAC_F32) || type.dtype == FAC_F64)
        return fac_tensor_convert(t, FAC_F32, out, err);
    *out = fac_tensor_retain(t);
    return FAC_OK;
}

fac_status fac_lm_keep(fac_lm *m, const char *key, fac_tensor *t, fac_error *err) {
    char *copy = fac_arena_text(&m->arena, key);
    if (!copy || !fac_reserve(&m->own, &m->room_own, m->nown + 1, sizeof *m->own) ||
        !fac_table_put(&m->made, copy, t)) {
        fac_tensor_free(t);
        return fac_raise_memory(err, "a language model");
    }
    m->own[m->nown++] = t;
    return FAC_OK;
}

/* GPT-2's older files lack the module's name, models with heads have one more. */
fac_tensor *fac_lm_in_file(const fac_lm *m, const char *canonical, int64_t layer, char name[300]) {
    char plain[256];
    const char *theirs = m->name(m, canonical, layer, plain);
    if (!theirs) return NULL;
    snprintf(name, 300, "%s", theirs);
    fac_tensor *t = find(m, name);
    if (t) return t;
    const bool gpt2 = !strncmp(theirs, "transformer.", 12);
    if (!gpt2 && !(m->c.is & FAC_LM_ENCODER)) return NULL;
    if (gpt2)
        snprintf(name, 300, "%s", theirs + 12);
    else
        snprintf(name, 300, "bert.%s", theirs);
    return find(m, name);
}

fac_status fac_lm_weight(fac_lm *m, const char *canonical, int64_t layer, bool floats,
                         fac_tensor **out, fac_error *err) {
    char key[256], name[256], found[300];
    *out = NULL;
    fac_lm_name_gguf(m, canonical, layer, key);
    if ((*out = fac_table_get(&m->made, key))) return FAC_OK;
    const char *theirs = m->name(m, canonical, layer, name);
    fac_tensor *t = fac_lm_in_file(m, canonical, layer, found);
    if (!t) {
        const char *why = theirs ? why_not(m, theirs) : NULL;
        return why ? fac_raise(err, FAC_E_UNSUPPORTED, "%s: %s", theirs, why) : FAC_OK;
    }
    fac_tensor *made;
    const fac_status status = as_used(m, canonical, floats || m->trains, t, &made, err);
    if (status) return fac_raise_in(err, status, "%s", theirs);
    FAC_TRY(fac_lm_keep(m, key, made, err));
    *out = made;
    return FAC_OK;
}

/* ---- files ---- */

static fac_status add_file(fac_lm *m, const char *path, fac_error *err) {
    fac_weights **more = fac_resize(m->files, m->nfiles + 1, sizeof *more);
    if (!more) return fac_raise_memory(err, "a language model");
    m->files = more;
    FAC_TRY(fac_weights_load(path, &m->files[m->nfiles], err));
    m->nfiles++;
    return FAC_OK;
}

/* "X-00001-of-00003.gguf": the others. */
static fac_status add_parts(fac_lm *m, const char *path, int64_t parts, fac_error *err) {
    char other[4096];
    const size_t n = strlen(path), tail = sizeof "-00001-of-00003.gguf" - 1;
    if (parts > MOST_FILES || n < tail || n >= sizeof other)
        return fac_raise(err, FAC_E_FORMAT,
                         "%s: one of %lld parts, but not called X-00001-of-0000N.gguf", path,
                         (long long)parts);
    for (int64_t k = 1; k <= parts; k++) {
        snprintf(other, sizeof other, "%.*s-%05d-of-%05d.gguf", (int)(n - tail), path, (int)k,
                 (int)parts);
        FAC_TRY(add_file(m, other, err));
    }
    return FAC_OK;
}

static fac_status load_gguf(fac_lm *m, fac_file *f, const char *path, fac_error *err) {
    fac_gguf *g = NULL;
    int64_t parts = 1;
    fac_status status = fac_gguf_open(f, &g, err);
    if (!status) status = fac_lm_config_gguf(g, &m->c, &m->arena, err);
    if (!status) {
        parts = fac_gguf_int(g, "split.count", 1);
        status = fac_gguf_right(g, err);
    }
    fac_gguf_free(g);
    m->name = fac_lm_name_gguf;
    if (status) return fac_raise_in(err, status, "%s", path);
    return parts > 1 ? add_parts(m, path, parts, err) : add_file(m, path, err);
}

fac_status fac_lm_path(char to[4096], const char *folder, const char *name, fac_error *err) {
    const int n = snprintf(to, 4096, "%s/%s", folder, name);
    return n > 0 && n < 4096
               ? FAC_OK
               : fac_raise(err, FAC_E_ARGUMENT, "%s: a path that is too long", folder);
}

static bool is_there(const char *path) {
    struct stat s;
    return !stat(path, &s);
}

/* Each file of weight_map once; names with a slash are not ours to follow. */
static fac_status add_shards(fac_lm *m, const char *folder, const cJSON *map, fac_error *err) {
    fac_table seen = { 0 };
    char path[4096];
    fac_status status = FAC_OK;
    const cJSON *k;
    cJSON_ArrayForEach(k, map) {
        const char *name = cJSON_GetStringValue(k);
        if (status || !name || fac_table_get(&seen, name)) continue;
        if (strchr(name, '/'))
            status = fac_raise(err, FAC_E_FORMAT, "weight_map names a file \"%.60s\"", name);
        if (!status && !fac_table_put(&seen, name, m))
            status = fac_raise_memory(err, "a language model");
        if (!status) status = fac_lm_path(path, folder, name, err);
        if (!status) status = add_file(m, path, err);
    }
    fac_table_free(&seen);
    return status;
}

static fac_status read_index(fac_lm *m, const char *folder, const char *path, fac_error *err) {
    char *text;
    size_t bytes;
    FAC_TRY(fac_read_text(path, LARGEST_CONFIG, FAC_READ_FILE, &text, &bytes, err));
    cJSON *root = cJSON_ParseWithLength(text, bytes);
    fac_read_free(text);
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(root, "weight_map");
    fac_status status = cJSON_IsObject(map)
                            ? add_shards(m, folder, map, err)
                            : fac_raise(err, FAC_E_FORMAT, "%s: there is no weight_map", path);
    cJSON_Delete(root);
    return status;
}

static fac_status add_weights(fac_lm *m, const char *folder, fac_error *err) {
    static const char *const single[] = { "model.safetensors", "pytorch_model.bin" };
    static const char *const index[] = { "model.safetensors.index.json",
                                         "pytorch_model.bin.index.json" };
    char path[4096];
    for (int k = 0; k < 2; k++) {
        FAC_TRY(fac_lm_path(path, folder, single[k], err));
        if (is_there(path)) return add_file(m, path, err);
        FAC_TRY(fac_lm_path(path, folder, index[k], err));
        if (is_there(path)) return read_index(m, folder, path, err);
    }
    return fac_raise(err, FAC_E_IO, "%s: a folder without model.safetensors or pytorch_model.bin",
                     folder);
}

static fac_status load_folder(fac_lm *m, const char *folder, fac_error *err) {
    char path[4096], *text;
    size_t bytes;
    FAC_TRY(fac_lm_path(path, folder, "config.json", err));
    FAC_TRY(fac_read_text(path, LARGEST_CONFIG, FAC_READ_FILE, &text, &bytes, err));
    fac_status status = fac_lm_config_json(text, bytes, &m->c, err);
    m->settings = fac_arena_text(&m->arena, text);
    if (!status && !m->settings) status = fac_raise_memory(err, "a language model");
    fac_read_free(text);
    if (status) return fac_raise_in(err, status, "%s", folder);
    m->name = fac_lm_name_hf;
    FAC_TRY(fac_lm_keep_angles(m, err));
    return add_weights(m, folder, err);
}

static fac_status load_file(fac_lm *m, const char *path, fac_error *err) {
    fac_file *f;
    FAC_TRY(fac_file_map(path, &f, err));
    fac_status status;
    if (fac_gguf_here(f))
        status = load_gguf(m, f, path, err);
    else {
        m->name = fac_lm_name_gguf;
        status = fac_lm_read_llama2c(m, f, err);
        if (status) fac_raise_in(err, status, "%s", path);
    }
    fac_file_free(f);
    return status;
}

/* Layers that the settings leave out would make another model of the same file. */
static fac_status no_more_layers(const fac_lm *m, fac_error *err) {
    for (int k = 0; fac_lm_stem(k); k++) {
        char name[300], canonical[80];
        snprintf(canonical, sizeof canonical, "%s.weight", fac_lm_stem(k));
        if (strchr(canonical, '%') && fac_lm_in_file(m, canonical, m->c.layers, name))
            return fac_raise(err, FAC_E_FORMAT,
                             "%s: a weight of layer %lld, counted from 0; the settings have %lld",
                             name, (long long)m->c.layers, (long long)m->c.layers);
    }
    return FAC_OK;
}

/* The shape of the table says what no key does. */
fac_status fac_lm_settle(fac_lm *m, fac_error *err) {
    fac_tensor *t;
    FAC_TRY(fac_lm_weight(m, "token_embd.weight", 0, false, &t, err));
    if (!t) return fac_raise(err, FAC_E_FORMAT, "a model without token_embd.weight");
    const fac_dims d = fac_tensor_type(t).dims;
    if (d.n != 2 || d.d[1] != m->c.width)
        return fac_raise(err, FAC_E_FORMAT,
                         "token_embd.weight: %d dims, %lld numbers a token, expected %lld", d.n,
                         (long long)(d.n ? d.d[d.n - 1] : 0), (long long)m->c.width);
    m->c.vocabulary = d.d[0];
    FAC_TRY(no_more_layers(m, err));
    m->context = m->c.context < USUAL_CONTEXT ? m->c.context : USUAL_CONTEXT;
    if (m->opts.context > m->c.context)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "a context of %lld tokens: the model was made for %lld",
                         (long long)m->opts.context, (long long)m->c.context);
    if (m->opts.context > 0) m->context = m->opts.context;
    m->slots = m->opts.slots > 0 ? m->opts.slots : 1;
    if (m->slots > MOST_SLOTS)
        return fac_raise(err, FAC_E_ARGUMENT, "%d slots: at most %d", m->slots, MOST_SLOTS);
    m->nsettled = m->nown;
    return FAC_OK;
}

fac_lm *fac_lm_empty(void) { return fac_alloc(1, sizeof(fac_lm)); }

fac_status fac_lm_load(const char *path, fac_device *device, const fac_lm_opts *opts, fac_lm **out,
                       fac_error *err) {
    fac_lm *m = fac_lm_empty();
    if (!m) return fac_raise_memory(err, "a language model");
    m->device = device;
    if (opts) m->opts = *opts;
    fac_status status = fac_is_folder(path) ? load_folder(m, path, err) : load_file(m, path, err);
    m->path = fac_arena_text(&m->arena, path);
    if (!status && !m->path) status = fac_raise_memory(err, "a language model");
    if (!status && (status = fac_lm_settle(m, err))) fac_raise_in(err, status, "%s", path);
    if (status)
        fac_lm_free(m);
    else
        *out = m;
    return status;
}

void fac_lm_free(fac_lm *m) {
    if (!m) return;
    for (size_t k = 0; k < m->nown; k++) fac_tensor_free(m->own[k]);
    for (size_t k = 0; k < m->nfiles; k++) fac_weights_free(m->files[k]);
    fac_release(m->own);
    fac_release(m->files);
    fac_program_free(m->encoder);
    fac_table_free(&m->made);
    fac_table_free(&m->adapters);
    fac_arena_free(&m->arena);
    fac_release(m);
}

fac_status fac_lm_make_trainable(fac_lm *m, fac_error *err) {
    if (m->encoder || m->c.is & FAC_LM_ENCODER)
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s gives embeddings: it is not trained here",
                         m->c.family);
    if (m->nown > m->nsettled && !m->fresh)
        return fac_raise(err, FAC_E_ARGUMENT, "a model in use: it is made trainable first");
    m->trains = true;
    for (size_t k = 0; k < m->nown; k++) { /* the table of tokens was looked at */
        fac_tensor *t = m->own[k];
        if (fac_tensor_type(t).dtype == FAC_F32) continue;
        FAC_TRY(fac_tensor_convert(t, FAC_F32, &m->own[k], err));
        if (!fac_table_put(&m->made, "token_embd.weight", m->own[k]))
            return fac_raise_memory(err, "a language model");
        fac_tensor_free(t);
    }
    return FAC_OK;
}

/* ---- facts ---- */

bool fac_lm_encodes(const fac_lm *m) { return m->c.is & FAC_LM_ENCODER; }

fac_lm_facts fac_lm_about(const fac_lm *m) {
    const fac_lm_config *c = &m->c;
    fac_lm_facts f = { .architecture = c->family,
                       .layers = c->layers,
                       .width = c->width,
                       .heads = c->heads,
                       .kv_heads = c->kv_heads,
                       .head_size = c->head,
                       .hidden = c->hidden,
                       .vocabulary = c->vocabulary,
                       .trained_context = c->context,
                       .context = m->context };
    double of[FAC_DTYPES] = { 0 };
    int most = FAC_F32;
    for (size_t k = 0; k < m->nfiles; k++)
        for (int i = 0; i < fac_weights_count(m->files[k]); i++) {
            const fac_type t = fac_tensor_type(fac_weights_tensor(m->files[k], i));
            f.params += (double)fac_dims_count(&t.dims);
            f.bytes += (double)fac_type_bytes(&t);
            of[t.dtype] += (double)fac_dims_count(&t.dims);
        }
    for (int k = 1; k < FAC_DTYPES; k++)
        if (of[k] > of[most]) most = k;
    f.weights = fac_dtype_get((fac_dtype)most)->name;
    const bool blocks = most == FAC_Q8_0 || most == FAC_Q4_0 || most == FAC_Q4_1 ||
                        most == FAC_Q4_K || most == FAC_Q6_K;
    const bool elsewhere = m->device && strncmp(fac_device_name(m->device), "cpu", 3);
    f.rounds = blocks && !elsewhere && m->opts.precision != FAC_PRECISION_HIGHEST;
    return f;
}

fac_status fac_lm_graph(const fac_lm *m, int64_t batch, fac_graph **out, fac_error *err) {
    return fac_lm_build((fac_lm *)(uintptr_t)m, batch, m->context, NULL, out, err);
}
