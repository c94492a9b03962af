/* What pad and its gradient have in common. */
#ifndef FACULA_OPS_PAD_H
#define FACULA_OPS_PAD_H
#include <stdint.h>

/* Which element of an axis stands at place i (below 0 or behind the last, too) for every mode but constant. */
int64_t fac_pad_from(int mode, int64_t i, int64_t size);
#endif
