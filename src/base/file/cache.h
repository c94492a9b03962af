/* Folders of files that may be lost at any time: what a cache on disk is made of. */
#ifndef FACULA_BASE_CACHE_H
#define FACULA_BASE_CACHE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/table.h"

/* XDG_CACHE_HOME/facula/NAME, else ~/.cache/facula/NAME; false when there is no home or it does not
 * fit. */
bool fac_cache_folder(const char *name, char *to, size_t size);
/* All folders above the last slash of the path, which is changed and restored. */
void fac_cache_make_folders(char *path);
/* Removes files with this ending, the least recently used first, until the folder has no more than
 * `most` bytes of them. */
void fac_cache_prune(const char *folder, const char *ending, size_t most);
/* This file was used now. */
void fac_cache_touch(const char *path);

/* A hash of many bytes at the speed of memory, for contents and against damage, not against malice.
 */
fac_hash fac_hash_bulk(fac_hash h, const void *data, size_t n);
/* Which build of the library this is; false when the linker did not say. */
bool fac_build_id(fac_hash *out);
#endif
