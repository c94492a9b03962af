/* Feature maps of a layer side by side, each with the number of its channel. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "view/view_internal.h"

enum {
    MARGIN = 4,
    SMALL = 96,
    MOST = 256,
    MOST_SIDE = 1 << 13,
    DIGIT_HEIGHT = 5,
    DIGIT_WIDTH = 3,
    LABEL = DIGIT_HEIGHT + 3
};

typedef struct colour {
    uint8_t r, g, b;
} colour;
static const colour paper = { 24, 24, 28 }, ink = { 170, 170, 178 }, alarm = { 235, 64, 52 };

/* Digits of 3 x 5 pixels, a bit each, rows from the top. */
static const uint16_t digits[10] = { 075557, 026227, 071747, 071717, 055711,
                                     074717, 074757, 071244, 075757, 075717 };

typedef struct mosaic {
    const float *x; /* of the sample */
    int64_t count, height, width;
    int zoom, columns, label; /* label: rows above each picture */
    double limit;
    fac_image *image;
} mosaic;

static void dot(fac_image *to, int64_t x, int64_t y, colour c) {
    if (x < 0 || y < 0 || x >= to->width || y >= to->height) return;
    uint8_t *p = to->rgb + 3 * (y * to->width + x);
    p[0] = c.r;
    p[1] = c.g;
    p[2] = c.b;
}

/* From black over three colours, as bright to the eye as the number is large. */
static colour shade(double amount) {
    static const colour warm[] = {
        { 0, 0, 0 }, { 110, 14, 70 }, { 222, 73, 32 }, { 252, 176, 20 }, { 255, 255, 190 }
    };
    static const colour cold[] = {
        { 0, 0, 0 }, { 14, 48, 120 }, { 20, 110, 200 }, { 90, 180, 240 }, { 215, 245, 255 }
    };
    const double size = fmin(fabs(amount), 1) * 4;
    const colour *c = amount < 0 ? cold : warm;
    const int k = size < 3 ? (int)size : 3;
    const colour a = c[k], b = c[k + 1];
    const double part = size - k;
    return (colour){ (uint8_t)lround(a.r + part * (b.r - a.r)),
                     (uint8_t)lround(a.g + part * (b.g - a.g)),
                     (uint8_t)lround(a.b + part * (b.b - a.b)) };
}

static void write_number(fac_image *to, int64_t x, int64_t y, int64_t number, colour c) {
    int64_t power = 1;
    while (number / power > 9) power *= 10;
    for (; power; power /= 10, x += DIGIT_WIDTH + 1)
        for (int row = 0; row < DIGIT_HEIGHT; row++)
            for (int column = 0; column < DIGIT_WIDTH; column++) {
                const int bit = (DIGIT_HEIGHT - row) * DIGIT_WIDTH - 1 - column;
                if (digits[number / power % 10] >> bit & 1) dot(to, x + column, y + row, c);
            }
}

static void draw(const mosaic *m, int64_t k) {
    const float *x = m->x + k * m->height * m->width;
    const int64_t left = MARGIN + k % m->columns * (m->width * m->zoom + MARGIN);
    const int64_t top = MARGIN + k / m->columns * (m->height * m->zoom + m->label + MARGIN);
    bool dead = true;
    for (int64_t i = 0; i < m->height * m->width; i++) dead &= x[i] == 0;
    if (m->label) write_number(m->image, left, top, k, dead ? alarm : ink);
    for (int64_t row = 0; row < m->height * m->zoom; row++)
        for (int64_t column = 0; column < m->width * m->zoom; column++) {
            const double value = x[row / m->zoom * m->width + column / m->zoom];
            const double share = m->limit > 0 ? value / m->limit : 0;
            const colour c = isnan(value) ? alarm : shade(share);
            dot(m->image, left + column, top + m->label + row, c);
        }
}

static double largest(const mosaic *m) {
    double most = 0;
    for (int64_t i = 0; i < m->count * m->height * m->width; i++)
        if (isfinite(m->x[i])) most = fmax(most, fabs((double)m->x[i]));
    return most;
}

static int64_t at_most(int64_t x, int64_t most) { return x < most ? x : most; }

static fac_status draw_all(mosaic *m, const fac_mosaic *how, fac_image *out, fac_error *err) {
    const double shape = sqrt((double)m->count * (double)(m->height + m->label) / (double)m->width);
    m->zoom = m->width < SMALL ? (int)((SMALL + m->width - 1) / m->width) : 1;
    if (how->zoom > 0) m->zoom = how->zoom;
    m->columns = how->columns > 0 ? how->columns : (int)at_most((int64_t)ceil(shape), m->count);
    const int64_t rows = (m->count + m->columns - 1) / m->columns;
    if (m->width > MOST_SIDE || m->height > MOST_SIDE || m->zoom > MOST_SIDE || rows > MOST_SIDE ||
        m->columns > MOST_SIDE)
        return fac_raise(err, FAC_E_ARGUMENT, "a mosaic of %lld pictures is too large to draw",
                         (long long)m->count);
    const int64_t width = MARGIN + m->columns * (m->width * m->zoom + MARGIN);
    const int64_t height = MARGIN + rows * (m->height * m->zoom + m->label + MARGIN);
    if (width > MOST_SIDE || height > MOST_SIDE)
        return fac_raise(err, FAC_E_ARGUMENT, "a mosaic of %lld x %lld pixels is too large to draw",
                         (long long)width, (long long)height);
    fac_image image = { (int)width, (int)height, fac_alloc((size_t)(width * height), 3) };
    if (!image.rgb)
        return fac_raise_memory(err, "a mosaic of %lld x %lld", (long long)width,
                                (long long)height);
    for (int64_t i = 0; i < width * height; i++) dot(&image, i % width, i / width, paper);
    m->image = &image;
    m->limit = how->limit > 0 ? how->limit : largest(m);
    for (int64_t k = 0; k < m->count; k++) draw(m, k);
    *out = image;
    return FAC_OK;
}

fac_status fac_image_mosaic(const fac_tensor *t, const fac_mosaic *how, fac_image *out,
                            fac_error *err) {
    static const fac_mosaic usual;
    const fac_dims d = fac_tensor_type(t).dims;
    fac_tensor *as;
    if (!how) how = &usual;
    if ((d.n != 3 && d.n != 4) || fac_dims_count(&d) < 1 || how->sample < 0 ||
        how->sample >= d.d[0])
        return fac_raise(err, FAC_E_SHAPE,
                         "a mosaic needs a sample of a tensor [samples, channels, height, width]");
    const int64_t most = how->most > 0 ? how->most : MOST;
    mosaic m = { .count = d.n == 4 ? at_most(d.d[1], most) : 1,
                 .height = d.d[d.n - 2],
                 .width = d.d[d.n - 1],
                 .label = d.n == 4 ? LABEL : 0 };
    FAC_TRY(fac_tensor_convert(t, FAC_F32, &as, err));
    m.x = (const float *)fac_tensor_data(as) + how->sample * (fac_dims_count(&d) / d.d[0]);
    fac_status status = draw_all(&m, how, out, err);
    fac_tensor_free(as);
    return status;
}
