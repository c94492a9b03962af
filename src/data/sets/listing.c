/* See listing.h. */
#include "data/sets/listing.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/error.h"
#include "base/memory.h"

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

fac_status fac_list_folder(const char *folder, bool (*wanted)(const char *name), fac_arena *arena,
                           fac_names *out, fac_error *err) {
    DIR *dir = opendir(folder);
    const size_t first = out->n;
    if (!dir) return fac_raise(err, FAC_E_IO, "%s: is no folder that can be read", folder);
    fac_status status = FAC_OK;
    for (struct dirent *e; !status && (e = readdir(dir));) {
        struct stat s;
        if (e->d_name[0] == '.') continue;
        const char *path = fac_arena_print(arena, "%s/%s", folder, e->d_name);
        if (!path || !fac_reserve(&out->at, &out->room, out->n + 1, sizeof *out->at))
            status = fac_raise(err, FAC_E_NOMEM, "%s: no memory for its list", folder);
        else if (!stat(path, &s) &&
                 (wanted ? S_ISREG(s.st_mode) && wanted(path) : S_ISDIR(s.st_mode)))
            out->at[out->n++] = path;
    }
    closedir(dir);
    if (out->n > first) qsort(out->at + first, out->n - first, sizeof *out->at, by_name);
    return status;
}
