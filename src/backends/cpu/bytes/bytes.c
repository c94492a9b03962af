/* See bytes.h.  The sum that is wanted, sum (x - x_zero)(w - w_zero) + b, is
 *   sum x w - x_zero sum w + b  -  w_zero (sum x - n x_zero)
 * with the second and third term a number for each channel, computed before the tiles; the last one
 * is there only where w_zero is not 0, which weights of real models never have. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "backends/cpu/bytes/bytes_internal.h"
#include "backends/cpu/device/cpu.h"

typedef fac_byte_job job;
typedef fac_byte_seen seen;

enum { STRIPS = 8, PARTS = 4 }; /* bias, zero, factor, a pixel of zero points */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* ---- what is decided beforehand ---- */

/* Whether the kernel can read x where it lies. */
static bool in_place(const fac_byte_product *p) {
    const bool padded = p->pad[0] || p->pad[1] ||
                        (p->P - 1) * p->stride[0] + (p->R - 1) * p->dilation[0] >= p->H ||
                        (p->Q - 1) * p->stride[1] + (p->S - 1) * p->dilation[1] >= p->W;
    const bool whole =
        p->depthwise ? p->x.group == 1 && p->groups % 16 == 0 : p->x.channel == 1 && p->C % 4 == 0;
    return !padded && !p->raised && whole;
}

static void stage(fac_byte_product *p) {
    p->raised = p->x_signed && !p->kernels->signs;
    p->staged = !in_place(p);
    p->channels = p->depthwise ? 1 : up(p->C, 4) * 4;
    p->height = (p->P - 1) * p->stride[0] + (p->R - 1) * p->dilation[0] + 1;
    p->width = (p->Q - 1) * p->stride[1] + (p->S - 1) * p->dilation[1] + 1;
    if (p->height < p->H + p->pad[0]) p->height = p->H + p->pad[0];
    if (p->width < p->W + p->pad[1]) p->width = p->W + p->pad[1];
}

static void lay_out(fac_byte_product *p) {
    const int width = 2 * p->kernels->lanes;
    const bool along =
        p->groups == 1 && p->dilation[1] == 1 && fac_byte_seen_of(p).column == p->channels;
    p->kernel_R = (int)p->R;
    p->kernel_S = along ? 1 : (int)p->S;
    p->quads = (int)(p->channels * (along ? p->S : 1) / 4);
    p->panels = up(p->K, width);
    p->panel = p->kernel_R * p->kernel_S * fac_byte_packed_quads(p) * 4 * width;
}

/* Rows of y that follow each other in memory are one. */
static void cut_strips(fac_byte_product *p) {
    const seen x = fac_byte_seen_of(p);
    p->rows = p->P;
    p->columns = p->Q;
    const bool flat = p->R == 1 && p->S == 1 && p->y.row == p->Q * p->y.column &&
                      x.row * p->stride[0] == p->Q * x.column * p->stride[1] &&
                      (!p->sums_up || p->z.row == p->Q * p->z.column);
    if (flat) {
        p->rows = 1;
        p->columns = p->P * p->Q;
    }
    p->run = least(p->columns, p->kernels->run);
    if (p->kernels->begin) p->run = up(p->columns, up(p->columns, p->run)); /* all of one size */
    p->strips = p->rows * up(p->columns, p->run);
}

static void choose(const fac_byte_kernels *k, fac_byte_product *p) {
    p->kernels = k;
    stage(p);
    lay_out(p);
    cut_strips(p);
}

bool fac_byte_settle(const fac_cpu *c, fac_byte_product *p) {
    const double most = (double)INT_MAX;
    p->cpu = c;
    choose(c->bytes, p);
    if (c->bytes->few && (p->depthwise || p->run * p->quads < c->bytes->least))
        choose(c->bytes->few, p);
    p->by_rows = p->depthwise && p->kernels->depthwise && p->bytes && p->x.group == 1 &&
                 p->R <= FAC_BYTE_ROWS;
    if (p->kernels->by_taps && (p->groups < FAC_BYTE_CHANNELS || p->S > FAC_BYTE_ROWS))
        p->by_rows = false;
    const double x = (double)(p->images * p->groups) * (double)(p->H * p->W) * (double)p->C;
    const double w = (double)(p->groups * p->panels) * (double)p->panel;
    if ((double)p->channels * (double)(p->R * p->S) > most || w > most ||
        (double)(p->images * p->groups) * (double)p->strips > most)
        return false;
    p->by_panel = w > x && p->groups * p->panels >= c->pool.threads;
    const size_t outputs = (size_t)fac_byte_outputs(p);
    p->stage = p->staged ? fac_byte_lines((size_t)(p->images * fac_byte_seen_of(p).image) + 64) : 0;
    p->sums = fac_byte_lines((size_t)(p->groups * p->images * p->P * p->Q) * sizeof(int32_t));
    p->numbers = PARTS * fac_byte_lines(outputs * sizeof(int32_t));
    if (p->depthwise) p->sums = (size_t)(p->R * p->S) * outputs * sizeof(int32_t);
    return true;
}

size_t fac_byte_work(const fac_byte_product *p) { return p->numbers + p->sums + p->stage; }

double fac_byte_seconds(const fac_byte_product *p) {
    const double outputs = (double)(p->groups * p->images) * (double)(p->P * p->Q);
    const double terms = (double)(p->R * p->S * p->channels);
    const double width = (double)(p->panels * 2 * p->kernels->lanes);
    const double share = p->depthwise ? 0.4 : p->kernels->share;
    const double work = 2 * outputs * (p->depthwise ? terms : (terms + 8) * width);
    const double moved = p->by_rows ? 0 : (double)p->stage;
    const double bytes = outputs * (double)(p->K * (int64_t)fac_byte_size_of(p)) + moved;
    return fac_cpu_seconds(p->cpu, work, share, bytes);
}

/* ---- a run ---- */

static int byte_of(const void *v, bool sign, int64_t at) {
    if (!v) return 0;
    return sign ? ((const int8_t *)v)[at] : ((const uint8_t *)v)[at];
}

/* Those of n output channels from number `first` on, which the tiles have at `at`.  Whole channels
 * of each array or one number for all: loops without a division, which vectors can do. */
static void numbers_of(job *j, int64_t at, int64_t first, int64_t n, const int32_t *sum) {
    const fac_byte_product *p = j->p;
    const fac_byte_data *d = j->d;
    const int shift = p->w_signed ? 0 : 128, x_zero = j->x_zero;
    const uint32_t all = (uint32_t)(p->R * p->S * p->C) * (uint32_t)x_zero;
    const int64_t z0 = d->w_zeros > 1 ? first % d->w_zeros : 0;
    const int32_t *b = d->biases > 1 ? d->bias + first % d->biases : NULL;
    const uint32_t one_b = d->bias ? (uint32_t)d->bias[0] : 0;
    int32_t *restrict bias = j->bias + at, *restrict zero = j->zero + at;
    const int32_t one_z = byte_of(d->w_zero, p->w_signed, 0) - shift;
    int32_t any = 0;
    for (int64_t k = 0; k < n; k++) zero[k] = one_z;
    for (int64_t k = 0; k < n && d->w_zeros > 1; k++)
        zero[k] = byte_of(d->w_zero, p->w_signed, z0 + k) - shift;
    for (int64_t k = 0; k < n; k++) {
        const uint32_t own = b ? (uint32_t)b[k] : one_b;
        any |= zero[k];
        bias[k] = (int32_t)(own - (uint32_t)x_zero * (uint32_t)sum[k] + all * (uint32_t)zero[k]);
    }
    j->zeros |= any != 0;
    if (!p->bytes) return;
    const float x_scale = d->x_scale[0], y_scale = d->y_scale[0];
    const float *s = d->w_scales > 1 ? d->w_scale + first % d->w_scales : NULL;
    float *restrict factor = j->factor + at;
    for (int64_t k = 0; k < n; k++) factor[k] = x_scale * (s ? s[k] : d->w_scale[0]) / y_scale;
}

/* Bias, factor and zero point of each output channel. */
static void numbers(job *j) {
    const fac_byte_product *p = j->p;
    const int64_t width = p->panels * 2 * p->kernels->lanes;
    const int32_t *sum = fac_byte_sums(p, (void *)(uintptr_t)j->d->packed);
    if (p->depthwise) { /* outputs of all groups lie side by side */
        numbers_of(j, 0, 0, p->groups, sum);
        return;
    }
    for (int64_t g = 0; g < p->groups; g++)
        numbers_of(j, g * width, g * p->K, p->K, sum + g * width);
}

static void stage_pixel(const uint8_t *restrict from, int64_t n, uint8_t flip,
                        uint8_t *restrict to) {
    if (!flip) memcpy(to, from, (size_t)n);
    for (int64_t c = 0; c < n && flip; c++) to[c] = from[c] ^ flip;
}

/* Few channels of planes; what is beyond them meets weights of 0. */
static void stage_planes(const fac_byte_product *p, const uint8_t *x, int64_t n, uint8_t flip,
                         uint8_t *to) {
    const uint8_t *row[4];
    for (int c = 0; c < 4; c++) row[c] = x + (c < p->C ? c * p->x.channel : 0);
    fac_byte_interleave(row, 1, n, flip, to);
}

/* One row of the padded image. */
static void stage_row(void *arg, int i, int thread) {
    const job *j = arg;
    const fac_byte_product *p = j->p;
    const seen v = fac_byte_seen_of(p);
    const int64_t image = i / p->height, row = i % p->height, from = row - p->pad[0];
    const uint8_t flip = p->raised ? 128 : 0;
    uint8_t *to = j->stage + image * v.image + row * v.row;
    (void)thread;
    memset(to, j->x_zero, (size_t)v.row);
    if (from < 0 || from >= p->H) return;
    const uint8_t *x = (const uint8_t *)j->d->x + image * p->x.image + from * p->x.row;
    const int64_t columns = least(p->W, p->width - p->pad[1]);
    to += p->pad[1] * v.column;
    const bool dense = p->depthwise ? p->x.group == 1 : p->groups == 1 && p->x.channel == 1;
    const int64_t side_by_side = p->depthwise ? p->groups : p->C;
    for (int64_t q = 0; q < columns && dense; q++)
        stage_pixel(x + q * p->x.column, side_by_side, flip, to + q * v.column);
    if (dense) return;
    if (p->groups == 1 && p->channels == 4 && p->x.column == 1) {
        stage_planes(p, x, columns, flip, to);
        return;
    }
    for (int64_t g = 0; g < p->groups; g++)
        for (int64_t c = 0; c < p->C; c++) {
            const uint8_t *a = x + g * p->x.group + c * p->x.channel;
            uint8_t *b = to + g * v.group + c;
            for (int64_t q = 0; q < columns; q++) b[q * v.column] = a[q * p->x.column] ^ flip;
        }
}

/* The sum of what each output of one row sees. */
static void sum_row(void *arg, int i, int thread) {
    const job *j = arg;
    const fac_byte_product *p = j->p;
    const seen v = fac_byte_seen_of(p);
    const int64_t row = i % p->P, image = i / p->P % p->images, g = i / p->P / p->images;
    const bool i8 = p->x_signed && !p->raised;
    (void)thread;
    for (int64_t q = 0; q < p->Q; q++) {
        const uint8_t *x = j->x + g * v.group + image * v.image + row * p->stride[0] * v.row +
                           q * p->stride[1] * v.column;
        int32_t sum = 0;
        for (int64_t r = 0; r < p->R; r++)
            for (int64_t s = 0; s < p->S; s++)
                for (int64_t c = 0; c < p->C; c++)
                    sum += byte_of(x + r * p->dilation[0] * v.row, i8,
                                   s * p->dilation[1] * v.column + c);
        j->sums[i * p->Q + q] = sum;
    }
}

/* Where a pixel is in x, y and z, and its number among sums. */
typedef struct place {
    const uint8_t *x, *z;
    char *y;
    int64_t sum;
} place;
/* Where strips of a group begin: once for all panels. */
typedef struct strips {
    int64_t group;
    int n;
    place at[STRIPS];
} strips;

static place row_of(const job *j, const seen *v, int64_t group, int64_t image, int64_t row) {
    const fac_byte_product *p = j->p;
    const int64_t x = group * v->group + image * v->image + row * p->stride[0] * v->row;
    const int64_t y = group * p->y.group + image * p->y.image + row * p->y.row;
    const int64_t z = group * p->z.group + image * p->z.image + row * p->z.row;
    return (place){ j->x + x, p->sums_up ? (const uint8_t *)j->d->z + z : NULL,
                    (char *)j->d->y + y * (int64_t)fac_byte_size_of(p),
                    (group * p->images + image) * p->P * p->Q + row * p->columns };
}

/* Strips follow each other, so nothing is divided but for the first one. */
static strips strips_of(const job *j, int64_t group, int64_t first, int64_t last) {
    const fac_byte_product *p = j->p;
    const seen v = fac_byte_seen_of(p);
    const int64_t across = p->strips / p->rows, x = p->stride[1] * v.column,
                  y = p->y.column * (int64_t)fac_byte_size_of(p), z = p->sums_up ? p->z.column : 0;
    int64_t image = first / p->strips, row = first % p->strips / across, at = first % across;
    strips s = { .group = group, .n = (int)(last - first) };
    place from = row_of(j, &v, group, image, row);
    for (int k = 0; k < s.n; k++) {
        const int64_t q = least(at * p->run, p->columns - p->run);
        s.at[k] =
            (place){ from.x + q * x, from.z ? from.z + q * z : NULL, from.y + q * y, from.sum + q };
        if (++at < across || k + 1 == s.n) continue;
        at = 0;
        row = row + 1 < p->rows ? row + 1 : 0;
        image += row == 0;
        from = row_of(j, &v, group, image, row);
    }
    return s;
}

static void panel_of(const job *j, int64_t panel, const strips *of) {
    const fac_byte_product *p = j->p;
    const seen v = fac_byte_seen_of(p);
    const int64_t width = 2 * p->kernels->lanes, shift = panel * width;
    const int64_t row = of->group * p->panels + panel, at = row * width;
    fac_byte_tile t = { .x_pixel = p->stride[1] * v.column,
                        .x_row = p->dilation[0] * v.row,
                        .x_column = p->dilation[1] * v.column,
                        .n = (int)p->run,
                        .R = p->kernel_R,
                        .S = p->kernel_S,
                        .quads = p->quads,
                        .x_signed = p->x_signed && !p->raised,
                        .bias = j->bias + at,
                        .zero = j->zeros ? j->zero + at : NULL,
                        .w = (const int8_t *)j->d->packed + row * p->panel,
                        .factor = p->bytes ? j->factor + at : NULL,
                        .lo = j->lo,
                        .hi = j->hi,
                        .y_zero = j->y_zero,
                        .y_pixel = p->y.column * (int64_t)fac_byte_size_of(p),
                        .columns = (int)least(width, p->K - shift),
                        .sum = p->sums_up ? &j->sum : NULL,
                        .z_pixel = p->z.column };
    for (int s = 0; s < of->n; s += 2) {
        const bool two = s + 1 < of->n;
        const place *a = &of->at[s], *b = two ? a + 1 : a;
        t.x0 = a->x;
        t.y0 = a->y + shift * (int64_t)fac_byte_size_of(p);
        t.sum0 = j->sums + a->sum;
        t.x1 = two ? b->x : NULL;
        t.y1 = b->y + shift * (int64_t)fac_byte_size_of(p);
        t.sum1 = j->sums + b->sum;
        t.z0 = p->sums_up ? a->z + shift : NULL;
        t.z1 = p->sums_up ? b->z + shift : NULL;
        p->kernels->tile(&t);
    }
}

static void begin(const fac_byte_product *p) {
    if (p->kernels->begin) p->kernels->begin((int)p->run, p->quads);
}
static void end(const fac_byte_product *p) {
    if (p->kernels->end) p->kernels->end();
}

static void by_panel(void *arg, int i, int thread) {
    const job *j = arg;
    const fac_byte_product *p = j->p;
    const int64_t all = p->images * p->strips;
    (void)thread;
    begin(p);
    for (int64_t first = 0; first < all; first += STRIPS) {
        const strips s = strips_of(j, i / p->panels, first, least(first + STRIPS, all));
        panel_of(j, i % p->panels, &s);
    }
    end(p);
}

static void by_strips(void *arg, int i, int thread) {
    const job *j = arg;
    const fac_byte_product *p = j->p;
    const int64_t all = p->images * p->strips, blocks = up(all, STRIPS);
    const int64_t first = i % blocks * STRIPS;
    const strips s = strips_of(j, i / blocks, first, least(first + STRIPS, all));
    (void)thread;
    begin(p);
    for (int64_t panel = 0; panel < p->panels; panel++) panel_of(j, panel, &s);
    end(p);
}

/* As qlinear_add has them: v is what the convolution makes. */
static fac_byte_sum sum_of(const job *j) {
    const fac_byte_product *p = j->p;
    const fac_byte_data *d = j->d;
    const float v_zero = (float)j->y_zero, z_zero = (float)byte_of(d->z_zero, p->y_signed, 0),
                y_zero = (float)byte_of(d->sum_zero, p->y_signed, 0);
    fac_byte_sum s = { .rv = d->y_scale[0] / d->sum_scale[0],
                       .rz = d->z_scale[0] / d->sum_scale[0],
                       .lo = p->y_signed ? -128 : 0,
                       .hi = p->y_signed ? 127 : 255,
                       .sign = p->y_signed,
                       .z_first = p->z_first };
    s.off = p->z_first ? y_zero - fmaf(s.rz, z_zero, s.rv * v_zero)
                       : y_zero - fmaf(s.rv, v_zero, s.rz * z_zero);
    return s;
}

void fac_byte_run(const fac_byte_product *p, const fac_byte_data *d) {
    const fac_pool *pool = &p->cpu->pool;
    char *work = d->work;
    const size_t part = p->numbers / PARTS;
    job j = { .p = p,
              .d = d,
              .bias = (int32_t *)(void *)work,
              .zero = (int32_t *)(void *)(work + part),
              .factor = (float *)(void *)(work + 2 * part),
              .pixel = (uint8_t *)work + 3 * part,
              .sums = (int32_t *)(void *)(work + p->numbers),
              .stage = (uint8_t *)work + p->numbers + p->sums };
    memset(work, 0, p->numbers);
    j.x_zero = byte_of(d->x_zero, p->x_signed, 0) + (p->raised ? 128 : 0);
    j.y_zero = byte_of(d->y_zero, p->y_signed, 0);
    j.lo = (float)((p->y_signed ? -128 : 0) - j.y_zero);
    j.hi = (float)((p->y_signed ? 127 : 255) - j.y_zero);
    j.x = p->staged ? j.stage : d->x;
    numbers(&j);
    if (p->sums_up) j.sum = sum_of(&j);
    if (p->by_rows && !j.zeros) {
        fac_byte_run_rows(&j, part);
        return;
    }
    if (p->staged) fac_parallel(pool, (int)(p->images * p->height), stage_row, &j);
    if (p->depthwise) {
        fac_byte_run_depthwise(&j);
        return;
    }
    if (j.zeros) fac_parallel(pool, (int)(p->groups * p->images * p->P), sum_row, &j);
    if (p->by_panel)
        fac_parallel(pool, (int)(p->groups * p->panels), by_panel, &j);
    else
        fac_parallel(pool, (int)(p->groups * up(p->images * p->strips, STRIPS)), by_strips, &j);
}
