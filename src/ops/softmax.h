/* What softmax, log_softmax and hardmax share: one attribute, one walk over lines, one ONNX
 * spelling. */
#ifndef FACULA_OPS_SOFTMAX_H
#define FACULA_OPS_SOFTMAX_H
#include "facula/op.h"

typedef struct fac_softmax_attrs {
    int64_t axis;
} fac_softmax_attrs;
extern const fac_attr fac_softmax_table[];
bool fac_softmax_infer(fac_node *n);
/* Of the gradients of softmax and log_softmax: dx from the result y and dy, which are alike. */
extern const fac_port fac_softmax_grad_in[], fac_softmax_grad_out[];
bool fac_softmax_grad_infer(fac_node *n);
/* The axis of a node as that of a sum; none for a scalar. */
fac_dims fac_softmax_axis(const fac_node *n);

/* line() fills y[first], y[first + step], .. from as many elements of x in the same places. */
typedef void fac_softmax_line(const fac_array *x, int64_t first, int64_t size, int64_t step,
                              double *y);
fac_status fac_softmax_ref(const fac_ref *r, fac_softmax_line *line);

/* Since opset 13 along one axis (default -1).  Before it the tensor was taken as a matrix of
 * prod(d[0..axis)) lines, each of all that follows (default axis 1). */
fac_value *fac_softmax_load(const fac_onnx_node *n, fac_value *x,
                            fac_value *(*op)(fac_value *x, int64_t axis));
#endif
