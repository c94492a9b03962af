/* Files that may be packed: .gz by RFC 1952, recognized by its first two bytes.  A file is one
 * member after the other, as `cat a.gz b.gz`, bgzip and pigz make it, and means their contents one
 * after the other.  Zeros may follow, to fill a block of a tape; anything else is an error, as it
 * is for Python, while gzip warns and leaves it out. */
#include <limits.h>
#include <string.h>
#ifdef FAC_HAVE_ZLIB
#include <zlib.h>
#endif
#include "base/error.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "data/sets/dataset_internal.h"

static bool member_here(const unsigned char *p, size_t n) {
    return n > 2 && p[0] == 0x1f && p[1] == 0x8b;
}

#ifdef FAC_HAVE_ZLIB
enum { GZIP = 16 }; /* zlib: expect a gzip head, check its CRC and length */

/* Appends the contents of the member that z->next_in points to; *in: bytes from there on, before
 * and after. */
static fac_status unpack_member(z_stream *z, const char *path, size_t *in, unsigned char **out,
                                size_t *bytes, size_t *room, fac_error *err) {
    int code = Z_OK;
    while (code == Z_OK) {
        if (!fac_reserve(out, room, *bytes + 65536, 1))
            return fac_raise(err, FAC_E_NOMEM, "%s: no memory to unpack it", path);
        size_t left = *room - *bytes;
        z->avail_in = *in < UINT_MAX ? (unsigned)*in : UINT_MAX;
        z->avail_out = left < UINT_MAX ? (unsigned)left : UINT_MAX;
        unsigned had = z->avail_in, given = z->avail_out;
        z->next_out = *out + *bytes;
        code = inflate(z, Z_NO_FLUSH);
        *in -= had - z->avail_in;
        *bytes += given - z->avail_out;
    }
    if (code == Z_MEM_ERROR) return fac_raise(err, FAC_E_NOMEM, "%s: no memory to unpack it", path);
    return code == Z_STREAM_END
               ? FAC_OK
               : fac_raise(err, FAC_E_FORMAT, "%s: its compressed data is broken or cut off", path);
}

static fac_status unpack(z_stream *z, const char *path, size_t size, unsigned char **out,
                         size_t *bytes, fac_error *err) {
    size_t room = 0, in = size, zeros = 0;
    do {
        FAC_TRY(unpack_member(z, path, &in, out, bytes, &room, err));
        if (inflateReset(z) != Z_OK)
            return fac_raise(err, FAC_E_NOMEM, "%s: no memory to unpack it", path);
    } while (member_here(z->next_in, in));
    while (zeros < in && !z->next_in[zeros]) zeros++;
    return zeros == in
               ? FAC_OK
               : fac_raise(err, FAC_E_FORMAT, "%s: byte %zu and those after it are no gzip data",
                           path, size - in + zeros);
}

static fac_status inflated(const char *path, const fac_file *f, unsigned char **out, size_t *bytes,
                           fac_error *err) {
    z_stream z = { 0 };
    unsigned char *to = NULL;
    size_t n = 0;
    if (inflateInit2(&z, MAX_WBITS + GZIP) != Z_OK)
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory to unpack it", path);
    z.next_in = (unsigned char *)(uintptr_t)fac_file_data(f);
    fac_status status = unpack(&z, path, fac_file_size(f), &to, &n, err);
    inflateEnd(&z);
    if (status) {
        fac_release(to);
        return status;
    }
    *out = to;
    *bytes = n;
    return FAC_OK;
}
#else
static fac_status inflated(const char *path, const fac_file *f, unsigned char **out, size_t *bytes,
                           fac_error *err) {
    (void)f, (void)out, (void)bytes;
    return fac_raise(err, FAC_E_UNSUPPORTED, "%s: this build has no zlib to unpack it", path);
}
#endif

fac_status fac_gzip_read(const char *path, unsigned char **out, size_t *bytes, fac_error *err) {
    fac_file *f;
    FAC_TRY(fac_file_map(path, &f, err));
    const unsigned char *data = fac_file_data(f);
    size_t n = fac_file_size(f);
    fac_status status = FAC_OK;
    if (member_here(data, n)) {
        status = inflated(path, f, out, bytes, err);
    } else {
        unsigned char *copy = fac_alloc(n, 1);
        if (copy) {
            memcpy(copy, data, n);
            *out = copy;
            *bytes = n;
        } else {
            status = fac_raise(err, FAC_E_NOMEM, "%s: no memory for %zu bytes", path, n);
        }
    }
    fac_file_free(f);
    return status;
}
