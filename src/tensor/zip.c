/* Reading: the directory is at the end of the file; every number in it is checked against the file
 * before it is used. */
#include "tensor/zip.h"
#include <string.h>
#ifdef FAC_HAVE_ZLIB
#include <limits.h>
#include <zlib.h>
#endif
#include "base/error.h"
#include "base/memory.h"

enum { END = 22, LOCATOR = 20, END64 = 56, ENTRY = 46, LOCAL = 30, COMMENT = 65535 };
enum { STORED = 0, DEFLATED = 8, ENCRYPTED = 0x10000 }; /* the last is ours: methods have 16 bits */

static uint64_t little(const unsigned char *p, int bytes) {
    uint64_t x = 0;
    for (int k = bytes - 1; k >= 0; k--) x = x << 8 | p[k];
    return x;
}

bool fac_zip_here(const fac_file *file) {
    return fac_file_size(file) >= END &&
           (!memcmp(fac_file_data(file), "PK\3\4", 4) || !memcmp(fac_file_data(file), "PK\5\6", 4));
}

typedef struct directory {
    uint64_t entries, bytes, at;
} directory;

/* The end record is the last thing in the file but for a comment of up to 64 KiB. */
static fac_status find_directory(const unsigned char *p, size_t size, directory *d,
                                 fac_error *err) {
    size_t at = size - END, stop = size > END + COMMENT ? size - END - COMMENT : 0;
    while (memcmp(p + at, "PK\5\6", 4) || little(p + at + 20, 2) != size - at - END)
        if (at-- == stop)
            return fac_raise(err, FAC_E_FORMAT, "a zip archive without its end: it is truncated");
    *d = (directory){ little(p + at + 10, 2), little(p + at + 12, 4), little(p + at + 16, 4) };
    if (at >= LOCATOR &&
        !memcmp(p + at - LOCATOR, "PK\6\7", 4)) { /* zip64: sizes that do not fit in 32 bits */
        uint64_t end64 = little(p + at - LOCATOR + 8, 8);
        if (end64 > at - LOCATOR || at - LOCATOR - end64 < END64 || memcmp(p + end64, "PK\6\6", 4))
            return fac_raise(err, FAC_E_FORMAT, "a zip archive with a broken zip64 end record");
        *d = (directory){ little(p + end64 + 32, 8), little(p + end64 + 40, 8),
                          little(p + end64 + 48, 8) };
        at = (size_t)end64;
    }
    if (d->at > at || d->bytes > at - d->at || d->entries > d->bytes / ENTRY)
        return fac_raise(err, FAC_E_FORMAT, "a zip archive with a broken directory");
    return FAC_OK;
}

/* The zip64 extra field holds, in this order, those numbers that are all ones in the entry itself.
 */
static bool read_extra(const unsigned char *p, size_t n, uint64_t *size, uint64_t *packed,
                       uint64_t *at) {
    uint64_t *const numbers[3] = { size, packed, at };
    while (n >= 4) {
        size_t id = (size_t)little(p, 2), length = (size_t)little(p + 2, 2);
        p += 4;
        n -= 4;
        if (length > n) return false;
        for (int k = 0; id == 1 && k < 3; k++) {
            if (*numbers[k] != UINT32_MAX) continue;
            if (length < 8) return false;
            *numbers[k] = little(p, 8);
            p += 8;
            n -= 8;
            length -= 8;
        }
        p += length;
        n -= length;
    }
    return true;
}

static fac_status read_entry(fac_zip *zip, const unsigned char **p, const unsigned char *end,
                             fac_zip_entry *e, fac_error *err) {
    const unsigned char *h = *p;
    if (end - h < ENTRY || memcmp(h, "PK\1\2", 4))
        return fac_raise(err, FAC_E_FORMAT, "a zip archive with a broken directory");
    size_t name = (size_t)little(h + 28, 2), extra = (size_t)little(h + 30, 2),
           comment = (size_t)little(h + 32, 2);
    uint64_t packed = little(h + 20, 4), size = little(h + 24, 4), at = little(h + 42, 4);
    if ((size_t)(end - h) - ENTRY < name + extra + comment)
        return fac_raise(err, FAC_E_FORMAT, "a zip archive with a broken directory");
    char *copy = fac_arena_alloc(&zip->arena, name + 1, 1);
    if (!copy) return fac_raise_memory(err, "the directory of a zip archive");
    memcpy(copy, h + ENTRY, name);
    if (!read_extra(h + ENTRY + name, extra, &size, &packed, &at))
        return fac_raise(err, FAC_E_FORMAT, "%s: a broken extra field", copy);
    if (strlen(copy) != name)
        return fac_raise(err, FAC_E_FORMAT, "%s: the name of a zip entry has a zero byte", copy);
    size_t file = fac_file_size(zip->file);
    if (at > file || packed > file || size > PTRDIFF_MAX)
        return fac_raise(err, FAC_E_FORMAT, "%s: reaches outside the zip archive", copy);
    *e = (fac_zip_entry){ copy,
                          little(h + 8, 2) & 1 ? ENCRYPTED : (unsigned)little(h + 10, 2),
                          (unsigned)little(h + 16, 4),
                          (size_t)at,
                          (size_t)packed,
                          (size_t)size };
    *p = h + ENTRY + name + extra + comment;
    return FAC_OK;
}

static fac_status read_directory(fac_zip *zip, fac_error *err) {
    const unsigned char *p = fac_file_data(zip->file);
    size_t size = fac_file_size(zip->file), used = 0;
    directory d = { 0 };
    if (size < END)
        return fac_raise(err, FAC_E_FORMAT, "a zip archive of %zu bytes: it is truncated", size);
    FAC_TRY(find_directory(p, size, &d, err));
    const unsigned char *at = p + d.at, *end = at + d.bytes;
    zip->n = (size_t)d.entries;
    zip->entries = fac_arena_alloc(&zip->arena, zip->n, sizeof *zip->entries);
    if (!zip->entries) return fac_raise_memory(err, "the directory of a zip archive");
    for (size_t i = 0; i < zip->n; i++) {
        FAC_TRY(read_entry(zip, &at, end, &zip->entries[i], err));
        if (fac_table_get(&zip->names, zip->entries[i].name))
            return fac_raise(err, FAC_E_FORMAT, "%s: twice in the zip archive",
                             zip->entries[i].name);
        if (!fac_table_put(&zip->names, zip->entries[i].name, &zip->entries[i]))
            return fac_raise_memory(err, "the directory of a zip archive");
        /* entries that share their data are how a small archive unpacks to a huge one */
        if (!fac_size_add(used, zip->entries[i].packed, &used) || used > size)
            return fac_raise(err, FAC_E_FORMAT, "a zip archive with overlapping entries");
    }
    return FAC_OK;
}

fac_status fac_zip_open(fac_file *file, fac_zip *out, fac_error *err) {
    fac_zip zip = { .file = file };
    fac_status status = read_directory(&zip, err);
    if (status)
        fac_zip_close(&zip);
    else
        *out = zip;
    return status;
}

void fac_zip_close(fac_zip *zip) {
    fac_table_free(&zip->names);
    fac_arena_free(&zip->arena);
    *zip = (fac_zip){ 0 };
}

const fac_zip_entry *fac_zip_find(const fac_zip *zip, const char *name) {
    return fac_table_get(&zip->names, name);
}

#ifdef FAC_HAVE_ZLIB
/* zlib counts in 32 bits. */
static fac_status unpack(const fac_zip_entry *e, const unsigned char *from, unsigned char *to,
                         fac_error *err) {
    z_stream z = { 0 };
    size_t in = e->packed, out = e->size;
    int code = Z_OK;
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory to unpack it", e->name);
    z.next_in = (unsigned char *)(uintptr_t)from;
    z.next_out = to;
    while (code == Z_OK) {
        z.avail_in = in < UINT_MAX ? (unsigned)in : UINT_MAX;
        z.avail_out = out < UINT_MAX ? (unsigned)out : UINT_MAX;
        unsigned had = z.avail_in, room = z.avail_out;
        code = inflate(&z, Z_NO_FLUSH);
        in -= had - z.avail_in;
        out -= room - z.avail_out;
    }
    inflateEnd(&z);
    if (code == Z_MEM_ERROR)
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory to unpack it", e->name);
    if (code != Z_STREAM_END || out)
        return fac_raise(err, FAC_E_FORMAT, "%s: its compressed data is broken", e->name);
    unsigned long crc = crc32(0, NULL, 0);
    for (size_t at = 0; at < e->size; at += 1 << 30)
        crc = crc32(crc, to + at, e->size - at < 1 << 30 ? (unsigned)(e->size - at) : 1u << 30);
    return crc == e->crc ? FAC_OK
                         : fac_raise(err, FAC_E_FORMAT, "%s: its checksum is wrong", e->name);
}

static fac_status inflated(const fac_zip_entry *e, const unsigned char *from, fac_section *out,
                           fac_error *err) {
    enum { MOST = 1032, SLACK = 64 }; /* deflate never packs better than this */
    if (e->size / MOST > e->packed + SLACK)
        return fac_raise(err, FAC_E_FORMAT, "%s: its size cannot be true", e->name);
    unsigned char *to = fac_alloc_aligned(e->size);
    if (!to) return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %zu bytes", e->name, e->size);
    fac_status status = unpack(e, from, to, err);
    if (status) {
        fac_release_aligned(to);
        return status;
    }
    fac_file *file = fac_file_adopt(to, e->size);
    if (!file) return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %zu bytes", e->name, e->size);
    *out = (fac_section){ file, 0, e->size };
    return FAC_OK;
}
#else
static fac_status inflated(const fac_zip_entry *e, const unsigned char *from, fac_section *out,
                           fac_error *err) {
    (void)from, (void)out;
    return fac_raise(err, FAC_E_UNSUPPORTED, "%s: compressed, and this build is without zlib",
                     e->name);
}
#endif

/* The checksum of stored data is not taken: that would read all of a file of which perhaps little
 * is used. */
fac_status fac_zip_read(const fac_zip *zip, const fac_zip_entry *e, fac_section *out,
                        fac_error *err) {
    const unsigned char *p = fac_file_data(zip->file);
    size_t size = fac_file_size(zip->file), data;
    if (size < LOCAL || e->at > size - LOCAL || memcmp(p + e->at, "PK\3\4", 4))
        return fac_raise(err, FAC_E_FORMAT,
                         "%s: is not where the directory of the zip archive says", e->name);
    data = e->at + LOCAL + (size_t)little(p + e->at + 26, 2) + (size_t)little(p + e->at + 28, 2);
    if (data > size || e->packed > size - data)
        return fac_raise(err, FAC_E_FORMAT, "%s: reaches outside the zip archive", e->name);
    if (e->method == DEFLATED) return inflated(e, p + data, out, err);
    if (e->method == ENCRYPTED) return fac_raise(err, FAC_E_UNSUPPORTED, "%s: encrypted", e->name);
    if (e->method != STORED)
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s: compression method %u", e->name, e->method);
    if (e->packed != e->size)
        return fac_raise(err, FAC_E_FORMAT, "%s: stored with two different sizes", e->name);
    *out = (fac_section){ fac_file_retain(zip->file), data, e->size };
    return FAC_OK;
}
