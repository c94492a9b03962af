/* Reductions over chosen axes: attributes, infer, the walk over the elements and the ONNX spelling
 * are the same for all. */
#ifndef FACULA_OPS_REDUCE_H
#define FACULA_OPS_REDUCE_H
#include "facula/op.h"
#include "facula/ops.h"

/* Inputs: x, and axes (i64, FAC_HOST, optional).  No axes, or none in it, means all, or none with
 * noop_with_empty_axes. */
typedef struct fac_reduce_attrs {
    bool keep; /* reduced dims stay, as 1 */
    bool noop_with_empty_axes;
} fac_reduce_attrs;
extern const fac_attr fac_reduce_table[];
extern const fac_port fac_reduce_num_in[], fac_reduce_num_out[]; /* floats and integers */
extern const fac_port fac_reduce_any_in[], fac_reduce_any_out[]; /* and bool            */
extern const fac_onnx_attr fac_reduce_spellings[];

bool fac_reduce_infer(fac_node *n);
void fac_reduce_cost(const fac_node *n, fac_cost *cost);
void fac_reduce_load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]);
bool fac_reduce_save(const fac_onnx_writer *w, const fac_node *n);
/* ... as ONNX's pooling of whole planes, `type`, which it is when all spatial dims of N,C,... are
 * reduced and kept. */
bool fac_reduce_save_global(const fac_onnx_writer *w, const fac_node *n, const char *type);
fac_value *fac_reduce_emit(const fac_op *op, fac_value *x, fac_dims axes, bool keep);

/* What roots and logarithms take: integers as f64. */
fac_value *fac_reduce_real(fac_value *x);

/* ... of a node whose axes are known: bit k for axis k.  For solvers.  false: not known yet. */
bool fac_reduce_axes(const fac_node *n, unsigned *mask);

/* y = f(... f(f(start, x0), x1) ..., xn) over the reduced elements, in the order of memory. Returns
 * how many those are. */
typedef struct fac_fold {
    double start_real, (*real)(double y, double x);
    int64_t start_whole, (*whole)(int64_t y, int64_t x);
} fac_fold;
int64_t fac_reduce_fold(const fac_ref *r, const fac_fold *how);
/* The same over the axes of `mask`, whatever the inputs say. */
int64_t fac_reduce_fold_axes(const fac_ref *r, unsigned mask, const fac_fold *how);
#endif
