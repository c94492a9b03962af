/* Casts after casts, for the passes that meet them. */
#ifndef FACULA_PASSES_CASTS_H
#define FACULA_PASSES_CASTS_H
#include "facula/op.h"

/* A cast to a type that has every number of the type before it. */
bool fac_cast_keeps(const fac_node *n);

/* A cast between floats that computation knows: f64, f32, f16, bf16. */
bool fac_is_float_cast(const fac_node *n);

/* What the cast n of another cast (in[0]) is instead, with the same bits; NULL: another op, or the
 * first loses something. */
fac_value *fac_cast_once(const fac_node *n, fac_value *const in[]);
#endif
