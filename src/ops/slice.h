/* What slice and its gradient have in common. */
#ifndef FACULA_OPS_SLICE_H
#define FACULA_OPS_SLICE_H
#include <stdint.h>
#include "facula/op.h"

/* First index and number of elements of start:end:step in a dim of this size, as Python counts
 * them. */
typedef struct fac_slice_range {
    int64_t first, step, count;
} fac_slice_range;
fac_slice_range fac_slice_range_of(int64_t size, int64_t start, int64_t end, int64_t step);
/* ONNX's spelling since opset 10. */
void fac_load_slice(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]);
bool fac_save_slice(const fac_onnx_writer *w, const fac_node *n);
/* Dims of a slice of n's input 0 by its inputs 1 to 4.  false after fac_fail. */
bool fac_slice_dims(fac_node *n, fac_dims *to);
#endif
