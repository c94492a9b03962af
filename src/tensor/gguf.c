/* The head of a GGUF file, version 2 or 3, little-endian:
 *   u32 "GGUF"   u32 version   u64 tensors   u64 keys
 *   key     text name   u32 type   value;  an array is u32 type   u64 n   elements;  a text u64
 *           length   bytes
 *   tensor  text name   u32 dims   u64 size[dims], the fastest first   u32 type   u64 offset
 *   data    from the next multiple of general.alignment on
 * All counts are an attacker's: each is held against what is left of the file before anything is
 * made. */
#include "tensor/gguf.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "tensor/tensor_internal.h"
#include "tensor/weights.h"

enum { LEAST_KEY = 8 + 4 + 1, LEAST_TENSOR = 8 + 4 + 4 + 8, DEPTH = 4, ALIGNMENT = 32 };

/* ---- bytes ---- */

typedef struct reader {
    const unsigned char *p, *end, *begin;
    fac_error *err;
} reader;

static size_t left(const reader *r) { return (size_t)(r->end - r->p); }

static fac_status cut(const reader *r, const char *what) {
    return fac_raise(r->err, FAC_E_FORMAT, "a GGUF file that ends within %s, at byte %zu", what,
                     (size_t)(r->p - r->begin));
}

static fac_status take(reader *r, size_t bytes, const char *what, void *to) {
    if (left(r) < bytes) return cut(r, what);
    memcpy(to, r->p, bytes);
    r->p += bytes;
    return FAC_OK;
}

static fac_status take_text(reader *r, const char *what, const char **text, uint64_t *n) {
    FAC_TRY(take(r, 8, what, n));
    if (*n > left(r))
        return fac_raise(r->err, FAC_E_FORMAT,
                         "%s of %" PRIu64 " bytes, %zu are left: is the file truncated?", what, *n,
                         left(r));
    *text = (const char *)r->p;
    r->p += *n;
    return FAC_OK;
}

/* A name of ours, ended by a zero. */
static fac_status take_name(reader *r, fac_gguf *g, const char *what, const char **name) {
    const char *text;
    uint64_t n;
    FAC_TRY(take_text(r, what, &text, &n));
    if (n > FAC_NAME || memchr(text, 0, n))
        return fac_raise(r->err, FAC_E_FORMAT,
                         "%s of %" PRIu64 " bytes: at most %d, without a zero byte", what, n,
                         FAC_NAME);
    char *copy = fac_arena_alloc(&g->arena, n + 1, 1);
    if (!copy) return fac_raise_memory(r->err, "the names of a GGUF file");
    memcpy(copy, text, n);
    *name = copy;
    return FAC_OK;
}

/* ---- keys ---- */

static fac_status pass_elements(reader *r, uint32_t type, uint64_t n, int depth);

static fac_status pass_array(reader *r, int depth) {
    uint32_t type;
    uint64_t n;
    FAC_TRY(take(r, 4, "an array", &type));
    FAC_TRY(take(r, 8, "an array", &n));
    return pass_elements(r, type, n, depth + 1);
}

/* Past n values of this type. */
static fac_status pass_elements(reader *r, uint32_t type, uint64_t n, int depth) {
    const char *text;
    uint64_t length;
    if (type >= FAC_GGUF_TYPES || depth > DEPTH)
        return fac_raise(r->err, FAC_E_FORMAT, "a value of type %" PRIu32 ", %d arrays deep", type,
                         depth);
    const size_t size = fac_gguf_bytes(type) ? fac_gguf_bytes(type) : 8;
    if (n > left(r) / size)
        return fac_raise(r->err, FAC_E_FORMAT,
                         "%" PRIu64
                         " values of %zu bytes, %zu bytes are left: is the file truncated?",
                         n, size, left(r));
    if (fac_gguf_bytes(type)) r->p += n * size;
    for (uint64_t i = 0; i < n && !fac_gguf_bytes(type); i++) {
        if (type == FAC_GGUF_TEXT)
            FAC_TRY(take_text(r, "a text", &text, &length));
        else
            FAC_TRY(pass_array(r, depth));
    }
    return FAC_OK;
}

static fac_status take_key(reader *r, fac_gguf *g, fac_gguf_key *k) {
    uint32_t type;
    FAC_TRY(take_name(r, g, "the name of a key", &k->name));
    FAC_TRY(take(r, 4, "a key", &type));
    k->array = type == FAC_GGUF_ARRAY;
    k->n = 1;
    if (k->array) {
        FAC_TRY(take(r, 4, "an array", &type));
        FAC_TRY(take(r, 8, "an array", &k->n));
    }
    k->type = type;
    k->at = r->p;
    const fac_status status = pass_elements(r, type, k->n, 0);
    if (status) return fac_raise_in(r->err, status, "%.100s", k->name);
    if (fac_table_get(&g->by_name, k->name))
        return fac_raise(r->err, FAC_E_FORMAT, "%.100s: there are two keys of this name", k->name);
    if (!fac_table_put(&g->by_name, k->name, k))
        return fac_raise_memory(r->err, "the keys of a GGUF file");
    return FAC_OK;
}

/* ---- tensors ---- */

static const struct {
    uint32_t id;
    fac_dtype dtype;
    const char *name;
} types[] = {
    { 0, FAC_F32, "F32" },        { 1, FAC_F16, "F16" },       { 2, FAC_Q4_0, "Q4_0" },
    { 3, FAC_Q4_1, "Q4_1" },      { 6, FAC_Q5_0, "Q5_0" },     { 7, FAC_Q5_1, "Q5_1" },
    { 8, FAC_Q8_0, "Q8_0" },      { 9, FAC_NONE, "Q8_1" },     { 10, FAC_Q2_K, "Q2_K" },
    { 11, FAC_Q3_K, "Q3_K" },     { 12, FAC_Q4_K, "Q4_K" },    { 13, FAC_Q5_K, "Q5_K" },
    { 14, FAC_Q6_K, "Q6_K" },     { 15, FAC_NONE, "Q8_K" },    { 16, FAC_NONE, "IQ2_XXS" },
    { 17, FAC_NONE, "IQ2_XS" },   { 18, FAC_NONE, "IQ3_XXS" }, { 19, FAC_NONE, "IQ1_S" },
    { 20, FAC_IQ4_NL, "IQ4_NL" }, { 21, FAC_NONE, "IQ3_S" },   { 22, FAC_NONE, "IQ2_S" },
    { 23, FAC_IQ4_XS, "IQ4_XS" }, { 24, FAC_I8, "I8" },        { 25, FAC_I16, "I16" },
    { 26, FAC_I32, "I32" },       { 27, FAC_I64, "I64" },      { 28, FAC_F64, "F64" },
    { 29, FAC_NONE, "IQ1_M" },    { 30, FAC_BF16, "BF16" },    { 34, FAC_NONE, "TQ1_0" },
    { 35, FAC_NONE, "TQ2_0" },    { 39, FAC_NONE, "MXFP4" },   { 40, FAC_NONE, "NVFP4" },
};
enum { KINDS = sizeof types / sizeof *types };

static const char *type_name(uint32_t id) {
    for (int k = 0; k < KINDS; k++)
        if (types[k].id == id) return types[k].name;
    return NULL;
}

static fac_dtype type_of(uint32_t id) {
    for (int k = 0; k < KINDS; k++)
        if (types[k].id == id) return types[k].dtype;
    return FAC_NONE;
}

static fac_status take_tensor(reader *r, fac_gguf *g, fac_gguf_tensor *t) {
    uint32_t n;
    uint64_t size[4];
    FAC_TRY(take_name(r, g, "the name of a tensor", &t->name));
    FAC_TRY(take(r, 4, "a tensor", &n));
    if (n > 4)
        return fac_raise(r->err, FAC_E_FORMAT, "%.100s: %" PRIu32 " dims, at most 4", t->name, n);
    t->type.dims.n = (int)n;
    FAC_TRY(take(r, n * sizeof *size, "a tensor", size));
    for (uint32_t k = 0; k < n; k++) {
        if (!size[k] || size[k] > INT64_MAX)
            return fac_raise(r->err, FAC_E_FORMAT, "%.100s: a dim of %" PRIu64, t->name, size[k]);
        t->type.dims.d[n - 1 - k] = (int64_t)size[k];
    }
    FAC_TRY(take(r, 4, "a tensor", &t->id));
    FAC_TRY(take(r, 8, "a tensor", &t->offset));
    t->type.dtype = type_of(t->id);
    return FAC_OK;
}

static fac_status check_tensor(const fac_gguf *g, const fac_gguf_tensor *t, size_t alignment,
                               fac_error *err) {
    const fac_dtype_info *i = fac_dtype_get(t->type.dtype);
    const size_t room = fac_file_size(g->file) - g->data;
    if (!type_name(t->id))
        return fac_raise(err, FAC_E_FORMAT, "%.100s: element type %" PRIu32, t->name, t->id);
    if (t->offset % alignment)
        return fac_raise(err, FAC_E_FORMAT,
                         "%.100s: begins at byte %" PRIu64 ", no multiple of %zu", t->name,
                         t->offset, alignment);
    if (t->type.dtype == FAC_NONE) return FAC_OK;
    const int64_t row = t->type.dims.n ? t->type.dims.d[t->type.dims.n - 1] : 1;
    if (row % i->block_elements)
        return fac_raise(err, FAC_E_FORMAT,
                         "%.100s: rows of %" PRId64 " elements are not whole blocks of %d", t->name,
                         row, i->block_elements);
    const size_t bytes = fac_type_bytes(&t->type);
    if (bytes == SIZE_MAX || t->offset > room || bytes > room - t->offset)
        return fac_raise(err, FAC_E_FORMAT,
                         "%.100s: reaches past the end of the file: is it truncated?", t->name);
    return FAC_OK;
}

/* By where they begin. */
static int by_offset(const void *a, const void *b) {
    const fac_gguf_tensor *x = *(const fac_gguf_tensor *const *)a,
                          *y = *(const fac_gguf_tensor *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* No byte is two tensors'.  How long those of unknown types are is not known. */
static fac_status check_places(const fac_gguf *g, fac_error *err) {
    const fac_gguf_tensor **order = fac_alloc(g->ntensors + 1, sizeof *order), *two = NULL;
    if (!order) return fac_raise_memory(err, "the tensors of a GGUF file");
    for (size_t k = 0; k < g->ntensors; k++) order[k] = &g->tensors[k];
    qsort(order, g->ntensors, sizeof *order, by_offset);
    for (size_t k = 1; k < g->ntensors && !two; k++) {
        const fac_gguf_tensor *t = order[k - 1];
        const size_t bytes = t->type.dtype == FAC_NONE ? 1 : fac_type_bytes(&t->type);
        if (order[k]->offset - t->offset < bytes) two = order[k];
    }
    fac_release(order);
    if (!two) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT, "%.100s: begins at byte %" PRIu64 ", within another tensor",
                     two->name, two->offset);
}

static fac_status find_data(reader *r, fac_gguf *g, size_t *alignment) {
    const int64_t a = fac_gguf_int(g, "general.alignment", ALIGNMENT);
    const size_t head = (size_t)(r->p - r->begin);
    FAC_TRY(fac_gguf_right(g, r->err));
    if (a < 8 || a > 1 << 20 || (a & (a - 1)))
        return fac_raise(r->err, FAC_E_FORMAT,
                         "general.alignment is %" PRId64 ": a power of two from 8 on", a);
    *alignment = (size_t)a;
    g->data = (head + (size_t)a - 1) / (size_t)a * (size_t)a;
    if (g->data > fac_file_size(g->file)) g->data = fac_file_size(g->file);
    return FAC_OK;
}

/* ---- opening ---- */

bool fac_gguf_here(const fac_file *f) {
    return fac_file_size(f) >= 8 && !memcmp(fac_file_data(f), "GGUF", 4);
}

static fac_status read_version(reader *r, uint64_t *tensors, uint64_t *keys) {
    uint32_t magic, version;
    FAC_TRY(take(r, 4, "its head", &magic));
    FAC_TRY(take(r, 4, "its head", &version));
    if (version == 0x02000000 || version == 0x03000000)
        return fac_raise(r->err, FAC_E_UNSUPPORTED,
                         "a big-endian GGUF file: convert it to little-endian");
    if (version != 2 && version != 3)
        return fac_raise(r->err, FAC_E_UNSUPPORTED,
                         "a GGUF file of version %" PRIu32 ": 2 and 3 are read", version);
    FAC_TRY(take(r, 8, "its head", tensors));
    FAC_TRY(take(r, 8, "its head", keys));
    if (*keys > left(r) / LEAST_KEY || *tensors > left(r) / LEAST_TENSOR)
        return fac_raise(r->err, FAC_E_FORMAT,
                         "a GGUF file of %" PRIu64 " keys and %" PRIu64 " tensors in %zu bytes",
                         *keys, *tensors, left(r));
    return FAC_OK;
}

static fac_status read_head(fac_gguf *g, fac_error *err) {
    const unsigned char *p = fac_file_data(g->file);
    reader r = { p, p + fac_file_size(g->file), p, err };
    uint64_t tensors, keys;
    size_t alignment;
    FAC_TRY(read_version(&r, &tensors, &keys));
    g->keys = fac_alloc(keys + 1, sizeof *g->keys);
    g->tensors = fac_alloc(tensors + 1, sizeof *g->tensors);
    if (!g->keys || !g->tensors) return fac_raise_memory(err, "the keys of a GGUF file");
    for (; g->nkeys < keys; g->nkeys++) FAC_TRY(take_key(&r, g, &g->keys[g->nkeys]));
    for (; g->ntensors < tensors; g->ntensors++)
        FAC_TRY(take_tensor(&r, g, &g->tensors[g->ntensors]));
    FAC_TRY(find_data(&r, g, &alignment));
    for (size_t k = 0; k < g->ntensors; k++)
        FAC_TRY(check_tensor(g, &g->tensors[k], alignment, err));
    return check_places(g, err);
}

fac_status fac_gguf_open(fac_file *f, fac_gguf **out, fac_error *err) {
    fac_gguf *g = fac_alloc(1, sizeof *g);
    if (!g) return fac_raise_memory(err, "a GGUF file");
    g->file = fac_file_retain(f);
    const fac_status status = read_head(g, err);
    if (status)
        fac_gguf_free(g);
    else
        *out = g;
    return status;
}

void fac_gguf_free(fac_gguf *g) {
    if (!g) return;
    fac_table_free(&g->by_name);
    fac_release(g->keys);
    fac_release(g->tensors);
    fac_arena_free(&g->arena);
    fac_file_free(g->file);
    fac_release(g);
}

/* ---- tensors ---- */

fac_status fac_gguf_weights(const fac_gguf *g, fac_weights *w, fac_error *err) {
    for (size_t k = 0; k < g->ntensors; k++) {
        const fac_gguf_tensor *t = &g->tensors[k];
        char why[80];
        fac_tensor *made;
        if (t->type.dtype == FAC_NONE) {
            snprintf(why, sizeof why, "elements of type %s", type_name(t->id));
            FAC_TRY(fac_weights_skip(w, t->name, strlen(t->name), why, err));
            continue;
        }
        FAC_TRY(fac_tensor_from_file(g->file, g->data + t->offset, t->type, NULL, &made, err));
        FAC_TRY(fac_weights_add(w, t->name, strlen(t->name), made, err));
    }
    return FAC_OK;
}

fac_status fac_gguf_read(fac_file *file, fac_weights *w, fac_error *err) {
    fac_gguf *g;
    FAC_TRY(fac_gguf_open(file, &g, err));
    const fac_status status = fac_gguf_weights(g, w, err);
    fac_gguf_free(g);
    return status;
}
