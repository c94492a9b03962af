/* BMP (Windows 2 to 5, OS/2): 1, 4, 8 bit with a palette, RLE4 and RLE8, 16, 24, 32 bit with or
 * without channel masks, rows bottom up or top down.  Alpha is dropped. */
#include "base/error.h"
#include "data/image/image_internal.h"

enum { RGB = 0, RLE8 = 1, RLE4 = 2, MASKS = 3, MASKS_ALPHA = 6 }; /* biCompression */

typedef struct bmp {
    const fac_image_file *file;
    int64_t width, height;
    bool top_down;
    int bits;
    uint32_t compression, mask[3];
    uint8_t palette[256][3]; /* red, green, blue */
    int colours;
    size_t pixels; /* offset of the first row */
} bmp;

static unsigned u16(const bmp *b, size_t at) {
    return (unsigned)b->file->data[at] | (unsigned)b->file->data[at + 1] << 8;
}

static uint32_t u32(const bmp *b, size_t at) { return u16(b, at) | (uint32_t)u16(b, at + 2) << 16; }

static fac_status bad(const bmp *b, fac_error *err, const char *what) {
    return fac_raise(err, FAC_E_FORMAT, "%s: BMP: %s", b->file->name, what);
}

/* ---- head: 14 bytes of file header, an info header whose first field is its own size, masks, a
 * palette ---- */

static fac_status read_palette(bmp *b, size_t at, size_t used, size_t entry, fac_error *err) {
    size_t all = (size_t)1 << b->bits,
           room = b->file->bytes > at ? (b->file->bytes - at) / entry : 0;
    if (used == 0 || used > all) used = all;
    if (used > room) return bad(b, err, "the palette reaches past the end of the file");
    for (size_t i = 0; i < used; i++)
        for (size_t c = 0; c < 3; c++) b->palette[i][c] = b->file->data[at + i * entry + 2 - c];
    b->colours = (int)used;
    return FAC_OK;
}

/* A mask is one run of bits, and below 2^16 in 16-bit pixels. */
static bool is_mask(uint32_t m, int bits) {
    if (m == 0 || (bits == 16 && m > 0xffff)) return false;
    while (!(m & 1)) m >>= 1;
    return (m & (m + 1)) == 0;
}

static fac_status read_head(bmp *b, fac_error *err) {
    enum { FILE_HEADER = 14, CORE = 12, INFO = 40 };
    if (b->file->bytes < FILE_HEADER + CORE) return bad(b, err, "the file ends inside its header");
    uint32_t size = u32(b, FILE_HEADER);
    size_t used = 0, at = FILE_HEADER + (size_t)size;
    b->pixels = u32(b, 10);
    if (size == CORE) {
        b->width = u16(b, 18);
        b->height = u16(b, 20);
        b->bits = (int)u16(b, 24);
    } else {
        if (size < INFO || at > b->file->bytes)
            return bad(b, err, "the info header has an impossible size");
        b->width = (int32_t)u32(b, 18);
        b->height = (int32_t)u32(b, 22);
        b->top_down = b->height < 0;
        if (b->top_down) b->height = -b->height;
        b->bits = (int)u16(b, 28);
        b->compression = u32(b, 30);
        used = u32(b, 46);
    }

    if (b->compression == MASKS ||
        b->compression == MASKS_ALPHA) { /* after a 40-byte header, or inside a longer one */
        if (b->bits != 16 && b->bits != 32)
            return bad(b, err, "channel masks need 16 or 32 bits a pixel");
        size_t masks = FILE_HEADER + INFO;
        if (b->file->bytes < masks + 12) return bad(b, err, "the file ends inside its header");
        for (size_t c = 0; c < 3; c++) {
            b->mask[c] = u32(b, masks + 4 * c);
            if (!is_mask(b->mask[c], b->bits))
                return bad(b, err, "a channel mask is not one run of bits");
        }
    } else if (b->compression == RLE8 || b->compression == RLE4) {
        if (b->bits != (b->compression == RLE8 ? 8 : 4) || b->top_down)
            return bad(b, err, "run-length coding of a wrong kind of pixels");
    } else if (b->compression != RGB) {
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s: BMP: compression %u is not read",
                         b->file->name, (unsigned)b->compression);
    } else if (b->bits == 16) {
        b->mask[0] = 0x7c00;
        b->mask[1] = 0x03e0;
        b->mask[2] = 0x001f;
    } else if (b->bits == 32) {
        b->mask[0] = 0xff0000;
        b->mask[1] = 0x00ff00;
        b->mask[2] = 0x0000ff;
    }
    if (b->bits == 1 || b->bits == 4 || b->bits == 8)
        return read_palette(b, at, used, size == CORE ? 3 : 4, err);
    if (b->bits == 16 || b->bits == 24 || b->bits == 32) return FAC_OK;
    return fac_raise(err, FAC_E_FORMAT, "%s: BMP: %d bits a pixel; expected 1, 4, 8, 16, 24 or 32",
                     b->file->name, b->bits);
}

/* ---- pixels ---- */

static uint8_t *row_of(const bmp *b, fac_image *image,
                       int64_t y) { /* y counts in the order of the file */
    return image->rgb + 3 * (size_t)((b->top_down ? y : b->height - 1 - y) * b->width);
}

static void put(const bmp *b, unsigned index,
                uint8_t *to) { /* after the palette: black, it is zeroed */
    for (int c = 0; c < 3; c++) to[c] = b->palette[index][c];
}

static uint8_t channel(uint32_t pixel, uint32_t mask) { /* 0..mask's own maximum -> 0..255 */
    uint32_t low = mask & (~mask + 1), max = mask / low, value = (pixel & mask) / low;
    return (uint8_t)(((uint64_t)value * 255 + max / 2) / max);
}

static void read_row(const bmp *b, const uint8_t *from, uint8_t *to) {
    for (int64_t x = 0; x < b->width; x++, to += 3) {
        const uint8_t *p = from + x * b->bits / 8;
        if (b->bits <= 8) {
            unsigned shift = (unsigned)(8 - b->bits - x * b->bits % 8);
            put(b, (unsigned)*p >> shift & ((1u << b->bits) - 1), to);
        } else if (b->bits == 24) {
            to[0] = p[2];
            to[1] = p[1];
            to[2] = p[0];
        } else {
            uint32_t pixel = (uint32_t)(p[0] | p[1] << 8);
            if (b->bits == 32) pixel |= (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
            for (int c = 0; c < 3; c++) to[c] = channel(pixel, b->mask[c]);
        }
    }
}

static fac_status read_rows(const bmp *b, fac_image *image, fac_error *err) {
    uint64_t stride =
        ((uint64_t)b->width * (uint64_t)b->bits + 31) / 32 * 4; /* rows are padded to 4 bytes */
    /* the padding of the last row may be missing */
    uint64_t need =
        stride * ((uint64_t)b->height - 1) + ((uint64_t)b->width * (uint64_t)b->bits + 7) / 8;
    if (b->pixels > b->file->bytes || need > b->file->bytes - b->pixels)
        return bad(b, err, "the file is too short for its pixels");
    FAC_TRY(fac_image_new(b->width, b->height, b->file->name, image, err));
    for (int64_t y = 0; y < b->height; y++)
        read_row(b, b->file->data + b->pixels + (uint64_t)y * stride, row_of(b, image, y));
    return FAC_OK;
}

/* Pairs of bytes: (n, colours) repeats n times; (0, 0) ends a row, (0, 1) the image, (0, 2) dx dy
 * moves on, (0, n) is followed by n single pixels, padded to 2 bytes.  RLE4 packs two pixels in a
 * byte.  What is never touched is colour 0. */
static fac_status read_runs(const bmp *b, fac_image *image, fac_error *err) {
    FAC_TRY(fac_image_new_in(b->file, b->width, b->height, 128, image,
                             err)); /* 255 pixels of two bytes */
    for (int64_t i = 0; i < b->width * b->height; i++) put(b, 0, image->rgb + 3 * i);
    const uint8_t *p = b->file->data;
    size_t at = b->pixels, end = b->file->bytes;
    bool two = b->compression == RLE4;
    int64_t x = 0, y = 0;
    while (at < end && end - at >= 2) {
        unsigned n = p[at], what = p[at + 1];
        size_t bytes = 0;
        at += 2;
        if (n == 0 && what == 1) return FAC_OK;
        if (n == 0 && what == 0) {
            x = 0, y++;
            continue;
        }
        if (n == 0 && what == 2) {
            if (end - at < 2) break;
            x += p[at];
            y += p[at + 1];
            at += 2;
            continue;
        }
        bool single = n == 0;
        if (single) {
            n = what;
            bytes = two ? (n + 1) / 2 : n;
            if (end - at < bytes) break;
        }
        if (y >= b->height || x + n > b->width)
            return bad(b, err, "a run reaches outside the image");
        uint8_t *to = row_of(b, image, y) + 3 * x;
        for (unsigned k = 0; k < n; k++, to += 3) {
            const size_t byte = two ? k / 2 : k;
            unsigned v = single ? p[at + byte] : what;
            if (two) v = k % 2 ? v & 15 : v >> 4;
            put(b, v, to);
        }
        x += n;
        at += bytes + bytes % 2;
    }
    return bad(b, err, "the file ends before its last run");
}

fac_status fac_bmp_decode(const fac_image_file *file, fac_image *image, fac_error *err) {
    bmp b = { .file = file };
    FAC_TRY(read_head(&b, err));
    if (b.width < 1 || b.height < 1) return bad(&b, err, "the size is not positive");
    return b.compression == RLE8 || b.compression == RLE4 ? read_runs(&b, image, err)
                                                          : read_rows(&b, image, err);
}
