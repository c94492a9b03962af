/* Finds folders of data. */
#include "studio/server/data.h"
#include <stdio.h>
#include <unistd.h>

static bool holds(const char *folder, const char *const names[]) {
    char path[4400];
    for (int k = 0; names[k]; k++)
        if (snprintf(path, sizeof path, "%s/%s", folder, names[k]) < (int)sizeof path &&
            !access(path, R_OK))
            return true;
    return false;
}

bool fac_data_find(const char *root, const char *const more[], const char *const names[], char *to,
                   size_t size) {
    if (!root || snprintf(to, size, "%s", root) >= (int)size) return false;
    if (holds(to, names)) return true;
    for (int k = 0; more[k]; k++)
        if (snprintf(to, size, "%s/%s", root, more[k]) < (int)size && holds(to, names)) return true;
    return false;
}
