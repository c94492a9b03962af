/* Photos from the bytes of their files.  Their size is data: it runs at a cut. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/data/image.h"
#include "graph/onnx_write.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* u8[height,width,3], or [height,width,1] in grey, of the bytes of a file (u8[n]): JPEG, PNG, BMP,
 * PNM.  What is none of these, or damaged, gives a picture without pixels, u8[0,0,channels], as
 * ONNX wants it. */
typedef enum fac_pixels { FAC_PIXELS_RGB, FAC_PIXELS_BGR, FAC_PIXELS_GREY } fac_pixels;
fac_value *fac_image_decoded(fac_value *bytes, fac_pixels pixels);
#endif

typedef struct attrs {
    int pixels;
} attrs;
static const char *const choices[] = { "RGB", "BGR", "Grayscale", NULL };
static const fac_attr table[] = { { "pixel_format", FAC_A_ENUM, offsetof(attrs, pixels), 0, 0, 0, 0,
                                    choices, "what a pixel is made of" },
                                  { 0 } };
static const fac_port in[] = { { "bytes", FAC_INTS, 0 }, { 0 } };

static int channels_of(const attrs *a) { return a->pixels == FAC_PIXELS_GREY ? 1 : 3; }

static bool infer(fac_node *n) {
    fac_graph *g = n->graph;
    if (n->in[0]->type.dtype != FAC_U8 || n->in[0]->type.dims.n != 1)
        return fac_fail(n, FAC_E_DTYPE, "bytes must be a list of u8");
    n->out[0]->type = (fac_type){ FAC_U8, fac_shape(fac_symbol(g, NULL), fac_symbol(g, NULL),
                                                    channels_of(n->attrs)) };
    return true;
}

/* ITU-R BT.601 in 16 bits, rounded, as the usual libraries do. */
static uint8_t grey(const uint8_t *p) {
    return (uint8_t)((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16);
}

static void put_pixel(int pixels, const uint8_t *from, uint8_t *to) {
    if (pixels == FAC_PIXELS_GREY)
        *to = grey(from);
    else
        for (int k = 0; k < 3; k++) to[k] = from[pixels == FAC_PIXELS_BGR ? 2 - k : k];
}

static fac_status put(const attrs *a, const fac_image *image, fac_tensor **out, fac_error *err) {
    const int channels = channels_of(a);
    const size_t pixels = (size_t)image->width * (size_t)image->height;
    uint8_t *all = fac_alloc(pixels * (size_t)channels + 1, 1);
    if (!all) return fac_raise_memory(err, "%zu pixels", pixels);
    for (size_t k = 0; k < pixels; k++)
        put_pixel(a->pixels, image->rgb + 3 * k, all + (size_t)channels * k);
    fac_status status =
        fac_tensor_new(NULL, FAC_U8, fac_shape(image->height, image->width, channels), out, err);
    if (!status && pixels) status = fac_tensor_write(*out, all, pixels * (size_t)channels, err);
    if (status) fac_tensor_free(*out);
    fac_release(all);
    return status;
}

/* A format that ONNX lists and we do not have; NULL: it is none of these. */
static const char *other_format(const uint8_t *p, size_t n) {
    static const struct {
        size_t at, n;
        const char *begins, *name;
    } formats[] = { { 4, 4, "jP  ", "JPEG 2000" },
                    { 0, 4, "\xff\x4f\xff\x51", "JPEG 2000" },
                    { 0, 4, "II*\0", "TIFF" },
                    { 0, 4, "MM\0*", "TIFF" },
                    { 8, 4, "WEBP", "WebP" } };
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
        if (n >= formats[k].at + formats[k].n &&
            !memcmp(p + formats[k].at, formats[k].begins, formats[k].n))
            return formats[k].name;
    return NULL;
}

static fac_status host(const fac_node *n, fac_tensor *const in_[], fac_tensor *out[],
                       fac_error *err) {
    const fac_type type = fac_tensor_type(in_[0]);
    fac_image image = { 0 };
    fac_error own = { 0 };
    fac_tensor *made = NULL;
    const char *other = other_format(fac_tensor_data(in_[0]), fac_type_bytes(&type));
    if (other) return fac_raise(err, FAC_E_UNSUPPORTED, "pictures in %s are not decoded", other);
    const fac_status read =
        fac_image_decode(fac_tensor_data(in_[0]), fac_type_bytes(&type), "image", &image, &own);
    if (read == FAC_E_NOMEM) return fac_raise(err, read, "%s", own.text);
    if (read) image = (fac_image){ 0 };
    fac_status status = put(n->attrs, &image, &made, err);
    fac_image_free(&image);
    if (!status) out[0] = made;
    return status;
}

static const fac_onnx onnx[] = { { "", "ImageDecoder", 20, 0, NULL, NULL, 0 }, { 0 } };
static const fac_case cases[] = {
    { "image_decode(u8{80,54,32,49,32,49,32,50,53,53,10,1,2,3})", 0, 0, 0 },
    { "image_decode(u8{80,54,32,49,32,49,32,50,53,53,10,1,2,3}) pixel_format=Grayscale", 0, 0, 0 },
    { "image_decode(u8[0]) pixel_format=BGR", 0, 0, 0 },
    { 0 }
};

extern const fac_op fac_op_image_decode;
const fac_op fac_op_image_decode = {
    .name = "image_decode",
    .doc = "photos from the bytes of their files",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD | FAC_OP_DYNAMIC,
    .infer = infer,
    .host = host,
    .onnx = onnx,
    .save = fac_onnx_plain,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};

fac_value *fac_image_decoded(fac_value *bytes, fac_pixels pixels) {
    return fac_emit(&fac_op_image_decode, &(attrs){ (int)pixels }, 1, &bytes);
}
