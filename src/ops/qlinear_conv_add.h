/* What the op, the pass that makes it and its solvers agree on. */
#ifndef FACULA_OPS_QLINEAR_CONV_ADD_H
#define FACULA_OPS_QLINEAR_CONV_ADD_H
#include "facula/op.h"
#include "facula/ops.h"

typedef struct fac_qlinear_conv_add_attrs {
    fac_conv2d_opts conv; /* first: solvers of convolutions read it as such */
    bool z_first;
} fac_qlinear_conv_add_attrs;

/* Ports after those of qlinear_conv, whose y_scale and y_zero are v's here. */
enum {
    FAC_QSUM_V_SCALE = 7,
    FAC_QSUM_V_ZERO,
    FAC_QSUM_Z,
    FAC_QSUM_Z_SCALE,
    FAC_QSUM_Z_ZERO,
    FAC_QSUM_Y_SCALE,
    FAC_QSUM_Y_ZERO,
    FAC_QSUM_PORTS
};
#endif
