/* Sequences, optionals and maps in files of their own: SequenceProto, OptionalProto, MapProto. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/onnx.h"
#include "onnx/source.h"

/* Field numbers: see onnx-data.proto. */
enum {
    ELEMENTS = 3,
    ELEMENT_MAPS = 6,
    HELD_TENSOR = 3,
    HELD_SEQUENCE = 5,
    MAP_NUMBERS = 3,
    MAP_TEXTS = 4,
    MAP_VALUES = 5
};

typedef struct reader {
    fac_source_files *files;
    fac_arena arena;
    fac_tensor **tensors;
    size_t n, room;
    fac_status status;
    fac_error *err;
} reader;

static bool add(void *self, uint64_t bits, fac_bytes b) {
    reader *r = self;
    fac_proto_tensor t;
    (void)bits;
    if (!fac_reserve(&r->tensors, &r->room, r->n + 1, sizeof *r->tensors))
        r->status = fac_raise_memory(r->err, "%zu tensors", r->n + 1);
    if (!r->status) r->status = fac_proto_read_tensor(b, &r->arena, &t, r->err);
    if (!r->status) r->status = fac_proto_to_tensor(r->files, &t, &r->tensors[r->n], r->err);
    r->n += !r->status;
    return !r->status;
}

static fac_status read_elements(reader *r, fac_bytes b, int field) {
    FAC_TRY(fac_proto_each(b, field, FAC_PROTO_WINDOWS, add, r, r->err));
    return r->status;
}

static bool keep(void *self, uint64_t bits, fac_bytes b) {
    (void)bits;
    *(fac_bytes *)self = b;
    return true;
}

/* ---- optionals ---- */

static fac_status read_optional(reader *r, fac_bytes b, int *n, bool *is_sequence) {
    fac_bytes tensor = { 0 }, sequence = { 0 };
    FAC_TRY(fac_proto_each(b, HELD_TENSOR, FAC_PROTO_WINDOWS, keep, &tensor, r->err));
    FAC_TRY(fac_proto_each(b, HELD_SEQUENCE, FAC_PROTO_WINDOWS, keep, &sequence, r->err));
    *is_sequence = sequence.p != NULL;
    if (sequence.p)
        FAC_TRY(read_elements(r, sequence, ELEMENTS));
    else if (tensor.p)
        FAC_TRY(read_elements(r, b, HELD_TENSOR));
    *n = sequence.p || tensor.p ? (int)r->n : -1;
    return FAC_OK;
}

/* ---- maps ---- */

/* Takes the tensors from `from` on, which have one type, as one more tensor: they are its rows. */
static fac_status stack(reader *r, size_t from) {
    const size_t n = r->n - from;
    fac_type each = n ? fac_tensor_type(r->tensors[from]) : (fac_type){ FAC_F32, { 0 } };
    size_t bytes = fac_type_bytes(&each);
    if (each.dtype == FAC_TEXT) bytes = (size_t)fac_dims_count(&each.dims) * sizeof(char *);
    fac_dims dims = { .n = each.dims.n + 1, .d = { (int64_t)n } };
    for (int k = 0; k < each.dims.n && k + 1 < FAC_DIMS; k++) dims.d[k + 1] = each.dims.d[k];
    if (dims.n > FAC_DIMS) return fac_raise(r->err, FAC_E_UNSUPPORTED, "a map of large tensors");
    uint8_t *all = fac_arena_alloc(&r->arena, n + 1, bytes + 1);
    fac_tensor *t = NULL;
    if (!all) return fac_raise_memory(r->err, "a map");
    for (size_t k = 0; k < n; k++) {
        const fac_type type = fac_tensor_type(r->tensors[from + k]);
        if (type.dtype != each.dtype || !fac_dims_equal(&type.dims, &each.dims))
            return fac_raise(r->err, FAC_E_UNSUPPORTED, "a map of several types");
        memcpy(all + k * bytes, fac_tensor_data(r->tensors[from + k]), bytes);
    }
    FAC_TRY(fac_tensor_new(NULL, each.dtype, dims, &t, r->err));
    const fac_status status = fac_tensor_write(t, all, n * bytes, r->err);
    if (!status && !fac_reserve(&r->tensors, &r->room, from + 1, sizeof *r->tensors))
        r->status = fac_raise_memory(r->err, "a map");
    for (size_t k = 0; k < n; k++) fac_tensor_free(r->tensors[from + k]);
    r->n = from;
    if (status || r->status) return fac_tensor_free(t), status ? status : r->status;
    r->tensors[r->n++] = t;
    return FAC_OK;
}

static fac_status read_values(reader *r, fac_bytes map) {
    const size_t from = r->n;
    fac_bytes values = { 0 };
    FAC_TRY(fac_proto_each(map, MAP_VALUES, FAC_PROTO_WINDOWS, keep, &values, r->err));
    FAC_TRY(read_elements(r, values, ELEMENTS));
    return stack(r, from);
}

static bool add_row(void *self, uint64_t bits, fac_bytes map) {
    reader *r = self;
    (void)bits;
    if (!r->status) r->status = read_values(r, map);
    return !r->status;
}

/* A list of maps is the table of their values, as ZipMap's result is. */
static fac_status read_sequence(reader *r, fac_bytes b) {
    FAC_TRY(read_elements(r, b, ELEMENTS));
    const size_t from = r->n;
    FAC_TRY(fac_proto_each(b, ELEMENT_MAPS, FAC_PROTO_WINDOWS, add_row, r, r->err));
    if (r->status || r->n == from) return r->status;
    return stack(r, from);
}

typedef struct keys {
    reader *r;
    void *at; /* numbers, or texts */
    size_t n, room;
    bool failed;
} keys;

static bool add_number(void *self, uint64_t bits, fac_bytes b) {
    keys *k = self;
    (void)b;
    k->failed |= !fac_reserve(&k->at, &k->room, k->n + 1, sizeof(int64_t));
    if (!k->failed) ((int64_t *)k->at)[k->n++] = (int64_t)bits;
    return !k->failed;
}

static bool add_text(void *self, uint64_t bits, fac_bytes b) {
    keys *k = self;
    char *copy = fac_arena_alloc(&k->r->arena, b.n + 1, 1);
    (void)bits;
    k->failed |= !copy || !fac_reserve(&k->at, &k->room, k->n + 1, sizeof copy);
    if (k->failed) return false;
    if (b.n) memcpy(copy, b.p, b.n);
    ((char **)k->at)[k->n++] = copy;
    return true;
}

/* Its keys, and its values. */
static fac_status read_map(reader *r, fac_bytes b) {
    keys numbers = { .r = r }, texts = { .r = r };
    fac_tensor *t = NULL;
    fac_status status =
        fac_proto_each(b, MAP_NUMBERS, FAC_PROTO_VARINTS, add_number, &numbers, r->err);
    if (!status) status = fac_proto_each(b, MAP_TEXTS, FAC_PROTO_WINDOWS, add_text, &texts, r->err);
    if (!status && (numbers.failed || texts.failed)) status = fac_raise_memory(r->err, "the keys");
    const keys *k = texts.n ? &texts : &numbers;
    const fac_dtype dtype = texts.n ? FAC_TEXT : FAC_I64;
    if (!status) status = fac_tensor_new(NULL, dtype, fac_shape((int64_t)k->n), &t, r->err);
    if (!status && k->n) status = fac_tensor_write(t, k->at, k->n * sizeof(int64_t), r->err);
    if (!status && !fac_reserve(&r->tensors, &r->room, r->n + 1, sizeof *r->tensors))
        status = fac_raise_memory(r->err, "the keys");
    fac_release(numbers.at);
    fac_release(texts.at);
    if (status) return fac_tensor_free(t), status;
    r->tensors[r->n++] = t;
    return read_values(r, b);
}

fac_status fac_onnx_tensors_load(const char *path, fac_onnx_kind kind, fac_tensor ***out, int *n,
                                 bool *sequence, fac_error *err) {
    fac_source_files files;
    FAC_TRY(fac_source_open(path, &files, err));
    reader r = { .files = &files, .err = err };
    *sequence = true;
    const fac_bytes all = fac_source_bytes(&files);
    fac_status status;
    if (kind == FAC_ONNX_OPTIONAL)
        status = read_optional(&r, all, n, sequence);
    else
        status = kind == FAC_ONNX_MAP ? read_map(&r, all) : read_sequence(&r, all);
    if (!status && kind != FAC_ONNX_OPTIONAL) *n = (int)r.n;
    fac_arena_free(&r.arena);
    fac_source_close(&files);
    if (!status) return *out = r.tensors, FAC_OK;
    fac_onnx_tensors_free(r.tensors, (int)r.n);
    return fac_raise_in(err, status, "%s", path);
}

void fac_onnx_tensors_free(fac_tensor **tensors, int n) {
    for (int k = 0; k < n; k++) fac_tensor_free(tensors[k]);
    fac_release(tensors);
}
