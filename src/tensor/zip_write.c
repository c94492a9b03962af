/* Writing: stored entries, and all sizes in zip64 fields, so that there is one form for small and
 * large ones. */
#include <string.h>
#ifdef FAC_HAVE_ZLIB
#include <zlib.h>
#endif
#include "base/error.h"
#include "base/memory.h"
#include "tensor/zip.h"

enum {
    LOCAL = 30,
    ENTRY = 46,
    END = 22,
    LOCATOR = 20,
    END64 = 56,
    ALIGN = 64,
    VERSION = 45,
    UTF8 = 1 << 11
};
enum { DATE = 1 << 5 | 1 }; /* 1 January 1980: equal contents give equal files */

/* CRC-32 of IEEE 802.3, reflected polynomial edb88320. */
static uint32_t crc_of(uint32_t crc, const void *data, size_t n) {
    const unsigned char *p = data;
#ifdef FAC_HAVE_ZLIB
    for (; n; n -= n < 1 << 30 ? n : 1 << 30, p += 1 << 30)
        crc = (uint32_t)crc32(crc, p, n < 1 << 30 ? (unsigned)n : 1u << 30);
    return crc;
#else
    crc = ~crc;
    for (; n; n--, p++) {
        crc ^= *p;
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (0xedb88320 & -(crc & 1));
    }
    return ~crc;
#endif
}

static unsigned char *put(unsigned char *p, uint64_t x, int bytes) {
    for (int k = 0; k < bytes; k++, x >>= 8) *p++ = (unsigned char)x;
    return p;
}

static fac_status emit(fac_zip_writer *w, const void *data, size_t n, fac_error *err) {
    w->at += n;
    return fac_writer_put(w->to, data, n, err);
}

/* The part that local headers and directory entries share: version needed, flags, method, time,
 * date, crc, sizes, name. */
static unsigned char *put_common(unsigned char *p, const fac_zip_entry *e, size_t extra) {
    p = put(put(put(p, VERSION, 2), UTF8, 2), 0, 2);
    p = put(put(put(p, 0, 2), DATE, 2), e->crc, 4);
    p = put(put(p, UINT32_MAX, 4), UINT32_MAX, 4);
    return put(put(p, strlen(e->name), 2), extra, 2);
}

fac_status fac_zip_put(fac_zip_writer *w, const char *name, const void *head, size_t head_bytes,
                       const void *data, size_t bytes, fac_error *err) {
    enum { ZIP64 = 4 + 16, PAD = 4 };
    size_t length = strlen(name), size;
    if (length > UINT16_MAX)
        return fac_raise(err, FAC_E_ARGUMENT, "a name of %zu bytes is too long for a zip archive",
                         length);
    const char *copy = fac_arena_text(&w->arena, name);
    if (!copy || !fac_size_add(head_bytes, bytes, &size) ||
        !fac_reserve(&w->entries, &w->room, w->n + 1, sizeof *w->entries))
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory", name);
    /* readers skip fields that they do not know: one of them moves the data to a multiple of 64 */
    size_t padding = (size_t) - (w->at + LOCAL + length + ZIP64 + PAD) % ALIGN;
    fac_zip_entry *e = &w->entries[w->n];
    *e = (fac_zip_entry){ copy,          0,    crc_of(crc_of(0, head, head_bytes), data, bytes),
                          (size_t)w->at, size, size };
    unsigned char header[LOCAL], extra[ZIP64 + PAD + ALIGN] = { 0 }, *p;
    put_common(put(header, 0x04034b50, 4), e, ZIP64 + PAD + padding);
    p = put(put(put(put(extra, 1, 2), 16, 2), size, 8), size, 8);
    put(put(p, 0xfac0, 2), padding, 2);
    FAC_TRY(emit(w, header, LOCAL, err));
    FAC_TRY(emit(w, name, length, err));
    FAC_TRY(emit(w, extra, ZIP64 + PAD + padding, err));
    FAC_TRY(emit(w, head, head_bytes, err));
    FAC_TRY(emit(w, data, bytes, err));
    w->n++;
    return FAC_OK;
}

fac_status fac_zip_finish(fac_zip_writer *w, fac_error *err) {
    enum { ZIP64 = 4 + 24 };
    uint64_t start = w->at, end64;
    for (size_t i = 0; i < w->n; i++) {
        const fac_zip_entry *e = &w->entries[i];
        unsigned char header[ENTRY] = { 0 }, extra[ZIP64], *p;
        p = put_common(put(put(header, 0x02014b50, 4), VERSION, 2), e, ZIP64);
        put(p + 10, UINT32_MAX, 4);
        put(put(put(put(put(extra, 1, 2), 24, 2), e->size, 8), e->packed, 8), e->at, 8);
        FAC_TRY(emit(w, header, ENTRY, err));
        FAC_TRY(emit(w, e->name, strlen(e->name), err));
        FAC_TRY(emit(w, extra, ZIP64, err));
    }
    end64 = w->at;
    unsigned char end[END64 + LOCATOR + END] = { 0 }, *p = end;
    p = put(put(put(put(p, 0x06064b50, 4), END64 - 12, 8), VERSION, 2), VERSION, 2);
    p = put(put(put(p, 0, 8), w->n, 8), w->n, 8); /* disk numbers, entries here and in all */
    p = put(put(p, end64 - start, 8), start, 8);
    p = put(put(put(put(p, 0x07064b50, 4), 0, 4), end64, 8), 1, 4);
    p = put(put(p, 0x06054b50, 4), 0, 4);
    const uint64_t few = w->n < UINT16_MAX ? w->n : UINT16_MAX;
    p = put(put(p, few, 2), few, 2);
    put(put(p, UINT32_MAX, 4), UINT32_MAX, 4);
    return emit(w, end, sizeof end, err);
}

void fac_zip_writer_free(fac_zip_writer *w) {
    fac_release(w->entries);
    fac_arena_free(&w->arena);
    *w = (fac_zip_writer){ 0 };
}
