/* ZIP archives (PKWARE APPNOTE.TXT 6.3): reading stored and deflated entries, writing stored ones.
 */
#ifndef FACULA_TENSOR_ZIP_H
#define FACULA_TENSOR_ZIP_H
#include <stdint.h>
#include "base/arena.h"
#include "base/file/file.h"
#include "base/table.h"

/* A part of a file; whoever holds one retains the file. */
typedef struct fac_section {
    fac_file *file;
    size_t at, size;
} fac_section;

typedef struct fac_zip_entry {
    const char *name;
    unsigned method, crc;
    size_t at, packed, size; /* its local header, bytes in the archive, bytes unpacked */
} fac_zip_entry;

typedef struct fac_zip {
    fac_file *file; /* borrowed */
    fac_arena arena;
    fac_zip_entry *entries; /* as in the directory */
    size_t n;
    fac_table names;
} fac_zip;

bool fac_zip_here(const fac_file *file); /* it begins like one */
fac_status fac_zip_open(fac_file *file, fac_zip *out, fac_error *err);
void fac_zip_close(fac_zip *zip);
const fac_zip_entry *fac_zip_find(const fac_zip *zip, const char *name); /* NULL if there is none */
/* Its contents: a part of the archive if stored, else unpacked and checked.  The section's file is
 * retained. */
fac_status fac_zip_read(const fac_zip *zip, const fac_zip_entry *e, fac_section *out,
                        fac_error *err);

/* Entries are stored, their data 64-byte aligned, so that readers can map it. */
typedef struct fac_zip_writer {
    fac_writer *to; /* borrowed */
    uint64_t at;
    fac_zip_entry *entries;
    size_t n, room;
    fac_arena arena;
} fac_zip_writer;
fac_status fac_zip_put(fac_zip_writer *w, const char *name, const void *head, size_t head_bytes,
                       const void *data, size_t bytes,
                       fac_error *err); /* head and data are one entry */
fac_status fac_zip_finish(fac_zip_writer *w, fac_error *err);
void fac_zip_writer_free(fac_zip_writer *w);
#endif
