/* What matmul_nbits knows beyond the options of its builder. */
#ifndef FACULA_OPS_NBITS_H
#define FACULA_OPS_NBITS_H
#include "facula/ops.h"

enum { FAC_NBITS_INT8 = 4 };

typedef struct fac_nbits_attrs {
    fac_nbits_opts o;
    /* Of x, at least, as ONNX Runtime's accuracy_level: FAC_NBITS_INT8 lets kernels round it to 8
     * bits by blocks; those below, and 0, are floats. */
    int64_t accuracy;
} fac_nbits_attrs;
#endif
