/* Masks that say what `causal` says. */
#ifndef FACULA_PASSES_CAUSAL_MASK_H
#define FACULA_PASSES_CAUSAL_MASK_H
#include "graph/graph_internal.h"

/* Does the mask let query i see keys 0 to i, and no other, for as many keys as queries?  Bools,
 * true where a key takes part, or numbers that are added to scores: 0, and so low a number that
 * nothing is left of a key. */
bool fac_mask_is_causal(const fac_value *mask, int64_t queries, int64_t keys);
#endif
