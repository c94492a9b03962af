/* Many small pictures from one tensor, side by side: samples of a batch, filters of a convolution.
 */
#include <math.h>
#include "base/clamp.h"
#include "base/error.h"
#include "base/memory.h"
#include "view/view_internal.h"

enum { MARGIN = 2, MOST_SIDE = 1 << 14 };
static const uint8_t paper = 255;

typedef struct tiles {
    const float *x;
    int64_t count, channels, height, width; /* channels that are one picture together: 1 or 3 */
    int zoom, columns;
    double lo, scale; /* a number becomes (x - lo) scale, 0..255 */
    const fac_grid *how;
} tiles;

static uint8_t level(const tiles *t, float x, int64_t channel) {
    double y = t->how->std[0] > 0 ? 255 * (x * t->how->std[channel] + t->how->mean[channel])
                                  : (x - t->lo) * t->scale;
    return (uint8_t)(fmin(fmax(y, 0), 255) + 0.5); /* NaN is black */
}

static void find_range(tiles *t, int64_t n) {
    double lo = INFINITY, hi = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(t->x[i])) continue;
        lo = fmin(lo, t->x[i]);
        hi = fmax(hi, t->x[i]);
    }
    t->lo = lo;
    t->scale = hi > lo ? 255 / (hi - lo) : 0;
}

static void draw(const tiles *t, int64_t tile, fac_image *out) {
    int64_t left = MARGIN + tile % t->columns * (t->width * t->zoom + MARGIN);
    int64_t top = MARGIN + tile / t->columns * (t->height * t->zoom + MARGIN);
    const float *x = t->x + tile * t->channels * t->height * t->width;
    for (int64_t row = 0; row < t->height * t->zoom; row++)
        for (int64_t column = 0; column < t->width * t->zoom; column++) {
            uint8_t *p = out->rgb + 3 * ((top + row) * out->width + left + column);
            int64_t at = row / t->zoom * t->width + column / t->zoom;
            for (int c = 0; c < 3; c++) {
                int64_t channel = t->channels == 3 ? c : 0;
                p[c] = level(t, x[channel * t->height * t->width + at], channel);
            }
        }
}

/* As wide as high, or nearly. */
static int columns_of(const tiles *t) {
    int n = (int)ceil(sqrt((double)t->count * (double)t->height / (double)t->width));
    return (int)fac_clamp(n, 1, t->count);
}

static fac_status draw_all(tiles *t, fac_image *out, fac_error *err) {
    t->zoom = t->how->zoom > 0 ? t->how->zoom : 1;
    t->columns = t->how->columns > 0 ? t->how->columns : columns_of(t);
    int64_t rows = (t->count + t->columns - 1) / t->columns;
    if (t->width > MOST_SIDE || t->height > MOST_SIDE || t->zoom > MOST_SIDE ||
        t->columns > MOST_SIDE || rows > MOST_SIDE)
        return fac_raise(err, FAC_E_ARGUMENT, "a grid of %lld pictures is too large to draw",
                         (long long)t->count);
    int64_t width = MARGIN + t->columns * (t->width * t->zoom + MARGIN),
            height = MARGIN + rows * (t->height * t->zoom + MARGIN);
    if (width > MOST_SIDE || height > MOST_SIDE)
        return fac_raise(err, FAC_E_ARGUMENT, "a grid of %lld x %lld pixels is too large to draw",
                         (long long)width, (long long)height);
    fac_image image = { (int)width, (int)height, fac_alloc((size_t)(width * height), 3) };
    if (!image.rgb)
        return fac_raise_memory(err, "a grid of %lld x %lld", (long long)width, (long long)height);
    for (int64_t i = 0; i < 3 * width * height; i++) image.rgb[i] = paper;
    for (int64_t tile = 0; tile < t->count; tile++) draw(t, tile, &image);
    *out = image;
    return FAC_OK;
}

fac_status fac_image_grid(const fac_tensor *t, const fac_grid *how, fac_image *out,
                          fac_error *err) {
    static const fac_grid usual;
    fac_dims d = fac_tensor_type(t).dims;
    if (!how) how = &usual;
    if (d.n != 4 || fac_dims_count(&d) < 1)
        return fac_raise(err, FAC_E_SHAPE,
                         "a grid of pictures needs a tensor [count, channels, height, width]");
    tiles all = {
        .count = d.d[0], .channels = d.d[1], .height = d.d[2], .width = d.d[3], .how = how
    };
    if (all.channels != 3) { /* each channel is a grey picture of its own */
        all.count *= all.channels;
        all.channels = 1;
    }
    if (how->most > 0 && all.count > how->most) all.count = how->most;
    fac_tensor *as;
    FAC_TRY(fac_tensor_convert(t, FAC_F32, &as, err));
    all.x = fac_tensor_data(as);
    find_range(&all, all.count * all.channels * all.height * all.width);
    fac_status status = draw_all(&all, out, err);
    fac_tensor_free(as);
    return status;
}
