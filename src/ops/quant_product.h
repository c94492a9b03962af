/* What matmul_integer and qlinear_matmul share. */
#ifndef FACULA_OPS_QUANT_PRODUCT_H
#define FACULA_OPS_QUANT_PRODUCT_H
#include "facula/op.h"
#include "facula/ops.h"

/* a and b as fac_matmul takes them, of bytes; out[0] is of dtype c. */
bool fac_quant_product_infer(fac_node *n, fac_dtype c);
/* Input `port` is one number, or one for each row of a (side 0) or column of b (side 1). */
bool fac_quant_product_each(fac_node *n, int port, int side, const char *name);
/* It, so that it broadcasts against that operand. */
fac_value *fac_quant_product_spread(fac_value *v, const fac_value *operand, int side);
/* Which of its numbers belongs to element e of operand or, of side 1, of the product. */
int64_t fac_quant_product_at(const fac_dims *v, const fac_dims *of, int side, int64_t e);
fac_status fac_quant_product_sums(const fac_ref *r, int a_zero, int b_zero, int64_t *c,
                                  fac_error *err);
void fac_quant_product_cost(const fac_node *n, fac_cost *to);
#endif
