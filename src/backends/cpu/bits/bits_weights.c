/* Weights of convolutions of bits: planes by lanes of output channels, and for pixels of +-1 the
 * sums of the weights that lie inside of the image (bits.h). */
#include <string.h>
#include "backends/cpu/bits/bits_internal.h"

/* ---- kinds of rows: how many taps lie inside of the image ---- */

static fac_bit_taps taps_of(int64_t at, int64_t in, int64_t kernel, int64_t stride,
                            int64_t dilation, int64_t pad) {
    const int64_t from = at * stride - pad;
    fac_bit_taps t = { 0, kernel };
    while (t.first < kernel && from + t.first * dilation < 0) t.first++;
    while (t.end > t.first && from + (t.end - 1) * dilation >= in) t.end--;
    return t;
}
static fac_bit_taps row_taps(const fac_bit_conv *p, int64_t at) {
    return taps_of(at, p->H, p->R, p->stride[0], p->dilation[0], p->pad[0]);
}
static fac_bit_taps column_taps(const fac_bit_conv *p, int64_t at) {
    return taps_of(at, p->W, p->S, p->stride[1], p->dilation[1], p->pad[1]);
}

typedef fac_bit_taps taps_at(const fac_bit_conv *p, int64_t at);
static bool kinds_of(const fac_bit_conv *p, taps_at *f, int64_t outputs, fac_bit_kinds *to) {
    to->n = 0;
    if (outputs > FAC_BIT_LONGEST) return false;
    for (int64_t k = 0; k < outputs; k++) {
        const fac_bit_taps t = f(p, k);
        const fac_bit_taps last = to->n ? to->taps[to->n - 1] : (fac_bit_taps){ -1, -1 };
        if (t.first != last.first || t.end != last.end) {
            if (to->n == FAC_BIT_KINDS) return false;
            to->taps[to->n++] = t;
        }
        to->of[k] = (int)to->n - 1;
    }
    return true;
}

bool fac_bit_row_kinds(const fac_bit_conv *p, fac_bit_kinds *to) {
    return kinds_of(p, row_taps, p->P, to);
}
bool fac_bit_column_kinds(const fac_bit_conv *p, fac_bit_kinds *to) {
    return kinds_of(p, column_taps, p->Q, to);
}

/* ---- weights ---- */

size_t fac_bit_weight_words(const fac_bit_conv *p) {
    if (p->tables) return fac_bit_tables_words(p);
    return (size_t)(p->parts * p->R * p->S * p->words * p->vectors * p->kernels->lanes);
}
static size_t inside_words(const fac_bit_conv *p) {
    return p->sign ? (size_t)(p->rows * p->columns * p->of_weights * fac_bit_outputs(p)) : 0;
}
size_t fac_bit_packed(const fac_bit_conv *p) {
    const size_t parts = p->tables ? fac_bit_tables_parts(p) : 0;
    return (fac_bit_weight_words(p) + inside_words(p)) * sizeof(uint32_t) + parts;
}

/* Output channel k of all as its part and lane; its plane m is a vector of the part. */
typedef struct place {
    int64_t part, chunk, lane;
} place;
static place place_of(const fac_bit_conv *p, int64_t k) {
    const int64_t lanes = p->kernels->lanes, width = lanes * p->chunks, group = k / p->K,
                  in = k % p->K;
    return (place){ group * fac_bit_up(p->K, width) + in / width, in % width / lanes, in % lanes };
}
/* Lanes of a group follow each other. */
int64_t fac_bit_column(const fac_bit_conv *p, int64_t k) {
    return k / p->K * (fac_bit_outputs(p) / p->groups) + k % p->K;
}

static bool bit_of(const uint8_t *row, int64_t k) { return row[k / 8] >> k % 8 & 1; }

/* One plane of one channel into its lane. */
static void pack_channel(const fac_bit_conv *p, const uint8_t *row, int64_t k, int m,
                         uint32_t *to) {
    const int64_t lanes = p->kernels->lanes, window = p->R * p->S;
    const place at = place_of(p, k);
    const int64_t vector = p->of_weights > 1 ? m : at.chunk;
    const int64_t each = window * p->words * 2 * lanes; /* a pair of vectors of a part */
    uint32_t *pair =
        to + (at.part * (p->vectors / 2) + vector / 2) * each + vector % 2 * lanes + at.lane;
    for (int64_t t = 0; t < window; t++)
        for (int64_t c = 0; c < p->C; c++)
            if (bit_of(row, c * window + t))
                pair[(t * p->words + c / FAC_BIT_WORD) * 2 * lanes] |= (uint32_t)1
                                                                       << c % FAC_BIT_WORD;
}

/* Sums of the weights that lie inside, for pixels of each kind. */
static void sum_inside(const fac_bit_conv *p, const uint8_t *row, fac_bit_taps r, fac_bit_taps s,
                       int32_t *to) {
    int32_t sum = 0;
    for (int64_t c = 0; c < p->C; c++)
        for (int64_t i = r.first; i < r.end; i++)
            for (int64_t k = s.first; k < s.end; k++)
                sum += bit_of(row, (c * p->R + i) * p->S + k) ? 1 : -1;
    *to = sum;
}

static void inside_channel(const fac_bit_conv *p, const uint8_t *row, int64_t k, int m,
                           const fac_bit_kinds *rows, const fac_bit_kinds *columns, int32_t *to) {
    const int64_t width = fac_bit_outputs(p), column = fac_bit_column(p, k);
    for (int64_t r = 0; r < rows->n; r++)
        for (int64_t s = 0; s < columns->n; s++) {
            int32_t *at = to + ((r * columns->n + s) * p->of_weights + m) * width + column;
            sum_inside(p, row, rows->taps[r], columns->taps[s], at);
        }
}

void fac_bit_pack_weights(const fac_bit_conv *p, const uint8_t *bits, int64_t bytes, void *to) {
    const int64_t outputs = p->groups * p->K;
    int32_t *inside = (int32_t *)to + fac_bit_weight_words(p);
    uint8_t *parts = (uint8_t *)(inside + inside_words(p));
    fac_bit_kinds rows, columns;
    fac_bit_row_kinds(p, &rows);
    fac_bit_column_kinds(p, &columns);
    memset(to, 0, fac_bit_packed(p));
    if (p->tables) fac_bit_tables_fill(p, parts);
    for (int m = 0; m < p->of_weights; m++)
        for (int64_t k = 0; k < outputs; k++) {
            const uint8_t *row = bits + (m * outputs + k) * bytes;
            if (p->tables)
                fac_bit_tables_channel(p, row, k, m, to);
            else
                pack_channel(p, row, k, m, to);
            if (p->sign) inside_channel(p, row, k, m, &rows, &columns, inside);
        }
}

static uint64_t mixed(uint64_t h, int64_t x) { return (h ^ (uint64_t)x) * 1099511628211u; }
static uint64_t mixed_kinds(uint64_t h, const fac_bit_kinds *k) {
    for (int64_t i = 0; i < k->n; i++) h = mixed(mixed(h, k->taps[i].first), k->taps[i].end);
    return mixed(h, k->n);
}

/* The sizes of the weight, and of signs which taps may lie outside; not how many images there are.
 */
uint64_t fac_bit_kind(const fac_bit_conv *p) {
    const int64_t all[] = { p->kernels->lanes, p->groups, p->C, p->K, p->R, p->S,
                            p->of_weights,     p->sign };
    uint64_t h = 14695981039346656037u;
    fac_bit_kinds rows, columns;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) h = mixed(h, all[k]);
    for (int k = 0; p->tables && k < p->planes; k++) h = mixed(h, 16 * p->sets + p->times[k]);
    if (!p->sign) return h;
    fac_bit_row_kinds(p, &rows);
    fac_bit_column_kinds(p, &columns);
    return mixed_kinds(mixed_kinds(h, &rows), &columns);
}
