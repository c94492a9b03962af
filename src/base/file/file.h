/* Files: mapped for reading, written whole. */
#ifndef FACULA_BASE_FILE_H
#define FACULA_BASE_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include "facula/file.h"

bool fac_is_folder(const char *path); /* also through links; false: something else, or nothing */

/* Counted, so that tensors can borrow from it. */
typedef struct fac_file fac_file;
fac_status fac_file_map(const char *path, fac_file **out,
                        fac_error *err); /* regular files; empty is FAC_E_FORMAT */
fac_file *fac_file_memory(const void *data,
                          size_t bytes); /* a copy of these bytes; NULL: no memory */
fac_file *fac_file_adopt(
    void *data, size_t bytes); /* takes memory of fac_alloc_aligned; NULL: no memory, it is freed */
fac_file *fac_file_retain(fac_file *f);
void fac_file_free(fac_file *f); /* NULL is fine */
const void *fac_file_data(const fac_file *f);
size_t fac_file_size(const fac_file *f);
void fac_file_drop(const fac_file *f, size_t at,
                   size_t bytes); /* they were copied: their pages may leave memory */
#endif
