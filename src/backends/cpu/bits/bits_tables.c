/* Convolutions of bits by tables of sums (bits_tables.h): the tables of some images, then strips of
 * pixels meet parts of 64 output channels.
 *
 * Planes of pixels whose numbers are whole multiples of the smallest one, known beforehand, share
 * their tables (a set); else each plane has a set of its own.  Either way sums are whole numbers.
 */
#include <string.h>
#include "backends/cpu/bits/bits_internal.h"

enum { MOST_BYTES = 255, MOST_SUM = 65535 };
static const double most_tables = 128e6; /* bytes of one image */
static const double build_cycles = 5;    /* a vector of tables, a plane */

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static size_t lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* ---- sets ---- */

/* u[j] = times[j] u[unit], in floats as they are. */
bool fac_bit_multiples(const float *u, int planes, int times[FAC_BIT_PLANES], int *unit) {
    *unit = 0;
    for (int j = 1; j < planes; j++)
        if (u[j] < u[*unit]) *unit = j;
    if (!(u[*unit] > 0)) return false;
    int sum = 0;
    for (int j = 0; j < planes; j++) {
        const double parts = (double)u[j] / (double)u[*unit];
        if (!(parts <= 15) || parts != (double)(int)parts) return false;
        times[j] = (int)parts;
        sum += times[j];
    }
    return sum <= 15;
}

/* Planes first .. end - 1 are those of set k. */
static int first_of(const fac_bit_conv *p, int k) { return p->sets == 1 ? 0 : k; }
static int end_of(const fac_bit_conv *p, int k) { return p->sets == 1 ? p->planes : k + 1; }

static int largest_entry(const fac_bit_conv *p) {
    int sum = 0;
    for (int j = 0; j < end_of(p, 0); j++) sum += p->times[j];
    return sum;
}

/* ---- what is decided beforehand ---- */

static int64_t pixel_bytes(const fac_bit_conv *p) {
    return p->groups * p->lookups * p->table->table;
}
static int64_t row_bytes(const fac_bit_conv *p) { return p->width * pixel_bytes(p); }
static int64_t set_bytes(const fac_bit_conv *p) { return p->height * row_bytes(p); }

bool fac_bit_tables_settle(fac_bit_conv *p) {
    const int64_t group = p->table->group, even = p->table->even;
    p->lookups = fac_bit_up(p->C, group * even) * even;
    for (int j = 0; j < p->planes && p->sets > 1; j++) p->times[j] = 1;
    const double sum = (double)p->C * (double)(p->R * p->S) * largest_entry(p);
    const double image = (double)p->sets * (double)set_bytes(p);
    if (sum > MOST_SUM || image > most_tables) return false;
    const int64_t room = (int64_t)p->cpu->l2 / 2 * p->cpu->pool.threads;
    p->at_once = at_most(p->images, 1 + room / (int64_t)image);
    p->tables_bytes = lines((size_t)(p->at_once * p->sets * set_bytes(p)) + 64);
    p->direct = false; /* more is read than there is */
    return true;
}

double fac_bit_tables_seconds(const fac_bit_conv *p, double moved) {
    const double pixels = (double)(p->images * p->strips * p->run);
    const double outputs = (double)(p->parts * FAC_TABLE_OUTPUTS) * p->of_weights * p->sets;
    const double each = (double)(p->R * p->S * p->lookups) * p->table->group;
    const double built = (double)(p->images * p->height * p->width * p->groups * p->lookups);
    const double cycles = built * p->planes * build_cycles / p->table->even;
    return fac_cpu_seconds(p->cpu, 2 * pixels * outputs * each, p->table->share, moved) +
           fac_cpu_speeds.table_step + cycles / (fac_cpu_speeds.hertz * p->cpu->pool.threads);
}

/* ---- weights: for each part and plane [R][group][S][64] indices, then parts of tables ---- */

static int64_t plane_indices(const fac_bit_conv *p) {
    return p->R * p->lookups * p->S * FAC_TABLE_OUTPUTS;
}
size_t fac_bit_tables_words(const fac_bit_conv *p) {
    return (size_t)(p->parts * p->of_weights * plane_indices(p)) / sizeof(uint32_t);
}
static size_t parts_bytes(const fac_bit_conv *p) {
    return (size_t)(p->table->codes * p->table->part);
}
size_t fac_bit_tables_parts(const fac_bit_conv *p) { return (size_t)p->planes * parts_bytes(p); }

/* Where output k of 64 lies. */
static int64_t place_of(const fac_bit_conv *p, int64_t k) {
    const int64_t row = p->table->row, half = row / 2;
    return k / row * row + k % half * 2 + k % row / half;
}

void fac_bit_tables_channel(const fac_bit_conv *p, const uint8_t *row, int64_t k, int m, void *to) {
    const int64_t width = FAC_TABLE_OUTPUTS, of_group = p->parts / p->groups, in = k % p->K;
    const int64_t part = k / p->K * of_group + in / width, group = p->table->group;
    uint8_t *at =
        (uint8_t *)to + (part * p->of_weights + m) * plane_indices(p) + place_of(p, in % width);
    for (int64_t r = 0; r < p->R; r++)
        for (int64_t s = 0; s < p->S; s++)
            for (int64_t c = 0; c < p->C; c++) {
                const int64_t bit = (c * p->R + r) * p->S + s;
                if (!(row[bit / 8] >> bit % 8 & 1)) continue;
                at[((r * p->lookups + c / group) * p->S + s) * width] |= (uint8_t)(1 << c % group);
            }
}

/* For the bits of a plane: which part of each entry it has. */
void fac_bit_tables_fill(const fac_bit_conv *p, uint8_t *to) {
    const int codes = p->table->codes, part = p->table->part, entries = p->table->table;
    const int group = p->table->group;
    for (int j = 0; j < p->planes; j++)
        for (int code = 0; code < codes; code++)
            for (int e = 0; e < part; e++) {
                const unsigned bits = (unsigned)code >> e / entries * group;
                const int both = __builtin_popcount(bits & (unsigned)(e % entries));
                *to++ = (uint8_t)(p->times[j] * both);
            }
}

/* ---- run ---- */

typedef struct work {
    const fac_bit_job *j;
    uint8_t *tables;
    const uint8_t *parts;
    int64_t image, images; /* at once */
} work;

static uint8_t *tables_at(const work *w, int64_t image, int set) {
    const fac_bit_conv *p = w->j->p;
    return w->tables + ((image - w->image) * p->sets + set) * set_bytes(p);
}

static void build_row(void *arg, int i, int thread) {
    const work *w = arg;
    const fac_bit_conv *p = w->j->p;
    const int64_t image = w->image + i / p->height, row = i % p->height;
    const int64_t pixel = fac_bit_pixel(p);
    (void)thread;
    for (int k = 0; k < p->sets; k++)
        for (int64_t g = 0; g < p->groups; g++) {
            fac_bit_build t = { .planes = end_of(p, k) - first_of(p, k),
                                .groups = (int)p->lookups,
                                .pixels = p->width,
                                .bits_pixel = pixel,
                                .to_pixel = pixel_bytes(p) };
            t.to = tables_at(w, image, k) + row * row_bytes(p) + g * p->lookups * p->table->table;
            for (int n = 0; n < t.planes; n++) {
                const int plane = first_of(p, k) + n;
                t.bits[n] = w->j->bits + image * p->bits_image + plane * p->bits_plane +
                            row * p->width * pixel + g * p->words;
                t.parts[n] = w->parts + (size_t)plane * parts_bytes(p);
            }
            p->table->build(&t);
        }
}

/* Of one set the sums of its planes. */
static void join_counts(const fac_bit_conv *p, int32_t *sums) {
    if (p->sets > 1) return;
    for (int i = 0; i < FAC_BIT_RUN; i++) {
        int32_t sum = 0;
        for (int j = 0; j < p->planes; j++) sum += p->times[j] * sums[j * FAC_BIT_RUN + i];
        sums[i] = sum;
    }
}

/* Sums of a strip, [out][plane of weights][set][pixel][64]. */
enum {
    SET = FAC_BIT_RUN * FAC_TABLE_OUTPUTS,
    PLANE = FAC_BIT_PLANES * SET,
    OUT = FAC_BIT_PLANES * PLANE
};

static void multiply(const work *w, const fac_bit_strip *s, int64_t part, bool two, int32_t *acc) {
    const fac_bit_conv *p = w->j->p;
    const int64_t pixel = pixel_bytes(p), each = plane_indices(p), of_group = p->parts / p->groups;
    fac_bit_lookup t = { .x_pixel = p->stride[1] * pixel,
                         .x_row = p->dilation[0] * row_bytes(p),
                         .x_column = p->dilation[1] * pixel,
                         .n = (int)p->run,
                         .R = (int)p->R,
                         .S = (int)p->S,
                         .groups = (int)p->lookups,
                         .flush = MOST_BYTES / (p->table->group * largest_entry(p)) };
    const int64_t from = s->row * p->stride[0] * row_bytes(p) + s->column * p->stride[1] * pixel +
                         part / of_group * p->lookups * p->table->table;
    for (int m = 0; m < p->of_weights; m++) {
        t.w0 = (const uint8_t *)w->j->d->packed + (part * p->of_weights + m) * each;
        t.w1 = two ? t.w0 + p->of_weights * each : NULL;
        for (int k = 0; k < p->sets; k++) {
            t.x = tables_at(w, s->image, k) + from;
            t.acc0 = acc + m * PLANE + k * SET;
            t.acc1 = t.acc0 + OUT;
            p->table->lookup(&t);
        }
    }
}

/* Parts from .. to - 1 of strips first .. last - 1 of the images at hand. */
static void block(const work *w, int64_t from, int64_t to, int64_t first, int64_t last) {
    const fac_bit_conv *p = w->j->p;
    int32_t acc[2 * OUT] __attribute__((aligned(64)));
    int32_t sums[FAC_BIT_STRIPS][FAC_BIT_PLANES * FAC_BIT_RUN];
    fac_bit_strip s[FAC_BIT_STRIPS];
    fac_bit_finish end = w->j->end;
    const int64_t of_group = p->parts / p->groups;
    for (int64_t at = first; at < last; at += FAC_BIT_STRIPS) {
        const int64_t n = at_most(FAC_BIT_STRIPS, last - at);
        int64_t counted = -1;
        for (int64_t i = 0; i < n; i++) s[i] = fac_bit_strip_of(p, w->image * p->strips + at + i);
        for (int64_t part = from; part < to;) {
            const int64_t group = part / of_group;
            const bool two = p->table->pairs && part + 1 < to && (part + 1) / of_group == group;
            for (int64_t i = 0; i < n && group != counted; i++) {
                fac_bit_window_counts(w->j, &s[i], group, sums[i]);
                join_counts(p, sums[i]);
            }
            counted = group;
            for (int64_t i = 0; i < n; i++) {
                multiply(w, &s[i], part, two, acc);
                for (int k = 0; k <= two; k++)
                    fac_bit_finish_part(w->j, &s[i], sums[i], part + k, acc + k * OUT, &end);
            }
            part += 1 + two;
        }
    }
}

static int64_t strips_of(const work *w) { return w->images * w->j->p->strips; }

static void by_part(void *arg, int i, int thread) {
    const work *w = arg;
    (void)thread;
    block(w, i, i + 1, 0, strips_of(w));
}

static void by_strips(void *arg, int i, int thread) {
    const work *w = arg;
    const int64_t first = (int64_t)i * FAC_BIT_STRIPS;
    (void)thread;
    block(w, 0, w->j->p->parts, first, at_most(first + FAC_BIT_STRIPS, strips_of(w)));
}

void fac_bit_tables_run(const fac_bit_job *j, uint8_t *tables, const uint8_t *parts) {
    const fac_bit_conv *p = j->p;
    const fac_pool *pool = &p->cpu->pool;
    work w = { .j = j, .tables = tables, .parts = parts };
    for (; w.image < p->images; w.image += w.images) {
        w.images = at_most(p->at_once, p->images - w.image);
        fac_parallel(pool, (int)(w.images * p->height), build_row, &w);
        if (p->by_part)
            fac_parallel(pool, (int)p->parts, by_part, &w);
        else
            fac_parallel(pool, (int)fac_bit_up(strips_of(&w), FAC_BIT_STRIPS), by_strips, &w);
    }
}
