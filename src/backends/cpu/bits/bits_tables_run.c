/* Convolutions of bits by tables of sums (bits_tables.h): the run.  A thread takes a band of rows
 * of an image, makes the tables of a few rows at a time and looks sums up in them while they are in
 * its caches.  Where there are few pixels threads share the tables of whole images, and each takes
 * some of the outputs. */
#include <string.h>
#include "backends/cpu/bits/bits_internal.h"

typedef struct work {
    const fac_bit_job *j;
    uint8_t *tables;       /* of all threads, or of images */
    uint8_t *room;         /* of all threads */
    const uint8_t *parts;  /* of tables */
    const int16_t *limits; /* NULL: by numbers */
    bool words;            /* 32 channels at once, of one set */
    int64_t image, images; /* at once, by parts */
} work;

/* ---- tables ---- */

/* The row of every set: those of a set follow `rows` rows of tables after those of another. */
static void build_row(const work *w, int64_t image, int64_t row, int64_t rows, int thread,
                      uint8_t *to) {
    const fac_bit_conv *p = w->j->p;
    const int64_t pixel = fac_bit_pixel(p);
    for (int k = 0; k < p->sets; k++)
        for (int64_t g = 0; g < p->groups; g++) {
            const int first = p->sets == 1 ? 0 : k;
            fac_bit_build t = { .planes = p->sets == 1 ? p->planes : 1,
                                .groups = (int)p->lookups,
                                .pixels = p->table_width,
                                .bits_pixel = pixel,
                                .room = w->room + (size_t)thread * p->room_bytes,
                                .to_pixel = fac_bit_pixel_bytes(p) };
            t.to = to + k * rows * fac_bit_row_bytes(p) + g * p->lookups * p->table->table;
            for (int n = 0; n < t.planes; n++) {
                const int plane = first + n;
                t.bits[n] = w->j->bits + image * p->bits_image + plane * p->bits_plane +
                            row * p->width * pixel + g * p->words;
                t.times[n] = p->times[plane];
                t.parts[n] = w->parts + fac_bit_tables_parts(p) / (size_t)p->planes * (size_t)plane;
            }
            if (p->halves) t.second = t.bits[0] + p->apart * p->stride[1] * pixel;
            p->table->build(&t);
        }
}

/* ---- sums and what becomes of them ---- */

enum { SET = FAC_BIT_RUN * FAC_TABLE_OUTPUTS, PLANE = FAC_BIT_PLANES * SET };

/* Strips of `rows` rows below each other, of which rows of tables are at x. */
typedef struct area {
    fac_bit_strip strip;
    int rows;
    const uint8_t *const *x;
    int64_t group, first_part; /* of channels; its first part */
    const int32_t *windows;    /* what those of all columns have, [row][set][width] */
    int64_t windows_row;
    fac_bit_finish end; /* scratch */
} area;

/* The end of a part, of whose strips sums, windows and the place are still to come. */
static fac_bit_compare end_of(const work *w, const area *a, int64_t part, int64_t plane) {
    const fac_bit_conv *p = w->j->p;
    const fac_bit_finish *end = &w->j->end;
    const int64_t first = (part - a->first_part) * FAC_TABLE_OUTPUTS, k = a->group * p->K + first;
    const int64_t channels = fac_bit_least(p->K - first, FAC_TABLE_OUTPUTS);
    fac_bit_compare t = { .rows = a->rows,
                          .n = (int)p->run,
                          .words = (int)fac_bit_up(channels, FAC_BIT_WORD),
                          .of_weights = p->of_weights,
                          .sums_row = FAC_BIT_RUN * FAC_TABLE_OUTPUTS,
                          .plane = plane * FAC_BIT_RUN * FAC_TABLE_OUTPUTS,
                          .windows_row = a->windows_row,
                          .f_row = fac_bit_outputs(p),
                          .f = w->j->f + part * FAC_TABLE_OUTPUTS,
                          .b = w->j->b + part * FAC_TABLE_OUTPUTS,
                          .u = end->u[0],
                          .relu = p->y_relu,
                          .q_relu = p->q_relu,
                          .limits = w->limits ? w->limits + part * FAC_TABLE_OUTPUTS : NULL,
                          .limits_row = fac_bit_outputs(p),
                          .codes = p->codes ? &w->j->y : NULL,
                          .z_row = p->z.row,
                          .z_pixel = p->z.column,
                          .z_block = p->z.block,
                          .y_row = p->y.row,
                          .y_pixel = p->y.column,
                          .y_block = p->y.block,
                          .q_row = p->Q * end->q_pixel / (int64_t)sizeof(uint32_t),
                          .q_pixel = end->q_pixel / (int64_t)sizeof(uint32_t),
                          .q_plane = end->q_plane / (int64_t)sizeof(uint32_t) };
    for (int i = 0; i < t.words; i++) {
        const int64_t left = channels - i * FAC_BIT_WORD;
        t.valid[i] = left < FAC_BIT_WORD ? (1u << left) - 1 : ~0u;
    }
    if (p->codes) t.q = w->j->d->q + k / FAC_BIT_WORD;
    if (w->j->d->z) t.z = w->j->d->z + k / p->kernels->lanes * p->z.block;
    if (w->j->d->y) t.y = w->j->d->y + k / p->kernels->lanes * p->y.block;
    return t;
}

/* That end at an image, row and column. */
static void move_to(const fac_bit_conv *p, const fac_bit_strip *s, fac_bit_compare *t) {
    if (t->q) t->q += ((s->image * p->P + s->row) * p->Q + s->column) * t->q_pixel;
    if (t->z) t->z += s->image * p->z.image + s->row * p->z.row + s->column * p->z.column;
    if (t->y) t->y += s->image * p->y.image + s->row * p->y.row + s->column * p->y.column;
}

/* Strips below each other, of one set, and those that are `apart` columns to the right. */
static void write_words(const work *w, const area *a, int64_t part, fac_bit_table_sums *sums,
                        int64_t plane) {
    const fac_bit_conv *p = w->j->p;
    const fac_bit_compare all = end_of(w, a, part, plane);
    for (int half = 0; half <= p->halves; half++) {
        fac_bit_compare t = all;
        const fac_bit_strip s = { a->strip.image, a->strip.row, a->strip.column + half * p->apart };
        t.sums = sums[0][half * p->run];
        t.windows = a->windows + s.column;
        move_to(p, &s, &t);
        p->table->compare(&t);
    }
}

/* Row y of them with numbers.  `sums` are of plane 0 of weights, those of a plane and of a set
 * follow `each`, `set` later. */
static void write_row(const work *w, area *a, int64_t part, fac_bit_table_sums *sums, int y,
                      int half, int64_t each, int64_t set) {
    const fac_bit_conv *p = w->j->p;
    const int64_t first = half * p->run, column = a->strip.column + half * p->apart;
    const fac_bit_strip s = { a->strip.image, a->strip.row + y, column };
    int32_t windows[FAC_BIT_PLANES * FAC_BIT_RUN];
    int32_t acc[FAC_BIT_PLANES * PLANE] __attribute__((aligned(64)));
    for (int m = 0; m < p->of_weights; m++)
        for (int k = 0; k < p->sets; k++)
            p->table->put(sums[m * each + k * set][first], (int)p->run, acc + m * PLANE + k * SET);
    for (int k = 0; k < p->sets; k++)
        memcpy(windows + k * FAC_BIT_RUN, a->windows + y * a->windows_row + k * p->width + column,
               (size_t)p->run * sizeof *windows);
    fac_bit_finish_part(w->j, &s, windows, part, acc, &a->end);
}

/* One part, or two: sums of all planes of weights first. */
static void do_parts(const work *w, area *a, int64_t part, bool two) {
    const fac_bit_conv *p = w->j->p;
    const int64_t pixel = fac_bit_pixel_bytes(p), each = fac_bit_plane_indices(p);
    const int planes = p->of_weights * (1 + two); /* of weights, of one part or two */
    const int64_t set = a->rows, plane = set * p->sets;
    fac_bit_table_sums sums[FAC_BIT_AREA] __attribute__((aligned(64)));
    fac_bit_lookup t = { .from = a->strip.column * p->stride[1] * pixel +
                                 a->group * p->lookups * p->table->table,
                         .x_pixel = p->stride[1] * pixel,
                         .x_column = p->dilation[1] * pixel,
                         .y_row = (int)p->stride[0],
                         .x_row = (int)p->dilation[0],
                         .n = (int)p->run,
                         .rows = a->rows,
                         .R = (int)p->R,
                         .S = (int)p->S,
                         .groups = (int)p->lookups,
                         .halves = p->halves,
                         .flush = p->table_flush };
    for (int m = 0; m < planes;) {
        const bool both = p->table->pairs && m + 1 < planes;
        t.w0 = (const uint8_t *)w->j->d->packed + (part * p->of_weights + m) * each;
        t.w1 = both ? t.w0 + each : NULL;
        for (int k = 0; k < p->sets; k++) {
            t.x = a->x + k * p->ring;
            t.sums0 = sums + m * plane + k * set;
            t.sums1 = both ? t.sums0 + plane : NULL;
            p->table->lookup(&t);
        }
        m += 1 + both;
    }
    for (int i = 0; i <= two; i++) {
        fac_bit_table_sums *of = sums + i * p->of_weights * plane;
        if (w->words) write_words(w, a, part + i, of, plane);
        for (int k = 0; k < a->rows * (1 + p->halves) && !w->words; k++)
            write_row(w, a, part + i, of + k % a->rows, k % a->rows, k / a->rows, plane, set);
    }
}

/* The counts of R rows of pixels, one below the other, for each set; where planes share tables a
 * plane counts as often as its numbers do. */
static void add_rows(const work *w, int64_t image, int64_t group, int64_t row, int32_t *to) {
    const fac_bit_conv *p = w->j->p;
    const int64_t width = p->width;
    memset(to, 0, (size_t)(p->sets * width) * sizeof *to);
    for (int k = 0; k < p->planes; k++) {
        const int64_t plane = ((image * p->planes + k) * p->groups + group) * p->height;
        const int32_t *from = w->j->counts + (plane + row * p->stride[0]) * width;
        int32_t *sum = to + (p->sets == 1 ? 0 : k * width);
        for (int64_t r = 0; r < p->R; r++, from += p->dilation[0] * width)
            for (int64_t i = 0; i < width; i++) sum[i] += p->times[k] * from[i];
    }
}

/* What windows of a row have, of the counts of its columns, for each set. */
static void add_columns(const fac_bit_conv *p, const int32_t *from, int32_t *to) {
    memset(to, 0, (size_t)(p->sets * p->width) * sizeof *to);
    for (int k = 0; k < p->sets; k++, from += p->width, to += p->width)
        for (int64_t s = 0; s < p->S; s++) {
            const int32_t *at = from + s * p->dilation[1];
            if (p->stride[1] == 1)
                for (int64_t i = 0; i < p->Q; i++) to[i] += at[i];
            else
                for (int64_t i = 0; i < p->Q; i++) to[i] += at[i * p->stride[1]];
        }
}

/* Rows row .. row + rows - 1 of the results of an image, of parts from .. to - 1 of a group. */
static void do_rows(const work *w, int64_t image, int64_t row, int64_t from, int64_t to, area *a,
                    int32_t *counts) {
    const fac_bit_conv *p = w->j->p;
    const int64_t each = p->sets * p->width;
    int32_t *all = counts + a->rows * each;
    for (int y = 0; y < a->rows; y++) {
        add_rows(w, image, a->group, row + y, counts + y * each);
        add_columns(p, counts + y * each, all + y * each);
    }
    a->windows = all;
    a->windows_row = each;
    for (int64_t column = 0; column < p->across; column += p->run) {
        a->strip = (fac_bit_strip){ image, row, fac_bit_least(column, p->across - p->run) };
        for (int64_t part = from; part < to;) {
            const bool two = p->table->pairs && part + 1 < to && p->of_weights == 1;
            do_parts(w, a, part, two);
            part += 1 + two;
        }
    }
}

/* The same of parts of any groups. */
static void do_groups(const work *w, int64_t image, int64_t row, int rows, const uint8_t *const *x,
                      int64_t from, int64_t to, int thread) {
    const fac_bit_conv *p = w->j->p;
    const int64_t of_group = p->parts / p->groups;
    int32_t *counts = (int32_t *)(void *)(w->room + (size_t)(thread + 1) * p->room_bytes) -
                      2 * FAC_BIT_BESIDE * p->sets * p->width;
    area a = { .rows = rows, .x = x, .end = w->j->end };
    while (from < to) {
        a.group = from / of_group;
        a.first_part = a.group * of_group;
        const int64_t end = fac_bit_least(to, a.first_part + of_group);
        do_rows(w, image, row, from, end, &a, counts);
        from = end;
    }
}

/* ---- by bands of rows ---- */

/* Row `at` of tables of each set, of a ring. */
static void point(const fac_bit_conv *p, const uint8_t *ring, int64_t first, const uint8_t **x) {
    for (int k = 0; k < p->sets; k++)
        for (int64_t i = 0; i < p->ring; i++)
            x[k * p->ring + i] =
                ring + (k * p->ring + (first + i) % p->ring) * fac_bit_row_bytes(p);
}

static void by_band(void *arg, int i, int thread) {
    const work *w = arg;
    const fac_bit_conv *p = w->j->p;
    const int64_t bands = fac_bit_up(p->P, p->band), image = i / bands;
    const int64_t first = i % bands * p->band, end = fac_bit_least(first + p->band, p->P);
    uint8_t *ring = w->tables + (size_t)thread * p->ring_bytes;
    const uint8_t *x[FAC_BIT_PLANES * FAC_BIT_RING];
    int64_t made = first * p->stride[0];
    for (int64_t row = first; row < end; row += p->beside) {
        const int64_t rows = fac_bit_least(p->beside, end - row), top = row * p->stride[0];
        const int64_t below = top + (rows - 1) * p->stride[0] + (p->R - 1) * p->dilation[0] + 1;
        if (made < top) made = top;
        for (; made < below; made++)
            build_row(w, image, made, p->ring, thread,
                      ring + made % p->ring * fac_bit_row_bytes(p));
        point(p, ring, top, x);
        do_groups(w, image, row, (int)rows, x, 0, p->parts, thread);
    }
}

/* ---- by parts ---- */

static void build_shared(void *arg, int i, int thread) {
    const work *w = arg;
    const fac_bit_conv *p = w->j->p;
    const int64_t image = i / p->height, row = i % p->height;
    build_row(w, w->image + image, row, p->height, thread,
              w->tables + (image * p->sets * p->height + row) * fac_bit_row_bytes(p));
}

static void by_part(void *arg, int i, int thread) {
    const work *w = arg;
    const fac_bit_conv *p = w->j->p;
    const int64_t from = i * p->part_step, to = fac_bit_least(from + p->part_step, p->parts);
    const uint8_t *x[FAC_BIT_PLANES * FAC_BIT_RING];
    for (int64_t image = 0; image < w->images; image++)
        for (int64_t row = 0; row < p->P; row += p->beside) {
            const int64_t rows = fac_bit_least(p->beside, p->P - row);
            for (int k = 0; k < p->sets; k++)
                for (int64_t y = 0; y < p->ring; y++) {
                    const int64_t at = fac_bit_least(row * p->stride[0] + y, p->height - 1);
                    x[k * p->ring + y] =
                        w->tables + ((image * p->sets + k) * p->height + at) * fac_bit_row_bytes(p);
                }
            do_groups(w, w->image + image, row, (int)rows, x, from, to, thread);
        }
}

/* ---- all of it ---- */

/* Limits in 16 bits, which no sum passes. */
static const int16_t *short_limits(const fac_bit_job *j, int16_t *to) {
    const fac_bit_conv *p = j->p;
    if (!j->d->limits || !p->short_sums || p->of_weights > 1) return NULL;
    const int64_t all = (1 + (j->y.sign ? 1 : j->y.thresholds)) * fac_bit_outputs(p);
    for (int64_t k = 0; k < all; k++) {
        int32_t limit = j->limits[k];
        if (limit > INT16_MAX) limit = INT16_MAX;
        if (limit < INT16_MIN) limit = INT16_MIN;
        to[k] = (int16_t)limit;
    }
    return to;
}

void fac_bit_tables_run(const fac_bit_job *j, uint8_t *scratch, const uint8_t *parts) {
    const fac_bit_conv *p = j->p;
    const fac_pool *pool = &p->cpu->pool;
    work w = { .j = j, .parts = parts };
    const bool whole = p->K % FAC_BIT_WORD == 0; /* of numbers, whole words are there */
    w.words =
        p->sets == 1 && !p->sign && (whole || (p->codes && p->groups == 1 && !j->d->z && !j->d->y));
    if (w.words && p->codes) w.limits = short_limits(j, (int16_t *)(void *)scratch);
    w.room = scratch + p->limits_bytes;
    w.tables = w.room + (size_t)pool->threads * p->room_bytes;
    if (!p->by_part) {
        fac_parallel(pool, (int)(p->images * fac_bit_up(p->P, p->band)), by_band, &w);
        return;
    }
    for (; w.image < p->images; w.image += w.images) {
        w.images = fac_bit_least(p->at_once, p->images - w.image);
        fac_parallel(pool, (int)(w.images * p->height), build_shared, &w);
        fac_parallel(pool, (int)fac_bit_up(p->parts, p->part_step), by_part, &w);
    }
}
