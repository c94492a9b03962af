/* conv2d/direct, conv2d_grad_x/direct: the convolution as it is defined, on blocked images; its
 * gradient is one, too (conv_common.h).
 *
 * y[k][p][q] = b[k] + sum over c, r, s of x[c][p stride + r dilation - pad][...] w[k][c][r][s]:  a
 * tile of pixels and 2 vectors of output channels stays in registers over the whole sum
 * (simd/product/tile.c); the padding is the zero halo of x, so there is no border code.  Any
 * kernel, stride, dilation and padding.  f32, one rounding a term: as accurate as the textbook
 * loop, or more where channels are added up in slices.
 *
 * Groups: where they are whole channel blocks, a chunk of output channels sees the blocks of its
 * group.  Any other groups share blocks; there a chunk sees all channels of the groups that it
 * touches, with weights of zero between channels of different groups: 28 channels each cost about
 * 1.8 times their products, at the full speed of the kernel.
 *
 * An image is `rows` rows of `width` pixels, each cut into `across` tiles of nearly the same size:
 * the rows of the image, or all of it as one row when there is nothing between the rows.  Two
 * further ways keep tiles full where images are narrow: a tile of two short rows, and, where the
 * instruction set has few enough pixels in a tile, a list of pixels that goes on over row ends.
 *
 * Three schedules (measured: layers of six networks):
 *   rows     a thread owns tiles, and does all output channels of some before the next: x is read
 *            once, weights stay in L2
 *   bands    a thread owns a band of tiles, and does all of them with one chunk of weights before
 *            the next chunk
 *   chunks   a thread owns chunks of output channels: each weight is read once by one core; small
 *            images, large weights.  Of a chunk that would push x out of L2 all tiles take a slice
 *            of its channels before the next slice, whose terms are added to what they wrote:
 *            weights come from memory once (512 channels of 3 x 3 at 7 x 7: 675 us, 568 so) */
#include <limits.h>
#include <math.h>
#include "backends/draft.h"
#include "backends/cpu/device/shared_cache.h"
#include "backends/cpu/conv/conv_direct.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

/* ---- run ---- */

/* Images, or places in them; r and mask: NULL for none. */
typedef struct images {
    const float *x, *r, *mask;
    float *y;
} images;
typedef struct job {
    const fac_direct_plan *p;
    const float *w, *b;
    images at;
    bool past;
} job; /* past: y may go past the caches */

/* Another image, another vector of output channels. */
static images moved(const fac_direct_plan *p, images at, int64_t image, int64_t vector) {
    at.x += image * p->x.stride[0];
    at.y += image * p->y.stride[0] + vector * p->y.stride[1];
    if (at.r) at.r += image * p->r.stride[0] + vector * p->r.stride[1];
    if (at.mask) at.mask += image * p->mask.stride[0] + vector * p->mask.stride[1];
    return at;
}

/* `count` tiles of m pixels, from pixel q of `row` on: those of all rows where a tile is a row or
 * two.  adds: at->r is y itself. */
static void put_tiles(const fac_direct_plan *p, fac_conv_tile *t, const images *at, bool adds,
                      int64_t row, int64_t q, int m, int64_t count) {
    const int lanes = p->cpu->simd->lanes, half = (m + 1) / 2;
    const fac_layout *r = adds ? &p->y : &p->r;
    t->r_vector = r->stride[1];
    t->tiles = count;
    if (p->kind == FAC_DIRECT_LIST) {
        t->x_at = p->x_at + q;
        t->y_at = p->y_at + q;
        t->mask_at = p->mask_at + q;
        t->r_at = (adds ? p->y_at : p->r_at) + q;
        t->x0 = at->x;
        t->y0 = at->y;
        t->r0 = at->r;
        t->mask0 = at->mask;
        return;
    }
    const bool two = p->kind == FAC_DIRECT_TWO_ROWS && m > p->width;
    const int64_t rows = two ? 2 : 1;
    if (p->across == 1) {
        t->x_next = rows * p->x_across;
        t->y_next = rows * p->y.stride[2];
        t->r_next = rows * r->stride[2];
        t->mask_next = rows * p->mask.stride[2];
    }
    if (p->kind == FAC_DIRECT_TWO_ROWS) row *= 2;
    t->x0 = at->x + row * p->x_across + q * t->x_pixel;
    t->x1 = t->x0 + (two ? p->x_across : half * t->x_pixel);
    t->y0 = at->y + row * p->y.stride[2] + q * lanes;
    t->y1 = t->y0 + (two ? p->y.stride[2] : half * lanes);
    if (at->r) {
        t->r0 = at->r + row * r->stride[2] + q * lanes;
        t->r1 = t->r0 + (two ? r->stride[2] : half * lanes);
    }
    if (!at->mask) return;
    t->mask0 = at->mask + row * p->mask.stride[2] + q * lanes;
    t->mask1 = t->mask0 + (two ? p->mask.stride[2] : half * lanes);
}

/* The loops after tiles, which have written n vectors; two rows are one tile. */
static void finish(const fac_direct_plan *p, const fac_conv_tile *t, int m, int n) {
    const int lanes = p->cpu->simd->lanes, half = (m + 1) / 2;
    for (int k = 0; k < n; k++) {
        float *y0 = t->y0 + k * t->y_vector, *y1 = t->y1 + k * t->y_vector;
        if (y1 == y0 + half * lanes)
            fac_epilogue_run(&p->e, y0, (size_t)(t->tiles * m * lanes));
        else
            fac_epilogue_run(&p->e, y0, (size_t)(half * lanes)),
                fac_epilogue_run(&p->e, y1, (size_t)((m - half) * lanes));
    }
}

/* Tiles from .. to - 1 of one image with the weights of one chunk for `channels` channels from c0
 * on.  lines: of the weights after those to bring in with every channel block. */
static void do_tiles(const job *j, images at, const fac_direct_chunk *s, int64_t c0,
                     int64_t channels, int64_t from, int64_t to, int lines) {
    const fac_direct_plan *p = j->p;
    const fac_simd *simd = p->cpu->simd;
    const int lanes = simd->lanes, n = s->n;
    const int64_t taps = p->g.R * p->g.S;
    const bool adds = c0 > 0, last = c0 + channels == s->channels;
    fac_conv_tile t = p->tile;
    t.w = j->w + s->at + c0 * taps * n * lanes;
    t.bias = j->b ? j->b + s->out * lanes : NULL;
    t.channels = (int)channels;
    t.ahead = t.w + (lines ? channels * taps * n * lanes : 0);
    t.ahead_lines = lines;
    fac_conv_tile_kernel *const(*kernels)[3] = simd->tile[p->kind == FAC_DIRECT_LIST ? FAC_TILE_LIST
                                                          : t.x_pixel == lanes       ? FAC_TILE_NEAR
                                                                                     : FAC_TILE_ANY]
                                                   .of;
    at = moved(p, at, 0, s->out);
    at.x += (s->block + c0 / lanes) * p->x.stride[1] + p->x_start;
    if (adds) {
        at.r = at.y; /* what is there has its bias and its residual */
        t.bias = NULL;
        t.here = true;
    }
    if (!last) {
        at.mask = NULL;
        t.lo = -INFINITY;
        t.hi = INFINITY;
    }
    t.past = j->past && last;

    /* a row is `larger` tiles of size + 1 pixels, then those of `size`; each kind is one call */
    const int64_t size = p->width / p->across, larger = p->width % p->across;
    const int64_t next = (channels + lanes - 1) / lanes * lines * 16;
    for (int64_t row = from / p->across, i = from % p->across; from < to;) {
        const bool more = i < larger, two = p->kind == FAC_DIRECT_TWO_ROWS && 2 * row + 1 < p->g.P;
        int64_t end = more ? larger : p->across;
        if (p->across == 1 && !p->e.loops)
            end = two ? p->g.P / 2 - row : to - from; /* rows follow each other alike */
        const int64_t count = end - i < to - from ? end - i : to - from;
        const int m = (int)(size + more) << two;
        put_tiles(p, &t, &at, adds, row, i * size + (more ? i : larger), m, count);
        kernels[m][n - 1](&t);
        t.ahead += count * next;
        if (p->e.loops && last) finish(p, &t, m, n);
        from += count;
        i += count;
        if (i >= p->across) {
            row += i / p->across;
            i = 0;
        }
    }
}

/* Lines of the weights after these to bring in with every channel block, so that all have come
 * when they are needed: those of the next channels, or of the next chunk. */
static int lines_ahead(const fac_direct_plan *p, int64_t chunk, int64_t c0, int64_t channels) {
    const int lanes = p->cpu->simd->lanes;
    const fac_direct_chunk *s = &p->spans[chunk];
    const bool last = c0 + channels == s->channels;
    if (p->bands > 1 || !p->by_chunk || (last && chunk + 1 >= p->chunks) || p->tiles > 60) return 0;
    const fac_direct_chunk *next = last ? s + 1 : s;
    const int64_t left = last ? next->channels : s->channels - c0 - channels,
                  blocks = (channels + lanes - 1) / lanes;
    const int64_t lines =
        (left < p->depth ? left : p->depth) * p->g.R * p->g.S * next->n * lanes / 16;
    return (int)((lines + p->tiles * blocks - 1) / (p->tiles * blocks));
}

static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const fac_direct_plan *p = j->p;
    int64_t band = i % p->bands, image = i / p->bands, first = 0, last = p->chunks;
    (void)thread;
    if (p->by_chunk) { /* [chunk][image][band] */
        first = image / p->g.N;
        last = first + 1;
        image %= p->g.N;
    }
    const images at = moved(p, j->at, image, 0);
    const int64_t to = p->tiles * (band + 1) / p->bands;
    for (int64_t from = p->tiles * band / p->bands; from < to; from += p->together)
        for (int64_t k = first; k < last; k++)
            for (int64_t c0 = 0, channels = p->spans[k].channels; c0 < channels; c0 += p->depth) {
                const int64_t here = channels - c0 < p->depth ? channels - c0 : p->depth;
                do_tiles(j, at, &p->spans[k], c0, here, from,
                         from + p->together < to ? from + p->together : to,
                         lines_ahead(p, k, c0, here));
            }
    if (j->past) fac_streams_end();
}

/* Of two cores without a cache in common y goes past the caches: a line of which both have a copy,
 * as what lay there before left it, is written ten times as slowly. */
static bool is_past(const fac_direct_plan *p, const job *j) {
    const int lanes = p->cpu->simd->lanes;
    const fac_conv_tile *t = &p->tile;
    const bool dense = p->g.R == 1 && p->g.S == 1 && p->kind != FAC_DIRECT_LIST &&
                       t->x_pixel == lanes && t->y_pixel == lanes &&
                       (p->e.residual < 0 || t->r_pixel == lanes) && p->e.mask < 0 && !p->e.loops;
    return dense && fac_cpu_writes_past(p->cpu, j->at.y);
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const fac_direct_plan *p = plan_;
    job j = { .p = p,
              .w = fac_span_packed(in[1]),
              .b = p->biased ? fac_span_packed(in[2]) : NULL,
              .at = { .x = fac_span_floats(in[0], &p->x), .y = fac_span_floats(out[0], &p->y) } };
    if (p->e.residual >= 0) j.at.r = fac_span_floats(in[p->e.residual], &p->r);
    if (p->e.mask >= 0) j.at.mask = fac_span_floats(in[p->e.mask], &p->mask);
    (void)d, (void)work, (void)err;
    j.past = is_past(p, &j);
    fac_parallel(&p->cpu->pool, (int)(p->g.N * p->bands * (p->by_chunk ? p->chunks : 1)), item, &j);
    return FAC_OK;
}

/* ---- offer and make ---- */

static void done(fac_device *d, void *plan_) {
    fac_direct_plan *p = plan_;
    (void)d;
    if (p) fac_release(p->spans), fac_release(p->x_at);
    fac_release(p);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *c = fac_cpu_of(d);
    fac_direct_plan q = { .cpu = c };
    if (!fac_cpu_conv_masked(d, p, &q.g, &q.e) || q.g.rank != 2) return false;
    const fac_conv_geom g = q.g;
    const fac_epilogue *e = &q.e;
    const int lanes = c->simd->lanes;
    q.flipped = fac_conv_flipped(p);
    q.biased = fac_conv_biased(p);
    int64_t halo = fac_conv_halo(&g);
    size_t packed = fac_direct_packed(&g, c->simd);
    if (!packed || halo > FAC_HALO_MOST) return false;
    if ((double)g.N * (double)(g.P * g.Q) * (double)fac_direct_chunks(&g, c->simd) > INT_MAX)
        return false;
    fac_want_blocked(c, &p->in[0], halo);
    fac_want_blocked_out(c, &p->out[0]);
    if (e->residual >= 0) fac_want_blocked(c, &p->in[e->residual], 0);
    if (e->mask >= 0) fac_want_blocked(c, &p->in[e->mask], 0);
    o->packed[1] = packed * sizeof(float);
    if (q.biased) o->packed[2] = fac_bias_bytes(g.K, lanes);
    double macs = (double)packed * (double)(g.N * g.P * g.Q);
    if (g.groups == 1 && g.C < c->simd->lanes) macs *= fac_conv_short(&g);
    o->seconds = fac_cpu_seconds(
        c, 2 * macs, 0.8,
        4.0 * ((double)packed + (double)(g.N * (g.C * g.H * g.W + g.K * g.P * g.Q))));
    o->seconds += fac_conv_pack_seconds(c, p, (double)packed);
    *FAC_DRAFT(o, fac_direct_plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    fac_direct_plan *q = fac_draft_copy(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    q->x = p->in[0].layout;
    q->y = p->out[0].layout;
    if (q->e.residual >= 0) q->r = p->in[q->e.residual].layout;
    if (q->e.mask >= 0) q->mask = p->in[q->e.mask].layout;
    fac_direct_schedule(q);
    if (!fac_direct_tables(q)) {
        done(d, q);
        return fac_raise(err, FAC_E_NOMEM, "conv2d/direct: no memory for its tables");
    }
    *out = q;
    return FAC_OK;
}

/* ---- weights ---- */

typedef struct packing {
    const fac_direct_plan *p;
    const float *w;
    float *to;
} packing;

/* One chunk of groups that share blocks: [block][R][S][channel][lane], zero between channels of
 * different groups. */
static void pack_span(void *arg, int i, int thread) {
    const packing *a = arg;
    const fac_direct_plan *p = a->p;
    const fac_conv_geom *g = &p->g;
    const fac_direct_chunk *s = &p->spans[i];
    const int64_t lanes = p->cpu->simd->lanes, C = g->C / g->groups, K = g->K / g->groups,
                  width = s->n * lanes;
    const int64_t taps = g->R * g->S;
    float *to = a->to + s->at;
    (void)thread;
    for (int64_t c0 = 0; c0 < s->channels; c0 += lanes)
        for (int64_t tap = 0; tap < taps; tap++)
            for (int64_t c = c0; c < s->channels && c < c0 + lanes; c++, to += width)
                for (int64_t lane = 0; lane < width; lane++) {
                    const int64_t k = s->out * lanes + lane, channel = s->block * lanes + c,
                                  group = k / K;
                    const bool ours = k < g->K && channel / C == group;
                    const fac_conv_weights w =
                        fac_conv_weights_of(g, p->flipped, a->w, ours ? group : 0);
                    to[lane] = ours ? w.w[k % K * w.k + channel % C * w.c + tap * w.tap] : 0;
                }
}

static uint64_t pack_key(const void *plan_, int input) {
    const fac_direct_plan *p = plan_;
    return fac_conv_pack_key(p->cpu, p->g.groups, p->cpu->simd->lanes, p->flipped, input);
}
static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const fac_direct_plan *p = plan_;
    (void)d, (void)err;
    if (input == 1 && fac_direct_shares_blocks(&p->g, p->cpu->simd->lanes)) {
        packing a = { p, fac_span_packed(from), fac_span_packed(to) };
        fac_parallel(&p->cpu->pool, (int)p->chunks, pack_span, &a);
    } else
        fac_conv_pack_input(p->cpu, &p->g, p->cpu->simd->lanes, p->flipped, input,
                            fac_span_packed(from), fac_span_packed(to));
    return FAC_OK;
}

const fac_solver fac_cpu_conv_direct = { .name = "conv2d/direct",
                                         .op = &fac_op_conv2d,
                                         .rank = 110,
                                         .offer = offer,
                                         .make = make,
                                         .done = done,
                                         .pack_key = pack_key,
                                         .pack = pack,
                                         .run = run };
const fac_solver fac_cpu_conv_grad_x_direct = { .name = "conv2d_grad_x/direct",
                                                .op = &fac_op_conv2d_grad_x,
                                                .rank = 490,
                                                .offer = offer,
                                                .make = make,
                                                .done = done,
                                                .pack_key = pack_key,
                                                .pack = pack,
                                                .run = run };
