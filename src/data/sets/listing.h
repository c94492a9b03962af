/* What is in a folder. */
#ifndef FACULA_DATA_SETS_LISTING_H
#define FACULA_DATA_SETS_LISTING_H
#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>
#include "facula/status.h"

/* Paths in an arena, which owns them; sorted.  `at` is freed with fac_release. */
typedef struct fac_names {
    const char **at;
    size_t n, room;
} fac_names;

/* Adds the folders in a folder, or the files of whose names `wanted` says yes; hidden ones are left
 * out. */
fac_status fac_list_folder(const char *folder, bool (*wanted)(const char *name), fac_arena *arena,
                           fac_names *out, fac_error *err);
#endif
