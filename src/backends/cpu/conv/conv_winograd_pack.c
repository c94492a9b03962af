/* Weights of conv2d/winograd, transformed: U[chunk][point][c][k]. */
#include <string.h>
#include "base/clamp.h"
#include "backends/cpu/conv/conv_winograd.h"

typedef fac_winograd_plan plan;

enum { CHANNELS_OF_ITEM = 16 };

static int64_t pack_parts(const plan *p) {
    return (p->g.C + CHANNELS_OF_ITEM - 1) / CHANNELS_OF_ITEM;
}

typedef struct packing {
    const plan *p;
    const float *w;
    float *to;
    int64_t group;
} packing;

/* K, C, r, r -> [chunk][point][C][vectors x lanes]: some channels of one chunk. */
static void pack_channels(void *arg, int i, int thread) {
    const packing *a = arg;
    const plan *p = a->p;
    const fac_simd *simd = p->cpu->simd;
    int64_t lanes = simd->lanes, C = p->g.C, taps = p->g.R * p->g.S, parts = pack_parts(p);
    int64_t chunk = i / parts, first = C * (i % parts) / parts, last = C * (i % parts + 1) / parts;
    int64_t k0 = chunk * 2 * lanes, width = lanes * fac_chunk_vectors(p->g.K, (int)lanes, chunk);
    const fac_conv_weights w = fac_conv_weights_of(&p->whole, p->flipped, a->w, a->group);
    float g[CHANNELS_OF_ITEM * FAC_WINOGRAD_KERNEL * FAC_WINOGRAD_KERNEL *
            FAC_WINOGRAD_LANES]; /* [c][tap][lanes] */
    fac_winograd_matrix G;
    fac_winograd_filters(p->w, &G);
    (void)thread;
    for (int64_t v = 0; v < width; v += lanes) {
        int64_t left = p->g.K - k0 - v;
        int64_t real = fac_clamp(left, 0, lanes);
        const float *from = w.w + (k0 + v) * w.k + first * w.c;
        if (real < lanes) memset(g, 0, sizeof g);
        if (!p->flipped)
            simd->transpose(from, w.k, g, lanes, real, (last - first) * taps);
        else
            for (int64_t c = 0; c < last - first; c++) /* the last tap first */
                simd->transpose(from + c * w.c - (taps - 1), w.k, g + (c * taps + taps - 1) * lanes,
                                -lanes, real, taps);
        for (int64_t c = first; c < last; c++)
            p->w->filter(&G, g + (c - first) * taps * lanes,
                         a->to + k0 * C * fac_tiles_planes(&p->tiles) + c * width + v, C * width);
    }
}

void fac_winograd_pack(const fac_winograd_plan *p, const float *w, float *to) {
    packing a = { p, w, to, 0 };
    for (; a.group < p->whole.groups; a.group++, a.to += fac_winograd_u_floats(p))
        fac_parallel(&p->cpu->pool, (int)(p->chunks * pack_parts(p)), pack_channels, &a);
}
