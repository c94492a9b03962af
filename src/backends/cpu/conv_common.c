/* What the solvers of conv2d share: reading the problem, packing weights. */
#include "backends/cpu/conv_common.h"
#include "base/memory.h"
#include "ops/conv_grad.h"

bool fac_cpu_conv(const fac_device *d, const fac_problem *p, fac_conv_geom *g, fac_epilogue *e) {
    if (!fac_conv_geometry(p->node, g)) return false;
    for (int i = 0; i < p->nin; i++) if (p->in[i].type.dtype != FAC_F32 && p->in[i].type.dtype != FAC_NONE) return false;
    if (p->out[0].type.dtype != FAC_F32 || fac_dims_count(&p->out[0].type.dims) <= 0) return false;
    if (fac_dims_count(&p->in[0].type.dims) <= 0 || fac_dims_count(&p->in[1].type.dims) <= 0) return false;
    return fac_cpu_epilogue(p, fac_cpu_of(d)->simd, e);
}

bool fac_cpu_conv_grad(const fac_problem *p, fac_conv_geom *g) {
    if (p->node->body[0] || !fac_conv_grad_geometry(p->node, g)) return false;
    for (int k = 0; k < 3; k++)
        if (p->in[k].type.dtype != FAC_F32 || fac_dims_count(&p->in[k].type.dims) <= 0) return false;
    return true;
}

int64_t fac_conv_halo(const fac_conv_geom *g) {
    fac_window down = fac_conv_window(g, 1), across = fac_conv_window(g, 2);
    int64_t a = fac_halo_of(&down), b = fac_halo_of(&across);
    return a > b ? a : b;
}

size_t fac_conv_packed(const fac_conv_geom *g, int lanes) {
    size_t n = fac_bias_bytes(g->K / g->groups, lanes) / sizeof(float);
    bool fits = fac_size_mul(n, (size_t)g->C, &n) && fac_size_mul(n, (size_t)g->R, &n) && fac_size_mul(n, (size_t)g->S, &n);
    return fits && n < SIZE_MAX / sizeof(float) ? n : 0;
}

typedef struct packing { const fac_conv_geom *g; int lanes, block; const float *w; float *to; } packing;

static void pack_chunk(void *arg, int item, int thread) {
    const packing *a = arg;
    const fac_conv_geom *g = a->g;
    int64_t C = g->C / g->groups, K = g->K / g->groups, taps = g->R * g->S, chunks = fac_chunks(K, a->lanes);
    int64_t group = item / chunks, k0 = item % chunks * 2 * a->lanes;
    int width = a->lanes * fac_chunk_vectors(K, a->lanes, item % chunks);
    float *to = (float *)fac_conv_chunk(g, a->lanes, a->to, group, item % chunks);
    (void)thread;
    /* weights are read in order; what is written is a chunk, which the second cache holds */
    for (int64_t k = 0; k < width; k++)
        for (int64_t c0 = 0; c0 < C; c0 += a->block) {
            int64_t here = C - c0 < a->block ? C - c0 : a->block;
            const float *w = k0 + k < K ? a->w + ((group * K + k0 + k) * C + c0) * taps : NULL;
            for (int64_t c = 0; c < here; c++)
                for (int64_t rs = 0; rs < taps; rs++)
                    to[((c0 * taps + rs * here) + c) * width + k] = w ? w[c * taps + rs] : 0;
        }
}

void fac_conv_pack_input(const fac_cpu *c, const fac_conv_geom *g, int block, int input, const float *from, float *to) {
    packing a = { g, c->simd->lanes, block, from, to };
    if (input == 2) fac_pack_bias(from, g->K, a.lanes, to);
    else fac_parallel(&c->pool, (int)(g->groups * fac_chunks(g->K / g->groups, a.lanes)), pack_chunk, &a);
}

uint64_t fac_conv_pack_key(const fac_cpu *c, int64_t groups, int block, int input) {
    return (uint64_t)input | (uint64_t)c->simd->lanes << 8 | (uint64_t)block << 16 | (uint64_t)groups << 32;
}

void fac_pack_bias(const float *b, int64_t n, int lanes, float *to) {
    for (int64_t k = 0; k < (n + lanes - 1) / lanes * lanes; k++) to[k] = k < n ? b[k] : 0;
}
