/* TensorProto to tensor.  A weight is held once: fac_tensor_from_file borrows it from the mapped
 * file, or copies it and lets go of the file's pages. */
#include <string.h>
#include "base/error.h"
#include "onnx/small.h"
#include "onnx/source.h"
#include "tensor/tensor_internal.h"

/* ---- element types ---- */

static const struct {
    fac_dtype dtype;
    const char *name;
} types[] = { { FAC_NONE, "undefined" },
              { FAC_F32, "float" },
              { FAC_U8, "uint8" },
              { FAC_I8, "int8" },
              { FAC_U16, "uint16" },
              { FAC_I16, "int16" },
              { FAC_I32, "int32" },
              { FAC_I64, "int64" },
              { FAC_TEXT, "string" },
              { FAC_BOOL, "bool" },
              { FAC_F16, "float16" },
              { FAC_F64, "double" },
              { FAC_U32, "uint32" },
              { FAC_U64, "uint64" },
              { FAC_NONE, "complex64" },
              { FAC_NONE, "complex128" },
              { FAC_BF16, "bfloat16" },
              { FAC_F8E4M3, "float8e4m3fn" },
              { FAC_F8E4M3UZ, "float8e4m3fnuz" },
              { FAC_F8E5M2, "float8e5m2" },
              { FAC_F8E5M2UZ, "float8e5m2fnuz" },
              { FAC_U4, "uint4" },
              { FAC_I4, "int4" },
              { FAC_F4E2M1, "float4e2m1" },
              { FAC_F8E8M0, "float8e8m0" },
              { FAC_U2, "uint2" },
              { FAC_I2, "int2" } };
enum { TYPES = sizeof types / sizeof *types };

fac_dtype fac_proto_dtype(int64_t type) {
    return type >= 0 && type < TYPES ? types[type].dtype : FAC_NONE;
}
const char *fac_proto_dtype_name(int64_t type) {
    return type >= 0 && type < TYPES ? types[type].name : "unknown";
}

int64_t fac_proto_dtype_number(fac_dtype dtype) {
    for (int k = 1; k < TYPES; k++)
        if (types[k].dtype == dtype && dtype != FAC_NONE) return k;
    return 0;
}

/* ---- files ---- */

fac_status fac_source_open(const char *path, fac_source_files *out, fac_error *err) {
    fac_source_files s = { .path = path };
    FAC_TRY(fac_file_map(path, &s.file, err));
    *out = s;
    return FAC_OK;
}

void fac_source_close(fac_source_files *s) {
    for (size_t k = 0; k < s->external.room; k++) fac_file_free(s->external.slots[k].value);
    fac_table_free(&s->external);
    fac_file_free(s->file);
    *s = (fac_source_files){ 0 };
}

fac_bytes fac_source_bytes(const fac_source_files *s) {
    return (fac_bytes){ fac_file_data(s->file), fac_file_size(s->file) };
}

/* ---- dims ---- */

typedef struct counted_dims {
    fac_dims dims;
    size_t n;
    bool negative;
} counted_dims;

static bool add_dim(void *self, uint64_t bits, fac_bytes unused) {
    counted_dims *c = self;
    (void)unused;
    c->negative |= (int64_t)bits < 0;
    if (c->n < FAC_DIMS) c->dims.d[c->n] = (int64_t)bits;
    c->n++;
    return true;
}

static fac_status type_of(const fac_proto_tensor *t, fac_type *out, fac_error *err) {
    counted_dims c = { 0 };
    fac_dtype dtype = fac_proto_dtype(t->type);
    if (t->type == 0) return fac_raise(err, FAC_E_FORMAT, "no element type");
    if (dtype == FAC_NONE)
        return fac_raise(err, FAC_E_UNSUPPORTED, "element type %s (%lld) is not supported",
                         fac_proto_dtype_name(t->type), (long long)t->type);
    if (fac_proto_has(t->has, FAC_PROTO_TENSOR_SEGMENT))
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "not a plain tensor: segments, sequences and optionals are not supported");
    FAC_TRY(fac_proto_each(t->self, FAC_PROTO_TENSOR_DIMS, FAC_PROTO_VARINTS, add_dim, &c, err));
    if (c.negative) return fac_raise(err, FAC_E_FORMAT, "a negative dim");
    if (c.n > FAC_DIMS)
        return fac_raise(err, FAC_E_UNSUPPORTED, "%zu dims, at most %d are supported", c.n,
                         FAC_DIMS);
    c.dims.n = (int)c.n;
    *out = (fac_type){ dtype, c.dims };
    bool fits = fac_dims_count(&c.dims) >= 0 && fac_type_bytes(out) != SIZE_MAX;
    return fits ? FAC_OK : fac_raise(err, FAC_E_FORMAT, "dims whose product does not fit");
}

/* ---- contents as bytes: raw_data, external data, a packed array of floats ---- */

/* A bool is one byte, 0 or 1; the file may hold others. */
static fac_status from_flags(const fac_type *type, fac_bytes b, fac_tensor **out, fac_error *err) {
    fac_tensor *t;
    void *data;
    FAC_TRY(fac_tensor_new_on(NULL, NULL, *type, false, &t, err));
    fac_status status = fac_tensor_begin_write(t, &data, err);
    if (status) {
        fac_tensor_free(t);
        return status;
    }
    for (size_t k = 0; k < b.n; k++) ((uint8_t *)data)[k] = b.p[k] != 0;
    *out = t;
    return FAC_OK;
}

static fac_status from_bytes(const fac_type *type, fac_file *file, fac_bytes b, fac_tensor **out,
                             fac_error *err) {
    size_t need = fac_onnx_small_bytes(type);
    if (b.n != need)
        return fac_raise(err, FAC_E_FORMAT, "%zu bytes of data where its type needs %zu", b.n,
                         need);
    if (!need) return fac_tensor_new(NULL, type->dtype, type->dims, out, err);
    if (type->dtype == FAC_BOOL) return from_flags(type, b, out, err);
    if (fac_onnx_small_each(type->dtype) > 1) return fac_onnx_small_open(type, b.p, out, err);
    return fac_tensor_from_file(file, (size_t)(b.p - (const uint8_t *)fac_file_data(file)), *type,
                                NULL, out, err);
}

/* ---- contents as numbers: varints, unpacked arrays ---- */

typedef struct sink {
    uint8_t *to;
    size_t element, n, room;
    bool flag;
} sink;

static bool add_number(void *self, uint64_t bits, fac_bytes unused) {
    sink *s = self;
    (void)unused;
    if (s->flag) bits = bits != 0;
    if (s->n < s->room)
        memcpy(s->to + s->n * s->element, &bits, s->element); /* little endian: the low bytes */
    return s->n++ < s->room;
}

static void storage_of(fac_dtype dtype, int *field, fac_proto_wire *wire) {
    *wire = FAC_PROTO_VARINTS;
    switch (dtype) {
    case FAC_F32:
        *field = FAC_PROTO_TENSOR_FLOATS;
        *wire = FAC_PROTO_FIXED32S;
        break;
    case FAC_F64:
        *field = FAC_PROTO_TENSOR_DOUBLES;
        *wire = FAC_PROTO_FIXED64S;
        break;
    case FAC_I64:
        *field = FAC_PROTO_TENSOR_INT64S;
        break;
    case FAC_U64:
    case FAC_U32:
        *field = FAC_PROTO_TENSOR_UINT64S;
        break;
    default:
        *field = FAC_PROTO_TENSOR_INT32S; /* 16-bit floats as their bits */
    }
}

static fac_status wrong_count(size_t got, size_t need, fac_error *err) {
    if (got > need)
        return fac_raise(err, FAC_E_FORMAT,
                         "more than %zu elements of data where its dims need %zu", need, need);
    return fac_raise(err, FAC_E_FORMAT, "%zu elements of data where its dims need %zu", got, need);
}

static fac_status numbers(const fac_type *type, fac_file *file, const fac_proto_tensor *t,
                          fac_tensor **out, fac_error *err) {
    size_t count = (size_t)fac_dims_count(&type->dims);
    int field = 0;
    fac_proto_wire wire;
    storage_of(type->dtype, &field, &wire);
    fac_bytes chunk =
        wire == FAC_PROTO_VARINTS ? (fac_bytes){ 0 } : fac_proto_chunk(t->self, field);
    if (chunk.p) return from_bytes(type, file, chunk, out, err);
    if (count > t->self.n) return wrong_count(0, count, err); /* an element takes at least a byte */
    fac_tensor *made;
    void *data;
    FAC_TRY(fac_tensor_new_on(NULL, NULL, *type, false, &made, err));
    fac_status status = fac_tensor_begin_write(made, &data, err);
    sink s = { data, (size_t)fac_dtype_get(type->dtype)->block_bytes, 0, count,
               type->dtype == FAC_BOOL };
    if (!status) status = fac_proto_each(t->self, field, wire, add_number, &s, err);
    if (!status && s.n != count) status = wrong_count(s.n, count, err);
    if (status)
        fac_tensor_free(made);
    else
        *out = made;
    return status;
}

/* Packed elements are bytes, one in a number. */
static fac_status from_numbers(const fac_type *type, fac_file *file, const fac_proto_tensor *t,
                               fac_tensor **out, fac_error *err) {
    if (fac_onnx_small_each(type->dtype) == 1) return numbers(type, file, t, out, err);
    const fac_dims dims = { 1, { (int64_t)fac_onnx_small_bytes(type) } };
    fac_tensor *bytes;
    FAC_TRY(numbers(&(fac_type){ FAC_U8, dims }, file, t, &bytes, err));
    fac_status status = fac_onnx_small_open(type, fac_tensor_data(bytes), out, err);
    fac_tensor_free(bytes);
    return status;
}

/* ---- contents as texts ---- */

typedef struct texts {
    fac_arena arena;
    char **at;
    size_t n, room;
    bool failed, zero;
} texts;

static bool add_text(void *self, uint64_t unused, fac_bytes b) {
    texts *t = self;
    (void)unused;
    if (t->n >= t->room) return t->n++, false;
    char *s = fac_arena_alloc(&t->arena, b.n + 1, 1);
    t->failed |= !s;
    if (s && b.n) memcpy(s, b.p, b.n);
    t->zero |= b.n && memchr(b.p, 0, b.n);
    t->at[t->n++] = s;
    return s != NULL;
}

static fac_status fill_texts(const fac_type *type, const fac_proto_tensor *t, texts *all,
                             fac_tensor **out, fac_error *err) {
    fac_tensor *made;
    all->at = fac_arena_alloc(&all->arena, all->room, sizeof *all->at);
    if (!all->at) return fac_raise_memory(err, "texts");
    FAC_TRY(fac_proto_each(t->self, FAC_PROTO_TENSOR_TEXTS, FAC_PROTO_WINDOWS, add_text, all, err));
    if (all->failed) return fac_raise_memory(err, "texts");
    if (all->n != all->room) return wrong_count(all->n, all->room, err);
    if (all->zero)
        return fac_raise(err, FAC_E_UNSUPPORTED, "texts with a zero byte are not supported");
    FAC_TRY(fac_tensor_new(NULL, FAC_TEXT, type->dims, &made, err));
    fac_status status = fac_tensor_write(made, all->at, fac_type_bytes(type), err);
    if (status)
        fac_tensor_free(made);
    else
        *out = made;
    return status;
}

static fac_status from_texts(const fac_type *type, const fac_proto_tensor *t, fac_tensor **out,
                             fac_error *err) {
    texts all = { .room = (size_t)fac_dims_count(&type->dims) };
    if (all.room > t->self.n) return wrong_count(0, all.room, err);
    fac_status status = fill_texts(type, t, &all, out, err);
    fac_arena_free(&all.arena);
    return status;
}

fac_status fac_proto_to_tensor(fac_source_files *s, const fac_proto_tensor *t, fac_tensor **out,
                               fac_error *err) {
    fac_type type;
    FAC_TRY(type_of(t, &type, err));
    bool text = type.dtype == FAC_TEXT;
    if (text && (t->location == FAC_PROTO_EXTERNAL || t->raw.p))
        return fac_raise(err, FAC_E_FORMAT, "texts as %s", t->raw.p ? "raw data" : "external data");
    if (t->location == FAC_PROTO_EXTERNAL) {
        fac_file *file;
        fac_bytes b;
        FAC_TRY(fac_source_external(s, t, fac_onnx_small_bytes(&type), &file, &b, err));
        return from_bytes(&type, file, b, out, err);
    }
    if (t->location != 0)
        return fac_raise(err, FAC_E_UNSUPPORTED, "data location %lld is not known",
                         (long long)t->location);
    if (text) return from_texts(&type, t, out, err);
    if (t->raw.p) return from_bytes(&type, s->file, t->raw, out, err);
    return from_numbers(&type, s->file, t, out, err);
}
