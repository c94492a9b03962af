/* Protobuf messages out, on nanopb's streams.  A message's length stands before it, so every
 * function here serves twice: on a stream that only counts, and on one that writes.  Nothing large
 * is held: the bytes of a tensor go from where they are to the file. */
#ifndef FACULA_ONNX_ENCODE_H
#define FACULA_ONNX_ENCODE_H
#include <pb_encode.h>
#include "base/file/file.h"
#include "facula/tensor.h"

/* The far end of a stream that writes.  The stream's functions return false when it fails; status
 * and err say why. */
typedef struct fac_sink {
    fac_writer *to;
    fac_error *err;
    fac_status status;
} fac_sink;
pb_ostream_t fac_sink_stream(fac_sink *sink);
/* What a body returned: FAC_OK, the failure of the sink, or FAC_E_INTERNAL. */
fac_status fac_sink_status(const fac_sink *sink, bool done);

bool fac_encode_int(pb_ostream_t *s, uint32_t field, int64_t x);
bool fac_encode_real(pb_ostream_t *s, uint32_t field, double x); /* a float */
bool fac_encode_bytes(pb_ostream_t *s, uint32_t field, const void *data, size_t n);
bool fac_encode_text(pb_ostream_t *s, uint32_t field, const char *text); /* NULL: nothing */
/* A message inside: body writes its fields. */
typedef bool fac_encode_body(pb_ostream_t *s, const void *self);
bool fac_encode_message(pb_ostream_t *s, uint32_t field, fac_encode_body *body, const void *self);

/* A StringStringEntryProto. */
typedef struct fac_encode_pair {
    const char *key, *value;
} fac_encode_pair;
bool fac_encode_pair_body(pb_ostream_t *s, const void *self);

/* A TensorProto.  file (may be NULL): its bytes lie there from `at` on. */
typedef struct fac_encode_tensor {
    const fac_tensor *t;
    const char *name, *file;
    size_t at;
} fac_encode_tensor;
bool fac_encode_tensor_body(pb_ostream_t *s, const void *self);
fac_status fac_encode_data(const fac_tensor *t, fac_writer *to, fac_error *err);
#endif
