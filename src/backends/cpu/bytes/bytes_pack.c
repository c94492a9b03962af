/* Weights of byte products in the order of the dot products, and their sums. */
#include <string.h>
#include "backends/cpu/bytes/bytes_internal.h"

static int weight(const fac_byte_product *p, const void *w, int64_t at) {
    return p->w_signed ? ((const int8_t *)w)[at] : ((const uint8_t *)w)[at] - 128;
}

static bool interleaves(const fac_byte_product *p) { return p->by_rows && !p->kernels->by_taps; }

size_t fac_byte_packed(const fac_byte_product *p) {
    const size_t outputs = (size_t)fac_byte_outputs(p), sums = outputs * sizeof(int32_t);
    const size_t interleaved = interleaves(p) ? outputs * (size_t)fac_byte_taps(p) : 0;
    if (p->depthwise) return (size_t)(p->R * p->S) * sums + interleaved + sums;
    return fac_byte_lines((size_t)(p->groups * p->panels * p->panel)) + sums;
}

int8_t *fac_byte_interleaved(const fac_byte_product *p, const void *packed) {
    const size_t taps = (size_t)(p->R * p->S * fac_byte_outputs(p)) * sizeof(int32_t);
    return (int8_t *)(uintptr_t)packed + taps;
}

int32_t *fac_byte_sums(const fac_byte_product *p, void *packed) {
    const size_t all = fac_byte_packed(p);
    const size_t sums = (size_t)fac_byte_outputs(p) * sizeof(int32_t);
    return (int32_t *)(void *)((char *)packed + (all - sums));
}

/* One output channel. */
static void pack_channel(const fac_byte_product *p, const void *w, int64_t group, int64_t k,
                         int8_t *panel, int32_t *sum) {
    const int lanes = p->kernels->lanes;
    const int64_t in_panel = k % (2 * lanes);
    int8_t *to = panel + in_panel / lanes * (4 * lanes) + in_panel % lanes * 4;
    const int64_t base = group * p->w.group + k * p->w.k;
    for (int64_t r = 0; r < p->R; r++)
        for (int64_t s = 0; s < p->S; s++)
            for (int64_t c = 0; c < p->C; c++) {
                const int v = weight(p, w, base + r * p->w.r + s * p->w.s + c * p->w.c);
                const int64_t term = (r * p->S + s) * p->channels + c;
                to[fac_byte_place(p, term / 4) * (8 * lanes) + term % 4] = (int8_t)v;
                *sum += v;
            }
}

/* Depthwise: [tap][channel], 32 bits each. */
static void pack_depthwise(const fac_byte_product *p, const void *w, int32_t *to, int32_t *sum) {
    const int64_t width = fac_byte_outputs(p);
    for (int64_t g = 0; g < p->groups; g++)
        for (int64_t t = 0; t < p->R * p->S; t++) {
            const int v = weight(p, w, g * p->w.group + t / p->S * p->w.r + t % p->S * p->w.s);
            to[t * width + g] = v;
            sum[g] += v;
        }
}

/* The same in bytes, four rows of a column side by side: [S][groups of four rows][4][lanes][4] for
 * 64 channels at a time, at the end for 32. */
static void interleave(const fac_byte_product *p, const void *w, int8_t *to) {
    enum { MOST = 64 };
    const int64_t rows = (p->R + 3) / 4, width = fac_byte_outputs(p);
    for (int64_t g = 0; g < p->groups; g++) {
        const int64_t first = g / MOST * MOST, left = width - first, in = g - first;
        const int64_t part = left < MOST ? left : MOST;
        const int64_t lane = in / 16 * 4 + in % 4, quarter = in % 16 / 4;
        for (int64_t t = 0; t < p->R * p->S; t++) {
            const int64_t r = t / p->S, s = t % p->S;
            const int64_t vector = (s * rows + r / 4) * 4 + quarter;
            to[first * fac_byte_taps(p) + vector * part + 4 * lane + r % 4] =
                (int8_t)weight(p, w, g * p->w.group + r * p->w.r + s * p->w.s);
        }
    }
}

/* ---- matrices ---- */

/* n output channels of four terms, and their sums. */
static void pack_quad(const uint8_t *const row[4], int64_t step, int64_t n, uint8_t flip,
                      uint8_t *restrict to, int32_t *restrict sum) {
    if (step == 1)
        fac_byte_interleave(row, 1, n, flip, to);
    else
        fac_byte_interleave(row, step, n, flip, to);
    for (int64_t k = 0; k < n; k++)
        sum[k] += (int8_t)to[4 * k] + (int8_t)to[4 * k + 1] + (int8_t)to[4 * k + 2] +
                  (int8_t)to[4 * k + 3];
}

/* One panel, of whole quads of terms. */
static void pack_quads(const fac_byte_product *p, const uint8_t *w, int64_t n, uint8_t *panel,
                       int32_t *sum) {
    const uint8_t flip = p->w_signed ? 0 : 128;
    const int64_t width = 2 * p->kernels->lanes;
    for (int64_t c = 0; c + 4 <= p->C; c += 4) {
        const uint8_t *row[4];
        for (int k = 0; k < 4; k++) row[k] = w + (c + k) * p->w.c;
        pack_quad(row, p->w.k, n, flip, panel + fac_byte_place(p, c / 4) * (4 * width), sum);
    }
}

static void pack_matrix(const fac_byte_product *p, const uint8_t *w, int8_t *to, int32_t *sum) {
    const int64_t width = 2 * p->kernels->lanes, rest = p->C % 4;
    for (int64_t g = 0; g < p->groups; g++)
        for (int64_t k = 0; k < p->K; k += width) {
            const int64_t n = p->K - k < width ? p->K - k : width;
            int8_t *panel = to + (g * p->panels + k / width) * p->panel;
            int32_t *sums = sum + g * p->panels * width + k;
            const uint8_t *from = w + g * p->w.group + k * p->w.k;
            pack_quads(p, from, n, (uint8_t *)panel, sums);
            for (int64_t i = 0; i < n; i++)
                for (int64_t c = p->C - rest; c < p->C; c++) {
                    const int v = weight(p, from, i * p->w.k + c * p->w.c);
                    panel[fac_byte_place(p, c / 4) * (4 * width) + 4 * i + c % 4] = (int8_t)v;
                    sums[i] += v;
                }
        }
}

void fac_byte_pack(const fac_byte_product *p, const void *w, void *to) {
    const int64_t width = 2 * p->kernels->lanes;
    int32_t *sum = fac_byte_sums(p, to);
    memset(to, 0, fac_byte_packed(p));
    if (p->depthwise) {
        pack_depthwise(p, w, to, sum);
        if (interleaves(p)) interleave(p, w, fac_byte_interleaved(p, to));
        return;
    }
    if (p->R * p->S == 1) {
        pack_matrix(p, w, to, sum);
        return;
    }
    for (int64_t g = 0; g < p->groups; g++)
        for (int64_t k = 0; k < p->K; k++) {
            int8_t *panel = (int8_t *)to + (g * p->panels + k / width) * p->panel;
            pack_channel(p, w, g, k, panel, sum + g * p->panels * width + k);
        }
}
