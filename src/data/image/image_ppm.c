/* PPM and PGM (netpbm): P2 and P5 grey, P3 and P6 colour, plain (numbers as text) and raw (1 or 2
 * bytes, big endian). Values are scaled from 0..maxval to 0..255.  Written as P6. */
#include <stdio.h>
#include "base/error.h"
#include "base/file/file.h"
#include "data/image/image_internal.h"

typedef struct ppm {
    const fac_image_file *file;
    size_t at;
} ppm;

static bool is_space(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The next number; -1 when there is none or it is above limit.  Space and comments (# to the end of
 * the line) before it go. */
static int64_t number(ppm *p, int64_t limit) {
    const uint8_t *s = p->file->data;
    size_t n = p->file->bytes;
    for (; p->at < n && (is_space(s[p->at]) || s[p->at] == '#'); p->at++)
        if (s[p->at] == '#')
            while (p->at + 1 < n && s[p->at] != '\n') p->at++;
    int64_t x = -1;
    for (; p->at < n && s[p->at] >= '0' && s[p->at] <= '9'; p->at++) {
        x = (x < 0 ? 0 : x) * 10 + (s[p->at] - '0');
        if (x > limit) return -1;
    }
    return x;
}

/* The next of maxval's range, as text or as 1 or 2 bytes; -1 when it is above or the file is at its
 * end. */
static int64_t sample(ppm *p, bool plain, int64_t maxval) {
    if (plain) return number(p, maxval);
    const uint8_t *s = p->file->data + p->at;
    size_t size = maxval > 255 ? 2 : 1;
    if (p->file->bytes - p->at < size) return -1;
    p->at += size;
    int64_t x = size == 2 ? s[0] << 8 | s[1] : s[0];
    return x > maxval ? -1 : x;
}

fac_status fac_ppm_decode(const fac_image_file *file, fac_image *image, fac_error *err) {
    ppm p = { file, 2 };
    int kind = file->data[1];
    bool plain = kind == '2' || kind == '3', grey = kind == '2' || kind == '5';
    int64_t width = number(&p, FAC_PIXELS), height = number(&p, FAC_PIXELS),
            maxval = number(&p, 65535);
    if (width < 1 || height < 1 || maxval < 1 || p.at >= file->bytes || !is_space(file->data[p.at]))
        return fac_raise(
            err, FAC_E_FORMAT,
            "%s: P%c: expected width, height and a maximum of 1 to 65535, then a space", file->name,
            kind);
    p.at++;

    /* a sample takes at least a byte (a digit and a space, if text): nothing is allocated for sizes
     * that cannot be true */
    const int64_t bytes = plain || maxval > 255 ? 2 : 1;
    int64_t room = (int64_t)(file->bytes - p.at), row = width * (grey ? 1 : 3) * bytes;
    if (height > (room + plain) / row)
        return fac_raise(err, FAC_E_FORMAT, "%s: P%c: the file is too short for %lld x %lld pixels",
                         file->name, kind, (long long)width, (long long)height);
    FAC_TRY(fac_image_new(width, height, file->name, image, err));

    uint8_t *to = image->rgb;
    for (int64_t i = 0; i < width * height; i++, to += 3)
        for (int c = 0; c < 3; c++) {
            if (c > 0 && grey) {
                to[c] = to[0];
                continue;
            }
            int64_t x = sample(&p, plain, maxval);
            if (x < 0)
                return fac_raise(err, FAC_E_FORMAT,
                                 "%s: P%c: pixel %lld of %lld: expected a value from 0 to %lld",
                                 file->name, kind, (long long)i, (long long)(width * height),
                                 (long long)maxval);
            to[c] = (uint8_t)((x * 255 + maxval / 2) / maxval);
        }
    return FAC_OK;
}

fac_status fac_ppm_save(const fac_image *image, const char *path, fac_error *err) {
    char head[64];
    int n = snprintf(head, sizeof head, "P6\n%d %d\n255\n", image->width, image->height);
    fac_writer *writer = NULL;
    FAC_TRY(fac_writer_open(path, &writer, err));
    fac_status status = fac_writer_put(writer, head, (size_t)n, err);
    if (!status)
        status = fac_writer_put(writer, image->rgb,
                                3 * (size_t)image->width * (size_t)image->height, err);
    if (status) {
        fac_writer_cancel(writer);
        return status;
    }
    return fac_writer_close(writer, err);
}
