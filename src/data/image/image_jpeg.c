/* JPEG through TurboJPEG: baseline and progressive; grey, YCbCr, RGB, and the inverted CMYK / YCCK
 * of Adobe.  A few markers are read here, because TurboJPEG does not tell: the EXIF orientation,
 * whether the file ends too early, and the size where its channels are sampled in an unusual way.
 */
#include "base/error.h"
#include "data/image/image_internal.h"

#ifndef FAC_HAVE_TURBOJPEG

fac_status fac_jpeg_decode(const fac_image_file *file, fac_image *image, fac_error *err) {
    (void)image;
    return fac_raise(err, FAC_E_UNSUPPORTED,
                     "%s: this build reads no JPEG: install libturbojpeg0-dev, build again",
                     file->name);
}

#else

#include <string.h>
#include <turbojpeg.h>
#include "base/memory.h"

/* What stands before the first scan (ITU-T T.81, B.1.1): FF, marker, and for most a big-endian
 * length that counts itself. */
typedef struct jpeg_marks {
    int width, height, channels, orientation, most;
    bool complete;
} jpeg_marks;

/* Pixels that one byte can give.  Huffman codes: every block of 64 takes a bit at least, twice that
 * for the oddest sampling of channels.  Arithmetic codes can make a bit of a thousand blocks. */
enum { HUFFMAN = 64 * 8 * 2, ARITHMETIC = HUFFMAN * 1024 };

/* C0..CF begin a frame, but for the tables DHT and DAC and the reserved JPG. */
static bool is_frame(int marker) {
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static jpeg_marks read_marks(const uint8_t *p, size_t n) {
    enum { APP1 = 0xe1, SOS = 0xda, TEM = 0x01, RST0 = 0xd0, EOI = 0xd9 };
    jpeg_marks marks = { .orientation = 1, .most = HUFFMAN };
    size_t at = 2;
    while (at + 4 <= n) {
        if (p[at] != 0xff ||
            p[at + 1] == 0xff) { /* garbage or fill bytes: decoders look for the next marker */
            at++;
            continue;
        }
        int marker = p[at + 1];
        if (marker == 0 || marker == TEM || (marker >= RST0 && marker <= EOI)) {
            at += 2;
            continue;
        }
        size_t length = (size_t)p[at + 2] << 8 | p[at + 3];
        if (length < 2 || length > n - at - 2) break;
        if (marker == APP1 && length >= 8 && memcmp(p + at + 4, "Exif\0", 6) == 0)
            marks.orientation = fac_exif_orientation(p + at + 10, length - 8);
        if (is_frame(marker) && length >= 8) {
            marks.height = p[at + 5] << 8 | p[at + 6];
            marks.width = p[at + 7] << 8 | p[at + 8];
            marks.channels = p[at + 9];
            marks.most = marker < 0xc8 ? HUFFMAN : ARITHMETIC;
        }
        at += 2 + length;
        if (marker == SOS) { /* inside a scan FF D9 cannot be data: there FF is followed by 00 or a
                                restart marker */
            marks.complete = memmem(p + at, n - at, "\xff\xd9", 2) != NULL;
            break;
        }
    }
    return marks;
}

/* Adobe's files hold 255 - ink, and all CMYK files are taken for Adobe's: R = K - K (255 - C) /
 * 255. */
static void cmyk_to_rgb(const uint8_t *cmyk, size_t pixels, uint8_t *rgb) {
    for (size_t i = 0; i < pixels; i++, cmyk += 4, rgb += 3)
        for (int c = 0; c < 3; c++) {
            int k = cmyk[3], ink = k * (255 - cmyk[c]) + 128;
            rgb[c] = (uint8_t)(k - ((ink + (ink >> 8)) >> 8));
        }
}

static fac_status raise_turbo(tjhandle tj, const char *name, fac_error *err) {
    return fac_raise(err, FAC_E_FORMAT, "%s: JPEG: %s", name, tjGetErrorStr2(tj));
}

/* Damage inside a scan is only a warning: the picture shows it, as in every viewer.  A missing end
 * is an error. */
static bool fatal(tjhandle tj, int result) { return result && tjGetErrorCode(tj) != TJERR_WARNING; }

static fac_status decode(tjhandle tj, const fac_image_file *file, fac_image *image,
                         fac_error *err) {
    const jpeg_marks marks = read_marks(file->data, file->bytes);
    const int width = marks.width, height = marks.height,
              flags = TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS;
    unsigned long bytes = (unsigned long)file->bytes;
    if (!marks.complete)
        return fac_raise(err, FAC_E_FORMAT,
                         "%s: JPEG: the file ends in the middle: it has no end marker", file->name);
    FAC_TRY(fac_image_new_in(file, width, height, marks.most, image, err));

    if (marks.channels != 4) {
        if (fatal(tj, tjDecompress2(tj, file->data, bytes, image->rgb, width, 0, height, TJPF_RGB,
                                    flags)))
            return raise_turbo(tj, file->name, err);
    } else {
        uint8_t *cmyk = fac_alloc((size_t)width * (size_t)height, 4);
        if (!cmyk)
            return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %d x %d CMYK pixels", file->name,
                             width, height);
        bool failed = fatal(
            tj, tjDecompress2(tj, file->data, bytes, cmyk, width, 0, height, TJPF_CMYK, flags));
        if (!failed) cmyk_to_rgb(cmyk, (size_t)width * (size_t)height, image->rgb);
        fac_release(cmyk);
        if (failed) return raise_turbo(tj, file->name, err);
    }
    return fac_image_orient(image, marks.orientation, file->name, err);
}

fac_status fac_jpeg_decode(const fac_image_file *file, fac_image *image, fac_error *err) {
    tjhandle tj = tjInitDecompress();
    if (!tj) return fac_raise(err, FAC_E_NOMEM, "%s: JPEG: no memory for a decoder", file->name);
    fac_status status = decode(tj, file, image, err);
    tjDestroy(tj);
    return status;
}

#endif
