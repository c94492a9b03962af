/* What the losses of classes have in common: which labels count, and what becomes of the losses of
 * all samples. */
#ifndef FACULA_OPS_NLL_LOSS_H
#define FACULA_OPS_NLL_LOSS_H
#include "facula/op.h"

typedef struct fac_nll_attrs {
    int reduction;
    bool ignore;
    int64_t ignore_index;
} fac_nll_attrs;
enum { FAC_NLL_MEAN, FAC_NLL_SUM, FAC_NLL_NONE };
extern const fac_attr fac_nll_table[];
extern const fac_port fac_nll_ports[];

/* Checks x N,C,.. against labels N,.. and weight C; *y: the type of the loss. */
bool fac_nll_type(fac_node *n, fac_type *y);
/* The attributes of an ONNX node; false after an error of the graph. */
bool fac_nll_load(const fac_onnx_node *n, fac_graph *g, fac_nll_attrs *to);
void fac_nll_put(const fac_onnx_writer *w, const fac_nll_attrs *a);
#endif
