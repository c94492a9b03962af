/* What cum_sum and cum_prod share. */
#ifndef FACULA_OPS_CUM_H
#define FACULA_OPS_CUM_H
#include "facula/op.h"
#include "facula/ops.h"

typedef struct fac_cum_attrs {
    bool exclusive, reverse;
} fac_cum_attrs;
extern const fac_attr fac_cum_table[];
extern const fac_port fac_cum_in[];

bool fac_cum_infer(fac_node *n);
void fac_cum_cost(const fac_node *n, fac_cost *cost);
fac_value *fac_cum_emit(const fac_op *op, fac_value *x, int axis, bool exclusive, bool reverse);
bool fac_cum_save(const fac_onnx_writer *w, const fac_node *n, const char *type);

/* Along each line: total <- total (op) x, from `start` on; y is the total with x or, when
 * exclusive, before it. */
typedef struct fac_cum_rule {
    double start_real, (*real)(double total, double x);
    uint64_t start_whole, (*whole)(uint64_t total, uint64_t x);
} fac_cum_rule;
fac_status fac_cum_ref(const fac_ref *r, const fac_cum_rule *rule, fac_error *err);
#endif
