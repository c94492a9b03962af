/* What the op code_limits and the pass that makes it agree on. */
#ifndef FACULA_OPS_CODE_LIMITS_H
#define FACULA_OPS_CODE_LIMITS_H
#include "ops/conv_basis.h"

typedef struct fac_code_limits_attrs {
    int64_t reach;
    bool relu;
} fac_code_limits_attrs;
extern const fac_op fac_op_code_limits;
#endif
