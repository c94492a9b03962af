/* conv2d_grad_x/strided, conv2d_grad_x/strided_depthwise: gradients by the inputs of convolutions
 * with strides, phase by phase.
 *
 * With u = i + pad, row i of dx meets the taps r of u's phase a = u mod stride only: r = a + t
 * stride, at row u / stride - t of dy; columns likewise.  So the rows and columns of a phase are a
 * convolution of dy of stride 1 with those taps, flipped, whose outputs lie `stride` pixels apart
 * in dx; phases without taps are zeros (or the residual).  The kernels are those of the forward
 * pass, padding is the zero halo of dy.  Any kernel and padding, no dilation; groups 1, or as many
 * as channels; f32. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/conv/conv_common.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/conv_grad.h"

enum { MOST_STRIDE = 4 };

/* One dim of a phase: `taps` taps, the first of them tap a, and its `count` outputs from number
 * `first` on. */
typedef struct phase {
    int64_t a, taps, first, count;
} phase;

typedef struct plan {
    fac_conv_geom g; /* of the convolution whose gradient this is */
    fac_epilogue e;
    fac_layout dy, dx, r, mask, bias;
    const fac_cpu *cpu;
    bool depthwise;
    phase down[MOST_STRIDE], across[MOST_STRIDE];
    int64_t chunks,
        bands; /* of channels of dx (depthwise: blocks); parts of the rows of each phase */
} plan;

/* r, mask, bias: NULL for none. */
typedef struct job {
    const plan *p;
    const float *dy, *w, *r, *mask, *bias;
    float *dx;
} job;

static phase phase_of(const fac_window *w, int64_t a) {
    phase p = { a, a < w->kernel ? (w->kernel - a + w->stride - 1) / w->stride : 0, 0, 0 };
    int64_t end = w->in + w->pad - a; /* output m lies at m stride + a - pad */
    p.first = w->pad > a ? (w->pad - a + w->stride - 1) / w->stride : 0;
    if (end > 0) p.count = (end + w->stride - 1) / w->stride - p.first;
    return p;
}

/* Zeros that the phases want around dy in this dim. */
static int64_t halo_of(const phase *p, int64_t phases, int64_t out) {
    int64_t most = 0;
    for (int64_t k = 0; k < phases; k++) {
        if (!p[k].taps || p[k].count <= 0) continue;
        int64_t before = p[k].taps - 1 - p[k].first, after = p[k].first + p[k].count - out;
        if (before > most) most = before;
        if (after > most) most = after;
    }
    return most;
}

/* The convolution that a phase is, as far as its packed weights go. */
static fac_conv_geom part_of(const plan *p, const phase *down, const phase *across) {
    fac_conv_geom g = p->g;
    g.C = p->depthwise ? p->g.groups : p->g.K;
    g.K = p->g.C;
    g.R = down->taps;
    g.S = across->taps;
    return g;
}

/* Floats of its packed weights. */
static size_t part_floats(const plan *p, const phase *down, const phase *across) {
    fac_conv_geom g = part_of(p, down, across);
    if (g.R == 0 || g.S == 0) return 0;
    if (!p->depthwise) return fac_conv_packed(&g, p->cpu->simd->lanes);
    return (size_t)(g.R * g.S) * fac_bias_bytes(g.K, p->cpu->simd->lanes) / sizeof(float);
}

/* ---- run ---- */

/* Pixel m, q of a phase in dx, the residual or the mask. */
static int64_t place(const plan *p, const fac_layout *l, const phase *down, const phase *across,
                     int64_t m, int64_t q) {
    return (m * p->g.stride[1] + down->a - p->g.pad[1]) * l->stride[2] +
           (q * p->g.stride[2] + across->a - p->g.pad[2]) * l->stride[3];
}

/* `rows` rows (1 or 2) from row m on, one chunk of channels. */
static void tiles(const job *j, const phase *down, const phase *across, int64_t chunk, int64_t m,
                  int64_t rows) {
    const plan *p = j->p;
    const fac_simd *s = p->cpu->simd;
    int lanes = s->lanes, n = fac_chunk_vectors(p->g.C, lanes, chunk);
    int64_t width = across->count, step = p->g.stride[2] * lanes,
            cuts = rows > 1 ? 1 : (width + s->rows - 1) / s->rows;
    fac_conv_geom g = part_of(p, down, across);
    fac_conv_tile t = { .x_pixel = lanes,
                        .x_block = p->dy.stride[1],
                        .x_row = p->dy.stride[2],
                        .x_column = lanes,
                        .channels = (int)p->g.K,
                        .R = (int)down->taps,
                        .S = (int)across->taps,
                        .w = fac_conv_chunk(&g, lanes, j->w, 0, chunk),
                        .y_pixel = step,
                        .y_vector = p->dx.stride[1],
                        .r_pixel = step,
                        .r_vector = p->r.stride[1],
                        .mask_pixel = step,
                        .mask_vector = p->mask.stride[1],
                        .mask_lo = p->e.mask_lo,
                        .bias = j->bias ? j->bias + chunk * 2 * lanes : NULL,
                        .lo = p->e.lo,
                        .hi = p->e.hi };
    for (int64_t i = 0; i < cuts; i++) {
        int64_t first = width * i / cuts, q = across->first + first;
        int count = rows > 1 ? 2 * (int)width : (int)(width * (i + 1) / cuts - first),
            half = (count + 1) / 2;
        t.x0 = j->dy + (m - down->taps + 1) * p->dy.stride[2] + (q - across->taps + 1) * lanes;
        t.x1 = rows > 1 ? t.x0 + p->dy.stride[2] : t.x0 + half * lanes;
        t.y0 = j->dx + place(p, &p->dx, down, across, m, q);
        t.y1 = rows > 1 ? j->dx + place(p, &p->dx, down, across, m + 1, q) : t.y0 + half * step;
        if (j->r) {
            t.r0 = j->r + place(p, &p->r, down, across, m, q);
            t.r1 = rows > 1 ? j->r + place(p, &p->r, down, across, m + 1, q) : t.r0 + half * step;
        }
        if (j->mask) {
            t.mask0 = j->mask + place(p, &p->mask, down, across, m, q);
            t.mask1 = rows > 1 ? j->mask + place(p, &p->mask, down, across, m + 1, q)
                               : t.mask0 + half * step;
        }
        s->tile[FAC_TILE_NEAR].of[count][n - 1](&t);
    }
}

/* Rows that no tap reaches: `vectors` vectors of channels. */
static void without_taps(const job *j, const phase *down, const phase *across, int64_t m,
                         int64_t vectors) {
    const plan *p = j->p;
    const int lanes = p->cpu->simd->lanes;
    size_t bytes = (size_t)lanes * sizeof *j->dx;
    for (int64_t v = 0; v < vectors; v++)
        for (int64_t q = across->first; q < across->first + across->count; q++) {
            float *to = j->dx + v * p->dx.stride[1] + place(p, &p->dx, down, across, m, q);
            if (j->r)
                memcpy(to, j->r + v * p->r.stride[1] + place(p, &p->r, down, across, m, q), bytes);
            else
                memset(to, 0, bytes);
            if (!j->r || !j->mask) continue;
            const float *mask =
                j->mask + v * p->mask.stride[1] + place(p, &p->mask, down, across, m, q);
            for (int k = 0; k < lanes; k++) to[k] = mask[k] <= p->e.mask_lo ? 0 : to[k];
        }
}

/* Rows of one phase; j: of an image, a chunk and the phase's weights. */
static void do_phase(const job *j, const phase *down, const phase *across, int64_t chunk,
                     int64_t band) {
    const plan *p = j->p;
    int lanes = p->cpu->simd->lanes;
    int64_t from = down->first + down->count * band / p->bands,
            end = down->first + down->count * (band + 1) / p->bands;
    int64_t pair = 2 * across->count <= p->cpu->simd->rows ? 2 : 1;
    fac_depthwise t = { .x_pixel = lanes,
                        .x_row = p->dy.stride[2],
                        .x_column = lanes,
                        .w = j->w + chunk * down->taps * across->taps * lanes,
                        .y_pixel = p->g.stride[2] * lanes,
                        .width = across->count,
                        .R = (int)down->taps,
                        .S = (int)across->taps,
                        .group = 1,
                        .lo = -INFINITY,
                        .hi = INFINITY };
    for (int64_t m = from; m < end; m += pair) {
        int64_t rows = end - m < pair ? end - m : pair;
        if (down->taps == 0 || across->taps == 0) {
            int64_t vectors = p->depthwise ? 1 : fac_chunk_vectors(p->g.C, lanes, chunk);
            for (int64_t k = 0; k < rows; k++) without_taps(j, down, across, m + k, vectors);
        } else if (!p->depthwise) {
            tiles(j, down, across, chunk, m, rows);
        } else
            for (int64_t k = 0; k < rows; k++) {
                t.x = j->dy + (m + k - down->taps + 1) * p->dy.stride[2] +
                      (across->first - across->taps + 1) * lanes;
                t.y = j->dx + place(p, &p->dx, down, across, m + k, across->first);
                p->cpu->simd->depthwise(&t);
            }
    }
}

/* Depthwise [image][band][block]: as the forward pass has it; else [chunk][image][band], so that a
 * chunk's weights stay. */
static void item(void *arg, int i, int thread) {
    job j = *(const job *)arg;
    const plan *p = j.p;
    int64_t chunk, band, image;
    (void)thread;
    if (p->depthwise) {
        chunk = i % p->chunks;
        band = i / p->chunks % p->bands;
        image = i / p->chunks / p->bands;
    } else {
        band = i % p->bands;
        image = i / p->bands % p->g.N;
        chunk = i / p->bands / p->g.N;
    }
    int64_t block = p->depthwise ? chunk : 2 * chunk;
    j.dy += image * p->dy.stride[0] + (p->depthwise ? block * p->dy.stride[1] : 0);
    j.dx += image * p->dx.stride[0] + block * p->dx.stride[1];
    if (j.r) j.r += image * p->r.stride[0] + block * p->r.stride[1];
    if (j.mask) j.mask += image * p->mask.stride[0] + block * p->mask.stride[1];
    for (int64_t a = 0; a < p->g.stride[1]; a++)
        for (int64_t b = 0; b < p->g.stride[2]; b++) {
            const phase *down = &p->down[a], *across = &p->across[b];
            if (down->count > 0 && across->count > 0) do_phase(&j, down, across, chunk, band);
            j.w += part_floats(p, down, across);
        }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { .p = p,
              .dy = fac_span_floats(in[0], &p->dy),
              .w = fac_span_packed(in[1]),
              .dx = fac_span_floats(out[0], &p->dx) };
    if (p->e.residual >= 0) j.r = fac_span_floats(in[p->e.residual], &p->r);
    if (p->e.mask >= 0) j.mask = fac_span_floats(in[p->e.mask], &p->mask);
    if (p->e.bias >= 0) {
        float *bias = fac_span_packed(work);
        memset(bias, 0, fac_bias_bytes(p->g.C, p->cpu->simd->lanes));
        memcpy(bias, fac_span_floats(in[p->e.bias], &p->bias), (size_t)p->g.C * sizeof *bias);
        j.bias = bias;
    }
    (void)d, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->g.N * p->chunks * p->bands), item, &j);
    return FAC_OK;
}

/* ---- offer and make ---- */

static size_t packed_floats(const plan *p) {
    size_t all = 0;
    for (int64_t a = 0; a < p->g.stride[1]; a++)
        for (int64_t b = 0; b < p->g.stride[2]; b++)
            if (!fac_size_add(all, part_floats(p, &p->down[a], &p->across[b]), &all)) return 0;
    return all <= SIZE_MAX / sizeof(float) ? all : 0;
}

/* Every pixel of dx meets a tap: nothing is left as it would be without a kernel. */
static bool taps_everywhere(const fac_conv_geom *g) {
    return g->R >= g->stride[1] && g->S >= g->stride[2];
}

/* All but the layouts; *halo: what dy needs. */
static bool settle(plan *p, const fac_problem *problem, int64_t *halo) {
    const fac_conv_geom *g = &p->g;
    int lanes = p->cpu->simd->lanes;
    if (!fac_conv_grad_geometry(problem->node, &p->g) || g->rank != 2 ||
        (g->stride[1] == 1 && g->stride[2] == 1))
        return false;
    for (int i = 0; i < problem->nin; i++)
        if (problem->in[i].type.dtype != FAC_F32 || fac_dims_count(&problem->in[i].type.dims) <= 0)
            return false;
    const fac_epilogue *e = &p->e;
    if (!fac_cpu_epilogue_biased(problem, p->cpu->simd, &p->e) || e->loops) return false;
    const bool more = e->bias >= 0 || e->lo > -INFINITY || e->hi < INFINITY;
    if (more && (p->depthwise || !taps_everywhere(g))) return false;
    if (p->depthwise && (e->residual >= 0 || e->mask >= 0)) return false;
    if (p->depthwise ? g->groups != g->C || g->K != g->C || g->C == 1 : g->groups != 1)
        return false;
    for (int k = 1; k < 3; k++)
        if (g->stride[k] > MOST_STRIDE || g->dilation[k] != 1) return false;
    const fac_window v = fac_conv_window(g, 1), h = fac_conv_window(g, 2);
    for (int64_t a = 0; a < g->stride[1]; a++) p->down[a] = phase_of(&v, a);
    for (int64_t b = 0; b < g->stride[2]; b++) p->across[b] = phase_of(&h, b);
    int64_t a = halo_of(p->down, g->stride[1], g->P), b = halo_of(p->across, g->stride[2], g->Q);
    *halo = a > b ? a : b;
    p->chunks = p->depthwise ? (g->C + lanes - 1) / lanes : fac_chunks(g->C, lanes);
    int64_t others = g->N * p->chunks, threads = p->cpu->pool.threads;
    p->bands = others >= 4 * threads ? 1 : (4 * threads + others - 1) / others;
    if (p->bands > g->P) p->bands = g->P;
    return *halo <= FAC_HALO_MOST && p->chunks <= INT_MAX / p->bands / g->N;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const bool depthwise = *(const bool *)p->solver->how;
    plan q = { .cpu = fac_cpu_of(d), .depthwise = depthwise };
    const fac_conv_geom *g = &q.g;
    int64_t halo;
    if (!settle(&q, p, &halo)) return false;
    size_t packed = packed_floats(&q);
    if (!packed) return false;
    fac_want_blocked(q.cpu, &p->in[0], halo);
    fac_want_blocked_out(q.cpu, &p->out[0]);
    if (q.e.residual >= 0) fac_want_blocked(q.cpu, &p->in[q.e.residual], 0);
    if (q.e.mask >= 0) fac_want_blocked(q.cpu, &p->in[q.e.mask], 0);
    if (q.e.bias >= 0) {
        fac_want_plain(&p->in[q.e.bias]);
        o->work = fac_bias_bytes(g->C, q.cpu->simd->lanes);
    }
    o->packed[1] = packed * sizeof(float);
    double macs = (double)packed * (double)(g->N * g->P * g->Q);
    double moved = 4 * (double)g->N * (double)(g->C * g->H * g->W + g->K * g->P * g->Q);
    o->seconds = fac_cpu_seconds(q.cpu, 2 * macs, depthwise ? 0.4 : 0.7, moved) +
                 fac_conv_pack_seconds(q.cpu, p, (double)packed);
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    q->dy = p->in[0].layout;
    q->dx = p->out[0].layout;
    if (q->e.residual >= 0) q->r = p->in[q->e.residual].layout;
    if (q->e.mask >= 0) q->mask = p->in[q->e.mask].layout;
    if (q->e.bias >= 0) q->bias = p->in[q->e.bias].layout;
    *out = q;
    return FAC_OK;
}
/* ---- weights ---- */

static uint64_t pack_key(const void *plan_, int input) {
    const plan *p = plan_;
    return (uint64_t)input | (uint64_t)p->depthwise << 4 | (uint64_t)p->cpu->simd->lanes << 8 |
           (uint64_t)p->g.stride[1] << 16 | (uint64_t)p->g.stride[2] << 24;
}

typedef struct packing {
    const plan *p;
    const phase *down, *across;
    const float *w;
    float *to;
} packing;

/* One chunk of one phase: [block of dy's channels][taps flipped][channel in block][vectors x
 * lanes]; depthwise: [taps][lanes]. */
static void pack_chunk(void *arg, int i, int thread) {
    const packing *a = arg;
    const plan *p = a->p;
    const fac_conv_geom g = part_of(p, a->down, a->across);
    int lanes = p->cpu->simd->lanes, vectors = p->depthwise ? 1 : fac_chunk_vectors(g.K, lanes, i);
    int64_t taps = p->g.R * p->g.S, width = vectors * lanes,
            k0 = i * (p->depthwise ? lanes : 2 * lanes);
    int64_t real = g.K - k0 < width ? g.K - k0 : width;
    int64_t depth = p->depthwise ? 1 : g.C;
    int64_t each = p->depthwise ? taps : taps * g.K;
    float *to = p->depthwise ? a->to + i * g.R * g.S * lanes
                             : (float *)fac_conv_chunk(&g, lanes, a->to, 0, i);
    (void)thread;
    for (int64_t c0 = 0; c0 < depth; c0 += lanes)
        for (int64_t r = g.R - 1; r >= 0; r--)
            for (int64_t s = g.S - 1; s >= 0; s--)
                for (int64_t c = c0; c < depth && c < c0 + lanes; c++, to += width) {
                    int64_t tap = (a->down->a + r * p->g.stride[1]) * p->g.S + a->across->a +
                                  s * p->g.stride[2];
                    const float *from = a->w + c * each + k0 * taps + tap;
                    for (int64_t k = 0; k < width; k++) to[k] = k < real ? from[k * taps] : 0;
                }
}

static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *p = plan_;
    packing a = { .p = p, .w = fac_span_packed(from), .to = fac_span_packed(to) };
    const bool rows = !p->depthwise && p->g.R * p->g.S == 1;
    (void)d, (void)input, (void)err;
    for (int64_t k = 0; k < p->g.stride[1] * p->g.stride[2]; k++) {
        a.down = &p->down[k / p->g.stride[2]];
        a.across = &p->across[k % p->g.stride[2]];
        const fac_conv_geom part = part_of(p, a.down, a.across);
        size_t floats = part_floats(p, a.down, a.across);
        if (floats && rows)
            fac_conv_pack_input(p->cpu, &part, p->cpu->simd->lanes, true, 1, a.w, a.to);
        else if (floats)
            fac_parallel(&p->cpu->pool, (int)p->chunks, pack_chunk, &a);
        a.to += floats;
    }
    return FAC_OK;
}

#define SOLVER(NAME)                                                                               \
    .name = NAME, .op = &fac_op_conv2d_grad_x, .offer = offer, .make = make,                       \
    .done = fac_solver_done, .pack_key = pack_key, .pack = pack, .run = run

const fac_solver fac_cpu_conv_grad_x_strided = { SOLVER("conv2d_grad_x/strided"), .rank = 470,
                                                 .how = &(const bool){ false } };
const fac_solver fac_cpu_conv_grad_x_strided_depthwise = {
    SOLVER("conv2d_grad_x/strided_depthwise"), .rank = 480, .how = &(const bool){ true }
};
