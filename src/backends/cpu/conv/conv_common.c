/* What the solvers of conv2d share: reading the problem, packing weights. */
#include <string.h>
#include "backends/cpu/conv/conv_common.h"
#include "base/memory.h"
#include "ops/conv_grad.h"
#include "ops/conv_pool.h"

/* The convolution that the gradient of one by its input is. */
static bool flipped_geometry(const fac_node *n, fac_conv_geom *g) {
    fac_conv_geom f;
    if (!fac_conv_grad_geometry(n, &f)) return false;
    *g = f;
    g->C = f.K;
    g->K = f.C;
    for (int k = 0; k < 3; k++) {
        int64_t reach = (f.kernel[k] - 1) * f.dilation[k];
        if (f.stride[k] != 1) return false;
        g->in[k] = f.out[k];
        g->out[k] = f.in[k];
        g->pad[k] = reach - f.pad[k];
        g->pad_end[k] = f.in[k] - f.out[k] + reach - g->pad[k];
        if (g->pad[k] < 0 || g->pad_end[k] < 0) return false;
    }
    return true;
}

/* The convolution of what a pool with windows of 2 x 2 side by side looks at. */
static bool pooled_geometry(const fac_node *n, fac_conv_geom *g) {
    fac_pool_geom pool;
    if (!fac_conv_pool_geometry(n, g, &pool) || !fac_conv_pool_halves(&pool)) return false;
    g->P -= g->P % 2;
    g->Q -= g->Q % 2;
    return true;
}

static bool geometry(const fac_problem *p, fac_conv_geom *g) {
    if (fac_conv_flipped(p)) return flipped_geometry(p->node, g);
    return fac_conv_pooled(p) ? pooled_geometry(p->node, g) : fac_conv_geometry(p->node, g);
}

bool fac_cpu_conv_masked(const fac_device *d, const fac_problem *p, fac_conv_geom *g,
                         fac_epilogue *e) {
    if (!geometry(p, g)) return false;
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].type.dtype != FAC_F32 && p->in[i].type.dtype != FAC_NONE) return false;
    if (p->out[0].type.dtype != FAC_F32 || fac_dims_count(&p->out[0].type.dims) <= 0) return false;
    if (fac_dims_count(&p->in[0].type.dims) <= 0 || fac_dims_count(&p->in[1].type.dims) <= 0)
        return false;
    return fac_cpu_epilogue_masked(p, fac_cpu_of(d)->simd, e);
}

bool fac_cpu_conv(const fac_device *d, const fac_problem *p, fac_conv_geom *g, fac_epilogue *e) {
    return fac_cpu_conv_masked(d, p, g, e) && e->mask < 0;
}

bool fac_cpu_conv_grad(const fac_problem *p, fac_conv_geom *g) {
    if (p->node->body[0] || !fac_conv_grad_geometry(p->node, g)) return false;
    for (int k = 0; k < 3; k++)
        if (p->in[k].type.dtype != FAC_F32 || fac_dims_count(&p->in[k].type.dims) <= 0)
            return false;
    return true;
}

int64_t fac_conv_halo(const fac_conv_geom *g) {
    fac_window down = fac_conv_window(g, 1), across = fac_conv_window(g, 2);
    int64_t a = fac_halo_of(&down), b = fac_halo_of(&across);
    return a > b ? a : b;
}

size_t fac_conv_packed(const fac_conv_geom *g, int lanes) {
    size_t n = fac_bias_bytes(g->K / g->groups, lanes) / sizeof(float);
    bool fits = fac_size_mul(n, (size_t)g->C, &n) && fac_size_mul(n, (size_t)g->R, &n) &&
                fac_size_mul(n, (size_t)g->S, &n);
    return fits && n < SIZE_MAX / sizeof(float) ? n : 0;
}

fac_conv_weights fac_conv_weights_of(const fac_conv_geom *g, bool flipped, const float *w,
                                     int64_t group) {
    int64_t C = g->C / g->groups, K = g->K / g->groups, taps = g->T * g->R * g->S;
    w += group * K * C * taps;
    if (flipped) return (fac_conv_weights){ w + taps - 1, taps, K * taps, -1 };
    return (fac_conv_weights){ w, C * taps, taps, 1 };
}

double fac_conv_pack_seconds(const fac_cpu *c, const fac_problem *p, double floats) {
    if (p->in[1].time != FAC_RUN) return 0;
    return fac_cpu_speeds.pack_step +
           (8 * floats + (double)fac_type_bytes(&p->in[1].type)) / c->bandwidth;
}

enum { MOST_LANES = 16 };

typedef struct packing {
    const fac_conv_geom *g;
    fac_transpose_kernel *transpose;
    int lanes, block;
    bool flipped;
    const float *w;
    float *to;
} packing;

/* Output channels are rows that go on over the taps of channel after channel: squares of them are
 * transposed in the first cache, and each line is put where its channel and tap lie. */
static void pack_taps(const packing *a, const float *from, int64_t row, int64_t here, int64_t taps,
                      int64_t real, int64_t width, float *to) {
    float lines[MOST_LANES * 2 * MOST_LANES];
    for (int64_t i = 0; i < here * taps; i += a->lanes) {
        const int64_t n = here * taps - i < a->lanes ? here * taps - i : a->lanes;
        a->transpose(from + i, row, lines, width, real, n);
        for (int64_t k = 0; k < n; k++) {
            const int64_t c = (i + k) / taps, tap = (i + k) % taps;
            memcpy(to + (tap * here + c) * width, lines + k * width, (size_t)real * sizeof *to);
        }
    }
}

/* One block of channels of one chunk, small enough for the first cache.  Weights are read as they
 * lie in memory: those of an output channel one after the other, and flipped 1 x 1 kernels, whose
 * rows are input channels, along these rows from chunk to chunk: 128 bytes of each of 16 rows in
 * turn are streams, of 2,048 rows they are misses that no prefetcher foresees. */
static void pack_block(void *arg, int item, int thread) {
    const packing *a = arg;
    const fac_conv_geom *g = a->g;
    int64_t C = g->C / g->groups, K = g->K / g->groups, taps = g->R * g->S,
            chunks = fac_chunks(K, a->lanes);
    int64_t blocks = (C + a->block - 1) / a->block, group = item / (blocks * chunks);
    const bool rows = a->flipped && taps == 1;
    int64_t chunk = rows ? item % chunks : item / blocks % chunks,
            c0 = (rows ? item / chunks % blocks : item % blocks) * a->block;
    int64_t k0 = chunk * 2 * a->lanes, here = C - c0 < a->block ? C - c0 : a->block;
    int64_t width = a->lanes * fac_chunk_vectors(K, a->lanes, chunk),
            real = K - k0 < width ? K - k0 : width;
    const fac_conv_weights w = fac_conv_weights_of(g, a->flipped, a->w, group);
    float *to = (float *)fac_conv_chunk(g, a->lanes, a->to, group, chunk) + c0 * taps * width;
    const float *from = w.w + k0 * w.k + c0 * w.c;
    (void)thread;
    if (real < width) memset(to, 0, (size_t)(here * taps * width) * sizeof *to);
    if (rows)
        for (int64_t c = 0; c < here; c++)
            memcpy(to + c * width, from + c * w.c, (size_t)real * sizeof *to);
    else if (a->flipped) /* taps are columns, the last one first */
        for (int64_t c = 0; c < here; c++)
            a->transpose(from + c * w.c - (taps - 1), taps, to + ((taps - 1) * here + c) * width,
                         -here * width, real, taps);
    else if (taps == 1)
        a->transpose(from, w.k, to, width, real, here);
    else
        pack_taps(a, from, w.k, here, taps, real, width, to);
}

void fac_conv_pack_input(const fac_cpu *c, const fac_conv_geom *g, int block, bool flipped,
                         int input, const float *from, float *to) {
    packing a = { g, c->simd->transpose, c->simd->lanes, block, flipped, from, to };
    int64_t C = g->C / g->groups,
            items = g->groups * fac_chunks(g->K / g->groups, a.lanes) * ((C + block - 1) / block);
    if (input == 2)
        fac_pack_bias(from, g->K, a.lanes, to);
    else
        fac_parallel(&c->pool, (int)items, pack_block, &a);
}

uint64_t fac_conv_pack_key(const fac_cpu *c, int64_t groups, int block, bool flipped, int input) {
    return (uint64_t)input | (uint64_t)flipped << 4 | (uint64_t)c->simd->lanes << 8 |
           (uint64_t)block << 16 | (uint64_t)groups << 32;
}

void fac_pack_bias(const float *b, int64_t n, int lanes, float *to) {
    for (int64_t k = 0; k < (n + lanes - 1) / lanes * lanes; k++) to[k] = k < n ? b[k] : 0;
}

void fac_conv_pack_depthwise(const fac_conv_geom *g, int lanes, bool flipped, const float *from,
                             float *to) {
    const int64_t S = g->S, taps = g->R * S, group = g->C / g->groups;
    for (int64_t k = 0; k < (g->K + lanes - 1) / lanes * lanes; k++) {
        const fac_conv_weights w = fac_conv_weights_of(g, flipped, from, k < g->K ? k / group : 0);
        float *at = to + k / lanes * taps * group * lanes + k % lanes;
        for (int64_t c = 0; c < group; c++)
            for (int64_t tap = 0; tap < taps; tap++)
                at[((tap / S * group + c) * S + tap % S) * lanes] =
                    k < g->K ? w.w[k % group * w.k + c * w.c + tap * w.tap] : 0;
    }
}
