/* Folders that results go to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "cli.h"

bool is_folder(const char *path) {
    struct stat s;
    return !stat(path, &s) && S_ISDIR(s.st_mode);
}

static int make(const char *path) {
    if (!mkdir(path, 0777) || (errno == EEXIST && is_folder(path))) return EXIT_OK;
    return fail_text("%s: cannot be made: %s", path,
                     errno == EEXIST ? "it is a file" : strerror(errno));
}

/* Every folder of the path, the first one first. */
static int make_above(char *path) {
    int code = EXIT_OK;
    for (char *c = path + (*path != 0); *c && !code; c++) {
        if (*c != '/') continue;
        *c = 0;
        code = make(path);
        *c = '/';
    }
    return code;
}

static int with_copy(const char *path, int (*work)(char *path)) {
    char *copy = strdup(path);
    const int code = copy ? work(copy) : fail_text("out of memory");
    free(copy);
    return code;
}

int folders_above(const char *path) { return with_copy(path, make_above); }

int folder_make(const char *path) {
    const int code = is_folder(path) ? EXIT_OK : folders_above(path);
    return code ? code : make(path);
}
