/* facula/read.h: small files, whole: names of classes, settings, logs, rules. */
#ifndef FACULA_READ_H
#define FACULA_READ_H

#include <stddef.h>
#include "facula/status.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef enum fac_read_from {
    FAC_READ_FILE, /* a regular file, or a link to one                                        */
    FAC_READ_FILE_OR_PIPE /* also a pipe that a program writes to: /dev/stdin, <(...) of a shell */
} fac_read_from;

/* The contents of path, at most `most` bytes, and a zero byte after them, which does not count.
 * *bytes may be NULL. FAC_E_IO: there is no such file, it cannot be read, it is a folder, a device,
 * or a pipe where only a file will do, or nothing comes out of the pipe.  FAC_E_FORMAT: it holds
 * more than `most` bytes.  FAC_E_NOMEM.  There is no waiting for a pipe that nothing has open for
 * writing; waiting for what a program writes ends with FAC_E_IO at the first signal that the
 * process handles. *text belongs to the caller, who ends it with fac_read_free.  Threads may call
 * this at the same time. */
fac_status fac_read_text(const char *path, size_t most, fac_read_from from, char **text,
                         size_t *bytes, fac_error *err);
void fac_read_free(char *text); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
