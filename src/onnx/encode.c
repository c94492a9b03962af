/* Fields of protobuf messages, and tensors among them: see encode.h. */
#include "onnx/encode.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "onnx/small.h"
#include "onnx/source.h"
#include "tensor/tensor_internal.h"
#include "tensor/weights.h"

/* ---- streams ---- */

static bool put(pb_ostream_t *s, const pb_byte_t *data, size_t n) {
    fac_sink *sink = s->state;
    sink->status = fac_writer_put(sink->to, data, n, sink->err);
    return sink->status == FAC_OK;
}

pb_ostream_t fac_sink_stream(fac_sink *sink) {
    return (pb_ostream_t){ .callback = put, .state = sink, .max_size = SIZE_MAX };
}

fac_status fac_sink_status(const fac_sink *sink, bool done) {
    if (done || sink->status) return sink->status;
    return fac_raise(sink->err, FAC_E_INTERNAL, "a message that cannot be encoded");
}

static bool counts(const pb_ostream_t *s) { return !s->callback; }

/* ---- fields ---- */

bool fac_encode_int(pb_ostream_t *s, uint32_t field, int64_t x) {
    return pb_encode_tag(s, PB_WT_VARINT, field) && pb_encode_varint(s, (uint64_t)x);
}

bool fac_encode_real(pb_ostream_t *s, uint32_t field, double x) {
    return pb_encode_tag(s, PB_WT_32BIT, field) && pb_encode_fixed32(s, &(float){ (float)x });
}

static bool encode_length(pb_ostream_t *s, uint32_t field, size_t n) {
    return pb_encode_tag(s, PB_WT_STRING, field) && pb_encode_varint(s, n);
}

bool fac_encode_bytes(pb_ostream_t *s, uint32_t field, const void *data, size_t n) {
    return encode_length(s, field, n) && pb_write(s, data, n);
}

bool fac_encode_text(pb_ostream_t *s, uint32_t field, const char *text) {
    return !text || fac_encode_bytes(s, field, text, strlen(text));
}

bool fac_encode_message(pb_ostream_t *s, uint32_t field, fac_encode_body *body, const void *self) {
    pb_ostream_t size = PB_OSTREAM_SIZING;
    if (!body(&size, self) || !encode_length(s, field, size.bytes_written)) return false;
    if (!counts(s)) return body(s, self);
    s->bytes_written += size.bytes_written; /* counted once is enough */
    return true;
}

/* ---- tensors ---- */

static bool encode_texts(pb_ostream_t *s, const fac_tensor *t) {
    fac_sink *sink = s->state; /* NULL when it only counts */
    fac_tensor *copy = NULL;
    fac_status status = fac_tensor_copy_contiguous(t, &copy, sink ? sink->err : NULL);
    if (sink) sink->status = status;
    bool ok = !status;
    for (int64_t k = 0; ok && k < fac_dims_count(&t->type.dims); k++)
        ok = fac_encode_text(s, FAC_PROTO_TENSOR_TEXTS, ((char *const *)fac_tensor_data(copy))[k]);
    fac_tensor_free(copy);
    return ok;
}

/* Puts the contents as they lie in a file. */
fac_status fac_encode_data(const fac_tensor *t, fac_writer *to, fac_error *err) {
    if (fac_onnx_small_each(t->type.dtype) == 1) return fac_tensor_put(t, to, err);
    fac_tensor *packed;
    FAC_TRY(fac_onnx_small_pack(t, &packed, err));
    fac_status status = fac_tensor_put(packed, to, err);
    fac_tensor_free(packed);
    return status;
}

static bool encode_raw(pb_ostream_t *s, const fac_tensor *t) {
    size_t n = fac_onnx_small_bytes(&t->type);
    if (!encode_length(s, FAC_PROTO_TENSOR_RAW, n)) return false;
    if (!counts(s)) {
        fac_sink *sink = s->state;
        sink->status = fac_encode_data(t, sink->to, sink->err);
        if (sink->status) return false;
    }
    s->bytes_written += n;
    return true;
}

bool fac_encode_pair_body(pb_ostream_t *s, const void *self) {
    const fac_encode_pair *p = self;
    return fac_encode_text(s, 1, p->key) && fac_encode_text(s, 2, p->value);
}

static bool encode_place(pb_ostream_t *s, const fac_encode_tensor *e) {
    char at[24], length[24];
    snprintf(at, sizeof at, "%zu", e->at);
    snprintf(length, sizeof length, "%zu", fac_onnx_small_bytes(&e->t->type));
    const fac_encode_pair pairs[] = { { "location", e->file },
                                      { "offset", at },
                                      { "length", length } };
    bool ok = true;
    for (int k = 0; k < 3 && ok; k++)
        ok = fac_encode_message(s, FAC_PROTO_TENSOR_EXTERNAL, fac_encode_pair_body, &pairs[k]);
    return ok && fac_encode_int(s, FAC_PROTO_TENSOR_LOCATION, FAC_PROTO_EXTERNAL);
}

bool fac_encode_tensor_body(pb_ostream_t *s, const void *self) {
    const fac_encode_tensor *e = self;
    const fac_type *type = &e->t->type;
    for (int k = 0; k < type->dims.n; k++)
        if (!fac_encode_int(s, FAC_PROTO_TENSOR_DIMS, type->dims.d[k])) return false;
    if (!fac_encode_int(s, FAC_PROTO_TENSOR_TYPE, fac_proto_dtype_number(type->dtype)))
        return false;
    if (!fac_encode_text(s, FAC_PROTO_TENSOR_NAME, e->name)) return false;
    if (e->file) return encode_place(s, e);
    return type->dtype == FAC_TEXT ? encode_texts(s, e->t) : encode_raw(s, e->t);
}
