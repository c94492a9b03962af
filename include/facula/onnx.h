/* facula/onnx.h: ONNX in.  Import is all or nothing, and lists every node it cannot take, not only the first. */
#ifndef FACULA_ONNX_H
#define FACULA_ONNX_H

#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* What the caller knows better than the file.  Arrays may be NULL when their count is 0. */
typedef struct fac_onnx_opts {
    int                n;           /* inputs whose shapes are given            */
    const char *const *inputs;      /* their names                              */
    const fac_dims    *dims;
} fac_onnx_opts;

/* Reads a model: IR 3 to current, opsets 7 to current of the default domain.  Initializers become parameters (floats) or
 * constants; they borrow the mapped file, so it must not change while the graph or its tensors live.  opts may be NULL.
 * FAC_E_UNSUPPORTED names node, op, domain and version of the first node that is not ours and counts the others by op;
 * FAC_E_FORMAT for a malformed file; FAC_E_IO. */
fac_status fac_onnx_load(const char *path, const fac_onnx_opts *opts, fac_graph **out, fac_error *err);

/* A file with one TensorProto.  name (may be NULL) receives its name, at most size bytes. */
fac_status fac_onnx_tensor_load(const char *path, fac_tensor **out, char *name, size_t size, fac_error *err);
fac_status fac_onnx_tensor_save(const fac_tensor *t, const char *name, const char *path, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
