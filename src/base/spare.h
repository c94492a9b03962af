/* Memory that one arena has done with and another will need: for chains of graphs, each made
 * from the one before. */
#ifndef FACULA_BASE_SPARE_H
#define FACULA_BASE_SPARE_H
#include "base/arena.h"

/* All memory of `from`, which is empty then, serves allocations of `to`, which must not be
 * empty; without effect on what `to` holds. */
void fac_arena_give(fac_arena *to, fac_arena *from);
/* What was given to `from` and is not in use yet goes on to `to`. */
void fac_arena_pass_on(fac_arena *to, fac_arena *from);
/* Frees it. */
void fac_arena_drop_spare(fac_arena *a);
#endif
