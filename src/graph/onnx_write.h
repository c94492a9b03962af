/* More that save() may ask of the exporter than facula/op.h says: for ops of the library that need
 * it. */
#ifndef FACULA_GRAPH_ONNX_WRITE_H
#define FACULA_GRAPH_ONNX_WRITE_H
#include "facula/op.h"

const char *fac_onnx_fresh(
    const fac_onnx_writer *w); /* a name that no value has, for fac_onnx_put_out */
/* Attributes of the node that was put last. */
void fac_onnx_put_reals(const fac_onnx_writer *w, const char *attr, int n, const double *numbers);
void fac_onnx_put_texts(const fac_onnx_writer *w, const char *attr, int n,
                        const char *const *texts);
/* A tensor, which the exporter takes; NULL: memory ran out where it was made. */
void fac_onnx_put_tensor(const fac_onnx_writer *w, const char *attr, fac_tensor *t);
/* Body k of n as a subgraph, whose first `formal` inputs are its own; the others are read from
 * outside: inputs of n. */
void fac_onnx_put_body(const fac_onnx_writer *w, const char *attr, const fac_node *n, int k,
                       int formal);
/* Puts a call of body 0 of n, which becomes a function of the model; functions that say the same
 * are one. */
void fac_onnx_put_call(const fac_onnx_writer *w, const char *function, const fac_node *n);
#endif
