/* What scatter_elements and scatter_nd have in common: how a number that arrives meets the one that
 * is there. */
#ifndef FACULA_OPS_SCATTER_H
#define FACULA_OPS_SCATTER_H
#include "ops/shape.h"

extern const char *const fac_scatter_names[]; /* of fac_scatter_reduction; NULL-terminated */

/* Texts and small types only move: nothing can meet. */
bool fac_scatter_takes(fac_node *n, int reduction);
/* y[at] = y[at] (reduction) updates[from]: in the array's own compute type. */
void fac_scatter_put(int reduction, const fac_array *updates, int64_t from, fac_array *y,
                     int64_t at);
/* y = x */
void fac_scatter_start(const fac_array *x, fac_array *y);
/* Gradients of both, in terms of the op itself on other operands (put) and of what reads where it
 * wrote (pick). */
typedef fac_value *fac_scatter_pick(const fac_node *n, fac_value *v);
typedef fac_value *fac_scatter_again(const fac_node *n, fac_value *x, fac_value *updates,
                                     int reduction);
void fac_scatter_grad(const fac_node *n, int reduction, fac_scatter_pick *pick,
                      fac_scatter_again *put, fac_value *dy, fac_value *dx[]);
/* The attribute "reduction" of an ONNX node. */
bool fac_scatter_save(const fac_onnx_writer *w, const fac_node *n);
int fac_scatter_load(const fac_onnx_node *n, fac_graph *g);
#endif
