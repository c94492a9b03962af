/* What fac_op.define and fac_op.steps are written with: see facula/op.h. */
#ifndef FACULA_OPS_DEFINE_H
#define FACULA_OPS_DEFINE_H
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/grad.h"
#include "ops/shape.h"

/* Integers divide and round in their own ways. */
static inline bool fac_define_floats(const fac_node *n) {
    return fac_dtype_get(n->in[0]->type.dtype)->kind == 'f';
}

/* hat scale + bias, each broadcast as it is; both may be NULL. */
fac_value *fac_define_scaled(fac_value *hat, fac_value *scale, fac_value *bias);
/* ... one number for each channel of hat N,C,..., or for each group of channels. */
fac_value *fac_define_channels(fac_value *hat, fac_value *scale, fac_value *bias);

/* 0; whole numbers and halves near it; beyond +-20, where what saturates is flat in f32; the one
 * number beside input 0. */
int fac_steps_zero(const fac_node *n, double at[]);
int fac_steps_whole(const fac_node *n, double at[]);
int fac_steps_flat(const fac_node *n, double at[]);
int fac_steps_beside(const fac_node *n, double at[]);
/* Between false and true. */
int fac_steps_flag(const fac_node *n, double at[]);
#endif
