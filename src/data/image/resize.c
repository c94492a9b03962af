/* Resizing with antialiasing, as Pillow does it, so that a photo reaches a network as its training
 * pipeline saw it.
 *
 * A pixel of the result is a weighted mean of the pixels under a filter centred on it.  When the
 * image shrinks the filter is stretched by the reduction, so that every pixel of the original
 * counts (classic resampling: Heckbert 1989, "Fundamentals of Texture Mapping and Image Warping").
 * The filter is separable: a pass along rows, a pass along columns, each rounding to 8 bits.
 * Weights are fixed-point numbers with 22 bits after the point: 255 * 2^22 just fits into 30 bits,
 * and the over- and undershoots of bicubic still fit into 32. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "data/image/image_internal.h"

enum { POINT = 22 };

static double triangle(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/* Keys 1981, "Cubic convolution interpolation for digital image processing", with a = -1/2. */
static double cubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return a * (((x - 5) * x + 8) * x - 4);
    return 0;
}

/* For each pixel of the result along one axis: where its filter starts, how long it is, and `room`
 * weights. */
typedef struct fac_taps {
    int out, room, *first, *count;
    int32_t *weight;
} fac_taps;

static void free_taps(fac_taps *t) {
    fac_release(t->first);
    fac_release(t->count);
    fac_release(t->weight);
}

static bool make_taps(int in, int out, fac_interpolation how, fac_taps *t) {
    double (*filter)(double) = how == FAC_BICUBIC ? cubic : triangle;
    double scale = (double)in / out, stretch = scale > 1 ? scale : 1,
           reach = (how == FAC_BICUBIC ? 2 : 1) * stretch;
    int room = (int)ceil(reach) * 2 + 1;
    *t = (fac_taps){ .out = out, .room = room < in ? room : in };
    t->first = fac_alloc((size_t)out, sizeof *t->first);
    t->count = fac_alloc((size_t)out, sizeof *t->count);
    size_t weights = 0;
    if (fac_size_mul((size_t)out, (size_t)t->room, &weights))
        t->weight = fac_alloc(weights, sizeof *t->weight);
    double *w = fac_alloc((size_t)t->room, sizeof *w);
    bool ok = t->first && t->count && t->weight && w;
    for (int i = 0; ok && i < out; i++) {
        double centre = (i + 0.5) * scale, sum = 0;
        int first = (int)(centre - reach + 0.5), last = (int)(centre + reach + 0.5);
        if (first < 0) first = 0;
        if (last > in) last = in;
        int n = t->count[i] = last - first;
        t->first[i] = first;
        for (int k = 0; k < n; k++) sum += w[k] = filter((first + k - centre + 0.5) / stretch);
        /* at the edges part of the filter is cut off: the rest still adds up to 1 */
        for (int k = 0; k < n; k++)
            t->weight[(size_t)i * (size_t)t->room + (size_t)k] =
                (int32_t)round(w[k] / sum * (1 << POINT));
    }
    fac_release(w);
    return ok;
}

static uint8_t round_to_8_bits(int32_t x) {
    x >>= POINT;
    if (x < 0) return 0;
    return (uint8_t)(x > 255 ? 255 : x);
}

static void resize_rows(const fac_image *from, const fac_taps *t, fac_image *to) {
    for (int y = 0; y < from->height; y++) {
        const uint8_t *row = from->rgb + 3 * (size_t)y * (size_t)from->width;
        uint8_t *out = to->rgb + 3 * (size_t)y * (size_t)to->width;
        for (int x = 0; x < t->out; x++, out += 3) {
            const uint8_t *p = row + 3 * (size_t)t->first[x];
            const int32_t *w = t->weight + (size_t)x * (size_t)t->room;
            int32_t r = 1 << (POINT - 1), g = r, b = r;
            for (int k = 0; k < t->count[x]; k++, p += 3) {
                r += p[0] * w[k];
                g += p[1] * w[k];
                b += p[2] * w[k];
            }
            out[0] = round_to_8_bits(r);
            out[1] = round_to_8_bits(g);
            out[2] = round_to_8_bits(b);
        }
    }
}

/* Whole rows at a time, in pieces whose sums stay in the first-level cache: the inner loop runs
 * along memory. */
static void resize_columns(const fac_image *from, const fac_taps *t, fac_image *to) {
    enum { PIECE = 1024 };
    int32_t sum[PIECE];
    size_t row = 3 * (size_t)from->width;
    for (int y = 0; y < t->out; y++)
        for (size_t at = 0; at < row; at += PIECE) {
            size_t n = row - at < PIECE ? row - at : PIECE;
            for (size_t i = 0; i < n; i++) sum[i] = 1 << (POINT - 1);
            for (int k = 0; k < t->count[y]; k++) {
                int32_t w = t->weight[(size_t)y * (size_t)t->room + (size_t)k];
                const uint8_t *p = from->rgb + ((size_t)t->first[y] + (size_t)k) * row + at;
                for (size_t i = 0; i < n; i++) sum[i] += p[i] * w;
            }
            uint8_t *out = to->rgb + (size_t)y * row + at;
            for (size_t i = 0; i < n; i++) out[i] = round_to_8_bits(sum[i]);
        }
}

/* The pixel under each centre.  Positions are found by repeated addition, rounding errors included:
 * where a centre falls on the border of two pixels, this decides, and it decides as Pillow does. */
static fac_status resize_nearest(const fac_image *from, fac_image *to, fac_error *err) {
    double step_x = (double)from->width / to->width, step_y = (double)from->height / to->height,
           at = 0.5 * step_x;
    int *column = fac_alloc((size_t)to->width, sizeof *column);
    if (!column) return fac_raise(err, FAC_E_NOMEM, "resize: no memory for %d columns", to->width);
    for (int x = 0; x < to->width; x++, at += step_x)
        column[x] = at < from->width ? (int)at : from->width - 1;
    at = 0.5 * step_y;
    uint8_t *out = to->rgb;
    for (int y = 0; y < to->height; y++, at += step_y) {
        int source = at < from->height ? (int)at : from->height - 1;
        const uint8_t *row = from->rgb + 3 * (size_t)source * (size_t)from->width;
        for (int x = 0; x < to->width; x++, out += 3) memcpy(out, row + 3 * (size_t)column[x], 3);
    }
    fac_release(column);
    return FAC_OK;
}

/* One pass along an axis; a pass that would change nothing only copies. */
static fac_status resize_axis(const fac_image *from, bool columns, int size, fac_interpolation how,
                              fac_image *to, fac_error *err) {
    int in = columns ? from->height : from->width;
    FAC_TRY(columns ? fac_image_new(from->width, size, "resize", to, err)
                    : fac_image_new(size, from->height, "resize", to, err));
    if (in == size) {
        memcpy(to->rgb, from->rgb, 3 * (size_t)from->width * (size_t)from->height);
        return FAC_OK;
    }
    fac_taps taps;
    bool ok = make_taps(in, size, how, &taps);
    if (ok) (columns ? resize_columns : resize_rows)(from, &taps, to);
    free_taps(&taps);
    return ok ? FAC_OK
              : fac_raise(err, FAC_E_NOMEM, "resize: no memory for the weights of %d to %d pixels",
                          in, size);
}

fac_status fac_image_resize(const fac_image *from, int width, int height, fac_interpolation how,
                            fac_image *out, fac_error *err) {
    if (!from->rgb || from->width < 1 || from->height < 1)
        return fac_raise(err, FAC_E_ARGUMENT, "resize: the image is empty");
    if (width < 1 || height < 1)
        return fac_raise(err, FAC_E_ARGUMENT, "resize: to %d x %d pixels", width, height);
    if (how != FAC_NEAREST && how != FAC_BILINEAR && how != FAC_BICUBIC)
        return fac_raise(err, FAC_E_ARGUMENT, "resize: there is no interpolation %d", (int)how);
    /* Rounding makes the order visible.  Rows come first but for images that lose much more height
     * than width: Pillow 13's rule (before, rows always came first). */
    int64_t less_height = (int64_t)from->height - height, less_width = (int64_t)from->width - width;
    bool columns_first = less_height > 0 && less_height > 2 * less_width;
    fac_image half = { 0 }, image = { 0 };
    fac_status status;
    if (how == FAC_NEAREST) {
        status = fac_image_new(width, height, "resize", &image, err);
        if (!status) status = resize_nearest(from, &image, err);
    } else {
        status = resize_axis(from, columns_first, columns_first ? height : width, how, &half, err);
        if (!status)
            status = resize_axis(&half, !columns_first, columns_first ? width : height, how, &image,
                                 err);
    }
    fac_image_free(&half);
    if (status)
        fac_image_free(&image);
    else
        *out = image;
    return status;
}
