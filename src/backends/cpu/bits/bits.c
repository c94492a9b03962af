/* See bits.h: pixels become planes of bits with zeros around them,
    and the bits that each window has
 * are counted; then strips of pixels meet parts of the output channels. */
#include <string.h>
#include "backends/cpu/bits/bits.h"
#include "backends/cpu/device/cpu.h"
#include "ops/basis.h"

enum { STRIPS = 8, LINE = 64, WORD = 32, KINDS = 32, LONGEST = 1024 };

static size_t lines(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* ---- kinds of rows: how many taps lie inside of the image ---- */

/* The taps [first, end) of output `at` that lie inside. */
typedef struct taps { int64_t first, end; } taps;
static taps taps_of(int64_t at, int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                    int64_t pad) {
    const int64_t from = at * stride - pad;
    taps t = { 0, kernel };
    while (t.first < kernel && from + t.first * dilation < 0) t.first++;
    while (t.end > t.first && from + (t.end - 1) * dilation >= in) t.end--;
    return t;
}
static taps row_taps(const fac_bit_conv *p, int64_t at) {
    return taps_of(at, p->H, p->R, p->stride[0], p->dilation[0], p->pad[0]);
}
static taps column_taps(const fac_bit_conv *p, int64_t at) {
    return taps_of(at, p->W, p->S, p->stride[1], p->dilation[1], p->pad[1]);
}

/* Neighbouring outputs mostly have the same taps: the kind of each, and the taps of a kind. */
typedef struct kinds { int64_t n; int of[LONGEST]; taps taps[KINDS]; } kinds;
typedef taps taps_at(const fac_bit_conv *p, int64_t at);
static bool kinds_of(const fac_bit_conv *p, taps_at *f, int64_t outputs, kinds *to) {
    to->n = 0;
    if (outputs > LONGEST) return false;
    for (int64_t k = 0; k < outputs; k++) {
        const taps t = f(p, k);
        const taps last = to->n ? to->taps[to->n - 1] : (taps){ -1, -1 };
        if (t.first != last.first || t.end != last.end) {
            if (to->n == KINDS) return false;
            to->taps[to->n++] = t;
        }
        to->of[k] = (int)to->n - 1;
    }
    return true;
}

/* ---- what is decided beforehand ---- */

/* Where a padded image's planes lie, in words; where the counts of windows do. */
static int64_t pixel_words(const fac_bit_conv *p) { return p->groups * p->words; }
static int64_t plane_words(const fac_bit_conv *p) { return p->height * p->width * pixel_words(p); }
static int64_t outputs_of(const fac_bit_conv *p) {
    return p->parts * p->chunks * p->kernels->lanes;
}

/* Images of one pixel are the pixels of one image. */
static void turn_rows(fac_bit_conv *p) {
    if (p->H * p->W != 1 || p->P * p->Q != 1 || p->R * p->S != 1) return;
    p->W = p->Q = p->images;
    p->images = 1;
    p->x.column = p->x.image;
    p->y.column = p->y.image;
    p->stride[1] = 1;
}

static bool sizes_fit(const fac_bit_conv *p) {
    const double bits = (double)p->images * p->planes * (double)plane_words(p);
    const double weights = (double)outputs_of(p) * p->vectors * (double)(p->R * p->S * p->words);
    return bits < 1e9 && weights < 1e9 && (double)p->C * (double)(p->R * p->S) < 1e8;
}

/* Pixels of +-1 need to know what lies inside of the image. */
static bool borders(fac_bit_conv *p) {
    kinds rows, columns;
    p->rows = p->columns = 1;
    if (!p->sign) return true;
    if (!kinds_of(p, row_taps, p->P, &rows) || !kinds_of(p, column_taps, p->Q, &columns))
        return false;
    p->rows = rows.n;
    p->columns = columns.n;
    return true;
}

bool fac_bit_settle(const fac_cpu *c, fac_bit_conv *p) {
    turn_rows(p);
    p->cpu = c;
    p->kernels = c->bits;
    p->words = up(p->C, WORD);
    p->height = most((p->P - 1) * p->stride[0] + (p->R - 1) * p->dilation[0] + 1, p->H + p->pad[0]);
    p->width = most((p->Q - 1) * p->stride[1] + (p->S - 1) * p->dilation[1] + 1, p->W + p->pad[1]);
    p->vectors = p->of_weights > 2 ? 4 : 2;
    p->chunks = p->of_weights > 1 ? 1 : 2;
    const int64_t of_group = up(p->K, p->chunks * p->kernels->lanes);
    p->parts = p->groups * of_group;
    p->run = least(p->kernels->run, p->Q);
    p->strips = p->P * up(p->Q, p->run);
    const bool along = p->groups == 1 && p->dilation[1] == 1;
    p->kernel_S = along ? 1 : (int)p->S;
    p->kernel_words = (int)(p->words * (along ? p->S : 1));
    if (!sizes_fit(p) || !borders(p)) return false;
    const int64_t threads = p->cpu->pool.threads, blocks = up(p->images * p->strips, STRIPS);
    p->by_part = blocks < 2 * threads && p->parts >= threads;
    p->numbers = lines((size_t)(outputs_of(p) * (p->of_weights + 1)) * sizeof(float));
    p->counts =
        lines((size_t)(p->images * p->planes * p->groups * p->height * p->width) * sizeof(int32_t));
    p->bits = lines((size_t)(p->images * p->planes * plane_words(p)) * sizeof(uint32_t));
    return true;
}

double fac_bit_seconds(const fac_bit_conv *p) {
    const double pixels = (double)(p->images * p->strips * p->run);
    const double rows = (double)(p->parts * p->vectors * p->kernels->lanes) * p->planes;
    const double products = pixels * rows * (double)(p->R * p->S * p->words * WORD);
    const double in = (double)(p->H * p->W * p->groups * p->C);
    const double out = (double)(p->P * p->Q * p->groups * p->K);
    const double moved = 3 * sizeof(float) * (double)p->images * (in + out);
    return fac_cpu_seconds(p->cpu, 2 * products, p->kernels->share, moved) + 2e-6;
}

static size_t weight_words(const fac_bit_conv *p) {
    return (size_t)(p->parts * p->R * p->S * p->words * p->vectors * p->kernels->lanes);
}
static size_t inside_words(const fac_bit_conv *p) {
    return p->sign ? (size_t)(p->rows * p->columns * p->of_weights * outputs_of(p)) : 0;
}
size_t fac_bit_packed(const fac_bit_conv *p) {
    return (weight_words(p) + inside_words(p)) * sizeof(uint32_t);
}
size_t fac_bit_work(const fac_bit_conv *p) { return p->numbers + p->counts + p->bits; }

/* ---- weights ---- */

/* Output channel k of all as its part and lane; its plane m is a vector of the part. */
typedef struct place { int64_t part, chunk, lane; } place;
static place place_of(const fac_bit_conv *p, int64_t k) {
    const int64_t lanes = p->kernels->lanes, width = lanes * p->chunks, group = k / p->K,
        in = k % p->K;
    return (place){ group * up(p->K, width) + in / width, in % width / lanes, in % lanes };
}
/* Of all channels as they lie in tables. */
static int64_t column_of(const fac_bit_conv *p, int64_t k) {
    const place at = place_of(p, k);
    return (at.part * p->chunks + at.chunk) * p->kernels->lanes + at.lane;
}

static bool bit_of(const uint8_t *row, int64_t k) { return row[k / 8] >> k % 8 & 1; }

/* One plane of one channel into its lane. */
static void pack_channel(const fac_bit_conv *p, const uint8_t *row, int64_t k, int m,
                         uint32_t *to) {
    const int64_t lanes = p->kernels->lanes, window = p->R * p->S;
    const place at = place_of(p, k);
    const int64_t vector = p->of_weights > 1 ? m : at.chunk;
    const int64_t each = window * p->words * 2 * lanes;       /* a pair of vectors of a part */
    uint32_t *pair =
        to + (at.part * (p->vectors / 2) + vector / 2) * each + vector % 2 * lanes + at.lane;
    for (int64_t t = 0; t < window; t++)
        for (int64_t c = 0; c < p->C; c++)
            if (bit_of(row, c * window + t))
                pair[(t * p->words + c / WORD) * 2 * lanes] |= (uint32_t)1 << c % WORD;
}

/* Sums of the weights that lie inside, for pixels of each kind. */
static void sum_inside(const fac_bit_conv *p, const uint8_t *row, taps r, taps s, int32_t *to) {
    int32_t sum = 0;
    for (int64_t c = 0; c < p->C; c++)
        for (int64_t i = r.first; i < r.end; i++)
            for (int64_t k = s.first; k < s.end; k++)
                sum += bit_of(row, (c * p->R + i) * p->S + k) ? 1 : -1;
    *to = sum;
}

static void inside_channel(const fac_bit_conv *p, const uint8_t *row, int64_t k, int m,
                           const kinds *rows, const kinds *columns, int32_t *to) {
    const int64_t width = outputs_of(p), column = column_of(p, k);
    for (int64_t r = 0; r < rows->n; r++)
        for (int64_t s = 0; s < columns->n; s++) {
            int32_t *at = to + ((r * columns->n + s) * p->of_weights + m) * width + column;
            sum_inside(p, row, rows->taps[r], columns->taps[s], at);
        }
}

void fac_bit_pack_weights(const fac_bit_conv *p, const uint8_t *bits, int64_t bytes, void *to) {
    const int64_t outputs = p->groups * p->K;
    int32_t *inside = (int32_t *)to + weight_words(p);
    kinds rows, columns;
    kinds_of(p, row_taps, p->P, &rows);
    kinds_of(p, column_taps, p->Q, &columns);
    memset(to, 0, fac_bit_packed(p));
    for (int m = 0; m < p->of_weights; m++)
        for (int64_t k = 0; k < outputs; k++) {
            const uint8_t *row = bits + (m * outputs + k) * bytes;
            pack_channel(p, row, k, m, to);
            if (p->sign) inside_channel(p, row, k, m, &rows, &columns, inside);
        }
}

static uint64_t mixed(uint64_t h, int64_t x) { return (h ^ (uint64_t)x) * 1099511628211u; }
static uint64_t mixed_kinds(uint64_t h, const kinds *k) {
    for (int64_t i = 0; i < k->n; i++) h = mixed(mixed(h, k->taps[i].first), k->taps[i].end);
    return mixed(h, k->n);
}

/* The sizes of the weight,
    and of signs which taps may lie outside; not how many images there are. */
uint64_t fac_bit_kind(const fac_bit_conv *p) {
    const int64_t all[] = { p->kernels->lanes, p->groups, p->C, p->K, p->R, p->S, p->of_weights,
                            p->sign };
    uint64_t h = 14695981039346656037u;
    kinds rows, columns;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) h = mixed(h, all[k]);
    if (!p->sign) return h;
    kinds_of(p, row_taps, p->P, &rows);
    kinds_of(p, column_taps, p->Q, &columns);
    return mixed_kinds(mixed_kinds(h, &rows), &columns);
}

/* ---- run ---- */

typedef struct job {
    const fac_bit_conv *p;
    const fac_bit_data *d;
    fac_bit_pack        pack;           /* what all words have in common */
    float               u[FAC_BIT_PLANES];
    float              *f, *b;          /* [plane of w][outputs], [outputs] */
    int32_t            *counts;
    uint32_t           *bits;
    const int32_t      *inside;
    kinds               rows, columns;  /* of signs */
} job;

static void levels(job *j) {
    const fac_bit_conv *p = j->p;
    double v[FAC_BASIS_BITS] = { 0 };
    fac_basis b;
    j->pack = (fac_bit_pack){ .relu = p->relu, .sign = p->sign, .planes = p->planes };
    j->u[0] = 1;
    if (p->sign) return;
    for (int k = 0; k < p->planes; k++) v[k] = j->u[k] = j->d->x_basis[k];
    fac_basis_of(v, 1, p->planes, true, true, &b);
    j->pack.thresholds = b.levels - 1;
    j->pack.start = b.code[0];
    for (int k = 0; k + 1 < b.levels; k++) {
        j->pack.threshold[k] = (float)b.threshold[k];
        for (int i = 0; i < p->planes; i++)
            j->pack.flips[i] |= ((b.code[k] ^ b.code[k + 1]) >> i & 1) << k;
    }
}

/* Factors and biases as the lanes have them. */
static void numbers(job *j) {
    const fac_bit_conv *p = j->p;
    const fac_bit_data *d = j->d;
    const int64_t width = outputs_of(p), outputs = p->groups * p->K;
    memset(j->d->work, 0, p->numbers);
    for (int64_t k = 0; k < outputs; k++) {
        const int64_t at = column_of(p, k);
        if (d->b) j->b[at] = d->b[k];
        for (int m = 0; m < p->of_weights; m++) {
            const float v = d->w_basis[m * outputs + k];
            j->f[m * width + at] = d->scale ? v * d->scale[k] : v;
        }
    }
}

/* A row of a padded image: all planes of all groups, and how many bits its pixels have. */
static void pack_row(void *arg, int i, int thread) {
    const job *j = arg;
    const fac_bit_conv *p = j->p;
    const int64_t image = i / p->height, row = i % p->height, from = row - p->pad[0];
    const int64_t pixel = pixel_words(p), plane = plane_words(p), lanes = p->kernels->lanes;
    uint32_t *to = j->bits + image * p->planes * plane + row * p->width * pixel;
    (void)thread;
    for (int k = 0; k < p->planes; k++)
        memset(to + k * plane, 0, (size_t)(p->width * pixel) * sizeof *to);
    if (from >= 0 && from < p->H) {
        fac_bit_pack t = j->pack;
        t.x_pixel = p->x.column;
        t.x_block = p->x.block;
        t.pixels = least(p->W, p->width - p->pad[1]);
        t.to_pixel = pixel;
        t.to_plane = plane;
        for (int64_t g = 0; g < p->groups; g++)
            for (int64_t k = 0; k < p->words; k++) {
                const int64_t c = g * p->C + k * WORD;
                t.x = j->d->x + image * p->x.image + from * p->x.row + c / lanes * p->x.block;
                t.channels = (int)least(p->C - k * WORD, WORD);
                t.to = to + p->pad[1] * pixel + g * p->words + k;
                p->kernels->pack(&t);
            }
    }
    for (int k = 0; k < p->planes; k++)
        for (int64_t g = 0; g < p->groups; g++) {
            const int64_t at = ((image * p->planes + k) * p->groups + g) * p->height + row;
            p->kernels->count(to + k * plane + g * p->words, pixel, (int)p->words, p->width,
                              j->counts + at * p->width);
        }
}

/* A strip of outputs: its image, row and first column. */
typedef struct strip { int64_t image, row, column; } strip;
static strip strip_of(const fac_bit_conv *p, int64_t at) {
    const int64_t across = up(p->Q, p->run), in = at % p->strips;
    return (strip){ at / p->strips, in / across, least(in % across * p->run, p->Q - p->run) };
}

/* The bits that the windows of its pixels have, [plane][FAC_BIT_RUN]. */
static void window_counts(const job *j, const strip *s, int64_t group, int32_t *to) {
    const fac_bit_conv *p = j->p;
    for (int k = 0; k < p->planes; k++) {
        const int64_t first = ((s->image * p->planes + k) * p->groups + group) * p->height;
        const int32_t *from = j->counts + (first + s->row * p->stride[0]) * p->width
                              + s->column * p->stride[1];
        for (int64_t i = 0; i < p->run; i++, from += p->stride[1]) {
            int32_t sum = 0;
            for (int64_t r = 0; r < p->R; r++)
                for (int64_t c = 0; c < p->S; c++)
                    sum += from[r * p->dilation[0] * p->width + c * p->dilation[1]];
            to[k * FAC_BIT_RUN + i] = sum;
        }
    }
}

static const uint32_t *bits_at(const job *j, const strip *s, int64_t group, int plane) {
    const fac_bit_conv *p = j->p;
    const int64_t pixel = s->row * p->stride[0] * p->width + s->column * p->stride[1];
    return j->bits + (s->image * p->planes + plane) * plane_words(p) + pixel * pixel_words(p)
           + group * p->words;
}

/* Popcounts of a strip, or of two where x has one plane: [strip][pair][plane][pixel][2][lanes]. */
enum { PAIR = FAC_BIT_RUN * 2 * 16, SUMS = 2 * FAC_BIT_PLANES * PAIR };

static void multiply(const job *j, const strip *s, int strips, int64_t part, int32_t *acc) {
    const fac_bit_conv *p = j->p;
    const int64_t lanes = p->kernels->lanes, pixel = pixel_words(p),
        group = part / (p->parts / p->groups);
    const int64_t each = p->R * p->S * p->words * 2 * lanes;
    fac_bit_tile t = { .x_pixel = p->stride[1] * pixel, .x_row = p->dilation[0] * p->width * pixel,
        .x_column = p->dilation[1] * pixel, .n = (int)p->run, .R = (int)p->R, .S = p->kernel_S,
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

static void finish(const job *j, const strip *s, const int32_t *sums, int64_t part,
                   const int32_t *acc) {
    const fac_bit_conv *p = j->p;
    const int64_t lanes = p->kernels->lanes, of_group = p->parts / p->groups,
        group = part / of_group;
    const int64_t width = outputs_of(p), kind_size = p->of_weights * width;
    const int64_t first = part % of_group * p->chunks * lanes;      /* channel of the group */
    for (int64_t chunk = 0; chunk < p->chunks && first + chunk * lanes < p->K; chunk++) {
        const int64_t column = (part * p->chunks + chunk) * lanes,
            k = group * p->K + first + chunk * lanes;
        fac_bit_finish t = { .n = (int)p->run, .planes = p->planes, .of_weights = p->of_weights,
            .pixel = 2 * lanes, .plane = PAIR, .b = j->b + column, .sums = sums,
                .inside_plane = width,
            .y_pixel = p->y.column };
        memcpy(t.u, j->u, sizeof t.u);
        for (int m = 0; m < p->of_weights; m++) {
            const int64_t vector = p->of_weights > 1 ? m : chunk;
            t.acc[m] = acc + vector / 2 * FAC_BIT_PLANES * PAIR + vector % 2 * lanes;
            t.f[m] = j->f + m * width + column;
        }
        for (int64_t i = 0; p->sign && i < p->run; i++) {
            const int64_t kind = j->rows.of[s->row] * p->columns + j->columns.of[s->column + i];
            t.inside[i] = j->inside + kind * kind_size + column;
        }
        t.y = j->d->y + s->image * p->y.image + k / lanes * p->y.block + s->row * p->y.row
              + s->column * p->y.column;
        p->kernels->finish(&t);
    }
}

/* Strips first .. last - 1 of the parts of a group. */
static void block(const job *j, int64_t from, int64_t to, int64_t first, int64_t last) {
    const fac_bit_conv *p = j->p;
    int32_t acc[2 * SUMS] __attribute__((aligned(LINE))),
        sums[STRIPS][FAC_BIT_PLANES * FAC_BIT_RUN];
    strip s[STRIPS + 1];
    for (int64_t at = first; at < last; at += STRIPS) {
        const int64_t n = least(STRIPS, last - at);
        int64_t counted = -1;
        for (int64_t i = 0; i < n; i++) s[i] = strip_of(p, at + i);
        for (int64_t part = from; part < to; part++) {
            const int64_t group = part / (p->parts / p->groups);
            for (int64_t i = 0; i < n && group != counted; i++)
                window_counts(j, &s[i], group, sums[i]);
            counted = group;
            for (int64_t i = 0; i < n;) {
                const int two = p->planes == 1 && p->vectors == 2 && i + 1 < n ? 2 : 1;
                multiply(j, &s[i], two, part, acc);
                for (int k = 0; k < two; k++)
                    finish(j, &s[i + k], sums[i + k], part, acc + k * SUMS);
                i += two;
            }
        }
    }
}

static void by_part(void *arg, int i, int thread) {
    const job *j = arg;
    (void)thread;
    block(j, i, i + 1, 0, j->p->images * j->p->strips);
}

static void by_strips(void *arg, int i, int thread) {
    const job *j = arg;
    const int64_t all = j->p->images * j->p->strips, first = (int64_t)i * STRIPS;
    (void)thread;
    block(j, 0, j->p->parts, first, least(first + STRIPS, all));
}

void fac_bit_run(const fac_bit_conv *p, const fac_bit_data *d) {
    const fac_pool *pool = &p->cpu->pool;
    char *work = d->work;
    job j = { .p = p, .d = d, .f = (float *)(void *)work,
              .counts = (int32_t *)(void *)(work + p->numbers),
              .bits = (uint32_t *)(void *)(work + p->numbers + p->counts),
              .inside = (const int32_t *)d->packed + weight_words(p) };
    j.b = j.f + outputs_of(p) * p->of_weights;
    levels(&j);
    numbers(&j);
    if (p->sign) kinds_of(p, row_taps, p->P, &j.rows);
    if (p->sign) kinds_of(p, column_taps, p->Q, &j.columns);
    fac_parallel(pool, (int)(p->images * p->height), pack_row, &j);
    if (p->by_part) fac_parallel(pool, (int)p->parts, by_part, &j);
    else fac_parallel(pool, (int)up(p->images * p->strips, STRIPS), by_strips, &j);
}
