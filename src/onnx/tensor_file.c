/* One tensor in a file of its own: a TensorProto, as the ONNX test suites keep their inputs and
 * outputs. */
#include <limits.h>
#include <stdio.h>
#include "base/error.h"
#include "facula/onnx.h"
#include "onnx/encode.h"
#include "onnx/source.h"

/* ---- reading ---- */

static fac_status read_tensor(fac_source_files *s, fac_arena *arena, fac_tensor **out, char *name,
                              size_t size, fac_error *err) {
    fac_proto_tensor t;
    FAC_TRY(fac_proto_read_tensor(fac_source_bytes(s), arena, &t, err));
    FAC_TRY(fac_proto_to_tensor(s, &t, out, err));
    if (name && size) snprintf(name, size, "%s", t.name);
    return FAC_OK;
}

fac_status fac_onnx_tensor_load(const char *path, fac_tensor **out, char *name, size_t size,
                                fac_error *err) {
    fac_source_files s;
    fac_arena arena = { 0 };
    FAC_TRY(fac_source_open(path, &s, err));
    fac_status status = read_tensor(&s, &arena, out, name, size, err);
    fac_source_close(&s);
    fac_arena_free(&arena);
    return status ? fac_raise_in(err, status, "%s", path) : FAC_OK;
}

/* ---- writing ---- */

static fac_status write_file(const char *path, const fac_encode_tensor *t, fac_error *err) {
    fac_sink sink = { .err = err };
    FAC_TRY(fac_writer_open(path, &sink.to, err));
    pb_ostream_t s = fac_sink_stream(&sink);
    fac_status status = fac_sink_status(&sink, fac_encode_tensor_body(&s, t));
    if (!status) return fac_writer_close(sink.to, err);
    fac_writer_cancel(sink.to);
    return status;
}

fac_status fac_onnx_tensor_save(const fac_tensor *t, const char *name, const char *path,
                                fac_error *err) {
    fac_type type = fac_tensor_type(t);
    size_t bytes = fac_type_bytes(&type);
    if (!fac_proto_dtype_number(type.dtype))
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s: ONNX has no element type %s", path,
                         fac_dtype_get(type.dtype)->name);
    if (bytes >= INT_MAX - (4u << 10))
        return fac_raise(err, FAC_E_UNSUPPORTED,
                         "%s: %zu bytes do not fit into a protobuf message (2 GiB)", path, bytes);
    return write_file(path, &(fac_encode_tensor){ .t = t, .name = name }, err);
}
