/* What pad and its gradient have in common. */
#ifndef FACULA_OPS_PAD_H
#define FACULA_OPS_PAD_H
#include <stdint.h>
#include "facula/op.h"

/* Dims of n's input 0 with the pads of input 1 along the axes of input axes_at.  false after
 * fac_fail. */
bool fac_pad_dims(fac_node *n, int axes_at, int mode, fac_dims *to);

/* Which element of an axis stands at place i (below 0 or after the last, too) for every mode but
 * constant. */
int64_t fac_pad_from(int mode, int64_t i, int64_t size);
#endif
