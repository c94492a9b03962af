/* From TensorProto to tensors: where the bytes of a model's tensors come from. */
#ifndef FACULA_ONNX_SOURCE_H
#define FACULA_ONNX_SOURCE_H
#include "base/file/file.h"
#include "base/table.h"
#include "facula/tensor.h"
#include "onnx/proto.h"

/* A model or tensor file, and the files beside it that hold external data. */
typedef struct fac_source_files {
    const char
        *path; /* NULL: the bytes came from memory, so there is no folder for external data */
    const char *link_root; /* a folder that links may lead to, too; NULL: none */
    fac_file *file;
    fac_table external; /* location -> fac_file */
} fac_source_files;

fac_status fac_source_open(const char *path, fac_source_files *out, fac_error *err);
void fac_source_close(fac_source_files *s); /* tensors keep what they borrow */
fac_bytes fac_source_bytes(const fac_source_files *s);

/* TensorProto.DataType: ours, FAC_NONE when we have no such type; its name in ONNX, in lower case.
 */
fac_dtype fac_proto_dtype(int64_t type);
int64_t fac_proto_dtype_number(fac_dtype dtype); /* 0 when ONNX has no such type */
const char *fac_proto_dtype_name(int64_t type);

/* The tensor.  Large aligned data are borrowed from the file, other data are copied. */
fac_status fac_proto_to_tensor(fac_source_files *s, const fac_proto_tensor *t, fac_tensor **out,
                               fac_error *err);

/* external.c: the bytes of a tensor with data_location EXTERNAL, `need` of them when the file does
 * not say how many, and the file that they are in (borrowed from s). */
fac_status fac_source_external(fac_source_files *s, const fac_proto_tensor *t, size_t need,
                               fac_file **file, fac_bytes *out, fac_error *err);
#endif
