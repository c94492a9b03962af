/* What the readers of ONNX's Scan share: that of opset 8, and that of later ones. */
#ifndef FACULA_OPS_SCAN_H
#define FACULA_OPS_SCAN_H
#include "facula/ops.h"

/* The scan of nin inputs with the body of n, and its outputs. */
void fac_scan_load(const fac_onnx_node *n, fac_graph *g, const fac_scan_opts *opts, int nin,
                   fac_value *const in[], fac_value *out[]);
/* How many of the body's inputs are slices; 0: a number that cannot be. */
int fac_scan_slices(const fac_onnx_node *n, int formal);
/* A list of directions as bits; false after an error. */
bool fac_scan_directions(const fac_onnx_node *n, fac_graph *g, const char *attr, int64_t *bits);
#endif
