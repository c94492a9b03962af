/* See facula/content.h.  Formats by the bytes that their descriptions put first. */
#include "facula/content.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct magic {
    size_t at;
    const char *bytes;
    size_t n;
    fac_content is;
} magic;
#define MAGIC(at, bytes, kind, name)                                                               \
    {                                                                                              \
        at, bytes, sizeof bytes - 1, { kind, name }                                                \
    }

static const magic magics[] = {
    MAGIC(0, "\x89PNG\r\n\x1a\n", FAC_CONTENT_PICTURE, "a PNG picture"),
    MAGIC(0, "\xff\xd8\xff", FAC_CONTENT_PICTURE, "a JPEG picture"),
    MAGIC(0, "GIF8", FAC_CONTENT_OTHER_PICTURE, "a GIF picture"),
    MAGIC(8, "WEBP", FAC_CONTENT_OTHER_PICTURE, "a WebP picture"),
    MAGIC(0, "II*\0", FAC_CONTENT_OTHER_PICTURE, "a TIFF picture"),
    MAGIC(0, "MM\0*", FAC_CONTENT_OTHER_PICTURE, "a TIFF picture"),
    MAGIC(0, "II+\0", FAC_CONTENT_OTHER_PICTURE, "a TIFF picture"),
    MAGIC(4, "ftypheic", FAC_CONTENT_OTHER_PICTURE, "a HEIC picture"),
    MAGIC(4, "ftypmif1", FAC_CONTENT_OTHER_PICTURE, "a HEIF picture"),
    MAGIC(4, "ftypavif", FAC_CONTENT_OTHER_PICTURE, "an AVIF picture"),
    MAGIC(0, "\xff\x0a", FAC_CONTENT_OTHER_PICTURE, "a JPEG XL picture"),
    MAGIC(0, "\0\0\0\x0cJXL ", FAC_CONTENT_OTHER_PICTURE, "a JPEG XL picture"),
    MAGIC(0, "\0\0\0\x0cjP  ", FAC_CONTENT_OTHER_PICTURE, "a JPEG 2000 picture"),
    MAGIC(0, "\0\0\1\0", FAC_CONTENT_OTHER_PICTURE, "a Windows icon"),
    MAGIC(0, "8BPS", FAC_CONTENT_OTHER_PICTURE, "a Photoshop picture"),
    MAGIC(0, "<svg", FAC_CONTENT_OTHER_PICTURE, "an SVG drawing"),
    MAGIC(4, "ftyp", FAC_CONTENT_OTHER, "a video"),
    MAGIC(0, "\x93NUMPY", FAC_CONTENT_ARRAYS, "a NumPy array"),
    MAGIC(4, "TFL3", FAC_CONTENT_OTHER_MODEL, "a TensorFlow Lite model"),
    MAGIC(0, "\x89HDF\r\n\x1a\n", FAC_CONTENT_OTHER_MODEL,
          "an HDF5 file, as Keras writes its models"),
    MAGIC(0, "GGUF", FAC_CONTENT_WEIGHTS, "a GGUF model"),
    MAGIC(4, "ORTM", FAC_CONTENT_OTHER_MODEL, "a model in the format of ONNX Runtime"),
    MAGIC(0, "\x1f\x8b", FAC_CONTENT_OTHER, "a gzip file"),
    MAGIC(0, "BZh", FAC_CONTENT_OTHER, "a bzip2 file"),
    MAGIC(0,
          "\xfd"
          "7zXZ",
          FAC_CONTENT_OTHER, "an xz file"),
    MAGIC(0, "\x28\xb5\x2f\xfd", FAC_CONTENT_OTHER, "a zstd file"),
    MAGIC(0, "7z\xbc\xaf", FAC_CONTENT_OTHER, "a 7z archive"),
    MAGIC(257, "ustar", FAC_CONTENT_OTHER, "a tar archive"),
    MAGIC(0,
          "\x7f"
          "ELF",
          FAC_CONTENT_OTHER, "a program or a library"),
    MAGIC(0, "%PDF", FAC_CONTENT_OTHER, "a PDF document"),
    MAGIC(0, "version https://git-lfs", FAC_CONTENT_OTHER,
          "a pointer of Git LFS: the file itself was not fetched (git lfs pull)"),
    MAGIC(0, "<!DOCTYPE html", FAC_CONTENT_OTHER, "a web page"),
    MAGIC(0, "<html", FAC_CONTENT_OTHER, "a web page"),
};

static bool holds(const char *data, size_t bytes, const char *text) {
    return memmem(data, bytes, text, strlen(text)) != NULL;
}

/* The names of its first entries stand at the beginning. */
static fac_content archive(const char *p, size_t n) {
    if (holds(p, n, "constants.pkl") || holds(p, n, "/code/"))
        return (fac_content){ FAC_CONTENT_OTHER_MODEL, "a TorchScript model" };
    if (holds(p, n, "data.pkl")) return (fac_content){ FAC_CONTENT_WEIGHTS, "a PyTorch file" };
    if (holds(p, n, ".npy"))
        return (fac_content){ FAC_CONTENT_ARRAYS, "an archive of NumPy arrays" };
    if (holds(p, n, "model.weights.h5") || holds(p, n, "metadata.json"))
        return (fac_content){ FAC_CONTENT_OTHER_MODEL, "a Keras model" };
    return (fac_content){ FAC_CONTENT_OTHER, "a zip archive" };
}

/* ModelProto: ir_version, then a text, a message or the model's version; a TensorProto goes on with
 * numbers. */
static bool onnx_here(const unsigned char *p, size_t n) {
    return n > 3 && p[0] == 0x08 && p[1] > 0 && p[1] < 64 && p[2] &&
           strchr("\x12\x1a\x22\x28\x32\x3a\x42\x72", p[2]);
}

static bool netpbm_here(const unsigned char *p, size_t n) {
    return n > 3 && p[0] == 'P' && strchr("2356", p[1]) && p[1] && strchr(" \t\r\n#", p[2]) && p[2];
}

/* Its size stands after BM; then come four zeros. */
static bool bmp_here(const unsigned char *p, size_t n) {
    return n > 14 && p[0] == 'B' && p[1] == 'M' && !memcmp(p + 6, "\0\0\0\0", 4);
}

fac_content fac_content_of(const void *data, size_t bytes) {
    const unsigned char *p = data;
    const size_t n = bytes < 4096 ? bytes : 4096;
    for (size_t k = 0; k < sizeof magics / sizeof *magics; k++) {
        const magic *m = &magics[k];
        if (n >= m->at + m->n && !memcmp(p + m->at, m->bytes, m->n)) return m->is;
    }
    if (n >= 4 && !memcmp(p, "PK\3\4", 4)) return archive(data, n);
    if (netpbm_here(p, n)) return (fac_content){ FAC_CONTENT_PICTURE, "a PNM picture" };
    if (bmp_here(p, n)) return (fac_content){ FAC_CONTENT_PICTURE, "a BMP picture" };
    if (n > 9 && p[8] == '{' && (p[9] == '"' || p[9] == '}') && !p[7] && !p[6])
        return (fac_content){ FAC_CONTENT_WEIGHTS, "a .safetensors file" };
    if (n > 2 && p[0] == 0x80 && p[1] > 0 && p[1] < 6)
        return (fac_content){ FAC_CONTENT_WEIGHTS, "a Python pickle, as PyTorch wrote files" };
    if (onnx_here(p, n)) return (fac_content){ FAC_CONTENT_MODEL, "an ONNX model" };
    return (fac_content){ FAC_CONTENT_UNKNOWN, NULL };
}
