/* One tensor in a file of its own: a TensorProto, as the ONNX test suites keep their inputs and outputs. */
#include <limits.h>
#include <pb_encode.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/onnx.h"
#include "onnx/source.h"

/* ---- reading ---- */

static fac_status read_tensor(fac_source_files *s, fac_arena *arena, fac_tensor **out, char *name, size_t size, fac_error *err) {
    fac_proto_tensor t;
    FAC_TRY(fac_proto_read_tensor(fac_source_bytes(s), arena, &t, err));
    FAC_TRY(fac_proto_to_tensor(s, &t, out, err));
    if (name && size) snprintf(name, size, "%s", t.name);
    return FAC_OK;
}

fac_status fac_onnx_tensor_load(const char *path, fac_tensor **out, char *name, size_t size, fac_error *err) {
    fac_source_files s;
    fac_arena arena = { 0 };
    FAC_TRY(fac_source_open(path, &s, err));
    fac_status status = read_tensor(&s, &arena, out, name, size, err);
    fac_source_close(&s);
    fac_arena_free(&arena);
    return status ? fac_raise_in(err, status, "%s", path) : FAC_OK;
}

/* ---- writing ---- */

enum { HEAD = 20 };                 /* more than a tag and a varint of 64 bits take */

typedef struct output { fac_writer *to; fac_error *err; } output;

/* A field's tag and number: its value, or the length of the bytes that follow. */
static fac_status put_head(const output *o, uint32_t field, pb_wire_type_t wire, uint64_t number) {
    pb_byte_t head[HEAD];
    pb_ostream_t s = pb_ostream_from_buffer(head, sizeof head);
    bool fits = pb_encode_tag(&s, wire, field) && pb_encode_varint(&s, number);
    if (!fits) return fac_raise(o->err, FAC_E_INTERNAL, "field %u", (unsigned)field);
    return fac_writer_put(o->to, head, s.bytes_written, o->err);
}

static fac_status put_bytes(const output *o, uint32_t field, const void *data, size_t n) {
    FAC_TRY(put_head(o, field, PB_WT_STRING, n));
    return fac_writer_put(o->to, data, n, o->err);
}

static fac_status put_contents(const output *o, fac_type type, const void *data) {
    if (type.dtype != FAC_TEXT) return put_bytes(o, FAC_PROTO_TENSOR_RAW, data, fac_type_bytes(&type));
    char *const *texts = data;
    for (int64_t k = 0; k < fac_dims_count(&type.dims); k++)
        FAC_TRY(put_bytes(o, FAC_PROTO_TENSOR_TEXTS, texts[k], strlen(texts[k])));
    return FAC_OK;
}

static fac_status put_tensor(const output *o, fac_type type, const void *data, const char *name) {
    for (int k = 0; k < type.dims.n; k++) FAC_TRY(put_head(o, FAC_PROTO_TENSOR_DIMS, PB_WT_VARINT, (uint64_t)type.dims.d[k]));
    FAC_TRY(put_head(o, FAC_PROTO_TENSOR_TYPE, PB_WT_VARINT, (uint64_t)fac_proto_dtype_number(type.dtype)));
    if (name) FAC_TRY(put_bytes(o, FAC_PROTO_TENSOR_NAME, name, strlen(name)));
    return put_contents(o, type, data);
}

static fac_status write_file(const char *path, fac_type type, const void *data, const char *name, fac_error *err) {
    output o = { NULL, err };
    FAC_TRY(fac_writer_open(path, &o.to, err));
    fac_status status = put_tensor(&o, type, data, name);
    if (!status) return fac_writer_close(o.to, err);
    fac_writer_cancel(o.to);
    return status;
}

fac_status fac_onnx_tensor_save(const fac_tensor *t, const char *name, const char *path, fac_error *err) {
    fac_type type = fac_tensor_type(t);
    size_t bytes = fac_type_bytes(&type);
    if (!fac_proto_dtype_number(type.dtype))
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s: ONNX has no element type %s", path, fac_dtype_get(type.dtype)->name);
    if (bytes >= INT_MAX - (4u << 10))
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s: %zu bytes do not fit into a protobuf message (2 GiB)", path, bytes);
    void *data = fac_alloc_aligned(bytes);
    if (!data) return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %zu bytes", path, bytes);
    fac_status status = fac_tensor_read(t, data, bytes, err);
    if (!status) status = write_file(path, type, data, name, err);
    fac_release_aligned(data);
    return status;
}
