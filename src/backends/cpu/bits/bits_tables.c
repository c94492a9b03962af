/* Convolutions of bits by tables of sums (bits_tables.h): what is decided beforehand, and weights.
 *
 * Planes of pixels whose numbers are whole multiples of the smallest one, known beforehand, share
 * their tables (a set); else each plane has a set of its own.  Either way sums are whole numbers.
 */
#include <string.h>
#include "backends/cpu/bits/bits_internal.h"

enum { MOST_BYTES = 255, MOST_SUM = 65535, SHORT_SUM = 32766 };
enum { SLACK = 64 };                     /* bytes that may be read after the last */
static const double most_tables = 128e6; /* bytes of one image */
static const double flush_share = 4;     /* a flush takes the time of so many look-ups */

static size_t lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* ---- sets ---- */

/* Of the planes of a set. */
static int largest_entry(const fac_bit_conv *p) {
    if (p->sets > 1) return 1;
    int sum = 0;
    for (int j = 0; j < p->planes; j++) sum += p->times[j];
    return sum;
}

/* ---- what is decided beforehand ---- */

static int64_t set_bytes(const fac_bit_conv *p) { return p->height * fac_bit_row_bytes(p); }

/* Rows of tables that so many rows of results need. */
static int64_t rows_of(const fac_bit_conv *p, int64_t results) {
    return (results - 1) * p->stride[0] + (p->R - 1) * p->dilation[0] + 1;
}

/* Bands of rows that threads share out evenly, or many. */
static int64_t band_of(const fac_bit_conv *p) {
    const int64_t threads = p->cpu->pool.threads;
    int64_t bands = 1;
    while (bands < p->P && p->images * bands % threads && p->images * bands < 4 * threads) bands++;
    return fac_bit_up(p->P, bands);
}

/* Results of so many rows are made at once as caches have tables for. */
static int64_t beside_of(const fac_bit_conv *p) {
    const int64_t planes = p->sets * (p->of_weights > 1 ? p->of_weights : 2);
    int64_t rows = fac_bit_least(p->table->rows, p->band);
    const int64_t room = (int64_t)p->cpu->l2 / 2;
    while (rows > 1 && (planes * rows > FAC_BIT_AREA || rows_of(p, rows) > FAC_BIT_RING ||
                        p->sets * rows_of(p, rows) * fac_bit_row_bytes(p) > room))
        rows--;
    return rows;
}

/* Threads that share out parts take two of them, where there are enough. */
static void share_out(fac_bit_conv *p) {
    const int64_t threads = p->cpu->pool.threads;
    const double image = (double)p->sets * (double)set_bytes(p);
    const int64_t room = (int64_t)p->cpu->l2 / 2 * threads;
    p->at_once = fac_bit_least(p->images, 1 + room / (int64_t)image);
    p->part_step = p->table->pairs && p->of_weights == 1 && p->parts >= 2 * threads ? 2 : 1;
    p->band = p->by_part ? p->P : band_of(p);
    p->beside = beside_of(p);
    p->ring = rows_of(p, p->beside);
    p->ring_bytes = lines((size_t)(p->sets * p->ring * fac_bit_row_bytes(p)) + SLACK);
}

void fac_bit_tables_strips(fac_bit_conv *p) {
    const int64_t half = fac_bit_up(p->Q, 2);
    p->halves = p->table->run_halves && largest_entry(p) == 1 && p->Q > 1;
    p->across = p->halves ? half : p->Q;
    p->apart = p->Q - p->across;
    p->run = fac_bit_least(p->halves ? p->table->run_halves : p->table->run, p->across);
    p->table_width = p->width - p->apart * p->stride[1];
}

bool fac_bit_tables_settle(fac_bit_conv *p) {
    const int64_t group = p->table->group, even = p->table->even, block = p->table->block;
    p->lookups = fac_bit_up(p->C, group * even) * even;
    for (int j = 0; j < p->planes && p->sets > 1; j++) p->times[j] = 1;
    const double sum = (double)p->C * (double)(p->R * p->S) * largest_entry(p);
    if (sum > MOST_SUM || (double)p->sets * (double)set_bytes(p) > most_tables) return false;
    p->short_sums = sum <= SHORT_SUM;
    p->table_flush = MOST_BYTES / (p->table->group * largest_entry(p) * (p->halves ? 3 : 1));
    share_out(p);
    if (p->ring > FAC_BIT_RING) return false;
    const int64_t spread = block ? fac_bit_up(p->lookups * group, block) * block : 0;
    const int64_t counts = 2 * FAC_BIT_BESIDE * p->sets * (int64_t)sizeof(int32_t);
    p->room_bytes = lines((size_t)(p->width * (spread + counts)) + SLACK);
    const size_t limits = p->codes ? (size_t)1 << p->y_planes : 0;
    p->limits_bytes = lines(limits * (size_t)fac_bit_outputs(p) * sizeof(int16_t));
    const size_t threads = (size_t)p->cpu->pool.threads;
    const size_t shared = lines((size_t)(p->at_once * p->sets * set_bytes(p)) + SLACK);
    p->tables_bytes =
        p->limits_bytes + threads * p->room_bytes + (p->by_part ? shared : threads * p->ring_bytes);
    p->direct = false; /* more is read than there is */
    return true;
}

double fac_bit_tables_seconds(const fac_bit_conv *p, double moved) {
    const double pixels = (double)(p->images * p->strips * p->run * (1 + p->halves));
    const double outputs = (double)(p->parts * FAC_TABLE_OUTPUTS) * p->of_weights * p->sets;
    const double each = (double)(p->R * p->S * p->lookups) * p->table->group;
    const double built = (double)(p->images * p->height * p->table_width * p->groups * p->lookups);
    const int planes = p->halves ? 2 : p->planes;
    const double cycles = built * (p->table->cycles + planes * p->table->plane_cycles);
    const double work = 2 * pixels * outputs * each * (1 + flush_share / p->table_flush);
    const double share = p->halves ? p->table->share_halves : p->table->share;
    return fac_cpu_seconds(p->cpu, work, share, moved) + fac_cpu_speeds.table_step +
           cycles / (fac_cpu_speeds.hertz * p->cpu->pool.threads);
}

/* ---- weights: for each part and plane [R][group][S][64] indices, then parts of tables ---- */

int64_t fac_bit_plane_indices(const fac_bit_conv *p) {
    return p->R * p->lookups * p->S * FAC_TABLE_OUTPUTS;
}
size_t fac_bit_tables_words(const fac_bit_conv *p) {
    return (size_t)(p->parts * p->of_weights * fac_bit_plane_indices(p)) / sizeof(uint32_t);
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
    uint8_t *at = (uint8_t *)to + (part * p->of_weights + m) * fac_bit_plane_indices(p) +
                  place_of(p, in % width);
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
