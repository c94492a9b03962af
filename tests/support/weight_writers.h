/* Writes weight files byte by byte: .npy, .safetensors, zip, pickles and what PyTorch makes of
 * them, from their formats' descriptions and not from our own writers. */
#ifndef FACULA_WEIGHT_WRITERS_H
#define FACULA_WEIGHT_WRITERS_H
#include <stdint.h>
#include <string.h>
#ifdef FAC_HAVE_ZLIB
#include <zlib.h>
#endif
#include "base/text.h"

#define FILES static inline __attribute__((unused))

FILES void put_number(fac_text *t, uint64_t x, int bytes) {
    for (; bytes; bytes--, x >>= 8) fac_text_add_bytes(t, (char[]){ (char)(x & 255) }, 1);
}
#define put_literal(t, s) fac_text_add_bytes(t, s, sizeof(s) - 1) /* with zero bytes in it */
FILES void put_bytes(fac_text *t, const fac_text *from) { fac_text_add_bytes(t, from->s, from->n); }

/* ---- .npy: `version` 1 to 3, `dict` the header's text ---- */

FILES void npy_file(fac_text *t, int version, const char *dict, const void *data, size_t bytes) {
    size_t n = strlen(dict) + 1;
    fac_text_add_bytes(t, "\x93NUMPY", 6);
    put_number(t, (uint64_t)version, 2);
    put_number(t, n, version == 1 ? 2 : 4);
    fac_text_add(t, dict);
    fac_text_add(t, "\n");
    fac_text_add_bytes(t, data, bytes);
}

/* ---- .safetensors ---- */

FILES void safetensors_file(fac_text *t, const char *json, const void *data, size_t bytes) {
    put_number(t, strlen(json), 8);
    fac_text_add(t, json);
    fac_text_add_bytes(t, data, bytes);
}

/* ---- zip: entries one after the other, then finish ---- */

typedef struct zip_file {
    fac_text *to, directory;
    unsigned n;
    bool zip64;
} zip_file;

FILES void zip_entry(zip_file *z, const char *name, const void *data, size_t size, bool deflated) {
    size_t at = z->to->n, packed = size;
    unsigned crc = 0, method = 0;
    unsigned char small[4096];
#ifdef FAC_HAVE_ZLIB
    crc = (unsigned)crc32(0, data, (unsigned)size);
    if (deflated) {
        z_stream s = { 0 };
        deflateInit2(&s, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
        s.next_in = (unsigned char *)(uintptr_t)data;
        s.avail_in = (unsigned)size;
        s.next_out = small;
        s.avail_out = sizeof small;
        deflate(&s, Z_FINISH);
        packed = sizeof small - s.avail_out;
        deflateEnd(&s);
        data = small;
        method = 8;
    }
#else
    (void)small, (void)deflated;
#endif
    for (int k = 0; k < 2; k++) { /* the local header, and its twin in the directory */
        fac_text *t = k ? &z->directory : z->to;
        bool wide = z->zip64 && k;
        put_number(t, k ? 0x02014b50 : 0x04034b50, 4);
        if (k) put_number(t, 45, 2);
        put_number(t, 45, 2);
        put_number(t, 0, 2);
        put_number(t, method, 2);
        put_number(t, 0, 4);
        put_number(t, crc, 4);
        put_number(t, wide ? UINT32_MAX : packed, 4);
        put_number(t, wide ? UINT32_MAX : size, 4);
        put_number(t, strlen(name), 2);
        put_number(t, wide ? 28 : 0, 2);
        if (k) put_number(t, 0, 10);
        if (k) put_number(t, wide ? UINT32_MAX : at, 4);
        fac_text_add(t, name);
        if (wide) {
            put_number(t, 1, 2);
            put_number(t, 24, 2);
            put_number(t, size, 8);
            put_number(t, packed, 8);
            put_number(t, at, 8);
        }
    }
    fac_text_add_bytes(z->to, data, packed);
    z->n++;
}

FILES void zip_finish(zip_file *z) {
    size_t at = z->to->n, n = z->directory.n;
    put_bytes(z->to, &z->directory);
    if (z->zip64) {
        size_t end = z->to->n;
        put_number(z->to, 0x06064b50, 4);
        put_number(z->to, 44, 8);
        put_number(z->to, 45, 2);
        put_number(z->to, 45, 2);
        put_number(z->to, 0, 8);
        put_number(z->to, z->n, 8);
        put_number(z->to, z->n, 8);
        put_number(z->to, n, 8);
        put_number(z->to, at, 8);
        put_number(z->to, 0x07064b50, 4);
        put_number(z->to, 0, 4);
        put_number(z->to, end, 8);
        put_number(z->to, 1, 4);
    }
    put_number(z->to, 0x06054b50, 4);
    put_number(z->to, 0, 4);
    put_number(z->to, z->n, 2);
    put_number(z->to, z->n, 2);
    put_number(z->to, z->zip64 ? UINT32_MAX : n, 4);
    put_number(z->to, z->zip64 ? UINT32_MAX : at, 4);
    put_number(z->to, 0, 2);
    fac_text_free(&z->directory);
}

/* ---- pickles, protocol 2 ---- */

FILES void pickle_text(fac_text *t, const char *s) {
    fac_text_add(t, "X");
    put_number(t, strlen(s), 4);
    fac_text_add(t, s);
}
FILES void pickle_int(fac_text *t, int64_t x) {
    bool small = x >= 0 && x < 256;
    fac_text_add(t, small ? "K" : "J");
    put_number(t, (uint64_t)x, small ? 1 : 4);
}
FILES void pickle_ints(fac_text *t, int n, const int64_t *x) {
    fac_text_add(t, "(");
    for (int k = 0; k < n; k++) pickle_int(t, x[k]);
    fac_text_add(t, "t");
}

/* torch._utils._rebuild_tensor_v2(storage, offset, size, stride, False, OrderedDict()) */
typedef struct pickled_tensor {
    const char *storage, *key;
    int64_t elements, offset;
    int n;
    int64_t dims[4], strides[4];
} pickled_tensor;
FILES void pickle_tensor(fac_text *t, const pickled_tensor *p, bool legacy) {
    fac_text_add(t, "ctorch._utils\n_rebuild_tensor_v2\n((");
    pickle_text(t, "storage");
    fac_text_print(t, "ctorch\n%s\n", p->storage);
    pickle_text(t, p->key);
    pickle_text(t, "cpu");
    pickle_int(t, p->elements);
    fac_text_add(t, legacy ? "NtQ" : "tQ");
    pickle_int(t, p->offset);
    pickle_ints(t, p->n, p->dims);
    pickle_ints(t, p->n, p->strides);
    fac_text_add(t, "\x89"
                    "ccollections\nOrderedDict\n)RtR");
}
FILES void pickle_begin(fac_text *t) { fac_text_add(t, "\x80\2"); }

/* ---- PyTorch: a pickle and one storage, in both containers ---- */

FILES void pth_zip(fac_text *to, const fac_text *pickle, const char *key, const void *data,
                   size_t bytes, bool deflated) {
    zip_file z = { .to = to };
    fac_text name = { 0 };
    fac_text_print(&name, "net/data/%s", key);
    zip_entry(&z, "net/data.pkl", pickle->s, pickle->n, deflated);
    zip_entry(&z, "net/byteorder", "little", 6, false);
    zip_entry(&z, name.s, data, bytes, deflated);
    zip_entry(&z, "net/version", "3\n", 2, false);
    zip_finish(&z);
    fac_text_free(&name);
}

/* Storages "0", "1"... of so many elements, and the same bytes each. */
FILES void pth_legacy(fac_text *to, const fac_text *pickle, int n, const int64_t *elements,
                      const void *data, size_t bytes) {
    put_literal(to, "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.");
    put_literal(to, "\x80\2M\xe9\3.");
    put_literal(to, "\x80\2}q\0(");
    pickle_text(to, "protocol_version");
    put_literal(to, "M\xe9\3");
    pickle_text(to, "little_endian");
    fac_text_add(to, "\x88u.");
    put_bytes(to, pickle);
    put_literal(to, "\x80\2]q\0");
    for (int k = 0; k < n; k++) {
        pickle_text(to, k ? "1" : "0");
        fac_text_add(to, "a");
    }
    fac_text_add(to, ".");
    for (int k = 0; k < n; k++) {
        put_number(to, (uint64_t)elements[k], 8);
        fac_text_add_bytes(to, data, bytes);
    }
}
#endif
