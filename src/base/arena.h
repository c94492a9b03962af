/* Memory that is freed all at once.  Zeroed, 16-byte aligned; NULL when memory is gone. */
#ifndef FACULA_BASE_ARENA_H
#define FACULA_BASE_ARENA_H
#include <stddef.h>
#include "facula/status.h"

typedef struct fac_arena_chunk fac_arena_chunk;
typedef struct fac_arena {
    fac_arena_chunk *chunk;
    size_t used, room;
} fac_arena; /* { 0 } is an empty one */

void *fac_arena_alloc(fac_arena *a, size_t n, size_t size);
char *fac_arena_text(fac_arena *a, const char *s); /* a copy; NULL for NULL */
const char **fac_arena_texts(fac_arena *a, const char *const *s,
                             size_t n); /* copies of n; NULL: no memory */
char *fac_arena_print(fac_arena *a, const char *format, ...) FAC_PRINTF(2, 3);
void fac_arena_free(fac_arena *a);
/* Gives up all contents, but keeps memory for as much again, in one piece. */
void fac_arena_reset(fac_arena *a);
#endif
