/* facula/file.h: files as the library writes them: whole, or line by line.
 *
 * A file that is written whole appears complete or not at all: it is made beside its place, brought
 * to the disk and renamed, and so is the folder's entry.  What was there before stays until then,
 * whatever fails.  Where PATH is a link, the file that it leads to is replaced and the link stays;
 * devices and pipes are written directly.  Neither kind may be used from two threads at once.
 * Errors: FAC_E_IO with the path and the reason, FAC_E_NOMEM. */
#ifndef FACULA_FILE_H
#define FACULA_FILE_H

#include <stddef.h>
#include "facula/status.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_writer fac_writer;
/* Begins a file that appears under its name when it is closed.  FAC_E_IO names the path. */
fac_status fac_writer_open(const char *path, fac_writer **out, fac_error *err);
/* Appends bytes.  After an error only fac_writer_cancel remains. */
fac_status fac_writer_put(fac_writer *w, const void *data, size_t bytes, fac_error *err);
fac_status fac_writer_close(fac_writer *w, fac_error *err); /* it appears; frees w in any case */
void fac_writer_cancel(fac_writer *w); /* removes what was written; NULL is fine */

/* All of it at once. */
fac_status fac_file_write(const char *path, const void *data, size_t bytes, fac_error *err);

/* A file that grows, such as a log; it is made when there is none.  It has to be a regular file,
 * and no link: a log goes on for long, and what lies at the end of a link may have been put there
 * by others. */
typedef struct fac_appender fac_appender;
fac_status fac_appender_open(const char *path, fac_appender **out, fac_error *err);
/* All of these bytes are in the file, or, after an error such as a full disk, none. */
fac_status fac_appender_put(fac_appender *a, const void *data, size_t bytes, fac_error *err);
fac_status fac_appender_close(fac_appender *a, fac_error *err); /* frees a; NULL is fine */

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
