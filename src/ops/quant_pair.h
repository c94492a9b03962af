/* What qlinear_add and qlinear_mul share: two operands of bytes, scales and zero points. */
#ifndef FACULA_OPS_QUANT_PAIR_H
#define FACULA_OPS_QUANT_PAIR_H
#include "ops/quant.h"

enum {
    FAC_PAIR_A,
    FAC_PAIR_A_SCALE,
    FAC_PAIR_A_ZERO,
    FAC_PAIR_B,
    FAC_PAIR_B_SCALE,
    FAC_PAIR_B_ZERO,
    FAC_PAIR_Y_SCALE,
    FAC_PAIR_Y_ZERO,
    FAC_PAIR_PORTS
};
extern const fac_port fac_quant_pair_in[], fac_quant_pair_out[];

typedef struct fac_pair {
    float a_scale, a_zero, b_scale, b_zero, y_scale, y_zero;
} fac_pair;
/* The sum or product in units of y, before it is rounded. */
typedef double fac_pair_rule(const fac_pair *p, double a, double b);
/* plus: y's zero point is added after rounding (1), or is in the rule (0). */
fac_status fac_quant_pair_ref(const fac_ref *r, fac_pair_rule *rule, int plus);
bool fac_quant_pair_infer(fac_node *n);

/* Scales and zero points as f32 scalars, by port. */
void fac_quant_pair_scalars(const fac_node *n, fac_value *x[FAC_PAIR_PORTS]);
/* Whole numbers in f32 into the range of bytes. */
fac_value *fac_quant_narrow(fac_value *x, fac_dtype to);

typedef fac_value *fac_pair_maker(fac_value *a, fac_value *b, const fac_qlinear_scales *s);
fac_value *fac_quant_pair_load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                               fac_pair_maker *make);
fac_value *fac_quant_pair_emit(const fac_op *op, fac_value *a, fac_value *b,
                               const fac_qlinear_scales *s);
#endif
