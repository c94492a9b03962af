/* Augmentation: where the pixels of a changed image come from, what is cut out of it, and
 * normalization. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/rng.h"
#include "data/image/augment.h"

double fac_sample_draw(const fac_drawn *s, fac_draw what) {
    const uint64_t i = (uint64_t)s->sample * FAC_DRAWS + (uint64_t)what;
    return fac_random_uniform(s->seed, fac_stream(s->epoch, FAC_STREAM_AUGMENT), i);
}

static double between(double lo, double hi, double part) { return lo + (hi - lo) * part; }

/* ---- geometry ---- */

/* Where pixel (x, y) of the result comes from: the image at (a x + b y + c, d x + e y + f), pixels
 * at whole numbers. */
typedef struct map {
    double a, b, c, d, e, f;
} map;

/* First by `first`, then what that gives by `then`. */
static map compose(const map *then, const map *first) {
    const map *t = then, *m = first;
    return (map){ t->a * m->a + t->b * m->d,        t->a * m->b + t->b * m->e,
                  t->a * m->c + t->b * m->f + t->c, t->d * m->a + t->e * m->d,
                  t->d * m->b + t->e * m->e,        t->d * m->c + t->e * m->f + t->f };
}

static map shifted(const fac_augment *a, const fac_drawn *s, double width) {
    const double places = 2 * a->crop + 1;
    map m = { 1, 0, 0, 0, 1, 0 };
    if (a->crop) {
        m.c = floor(places * fac_sample_draw(s, FAC_DRAW_RIGHT)) - a->crop;
        m.f = floor(places * fac_sample_draw(s, FAC_DRAW_DOWN)) - a->crop;
    }
    if (a->flip && fac_sample_draw(s, FAC_DRAW_FLIP) < 0.5) {
        m.a = -1;
        m.c = width - 1 - m.c;
    }
    return m;
}

/* A window of part of the area and a shape between 1 / ratio and ratio (even on a logarithmic
 * scale), scaled to the image. */
static map resized(const fac_augment *a, const fac_drawn *s, double width, double height) {
    const double part = between(a->scale, 1, fac_sample_draw(s, FAC_DRAW_AREA)),
                 most = log(a->ratio > 0 ? a->ratio : 4.0 / 3);
    const double shape = exp(between(-most, most, fac_sample_draw(s, FAC_DRAW_SHAPE)));
    const double w = fmin(1, sqrt(part * shape)), h = fmin(1, sqrt(part / shape));
    const double left = width * (1 - w) * fac_sample_draw(s, FAC_DRAW_LEFT);
    const double top = height * (1 - h) * fac_sample_draw(s, FAC_DRAW_TOP);
    return (map){
        w, 0, left + w / 2 - 0.5, 0, h, top + h / 2 - 0.5
    }; /* centres of pixels are at halves */
}

static map rotated(const fac_augment *a, const fac_drawn *s, double width, double height) {
    const double pi = 3.14159265358979323846;
    const double angle =
        between(-a->rotate, a->rotate, fac_sample_draw(s, FAC_DRAW_ANGLE)) * pi / 180;
    const double x = (width - 1) / 2, y = (height - 1) / 2, c = cos(angle), n = sin(angle);
    return (map){ c, -n, x - c * x + n * y, n, c, y - n * x - c * y };
}

typedef struct place {
    int64_t height, width;
} place;

/* Exact: whole shifts and mirror images take bytes as they are.  Black outside. */
static void copy_plane(const uint8_t *from, const place *p, const map *m, const float table[256],
                       float *to) {
    const int64_t right = (int64_t)m->c, down = (int64_t)m->f, step = (int64_t)m->a;
    for (int64_t y = 0; y < p->height; y++) {
        const int64_t i = y + down;
        const bool inside = i >= 0 && i < p->height;
        for (int64_t x = 0; x < p->width; x++) {
            const int64_t k = x * step + right;
            *to++ = table[inside && k >= 0 && k < p->width ? from[i * p->width + k] : 0];
        }
    }
}

/* Between the four pixels around; what lies more than half a pixel outside is black. */
static float bilinear(const uint8_t *from, const place *p, double x, double y) {
    const double w = (double)(p->width - 1), h = (double)(p->height - 1);
    if (!(x >= -0.5 && x <= w + 0.5 && y >= -0.5 && y <= h + 0.5)) return 0;
    x = fmin(fmax(x, 0), w);
    y = fmin(fmax(y, 0), h);
    const int64_t k = (int64_t)x, i = (int64_t)y, right = k < p->width - 1,
                  down = i < p->height - 1 ? p->width : 0;
    const uint8_t *at = from + i * p->width + k;
    const double u = x - (double)k, v = y - (double)i;
    return (float)((1 - v) * ((1 - u) * at[0] + u * at[right]) +
                   v * ((1 - u) * at[down] + u * at[down + right]));
}

static void sample_plane(const uint8_t *from, const place *p, const map *m, float *to) {
    for (int64_t y = 0; y < p->height; y++)
        for (int64_t x = 0; x < p->width; x++)
            *to++ = bilinear(from, p, m->a * (double)x + m->b * (double)y + m->c,
                             m->d * (double)x + m->e * (double)y + m->f);
}

/* ---- what is cut out ---- */

/* Rows top..bottom, columns left..right of every plane become 0: with a normalized image that is
 * its mean. */
static void clear(float *x, int64_t channels, const place *p, int64_t top, int64_t bottom,
                  int64_t left, int64_t right) {
    if (top < 0) top = 0;
    if (left < 0) left = 0;
    if (bottom > p->height) bottom = p->height;
    if (right > p->width) right = p->width;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t y = top; y < bottom && left < right; y++)
            memset(x + (c * p->height + y) * p->width + left, 0,
                   (size_t)(right - left) * sizeof *x);
}

/* A square around a random pixel; it may hang over the edge (DeVries & Taylor 2017). */
static void cutout(const fac_augment *a, const fac_drawn *s, int64_t channels, const place *p,
                   float *x) {
    const int64_t top =
        (int64_t)((double)p->height * fac_sample_draw(s, FAC_DRAW_CUT_Y)) - a->cutout / 2;
    const int64_t left =
        (int64_t)((double)p->width * fac_sample_draw(s, FAC_DRAW_CUT_X)) - a->cutout / 2;
    clear(x, channels, p, top, top + a->cutout, left, left + a->cutout);
}

/* A rectangle of 2 to 33 % of the area and of shape 0.3 to 3.3 (Zhong et al. 2017). */
static void erase(const fac_augment *a, const fac_drawn *s, int64_t channels, const place *p,
                  float *x) {
    if (!(fac_sample_draw(s, FAC_DRAW_ERASE) < a->erase)) return;
    const double part = between(0.02, 0.33, fac_sample_draw(s, FAC_DRAW_ERASE_AREA));
    const double shape = exp(between(log(0.3), log(3.3), fac_sample_draw(s, FAC_DRAW_ERASE_SHAPE)));
    const double h = (double)p->height * fmin(1, sqrt(part / shape)),
                 w = (double)p->width * fmin(1, sqrt(part * shape));
    const int64_t top = (int64_t)(((double)p->height - h) * fac_sample_draw(s, FAC_DRAW_ERASE_TOP));
    const int64_t left =
        (int64_t)(((double)p->width - w) * fac_sample_draw(s, FAC_DRAW_ERASE_LEFT));
    clear(x, channels, p, top, top + (int64_t)(h + 0.5), left, left + (int64_t)(w + 0.5));
}

/* ---- one image ---- */

static float normal(const fac_dataset *d, int64_t c, double byte) {
    return (float)((byte / 255 - d->mean[c]) / (d->std[c] != 0 ? d->std[c] : 1));
}

void fac_augment_tables(const fac_dataset *d, fac_byte_tables *t) {
    for (int64_t c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++) t->value[c][v] = normal(d, c, v);
}

/* To planes 0..255, which colours are made for. */
static void to_bytes(const fac_augment *a, const fac_drawn *s, const uint8_t *from,
                     int64_t channels, const place *p, const map *m, float *to) {
    const int64_t plane = p->height * p->width;
    const bool whole = !(a->scale > 0) && !(a->rotate > 0);
    float table[256];
    for (int v = 0; v < 256; v++) table[v] = (float)v;
    for (int64_t c = 0; c < channels; c++)
        if (whole)
            copy_plane(from + c * plane, p, m, table, to + c * plane);
        else
            sample_plane(from + c * plane, p, m, to + c * plane);
    fac_augment_colour(a, s, channels, plane, to);
}

static map map_of(const fac_augment *a, const fac_drawn *s, const place *p) {
    const double width = (double)p->width, height = (double)p->height;
    map m = shifted(a, s, width), more;
    if (a->rotate > 0) {
        more = rotated(a, s, width, height);
        m = compose(&more, &m);
    }
    if (a->scale > 0) {
        more = resized(a, s, width, height);
        m = compose(&more, &m);
    }
    return m;
}

void fac_augment_image(const fac_dataset *d, const fac_byte_tables *t, const fac_augment *a,
                       const fac_drawn *s, float *to) {
    const int64_t channels = d->item.d[0];
    const place p = { d->item.d[1], d->item.d[2] };
    const int64_t plane = p.height * p.width;
    const uint8_t *from = d->bytes + s->sample * channels * plane;
    const map m = map_of(a, s, &p);
    const bool floats = a->scale > 0 || a->rotate > 0 || a->brightness > 0 || a->contrast > 0 ||
                        a->saturation > 0 || a->hue > 0;
    if (floats) to_bytes(a, s, from, channels, &p, &m, to);
    for (int64_t c = 0; c < channels; c++) {
        const int64_t k = c < 3 ? c : 0;
        if (!floats)
            copy_plane(from + c * plane, &p, &m, t->value[k], to + c * plane);
        else
            for (int64_t i = c * plane; i < (c + 1) * plane; i++)
                to[i] = normal(d, k, (double)to[i]);
    }
    if (a->cutout) cutout(a, s, channels, &p, to);
    if (a->erase > 0) erase(a, s, channels, &p, to);
}

fac_status fac_augment_check(const fac_augment *a, const fac_dataset *d, fac_error *err) {
    const struct {
        const char *name;
        double x, most;
    } ranges[] = { { "crop", a->crop, 1 << 20 },
                   { "resize", a->scale, 1 },
                   { "resize ratio", a->ratio, 100 },
                   { "rotate", a->rotate, 180 },
                   { "brightness", a->brightness, 100 },
                   { "contrast", a->contrast, 100 },
                   { "saturation", a->saturation, 100 },
                   { "hue", a->hue, 0.5 },
                   { "cutout", a->cutout, 1 << 20 },
                   { "erase", a->erase, 1 },
                   { "mixup", a->mixup, 1000 },
                   { "shift", a->shift, 1 },
                   { "gain", a->gain, 60 },
                   { "noise", a->noise, 100 } };
    enum { IMAGES = 11 }; /* of these are for images, the others for waveforms */
    bool images = a->flip, mixes = a->mixup > 0, sounds = false;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (!(ranges[i].x >= 0 && ranges[i].x <= ranges[i].most))
            return fac_raise(err, FAC_E_ARGUMENT, "augmentation: %s is %g, it must be 0 to %g",
                             ranges[i].name, ranges[i].x, ranges[i].most);
        if (ranges[i].x > 0 && i < IMAGES && strcmp(ranges[i].name, "mixup")) images = true;
        if (ranges[i].x > 0 && i >= IMAGES) sounds = true;
    }
    if (a->ratio > 0 && a->ratio < 1)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "augmentation: resize ratio is %g, it must be at least 1", a->ratio);
    if (images && (!d->bytes || d->item.n != 3))
        return fac_raise(err, FAC_E_ARGUMENT,
                         "augmentation is for images; of other numbers only mixup can be made");
    if (sounds && ((!d->values && !d->cuts) || d->item.n != 1))
        return fac_raise(err, FAC_E_ARGUMENT,
                         "augmentation: shift, gain and noise are for waveforms");
    if (mixes && !d->bytes && !d->values && !d->cuts)
        return fac_raise(err, FAC_E_ARGUMENT, "mixup: texts cannot be mixed");
    if (mixes && d->classes < 1)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "mixup: the data set does not say how many classes it has");
    return FAC_OK;
}
