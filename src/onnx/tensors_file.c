/* Sequences and optionals in files of their own: SequenceProto, OptionalProto. */
#include "base/error.h"
#include "base/memory.h"
#include "facula/onnx.h"
#include "onnx/source.h"

enum { ELEMENTS = 3, HELD_TENSOR = 3, HELD_SEQUENCE = 5 }; /* field numbers: see onnx-data.proto */

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

typedef struct held {
    fac_bytes tensor, sequence;
} held;

static bool keep_tensor(void *self, uint64_t bits, fac_bytes b) {
    (void)bits;
    ((held *)self)->tensor = b;
    return true;
}

static bool keep_sequence(void *self, uint64_t bits, fac_bytes b) {
    (void)bits;
    ((held *)self)->sequence = b;
    return true;
}

static fac_status read_optional(reader *r, fac_bytes b, int *n, bool *sequence) {
    held h = { { 0 }, { 0 } };
    FAC_TRY(fac_proto_each(b, HELD_TENSOR, FAC_PROTO_WINDOWS, keep_tensor, &h, r->err));
    FAC_TRY(fac_proto_each(b, HELD_SEQUENCE, FAC_PROTO_WINDOWS, keep_sequence, &h, r->err));
    *sequence = h.sequence.p != NULL;
    if (h.sequence.p)
        FAC_TRY(read_elements(r, h.sequence, ELEMENTS));
    else if (h.tensor.p)
        FAC_TRY(read_elements(r, b, HELD_TENSOR));
    *n = h.sequence.p || h.tensor.p ? (int)r->n : -1;
    return FAC_OK;
}

fac_status fac_onnx_tensors_load(const char *path, fac_onnx_kind kind, fac_tensor ***out, int *n,
                                 bool *sequence, fac_error *err) {
    fac_source_files files;
    FAC_TRY(fac_source_open(path, &files, err));
    reader r = { .files = &files, .err = err };
    *sequence = true;
    fac_status status = kind == FAC_ONNX_OPTIONAL
                            ? read_optional(&r, fac_source_bytes(&files), n, sequence)
                            : read_elements(&r, fac_source_bytes(&files), ELEMENTS);
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
