/* See bits.h: pixels become planes of bits with zeros around them, and the bits that each window
 * has are counted; then strips of pixels meet parts of the output channels. */
#include <string.h>
#include "backends/cpu/bits/bits_internal.h"

enum {
    LINE = 64,
    OVER = 8, /* bytes that may be read after the last */
    WORD_BYTES = sizeof(uint32_t)
};

static size_t lines(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- what is decided beforehand ---- */

/* Images of one pixel are the pixels of one image. */
static void turn_rows(fac_bit_conv *p) {
    if (p->H * p->W != 1 || p->P * p->Q != 1 || p->R * p->S != 1) return;
    p->W = p->Q = p->images;
    p->images = 1;
    p->x.column = p->x.image;
    p->y.column = p->y.image;
    p->z.column = p->z.image;
    p->stride[1] = 1;
}

static bool sizes_fit(const fac_bit_conv *p) {
    const double bits = (double)p->images * p->planes * (double)fac_bit_plane(p);
    const double weights =
        (double)fac_bit_outputs(p) * (double)p->vectors * (double)(p->R * p->S * p->words);
    return bits < 1e9 && weights < 1e9 && (double)p->C * (double)(p->R * p->S) < 1e8;
}

/* Pixels of +-1 need to know what lies inside of the image. */
static bool borders(fac_bit_conv *p) {
    fac_bit_kinds rows, columns;
    p->rows = p->columns = 1;
    if (!p->sign) return true;
    if (!fac_bit_row_kinds(p, &rows) || !fac_bit_column_kinds(p, &columns)) return false;
    p->rows = rows.n;
    p->columns = columns.n;
    return true;
}

/* Codes without zeros around them are read where they lie. */
static void place_bits(fac_bit_conv *p) {
    const bool whole = p->height == p->H && p->width == p->W && !p->pad[0] && !p->pad[1];
    p->direct = p->coded && whole && p->C % FAC_BIT_WORD == 0;
    p->bits_plane = fac_bit_plane(p);
    p->bits_image = p->planes * p->bits_plane;
    if (!p->direct) return;
    p->bits_image = p->bits_plane;
    p->bits_plane *= p->images;
}

/* Threads share out parts where there are few strips, but not parts that write bits of one byte. */
static bool shares_parts(const fac_bit_conv *p) {
    const int64_t threads = p->cpu->pool.threads;
    if (p->codes && p->chunks * p->kernels->lanes % 8) return false;
    return fac_bit_up(p->images * p->strips, FAC_BIT_STRIPS) < 2 * threads && p->parts >= threads;
}

static void measure_scratch(fac_bit_conv *p) {
    const int limits = p->codes ? 1 << p->y_planes : 0;
    const int64_t own = p->direct ? 0 : p->images * p->planes * fac_bit_plane(p);
    const int64_t pixels = p->images * p->planes * p->groups * p->height * p->width;
    const int64_t numbers = fac_bit_outputs(p) * (p->of_weights + 1 + limits);
    p->numbers = lines((size_t)numbers * sizeof(float));
    p->counts = lines((size_t)pixels * sizeof(int32_t));
    p->bits = lines((size_t)own * sizeof(uint32_t) + OVER);
}

bool fac_bit_settle(const fac_cpu *c, fac_bit_conv *p) {
    turn_rows(p);
    p->cpu = c;
    p->kernels = c->bits;
    p->words = fac_bit_up(p->C, FAC_BIT_WORD);
    p->height = most((p->P - 1) * p->stride[0] + (p->R - 1) * p->dilation[0] + 1, p->H + p->pad[0]);
    p->width = most((p->Q - 1) * p->stride[1] + (p->S - 1) * p->dilation[1] + 1, p->W + p->pad[1]);
    p->table = c->bit_tables;
    if (p->tables && !p->table) return false;
    p->vectors = p->of_weights > 2 ? 4 : 2;
    p->chunks = p->of_weights > 1 ? 1 : 2;
    if (p->tables) p->chunks = FAC_TABLE_OUTPUTS / p->kernels->lanes;
    p->parts = p->groups * fac_bit_up(p->K, p->chunks * p->kernels->lanes);
    p->across = p->Q;
    p->run = fac_bit_least(p->kernels->run, p->Q);
    if (p->tables) fac_bit_tables_strips(p);
    p->strips = p->P * fac_bit_up(p->across, p->run);
    const bool along = p->groups == 1 && p->dilation[1] == 1;
    p->kernel_S = along ? 1 : (int)p->S;
    p->kernel_words = (int)(p->words * (along ? p->S : 1));
    if (!sizes_fit(p) || !borders(p)) return false;
    p->by_part = shares_parts(p);
    place_bits(p);
    if (p->tables && !fac_bit_tables_settle(p)) return false;
    measure_scratch(p);
    return true;
}

/* Strips of few pixels end a vector of channels at a time, unless tables have whole words. */
static double end_seconds(const fac_bit_conv *p) {
    if (p->tables && p->sets == 1 && !p->sign && p->K % FAC_BIT_WORD == 0) return 0;
    const double pixels = (double)(p->images * p->strips) * (1 + p->halves);
    return pixels * (double)(p->parts * p->chunks) * p->kernels->end /
           (fac_cpu_speeds.hertz * p->cpu->pool.threads);
}

double fac_bit_seconds(const fac_bit_conv *p, bool floats) {
    const double pixels = (double)(p->images * p->strips * p->run);
    const double rows = (double)(p->parts * p->vectors * p->kernels->lanes) * p->planes;
    const double products = pixels * rows * (double)(p->R * p->S * p->words * FAC_BIT_WORD);
    const double in = (double)(p->H * p->W * p->groups * p->C);
    const double out = (double)(p->P * p->Q * p->groups * p->K);
    const double read = p->coded ? in * p->planes / 8 : in * sizeof(float);
    const double written = floats ? out * sizeof(float) : out * p->y_planes / 8;
    const double moved = 3 * (double)p->images * (read + written);
    const double end = end_seconds(p);
    if (p->tables) return fac_bit_tables_seconds(p, moved) + end;
    return fac_cpu_seconds(p->cpu, 2 * products, p->kernels->share, moved) + end +
           fac_cpu_speeds.bits_step;
}

size_t fac_bit_work(const fac_bit_conv *p) {
    return p->numbers + p->counts + p->bits + p->tables_bytes;
}

/* ---- run ---- */

/* Limits as the lanes have them. */
static void put_limits(fac_bit_job *j) {
    const fac_bit_conv *p = j->p;
    const int64_t width = fac_bit_outputs(p), outputs = p->groups * p->K;
    const int rows = 1 + (j->y.sign ? 1 : j->y.thresholds);
    for (int k = 0; j->d->limits && k < rows; k++)
        for (int64_t g = 0; g < p->groups; g++)
            memcpy(j->limits + k * width + g * (width / p->groups),
                   j->d->limits + k * outputs + g * p->K, (size_t)p->K * sizeof *j->limits);
}

/* Factors and biases as the lanes have them. */
static void put_numbers(fac_bit_job *j) {
    const fac_bit_conv *p = j->p;
    const fac_bit_data *d = j->d;
    const int64_t width = fac_bit_outputs(p), outputs = p->groups * p->K;
    memset(d->work, 0, p->numbers);
    for (int64_t g = 0; g < p->groups; g++) {
        const int64_t to = g * (width / p->groups), from = g * p->K;
        for (int64_t k = 0; d->b && k < p->K; k++) j->b[to + k] = d->b[from + k];
        for (int m = 0; m < p->of_weights; m++)
            for (int64_t k = 0; k < p->K; k++) {
                const float v = d->w_basis[m * outputs + from + k];
                j->f[m * width + to + k] = d->scale ? v * d->scale[from + k] : v;
            }
    }
    put_limits(j);
}

fac_bit_strip fac_bit_strip_of(const fac_bit_conv *p, int64_t at) {
    const int64_t across = fac_bit_up(p->Q, p->run), in = at % p->strips;
    const int64_t column = fac_bit_least(in % across * p->run, p->Q - p->run);
    return (fac_bit_strip){ at / p->strips, in / across, column };
}

static inline void add_counts(const int32_t *from, int64_t step, int n, int32_t *to) {
    for (int i = 0; i < n; i++) to[i] += from[i * step];
}

void fac_bit_window_counts(const fac_bit_job *j, const fac_bit_strip *s, int64_t group,
                           int32_t *to) {
    const fac_bit_conv *p = j->p;
    const bool whole = p->run == FAC_BIT_RUN && p->stride[1] == 1;
    for (int k = 0; k < p->planes; k++, to += FAC_BIT_RUN) {
        const int64_t first = ((s->image * p->planes + k) * p->groups + group) * p->height;
        const int32_t *from =
            j->counts + (first + s->row * p->stride[0]) * p->width + s->column * p->stride[1];
        memset(to, 0, FAC_BIT_RUN * sizeof *to);
        for (int64_t r = 0; r < p->R; r++)
            for (int64_t c = 0; c < p->S; c++) {
                const int32_t *at = from + r * p->dilation[0] * p->width + c * p->dilation[1];
                if (whole)
                    add_counts(at, 1, FAC_BIT_RUN, to);
                else
                    add_counts(at, p->stride[1], (int)p->run, to);
            }
    }
}

static const uint32_t *bits_at(const fac_bit_job *j, const fac_bit_strip *s, int64_t group,
                               int plane) {
    const fac_bit_conv *p = j->p;
    const int64_t pixel = s->row * p->stride[0] * p->width + s->column * p->stride[1];
    return j->bits + s->image * p->bits_image + plane * p->bits_plane + pixel * fac_bit_pixel(p) +
           group * p->words;
}

/* Popcounts of a strip, or of two where x has one plane: [strip][pair][plane][pixel][2][lanes]. */
enum { PAIR = FAC_BIT_RUN * 2 * 16, SUMS = 2 * FAC_BIT_PLANES * PAIR };

static void multiply(const fac_bit_job *j, const fac_bit_strip *s, int strips, int64_t part,
                     int32_t *acc) {
    const fac_bit_conv *p = j->p;
    const int64_t lanes = p->kernels->lanes, pixel = fac_bit_pixel(p),
                  group = part / (p->parts / p->groups);
    const int64_t each = p->R * p->S * p->words * 2 * lanes;
    fac_bit_tile t = { .x_pixel = p->stride[1] * pixel,
                       .x_row = p->dilation[0] * p->width * pixel,
                       .x_column = p->dilation[1] * pixel,
                       .n = (int)p->run,
                       .R = (int)p->R,
                       .S = p->kernel_S,
                       .words = p->kernel_words };
    for (int64_t pair = 0; pair < p->vectors / 2; pair++) {
        t.w = (const uint32_t *)j->d->packed + (part * (p->vectors / 2) + pair) * each;
        for (int k = 0; k < p->planes; k += 2) {
            const bool both = strips == 2 || k + 1 < p->planes;
            t.x0 = bits_at(j, &s[0], group, k);
            t.acc0 = acc + (pair * FAC_BIT_PLANES + k) * PAIR;
            t.x1 = NULL;
            if (both)
                t.x1 = strips == 2 ? bits_at(j, &s[1], group, 0) : bits_at(j, &s[0], group, k + 1);
            t.acc1 = strips == 2 ? acc + SUMS : t.acc0 + PAIR;
            p->kernels->tile(&t);
        }
    }
}

/* Where a strip has channel k. */
#define PLACE(of)                                                                                  \
    (s->image * (of).image + k / lanes * (of).block + s->row * (of).row + s->column * (of).column)

void fac_bit_finish_part(const fac_bit_job *j, const fac_bit_strip *s, const int32_t *sums,
                         int64_t part, const int32_t *acc, fac_bit_finish *t) {
    const fac_bit_conv *p = j->p;
    const int64_t lanes = p->kernels->lanes, of_group = p->parts / p->groups,
                  group = part / of_group;
    const int64_t width = t->inside_plane, kind_size = p->of_weights * width;
    const int64_t first = part % of_group * p->chunks * lanes; /* channel of the group */
    const int64_t K = p->groups * p->K, words = fac_bit_up(K, FAC_BIT_WORD);
    const int64_t at = ((s->image * p->P + s->row) * p->Q + s->column) * words;
    for (int i = 0; i < t->planes * FAC_BIT_RUN; i++) t->halves[i] = 0.5f * (float)sums[i];
    t->sums = sums;
    for (int64_t chunk = 0; chunk < p->chunks && first + chunk * lanes < p->K; chunk++) {
        const int64_t column = (part * p->chunks + chunk) * lanes,
                      k = group * p->K + first + chunk * lanes;
        t->b = j->b + column;
        for (int m = 0; m < p->of_weights; m++) {
            const int64_t vector = p->of_weights > 1 ? m : chunk;
            t->acc[m] = acc + vector / 2 * FAC_BIT_PLANES * PAIR + vector % 2 * lanes;
            if (p->tables) t->acc[m] = acc + m * FAC_BIT_PLANES * t->plane + chunk * lanes;
            t->f[m] = j->f + m * width + column;
        }
        for (int64_t i = 0; p->sign && i < p->run; i++) {
            const int64_t kind = j->rows.of[s->row] * p->columns + j->columns.of[s->column + i];
            t->inside[i] = j->inside + kind * kind_size + column;
        }
        if (j->d->limits) t->limits = j->limits + column;
        if (j->d->z) t->z = j->d->z + PLACE(p->z);
        if (j->d->y) t->y = j->d->y + PLACE(p->y);
        if (p->codes) t->q = (uint8_t *)(j->d->q + at) + k / 8;
        t->q_shift = (int)(k % 8);
        t->channels = (int)fac_bit_least(K - k, lanes);
        p->kernels->finish(t);
    }
}

/* Strips first .. last - 1 of the parts of a group. */
static void block(const fac_bit_job *j, int64_t from, int64_t to, int64_t first, int64_t last) {
    const fac_bit_conv *p = j->p;
    int32_t acc[2 * SUMS] __attribute__((aligned(LINE))),
        sums[FAC_BIT_STRIPS][FAC_BIT_PLANES * FAC_BIT_RUN];
    fac_bit_strip s[FAC_BIT_STRIPS + 1];
    fac_bit_finish end = j->end;
    const bool of_words = fac_bit_by_words(j);
    for (int64_t at = first; at < last; at += FAC_BIT_STRIPS) {
        const int64_t n = fac_bit_least(FAC_BIT_STRIPS, last - at);
        int64_t counted = -1;
        for (int64_t i = 0; i < n; i++) s[i] = fac_bit_strip_of(p, at + i);
        for (int64_t part = from; part < to; part++) {
            const int64_t group = part / (p->parts / p->groups);
            for (int64_t i = 0; i < n && group != counted; i++)
                fac_bit_window_counts(j, &s[i], group, sums[i]);
            counted = group;
            for (int64_t i = 0; i < n;) {
                const int two = p->planes == 1 && p->vectors == 2 && i + 1 < n ? 2 : 1;
                multiply(j, &s[i], two, part, acc);
                for (int k = 0; k < two; k++) {
                    if (of_words)
                        fac_bit_finish_words(j, &s[i + k], sums[i + k], part, acc + k * SUMS);
                    else
                        fac_bit_finish_part(j, &s[i + k], sums[i + k], part, acc + k * SUMS, &end);
                }
                i += two;
            }
        }
    }
}

static void by_part(void *arg, int i, int thread) {
    const fac_bit_job *j = arg;
    (void)thread;
    block(j, i, i + 1, 0, j->p->images * j->p->strips);
}

static void by_strips(void *arg, int i, int thread) {
    const fac_bit_job *j = arg;
    const int64_t all = j->p->images * j->p->strips, first = (int64_t)i * FAC_BIT_STRIPS;
    (void)thread;
    block(j, 0, j->p->parts, first, fac_bit_least(first + FAC_BIT_STRIPS, all));
}

/* Channels after the last one have no bits, and no part to write them. */
static void clear_codes(const fac_bit_job *j) {
    const fac_bit_conv *p = j->p;
    const int64_t K = p->groups * p->K, words = fac_bit_up(K, FAC_BIT_WORD);
    if (K % FAC_BIT_WORD == 0) return;
    memset(j->d->q, 0, (size_t)(j->y.planes * p->images * p->P * p->Q * words) * sizeof *j->d->q);
}

static void prepare_end(fac_bit_job *j) {
    const fac_bit_conv *p = j->p;
    const int64_t words = fac_bit_up(p->groups * p->K, FAC_BIT_WORD);
    j->end = (fac_bit_finish){ .n = (int)p->run,
                               .planes = p->planes,
                               .of_weights = p->of_weights,
                               .pixel = 2 * p->kernels->lanes,
                               .plane = PAIR,
                               .inside_plane = fac_bit_outputs(p),
                               .y_pixel = p->y.column,
                               .z_pixel = p->z.column,
                               .relu = p->y_relu,
                               .codes = p->codes ? &j->y : NULL,
                               .limits_row = fac_bit_outputs(p),
                               .q_pixel = words * WORD_BYTES,
                               .q_plane = p->images * p->P * p->Q * words * WORD_BYTES };
    j->end.u[0] = 1;
    memcpy(j->end.times, p->times, sizeof p->times);
    for (int k = 0; !p->sign && k < p->planes; k++) j->end.u[k] = j->d->x_basis[k];
    if (!p->tables) return;
    j->end.planes = p->sets;
    j->end.pixel = FAC_TABLE_OUTPUTS;
    j->end.plane = FAC_BIT_RUN * FAC_TABLE_OUTPUTS;
    if (p->sets > 1) return;
    j->end.u[0] = j->end.u[p->unit];
    j->end.times[0] = 1;
}

static void prepare(fac_bit_job *j) {
    const fac_bit_conv *p = j->p;
    const fac_bit_data *d = j->d;
    char *work = d->work;
    j->f = (float *)(void *)work;
    j->b = j->f + fac_bit_outputs(p) * p->of_weights;
    j->limits = (int32_t *)(void *)(j->b + fac_bit_outputs(p));
    j->counts = (int32_t *)(void *)(work + p->numbers);
    j->own = (uint32_t *)(void *)(work + p->numbers + p->counts);
    j->inside = (const int32_t *)d->packed + fac_bit_weight_words(p);
    fac_bit_levels_of(p->sign ? NULL : d->x_basis, p->planes, p->relu, &j->x);
    prepare_end(j);
    if (p->codes) fac_bit_levels_of(d->y_basis, p->y_planes, p->q_relu, &j->y);
    if (p->sign) fac_bit_row_kinds(p, &j->rows);
    if (p->sign) fac_bit_column_kinds(p, &j->columns);
}

void fac_bit_run(const fac_bit_conv *p, const fac_bit_data *d) {
    const fac_pool *pool = &p->cpu->pool;
    fac_bit_job j = { .p = p, .d = d };
    prepare(&j);
    put_numbers(&j);
    if (p->codes) clear_codes(&j);
    fac_bit_pixels(&j);
    if (p->tables)
        fac_bit_tables_run(&j, (uint8_t *)j.own + p->bits,
                           (const uint8_t *)d->packed + fac_bit_packed(p) -
                               fac_bit_tables_parts(p));
    else if (p->by_part)
        fac_parallel(pool, (int)p->parts, by_part, &j);
    else
        fac_parallel(pool, (int)fac_bit_up(p->images * p->strips, FAC_BIT_STRIPS), by_strips, &j);
}
