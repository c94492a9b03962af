/* Weights that become f32 by panels: see panels.h. */
#include "backends/cpu/product/panels.h"
#include <limits.h>
#include "backends/cpu/product/gemm.h"

enum {
    DEPTH = 256,  /* of the sum: a panel and a tile of x fit the first cache */
    ALIGNED = 32, /* a maker may write so far */
    TOGETHER = 4, /* panels, where there are many rows of x: then these come from far away */
    TILES = 8     /* of x that stay in the second cache for them */
};

static int64_t floats_of_panel(const fac_simd *s) { return 2 * s->lanes * (DEPTH + ALIGNED); }

bool fac_panels_settle(fac_panels *p) {
    const fac_simd *s = p->cpu->simd;
    p->together = fac_gemm_tiles(s, p->M) > TILES ? TOGETHER : 1;
    p->shared = (size_t)p->M * (size_t)fac_gemm_padded(s, p->K);
    p->each = (size_t)(p->together * floats_of_panel(s)) + fac_gemm_edge(s);
    return p->N < INT_MAX / 8 && p->K < INT_MAX / 8 && p->M < INT_MAX / 8;
}

static fac_gemm_job gemm_of(const fac_panels_job *j) {
    static const fac_epilogue none = { .residual = -1,
                                       .lo = -__builtin_inff(),
                                       .hi = __builtin_inff() };
    const fac_panels *p = j->p;
    return (fac_gemm_job){
        .simd = p->cpu->simd, .M = p->M, .N = p->N, .K = p->K, .y = j->y, .y_row = p->N, .e = &none
    };
}

static int64_t slab_end(const fac_panels *p, int64_t k0) {
    return k0 + DEPTH < p->K ? k0 + DEPTH : p->K;
}

/* A tile of x for all slabs of the sum: slab k0 begins at M k0 (DEPTH is whole vectors). */
static void pack_tile(void *arg, int tile, int thread) {
    const fac_panels_job *j = arg;
    const fac_panels *p = j->p;
    const fac_simd *s = p->cpu->simd;
    const int64_t row = p->M * tile / fac_gemm_tiles(s, p->M);
    (void)thread;
    for (int64_t k0 = 0; k0 < p->K; k0 = slab_end(p, k0)) {
        const int64_t k1 = slab_end(p, k0), depth = fac_gemm_padded(s, k1 - k0);
        fac_gemm_pack_a(s, j->x, p->K, 1, p->M, tile, tile + 1, k0, k1, 1,
                        j->scratch + p->M * k0 + row * depth);
    }
}

/* Panels p0 .. p1 - 1 with all rows of x. */
static void panels(const fac_panels_job *j, int64_t p0, int64_t p1, float *scratch) {
    const fac_panels *p = j->p;
    const fac_simd *s = p->cpu->simd;
    const fac_gemm_job g = gemm_of(j);
    const int64_t tiles = fac_gemm_tiles(s, p->M), floats = floats_of_panel(s);
    float *edge = scratch + p->together * floats;
    for (int64_t k0 = 0; k0 < p->K; k0 = slab_end(p, k0)) {
        const int64_t k1 = slab_end(p, k0), depth = fac_gemm_padded(s, k1 - k0);
        for (int64_t n = p0; n < p1; n++) {
            const int vectors = (int)(fac_gemm_width(s, p->N, n) / s->lanes);
            j->make(j->of, n, vectors, k0, k1, scratch + (n - p0) * floats);
        }
        for (int64_t t0 = 0; t0 < tiles; t0 += TILES) {
            const int64_t t1 = t0 + TILES < tiles ? t0 + TILES : tiles;
            const float *a = j->scratch + p->M * k0 + p->M * t0 / tiles * depth;
            for (int64_t n = p0; n < p1; n++) {
                const fac_gemm_block at = { t0, t1, n, n + 1, k0, k1 };
                const float *b = scratch + (n - p0) * floats;
                fac_gemm_slab(&g, at, a, depth, b - k0 * fac_gemm_width(s, p->N, n), edge);
            }
        }
    }
}

static void group(void *arg, int i, int thread) {
    const fac_panels_job *j = arg;
    const fac_panels *p = j->p;
    const int64_t wide = 2 * p->cpu->simd->lanes, all = fac_gemm_panels(p->cpu->simd, p->N);
    const int64_t p0 = (int64_t)i * p->together, last = p0 + p->together;
    const int64_t p1 = last < all ? last : all;
    const int64_t end = p1 * wide < p->N ? p1 * wide : p->N;
    panels(j, p0, p1, j->scratch + p->shared + (size_t)thread * p->each);
    if (j->end) j->end(j->of, p0 * wide, end - p0 * wide);
}

void fac_panels_run(const fac_panels_job *j) {
    const fac_panels *p = j->p;
    const fac_simd *s = p->cpu->simd;
    fac_panels_job job = *j;
    const int64_t groups = (fac_gemm_panels(s, p->N) + p->together - 1) / p->together;
    fac_parallel(&p->cpu->pool, (int)fac_gemm_tiles(s, p->M), pack_tile, &job);
    fac_parallel(&p->cpu->pool, (int)groups, group, &job);
}
