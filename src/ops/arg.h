/* What arg_max and arg_min share. */
#ifndef FACULA_OPS_ARG_H
#define FACULA_OPS_ARG_H
#include "facula/op.h"
#include "facula/ops.h"

typedef struct fac_arg_attrs {
    int64_t axis;
    bool keep, select_last_index;
} fac_arg_attrs;
extern const fac_attr fac_arg_table[];
extern const fac_onnx_attr fac_arg_spellings[];

bool fac_arg_infer(fac_node *n);
void fac_arg_cost(const fac_node *n, fac_cost *cost);
/* better(x, a, b): x[a] is strictly better than x[b]. */
void fac_arg_ref(const fac_ref *r, bool (*better)(const fac_array *x, int64_t a, int64_t b));
fac_value *fac_arg_load(const fac_onnx_node *n, const fac_op *op, fac_value *x);
#endif
