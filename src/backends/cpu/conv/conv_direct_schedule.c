/* How conv2d/direct cuts its work: chunks of output channels, tiles of pixels, and which comes
 * first. conv_direct.c describes it. */
#include "backends/cpu/conv/conv_direct.h"
#include "base/memory.h"

/* Vectors of a chunk: two, but one where groups share blocks and one is enough to hide the latency
 * of additions. */
static int64_t chunk_width(const fac_conv_geom *g, const fac_simd *s) {
    return s->lanes * (fac_direct_shares_blocks(g, s->lanes) && s->rows >= 8 ? 1 : 2);
}
int64_t fac_direct_chunks(const fac_conv_geom *g, const fac_simd *s) {
    const int64_t width = chunk_width(g, s),
                  K = fac_direct_shares_blocks(g, s->lanes) ? g->K : g->K / g->groups;
    return (K + width - 1) / width * (g->K / K);
}

/* The chunk that is number i and begins at float `at` of the packed weights. */
static fac_direct_chunk span_of(const fac_conv_geom *g, const fac_simd *s, int64_t i, int64_t at) {
    const int64_t lanes = s->lanes, width = chunk_width(g, s), C = g->C / g->groups,
                  K = g->K / g->groups;
    if (fac_direct_shares_blocks(g, s->lanes)) {
        const int64_t first = i * width, end = first + width < g->K ? first + width : g->K;
        const int64_t block = first / K * C / lanes, c_end = ((end - 1) / K + 1) * C;
        return (fac_direct_chunk){ first / lanes, block, c_end - block * lanes, at,
                                   (int)((end - first + lanes - 1) / lanes) };
    }
    const int64_t chunks = (K + width - 1) / width, group = i / chunks, chunk = i % chunks;
    return (fac_direct_chunk){ (group * K + chunk * width) / lanes, group * C / lanes, C, at,
                               fac_chunk_vectors(K, s->lanes, chunk) };
}
static int64_t span_floats(const fac_conv_geom *g, const fac_direct_chunk *s, int lanes) {
    return s->channels * g->R * g->S * s->n * lanes;
}

size_t fac_direct_packed(const fac_conv_geom *g, const fac_simd *s) {
    if (!fac_direct_shares_blocks(g, s->lanes)) return fac_conv_packed(g, s->lanes);
    size_t all = 0, floats;
    for (int64_t i = 0, chunks = fac_direct_chunks(g, s); i < chunks; i++) {
        const fac_direct_chunk p = span_of(g, s, i, 0);
        if (!fac_size_mul((size_t)(p.channels * p.n * s->lanes), (size_t)(g->R * g->S), &floats))
            return 0;
        if (!fac_size_add(all, floats, &all)) return 0;
    }
    return all < SIZE_MAX / sizeof(float) ? all : 0;
}

/* Pixels of all rows lie next to each other, and are those of a 1 x 1 kernel. */
static bool flat(const fac_direct_plan *p) {
    const fac_conv_geom *g = &p->g;
    bool plain = g->R == 1 && g->S == 1 && g->stride[1] == 1 && g->stride[2] == 1 &&
                 fac_conv_halo(g) == 0 && g->pad_end[1] == 0 && g->pad_end[2] == 0;
    return plain && p->x.stride[2] == g->Q * p->x.stride[3] &&
           p->y.stride[2] == g->Q * p->y.stride[3] &&
           (p->e.residual < 0 || p->r.stride[2] == g->Q * p->r.stride[3]) &&
           (p->e.mask < 0 || p->mask.stride[2] == g->Q * p->mask.stride[3]);
}

/* How full tiles of single rows are; a list is for small images only, where it is short. */
enum { LIST_PIXELS = 4096, TOGETHER = 24, SLICES = 9 };
static fac_direct_kind kind_of(const fac_direct_plan *p) {
    const int64_t Q = p->g.Q, most = p->cpu->simd->rows, across = (Q + most - 1) / most;
    if (flat(p)) return FAC_DIRECT_FLAT;
    if (p->cpu->simd->tile[FAC_TILE_LIST].of[1][0] && !p->e.loops && p->g.P * Q <= LIST_PIXELS &&
        10 * Q < 9 * across * most)
        return FAC_DIRECT_LIST;
    return 2 * Q <= most && p->g.P > 1 ? FAC_DIRECT_TWO_ROWS : FAC_DIRECT_ROWS;
}

void fac_direct_schedule(fac_direct_plan *p) {
    const fac_conv_geom *g = &p->g;
    const fac_simd *simd = p->cpu->simd;
    const int64_t threads = p->cpu->pool.threads, lanes = simd->lanes;
    p->chunks = fac_direct_chunks(g, simd);
    p->kind = kind_of(p);
    const bool one = p->kind == FAC_DIRECT_FLAT || p->kind == FAC_DIRECT_LIST;
    p->width = one ? g->P * g->Q : g->Q;
    p->across = (p->width + simd->rows - 1) / simd->rows;
    p->tiles = p->across;
    if (!one) p->tiles *= p->kind == FAC_DIRECT_TWO_ROWS ? (g->P + 1) / 2 : g->P;

    const size_t weights = fac_direct_packed(g, simd) / (size_t)g->groups * sizeof(float);
    bool large = weights > p->cpu->l2 / 2;
    p->by_chunk = p->chunks >= threads && (g->Q <= 14 || (large && g->Q < 28));
    bool rows = !p->by_chunk && !large;
    int64_t others = p->by_chunk ? p->chunks * g->N : g->N;
    /* some tiles of a flat image share the weights; else the tiles of a row */
    p->together = !rows                        ? p->tiles
                  : p->kind == FAC_DIRECT_FLAT ? TOGETHER
                  : p->kind == FAC_DIRECT_LIST ? (g->Q + simd->rows - 1) / simd->rows
                                               : p->across;
    p->bands = 1;
    if (rows)
        p->bands = p->tiles / p->together / 2 > 0 ? p->tiles / p->together / 2 : 1;
    else if (others < 4 * threads && others % threads)
        p->bands = (4 * threads + others - 1) / others;
    if (rows && others * p->bands > 16 * threads) p->bands = (16 * threads + others - 1) / others;
    if (rows && others % threads)
        p->bands = (p->bands + threads - 1) / threads * threads; /* as much for each thread */
    if (p->bands > p->tiles) p->bands = p->tiles;

    const int64_t parts = p->by_chunk && g->groups == 1
                              ? (int64_t)(weights / (size_t)p->chunks / (p->cpu->l2 / SLICES)) + 1
                              : 1;
    p->depth = (g->C / parts + lanes - 1) / lanes * lanes;
    p->x_across = g->stride[1] * p->x.stride[2];
    p->x_start = -g->pad[1] * p->x.stride[2] - g->pad[2] * p->x.stride[3];
    p->tile = (fac_conv_tile){ .x_pixel = g->stride[2] * p->x.stride[3],
                               .x_block = p->x.stride[1],
                               .x_row = g->dilation[1] * p->x.stride[2],
                               .x_column = g->dilation[2] * p->x.stride[3],
                               .R = (int)g->R,
                               .S = (int)g->S,
                               .y_pixel = lanes,
                               .y_vector = p->y.stride[1],
                               .r_pixel = lanes,
                               .mask_pixel = lanes,
                               .mask_vector = p->mask.stride[1],
                               .mask_lo = p->e.mask_lo,
                               .lo = p->e.lo,
                               .hi = p->e.hi };
}

bool fac_direct_tables(fac_direct_plan *p) {
    const int64_t n = p->kind == FAC_DIRECT_LIST ? p->width : 0, lanes = p->cpu->simd->lanes;
    p->spans = fac_alloc((size_t)p->chunks, sizeof *p->spans);
    p->x_at = fac_alloc(4 * (size_t)n, sizeof *p->x_at);
    if (!p->spans || !p->x_at) return false;
    for (int64_t i = 0, at = 0; i < p->chunks; i++) {
        p->spans[i] = span_of(&p->g, p->cpu->simd, i, at);
        at += span_floats(&p->g, &p->spans[i], (int)lanes);
    }
    p->y_at = p->x_at + n;
    p->r_at = p->y_at + n;
    p->mask_at = p->r_at + n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = i / p->g.Q, q = i % p->g.Q;
        p->x_at[i] = row * p->x_across + q * p->tile.x_pixel;
        p->y_at[i] = row * p->y.stride[2] + q * lanes;
        p->r_at[i] = row * p->r.stride[2] + q * lanes;
        p->mask_at[i] = row * p->mask.stride[2] + q * lanes;
    }
    return true;
}
