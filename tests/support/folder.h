/* A folder of the test program's own, gone when it ends, and what to say when a call fails.
 * Included last: it takes the name err. */
#ifndef FACULA_TESTS_FOLDER_H
#define FACULA_TESTS_FOLDER_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "facula/status.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)

static char folder[] = "/tmp/facula-test-XXXXXX";

static inline int make_folder(void **state) {
    (void)state;
    return !mkdtemp(folder);
}

static inline int remove_folder(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* A file in it; the last two results are good. */
static inline const char *path_of(const char *name) {
    static char path[2][160];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}
#endif
