/* Weights of byte products in the order of the dot products, and their sums. */
#include <string.h>
#include "backends/cpu/bytes/bytes_internal.h"

static int weight(const fac_byte_product *p, const void *w, int64_t at) {
    return p->w_signed ? ((const int8_t *)w)[at] : ((const uint8_t *)w)[at] - 128;
}

size_t fac_byte_packed(const fac_byte_product *p) {
    const size_t sums = (size_t)fac_byte_outputs(p) * sizeof(int32_t);
    if (p->depthwise) return (size_t)(p->R * p->S) * sums + sums;
    return fac_byte_lines((size_t)(p->groups * p->panels * p->panel)) + sums;
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
                to[term / 4 * (8 * lanes) + term % 4] = (int8_t)v;
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

void fac_byte_pack(const fac_byte_product *p, const void *w, void *to) {
    const int64_t width = 2 * p->kernels->lanes;
    int32_t *sum = fac_byte_sums(p, to);
    memset(to, 0, fac_byte_packed(p));
    if (p->depthwise) {
        pack_depthwise(p, w, to, sum);
        return;
    }
    for (int64_t g = 0; g < p->groups; g++)
        for (int64_t k = 0; k < p->K; k++) {
            int8_t *panel = (int8_t *)to + (g * p->panels + k / width) * p->panel;
            pack_channel(p, w, g, k, panel, sum + g * p->panels * width + k);
        }
}
