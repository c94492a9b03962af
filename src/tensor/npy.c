/* NumPy's .npy, versions 1 to 3 (numpy.lib.format): magic, a Python dict as text, then the
 * elements. bf16 has no name there; like ml_dtypes' it is written as two raw bytes, '<V2'.  Texts
 * are fixed-length UTF-32, '<U7'. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "tensor/tensor_internal.h"
#include "tensor/utf.h"
#include "tensor/weights.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the formats read and written here are little-endian");

static const struct {
    const char *descr;
    fac_dtype dtype;
} names[] = {
    { "<f4", FAC_F32 },  { "<f8", FAC_F64 },  { "<f2", FAC_F16 }, { "<V2", FAC_BF16 },
    { "|V2", FAC_BF16 }, { "|i1", FAC_I8 },   { "<i2", FAC_I16 }, { "<i4", FAC_I32 },
    { "<i8", FAC_I64 },  { "|u1", FAC_U8 },   { "<u2", FAC_U16 }, { "<u4", FAC_U32 },
    { "<u8", FAC_U64 },  { "|b1", FAC_BOOL },
};
enum { NAMES = sizeof names / sizeof *names };

/* ---- the header ---- */

typedef struct header {
    char descr[16];
    bool fortran, has_descr, has_order, has_shape;
    fac_dims dims;
} header;

typedef struct cursor {
    const char *p, *end;
} cursor;

static void skip_blanks(cursor *c) {
    while (c->p < c->end && strchr(" \t\r\n", *c->p) && *c->p) c->p++;
}

static bool accept(cursor *c, const char *word) {
    size_t n = strlen(word);
    skip_blanks(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n)) return false;
    c->p += n;
    return true;
}

/* A quoted string without escapes. */
static bool quoted(cursor *c, char *to, size_t room) {
    skip_blanks(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"')) return false;
    const char *from = c->p + 1, *close = memchr(from, *c->p, (size_t)(c->end - from));
    if (!close || (size_t)(close - from) >= room) return false;
    memcpy(to, from, (size_t)(close - from));
    to[close - from] = 0;
    c->p = close + 1;
    return true;
}

static bool number(cursor *c, int64_t *out) {
    skip_blanks(c);
    const char *from = c->p;
    int64_t x = 0;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
        if (__builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, *c->p - '0', &x))
            return false;
    if (c->p == from) return false;
    accept(c, "L"); /* a long of Python 2 */
    *out = x;
    return true;
}

static fac_status shape(cursor *c, fac_dims *dims, fac_error *err) {
    if (!accept(c, "(")) return fac_raise(err, FAC_E_FORMAT, "a .npy header without a shape");
    for (dims->n = 0; !accept(c, ")"); accept(c, ",")) {
        int64_t d;
        if (!number(c, &d))
            return fac_raise(err, FAC_E_FORMAT, "a .npy header with a broken shape");
        if (dims->n == FAC_DIMS)
            return fac_raise(err, FAC_E_UNSUPPORTED, "an array of more than %d dims", FAC_DIMS);
        dims->d[dims->n++] = d;
    }
    return FAC_OK;
}

static fac_status parse_header(cursor c, header *h, fac_error *err) {
    char key[24];
    if (!accept(&c, "{")) return fac_raise(err, FAC_E_FORMAT, "a .npy header that is no dict");
    while (!accept(&c, "}")) {
        if (!quoted(&c, key, sizeof key) || !accept(&c, ":"))
            return fac_raise(err, FAC_E_FORMAT, "a .npy header with a broken dict");
        if (!strcmp(key, "descr")) {
            skip_blanks(&c);
            if (c.p < c.end && *c.p == '[')
                return fac_raise(err, FAC_E_UNSUPPORTED,
                                 "a structured array: its elements have fields");
            h->has_descr = quoted(&c, h->descr, sizeof h->descr);
            if (!h->has_descr)
                return fac_raise(err, FAC_E_FORMAT, "a .npy header with a broken element type");
        } else if (!strcmp(key, "fortran_order")) {
            h->fortran = accept(&c, "True");
            h->has_order = h->fortran || accept(&c, "False");
            if (!h->has_order)
                return fac_raise(err, FAC_E_FORMAT, "a .npy header with a broken fortran_order");
        } else if (!strcmp(key, "shape")) {
            h->has_shape = true;
            FAC_TRY(shape(&c, &h->dims, err));
        } else {
            return fac_raise(err, FAC_E_FORMAT, "a .npy header with a field '%s'", key);
        }
        accept(&c, ",");
    }
    skip_blanks(&c);
    if (!h->has_descr || !h->has_order || !h->has_shape || c.p != c.end)
        return fac_raise(err, FAC_E_FORMAT, "a .npy header with a broken dict");
    return FAC_OK;
}

/* The strides of NumPy's other order: the first index is the fastest. */
static void column_major(const fac_dims *dims, int64_t strides[FAC_DIMS]) {
    fac_dims reversed = { dims->n, { 0 } };
    int64_t back[FAC_DIMS];
    for (int k = 0; k < dims->n; k++) reversed.d[k] = dims->d[dims->n - 1 - k];
    fac_dims_strides(&reversed, FAC_U8, back);
    for (int k = 0; k < dims->n; k++) strides[k] = back[dims->n - 1 - k];
}

/* ---- texts ---- */

static fac_status read_texts(const header *h, const fac_section *s, size_t at, fac_tensor **out,
                             fac_error *err) {
    const bool big = h->descr[0] == '>';
    char *end;
    unsigned long long width = strtoull(h->descr + 2, &end, 10);
    int64_t count = fac_dims_count(&h->dims);
    size_t bytes;
    if (*end || count < 0 || (count && !width) || width > SIZE_MAX / 4 ||
        !fac_size_mul((size_t)count, (size_t)width * 4, &bytes) || bytes > s->size - at)
        return fac_raise(err, FAC_E_FORMAT, "texts of %s that reach outside the file", h->descr);
    if (h->fortran && h->dims.n > 1)
        return fac_raise(err, FAC_E_UNSUPPORTED, "texts in Fortran order");
    fac_tensor *t;
    FAC_TRY(fac_tensor_new(NULL, FAC_TEXT, h->dims, &t, err));
    char **texts = t->storage->host;
    const char *from = (const char *)fac_file_data(s->file) + s->at + at;
    bool fits = true;
    for (int64_t i = 0; i < count && fits; i++, from += width * 4) {
        texts[i] = fac_utf8_of_utf32(&t->storage->texts, from, (size_t)width, big);
        fits = texts[i];
    }
    if (!fits) {
        fac_tensor_free(t);
        return fac_raise_memory(err, "%" PRId64 " texts", count);
    }
    *out = t;
    return FAC_OK;
}

/* ---- reading ---- */

static fac_status elements(const header *h, const fac_section *s, size_t at, fac_tensor **out,
                           fac_error *err) {
    int k = 0;
    const bool big = h->descr[0] == '>';
    while (k < NAMES &&
           (strcmp(names[k].descr + big, h->descr + big) || (big && names[k].descr[0] != '<')))
        k++;
    if (h->descr[0] && strchr("<>", h->descr[0]) && h->descr[1] == 'U')
        return read_texts(h, s, at, out, err);
    if (!strcmp(h->descr, "|O"))
        return fac_raise(err, FAC_E_UNSUPPORTED, "elements of type '|O': Python objects");
    if (k == NAMES) return fac_raise(err, FAC_E_UNSUPPORTED, "elements of type '%s'", h->descr);
    fac_type type = { names[k].dtype, h->dims };
    size_t bytes = fac_type_bytes(&type);
    if (bytes == SIZE_MAX || bytes > s->size - at)
        return fac_raise(err, FAC_E_FORMAT,
                         "an array that needs more than the %zu bytes of data that are there",
                         s->size - at);
    int64_t strides[FAC_DIMS];
    column_major(&h->dims, strides);
    const int64_t *steps = h->fortran && fac_dims_count(&h->dims) ? strides : NULL;
    return (big ? fac_tensor_from_big_endian : fac_tensor_from_file)(s->file, s->at + at, type,
                                                                     steps, out, err);
}

fac_status fac_npy_parse(const fac_section *s, fac_tensor **out, fac_error *err) {
    const unsigned char *p = (const unsigned char *)fac_file_data(s->file) + s->at;
    header h = { .fortran = false };
    if (s->size < 10 || memcmp(p, "\x93NUMPY", 6))
        return fac_raise(err, FAC_E_FORMAT, "no .npy file: its first bytes differ");
    unsigned version = p[6];
    if (version < 1 || version > 3)
        return fac_raise(err, FAC_E_UNSUPPORTED, ".npy version %u.%u", version, p[7]);
    size_t at = version == 1 ? 10 : 12, length = p[8] | (size_t)p[9] << 8;
    if (version > 1 && s->size >= 12) length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (s->size < at || length > s->size - at)
        return fac_raise(err, FAC_E_FORMAT, "a .npy file that ends within its header");
    FAC_TRY(parse_header((cursor){ (const char *)p + at, (const char *)p + at + length }, &h, err));
    return elements(&h, s, at + length, out, err);
}

fac_status fac_npy_add(const fac_section *s, const char *name, size_t length, fac_weights *w,
                       fac_error *err) {
    fac_tensor *t = NULL;
    fac_error why = { 0 };
    const fac_status status = fac_npy_parse(s, &t, &why);
    if (status == FAC_E_UNSUPPORTED) return fac_weights_skip(w, name, length, why.text, err);
    return status ? fac_raise(err, status, "%s", why.text)
                  : fac_weights_add(w, name, length, t, err);
}

/* ---- writing ---- */

/* Texts become rows of equal length, padded with zeros. */
static fac_status encode_texts(const fac_tensor *t, fac_npy *out, size_t *width, fac_error *err) {
    size_t n = (size_t)fac_dims_count(&t->type.dims), bytes;
    const char *const *texts = fac_tensor_data(t);
    *width = 1;
    for (size_t i = 0; i < n; i++) {
        size_t w = fac_utf32_length(texts[i]);
        if (w > *width) *width = w;
    }
    if (!fac_size_mul(n, *width, &bytes) || bytes > INT64_MAX / 8)
        return fac_raise_memory(err, "%zu texts", n);
    fac_tensor *rows;
    FAC_TRY(fac_tensor_new(NULL, FAC_U32, fac_shape((int64_t)n, (int64_t)*width), &rows, err));
    uint32_t *to = rows->storage->host;
    for (size_t i = 0; i < n; i++, to += *width) fac_utf32_of_utf8(to, texts[i]);
    fac_tensor_free(out->holder);
    out->holder = rows;
    return FAC_OK;
}

static fac_status encode(const fac_tensor *t, fac_npy *out, fac_error *err) {
    fac_type type = t->type;
    int k = 0;
    while (k < NAMES && names[k].dtype != type.dtype) k++;
    if (k == NAMES && type.dtype != FAC_TEXT)
        return fac_raise(err, FAC_E_UNSUPPORTED, "NumPy has no elements like %s",
                         fac_dtype_get(type.dtype)->name);
    FAC_TRY(fac_tensor_copy_contiguous(t, &out->holder, err));
    size_t width = 0;
    if (type.dtype == FAC_TEXT) FAC_TRY(encode_texts(out->holder, out, &width, err));
    out->data = fac_tensor_data(out->holder);
    out->bytes = fac_type_bytes(&out->holder->type);

    fac_text *h = &out->header;
    fac_text_add_bytes(h, "\x93NUMPY\1\0\0\0{'descr': '", 21);
    if (width)
        fac_text_print(h, "<U%zu", width);
    else
        fac_text_add(h, names[k].descr);
    fac_text_add(h, "', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < type.dims.n; i++)
        fac_text_print(h, i && i == type.dims.n - 1 ? "%" PRId64 : "%" PRId64 ", ", type.dims.d[i]);
    fac_text_add(h, "), }");
    while (!h->failed && h->n % 64 != 63) fac_text_add(h, " ");
    fac_text_add(h, "\n");
    if (h->failed) return fac_raise_memory(err, "a .npy header");
    h->s[8] = (char)((h->n - 10) & 255);
    h->s[9] = (char)((h->n - 10) >> 8);
    return FAC_OK;
}

fac_status fac_npy_encode(const fac_tensor *t, fac_npy *out, fac_error *err) {
    fac_npy npy = { .data = NULL };
    fac_status status = encode(t, &npy, err);
    if (status)
        fac_npy_free(&npy);
    else
        *out = npy;
    return status;
}

void fac_npy_free(fac_npy *npy) {
    fac_text_free(&npy->header);
    fac_tensor_free(npy->holder);
    *npy = (fac_npy){ .data = NULL };
}

/* ---- files ---- */

fac_status fac_npy_load(const char *path, fac_tensor **out, fac_error *err) {
    fac_file *f;
    FAC_TRY(fac_file_map(path, &f, err));
    fac_status status = fac_npy_parse(&(fac_section){ f, 0, fac_file_size(f) }, out, err);
    if (status) fac_raise_in(err, status, "%s", path);
    fac_file_free(f);
    return status;
}

fac_status fac_npy_save(const fac_tensor *t, const char *path, fac_error *err) {
    fac_npy npy;
    fac_writer *w;
    fac_status status = fac_npy_encode(t, &npy, err);
    if (status) return fac_raise_in(err, status, "%s", path);
    status = fac_writer_open(path, &w, err);
    if (!status) {
        status = fac_writer_put(w, npy.header.s, npy.header.n, err);
        if (!status) status = fac_writer_put(w, npy.data, npy.bytes, err);
        if (status)
            fac_writer_cancel(w);
        else
            status = fac_writer_close(w, err);
    }
    fac_npy_free(&npy);
    return status;
}
