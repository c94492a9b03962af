/* EXIF orientation: a camera stores rows as its sensor reads them and notes in a TIFF tag how it
 * was held. */
#include "base/error.h"
#include "base/memory.h"
#include "data/image/image_internal.h"

typedef struct tiff {
    const uint8_t *p;
    size_t n;
    bool big;
} tiff; /* big: Motorola byte order */

static unsigned u16(const tiff *t, size_t at) {
    return t->big ? (unsigned)(t->p[at] << 8 | t->p[at + 1])
                  : (unsigned)(t->p[at + 1] << 8 | t->p[at]);
}

static size_t u32(const tiff *t, size_t at) {
    return t->big ? (size_t)u16(t, at) << 16 | u16(t, at + 2)
                  : (size_t)u16(t, at + 2) << 16 | u16(t, at);
}

/* TIFF 6.0: "II" or "MM", 42, the offset of directory 0; there a count and entries of 12 bytes:
 * tag, type, count, value. */
int fac_exif_orientation(const uint8_t *data, size_t bytes) {
    enum { ORIENTATION = 0x0112, SHORT = 3 };
    tiff t = { data, bytes, false };
    if (bytes < 8 || data[0] != data[1] || (data[0] != 'I' && data[0] != 'M')) return 1;
    t.big = data[0] == 'M';
    if (u16(&t, 2) != 42) return 1;
    size_t at = u32(&t, 4);
    if (at > bytes - 2) return 1;
    size_t entries = u16(&t, at), room = (bytes - at - 2) / 12;
    if (entries > room) entries = room;
    for (size_t i = 0; i < entries; i++) {
        size_t entry = at + 2 + 12 * i;
        if (u16(&t, entry) != ORIENTATION) continue;
        unsigned value = u16(&t, entry + 8);
        return u16(&t, entry + 2) == SHORT && value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

/* Where row 0 and column 0 of the file belong: 1 top left, 2 top right, 3 bottom right, 4 bottom
 * left; 5..8 the same with rows and columns exchanged: left top, right top, right bottom, left
 * bottom. */
fac_status fac_image_orient(fac_image *image, int orientation, const char *name, fac_error *err) {
    if (orientation <= 1 || orientation > 8) return FAC_OK;
    int w = image->width, h = image->height;
    bool swap = orientation >= 5;
    bool mirror_x = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
    bool mirror_y = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
    fac_image oriented = { 0 };
    FAC_TRY(swap ? fac_image_new(h, w, name, &oriented, err)
                 : fac_image_new(w, h, name, &oriented, err));

    const uint8_t *from = image->rgb;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++, from += 3) {
            int tx = swap ? y : x;
            int ty = swap ? x : y;
            if (mirror_x) tx = oriented.width - 1 - tx;
            if (mirror_y) ty = oriented.height - 1 - ty;
            uint8_t *to = oriented.rgb + 3 * ((size_t)ty * (size_t)oriented.width + (size_t)tx);
            to[0] = from[0];
            to[1] = from[1];
            to[2] = from[2];
        }
    fac_release(image->rgb);
    *image = oriented;
    return FAC_OK;
}
