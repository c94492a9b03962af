/* More that save() may ask of the exporter than facula/op.h says: for ops of the library that need it. */
#ifndef FACULA_GRAPH_ONNX_WRITE_H
#define FACULA_GRAPH_ONNX_WRITE_H
#include "facula/op.h"

const char *fac_onnx_fresh(const fac_onnx_writer *w);       /* a name that no value has, for fac_onnx_put_out */
/* Attributes of the node that was put last. */
void fac_onnx_put_reals(const fac_onnx_writer *w, const char *attr, int n, const double *numbers);
void fac_onnx_put_texts(const fac_onnx_writer *w, const char *attr, int n, const char *const *texts);
#endif
