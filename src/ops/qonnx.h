/* What reading and writing quantizers of QONNX share. */
#ifndef FACULA_OPS_QONNX_H
#define FACULA_OPS_QONNX_H
#include "facula/op.h"

#define FAC_QONNX "qonnx.custom_op.general"

/* scale (how many of t[c], T of them, are at most x[c]) + bias; channels lie along `axis`. */
fac_value *fac_qonnx_thresholds(fac_value *x, fac_value *t, int axis, double scale, double bias);
/* (rne(clip(x / scale + zero, least, most)) - zero) scale, of so many bits. */
fac_value *fac_qonnx_quant(fac_value *x, fac_value *scale, fac_value *zero, fac_value *bits,
                           bool is_signed, bool narrow);

/* Operators of QONNX: made for files by src/train/qonnx_form.c.  They have no prototypes. */
typedef struct fac_multi_threshold_attrs {
    double out_scale, out_bias;
} fac_multi_threshold_attrs;
typedef struct fac_int_quant_attrs {
    bool is_signed, narrow;
} fac_int_quant_attrs;
extern const fac_op fac_op_bipolar_quant, fac_op_multi_threshold, fac_op_int_quant;
#endif
