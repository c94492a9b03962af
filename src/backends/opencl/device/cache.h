/* Compiled programs on disk: $XDG_CACHE_HOME/facula/opencl (else ~/.cache/...), one file an entry,
 * named by its key. Whatever goes wrong here costs time only: an entry that is missing, torn,
 * foreign or of another version is not there, and one that cannot be written is not kept. */
#ifndef FACULA_OPENCL_CACHE_H
#define FACULA_OPENCL_CACHE_H
#include "base/table.h"
#include "facula/status.h"

/* The contents of an entry: freed with fac_release; NULL when there is none. */
void *fac_cl_cache_get(fac_hash key, size_t *bytes);
/* Appears whole or not at all; afterwards the least recently used entries go until all are within
 * the limit. */
void fac_cl_cache_put(fac_hash key, const void *data, size_t bytes);

/* For tests: the folder and the limit.  folder NULL: no cache. */
bool fac_cl_cache_folder(char *to, size_t size);
void fac_cl_cache_prune(const char *folder, size_t limit);
#endif
