/* fused_conv/inverted: expansion, depthwise convolution and projection (inverted residuals) of a strip of output rows after the
 * other, on blocked images, so that the expanded image never leaves the second cache.
 *
 *   e[k] = clip(b1[k] + sum over c of x[c] w1[k][c])                      rows of the image into a ring of rows, 1 x 1
 *   d[k] = clip(b2[k] + sum over r, s of e[k][r][s] w2[k][r][s])          from the ring into a strip, any kernel and stride
 *   y[l] = clip(b3[l] + sum over k of d[k] w3[l][k] + residual[l])        from the strip, 1 x 1
 *
 * A thread has a band of rows of an image to itself, with a ring and a strip of its own; the rows of e that two bands look at are
 * computed twice.  A strip is short enough for two chunks of channels of ring and strip to stay in the first cache, where one
 * chunk's rows are expanded and convolved at once.  f32, the same sums in the same order as the three solvers apart. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "backends/cpu/conv_common.h"
#include "backends/cpu/solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph_internal.h"

enum { STRIP = 4, WIDEST = 16 };            /* rows of outputs in a strip, at most; of a depthwise kernel */

/* One of the three convolutions: its operands by number of the problem's input, -1: absent. */
typedef struct part { const fac_node *node; fac_conv_geom g; int w, b; float lo, hi; } part;

typedef struct plan {
    const fac_cpu *cpu;
    part           e, d, p;
    int            residual;
    fac_layout     x, y, r;
    int64_t        blocks;                  /* of channels of e and d              */
    int64_t        bands, strip, ring;      /* of an image; rows of outputs; of e  */
    int64_t        row, plane;              /* of the ring, in floats              */
    int64_t        d_plane;                 /* of the strip                        */
    size_t         per_thread;              /* floats                              */
} plan;

typedef struct job { const plan *p; const float *x, *r, *w[3], *b[3]; float *y, *work; } job;

/* ---- run ------------------------------------------------------------------------------------------------------------- */

/* All pixels of a row, `width` of them from t's places on, in tiles of nearly the same size. */
static void do_row(const fac_simd *s, fac_conv_tile t, int64_t width, int n) {
    const int64_t tiles = (width + s->rows - 1) / s->rows, size = width / tiles, larger = width % tiles;
    for (int k = 0; k < 2; k++) {
        const int m = (int)(k ? size : size + 1), half = (m + 1) / 2;
        t.tiles = k ? tiles - larger : larger;
        if (!t.tiles) continue;
        t.x1 = t.x0 + half * s->lanes, t.y1 = t.y0 + half * s->lanes, t.r1 = t.r0 ? t.r0 + half * s->lanes : NULL;
        s->tile[FAC_TILE_NEAR].of[m][n - 1](&t);
        const int64_t done = t.tiles * m * s->lanes;
        t.x0 += done, t.y0 += done;
        if (t.r0) t.r0 += done;
    }
}

static fac_conv_tile tile_of(const plan *p, const job *j, int k, const part *c, int64_t chunk) {
    const int lanes = p->cpu->simd->lanes;
    return (fac_conv_tile){ .x_pixel = lanes, .channels = (int)c->g.C, .R = 1, .S = 1, .y_pixel = lanes, .r_pixel = lanes,
                            .w = fac_conv_chunk(&c->g, lanes, j->w[k], 0, chunk),
                            .bias = j->b[k] ? j->b[k] + chunk * 2 * lanes : NULL, .lo = c->lo, .hi = c->hi };
}

/* Rows first .. last - 1 of e, number `from` of which lies in slot 0 of the ring, for one chunk of channels; rows outside of the
 * image are the padding. */
static void expand(const job *j, const float *x, float *ring, int64_t chunk, int64_t from, int64_t first, int64_t last) {
    const plan *p = j->p;
    const fac_conv_geom *g = &p->e.g;
    const int64_t lanes = p->cpu->simd->lanes;
    const int n = fac_chunk_vectors(g->K, (int)lanes, chunk);
    fac_conv_tile t = tile_of(p, j, 0, &p->e, chunk);
    t.x_block = p->x.stride[1], t.y_vector = p->plane;
    for (int64_t row = first; row < last; row++) {
        float *to = ring + 2 * chunk * p->plane + (row - from) % p->ring * p->row + p->d.g.pad[2] * lanes;
        t.x0 = x + row * p->x.stride[2], t.y0 = to;
        if (row >= 0 && row < g->H) do_row(p->cpu->simd, t, g->W, n);
        else for (int k = 0; k < n; k++) memset(to + k * p->plane, 0, (size_t)(g->W * lanes) * sizeof *to);
    }
}

/* Rows y0 .. y0 + count - 1 of d, for one chunk of channels. */
static void convolve(const job *j, const float *ring, float *strip, int64_t chunk, int64_t from, int64_t y0, int64_t count) {
    const plan *p = j->p;
    const fac_conv_geom *g = &p->d.g;
    const int64_t lanes = p->cpu->simd->lanes, end = 2 * chunk + fac_chunk_vectors(g->K, (int)lanes, chunk);
    fac_depthwise t = { .x_pixel = g->stride[2] * lanes, .x_row = p->row, .x_column = lanes, .x_ring = p->ring * p->row,
                        .y_pixel = lanes, .width = g->Q, .R = (int)g->R, .S = (int)g->S, .group = 1, .lo = p->d.lo,
                        .hi = p->d.hi };
    for (int64_t block = 2 * chunk; block < end; block++) {
        t.w = j->w[1] + block * g->R * g->S * lanes;
        t.bias = j->b[1] ? j->b[1] + block * lanes : NULL;
        for (int64_t i = 0; i < count; i++) {
            const int64_t slot = ((y0 + i) * g->stride[1] - g->pad[1] - from) % p->ring;
            t.x = ring + block * p->plane + slot * p->row;
            t.x_end = (int)(p->ring - slot);
            t.y = strip + block * p->d_plane + i * g->Q * lanes;
            p->cpu->simd->depthwise(&t);
        }
    }
}

/* The strip to rows y0 .. y0 + count - 1 of y. */
static void project(const job *j, const float *strip, float *y, const float *r, int64_t y0, int64_t count) {
    const plan *p = j->p;
    const fac_conv_geom *g = &p->p.g;
    const int lanes = p->cpu->simd->lanes;
    for (int64_t k = 0; k < fac_chunks(g->K, lanes); k++) {
        fac_conv_tile t = tile_of(p, j, 2, &p->p, k);
        t.x_block = p->d_plane, t.y_vector = p->y.stride[1], t.r_vector = p->r.stride[1];
        for (int64_t i = 0; i < count; i++) {
            t.x0 = strip + i * g->Q * lanes;
            t.y0 = y + 2 * k * p->y.stride[1] + (y0 + i) * p->y.stride[2];
            if (r) t.r0 = r + 2 * k * p->r.stride[1] + (y0 + i) * p->r.stride[2];
            do_row(p->cpu->simd, t, g->Q, fac_chunk_vectors(g->K, lanes, k));
        }
    }
}

/* The padding at both ends of the rows of the ring, which nobody writes. */
static void clear_sides(const plan *p, float *ring) {
    const int64_t lanes = p->cpu->simd->lanes, before = p->d.g.pad[2] * lanes, inside = p->e.g.W * lanes;
    for (int64_t block = 0; block < p->blocks; block++)
        for (int64_t i = 0; i < p->ring; i++) {
            float *row = ring + block * p->plane + i * p->row;
            memset(row, 0, (size_t)before * sizeof *row);
            memset(row + before + inside, 0, (size_t)(p->row - before - inside) * sizeof *row);
        }
}

/* [image][band] */
static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_conv_geom *g = &p->d.g;
    const int64_t image = i / p->bands, band = i % p->bands, end = g->P * (band + 1) / p->bands;
    const float *x = j->x + image * p->x.stride[0], *r = j->r ? j->r + image * p->r.stride[0] : NULL;
    float *ring = j->work + (size_t)thread * p->per_thread, *strip = ring + p->blocks * p->plane;
    int64_t y = g->P * band / p->bands;
    const int64_t from = y * g->stride[1] - g->pad[1];
    clear_sides(p, ring);
    for (int64_t next = from; y < end; y += p->strip) {
        const int64_t count = end - y < p->strip ? end - y : p->strip;
        const int64_t last = (y + count - 1) * g->stride[1] - g->pad[1] + g->R;
        for (int64_t k = 0; k < fac_chunks(g->K, p->cpu->simd->lanes); k++) {
            expand(j, x, ring, k, from, next, last);
            convolve(j, ring, strip, k, from, y, count);
        }
        if (next < last) next = last;
        project(j, strip, j->y + image * p->y.stride[0], r, y, count);
    }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out, fac_span work, fac_error *err) {
    const plan *p = plan_;
    const part *parts[] = { &p->e, &p->d, &p->p };
    job j = { .p = p, .x = fac_span_floats(in[0], &p->x), .y = fac_span_floats(out[0], &p->y), .work = fac_span_packed(work) };
    for (int k = 0; k < 3; k++) {
        j.w[k] = fac_span_packed(in[parts[k]->w]);
        j.b[k] = parts[k]->b < 0 ? NULL : fac_span_packed(in[parts[k]->b]);
    }
    if (p->residual >= 0) j.r = fac_span_floats(in[p->residual], &p->r);
    (void)d, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->e.g.N * p->bands), item, &j);
    return FAC_OK;
}

/* ---- offer and make -------------------------------------------------------------------------------------------------- */

static int input_of(const fac_graph *body, const fac_value *v) {
    for (int i = 0; v && i < fac_graph_inputs(body); i++)
        if (fac_graph_input(body, i) == v) return i;
    return -1;
}

/* Takes a convolution of `now` and a clip behind it, if they are there. */
static bool take(const fac_graph *body, const fac_node **n, const fac_value **now, part *to) {
    const fac_node *c = *n;
    if (!c || strcmp(c->op->name, "conv2d") || c->in[0] != *now || c->body[0] || !fac_conv_geometry(c, &to->g)) return false;
    to->w = input_of(body, c->in[1]), to->b = c->nin > 2 ? input_of(body, c->in[2]) : -1;
    if (to->w < 0 || to->w >= FAC_OFFER_PACKED || to->b >= FAC_OFFER_PACKED) return false;
    if (c->nin > 2 && c->in[2] && to->b < 0) return false;
    *n = c->next, *now = c->out[0];
    to->lo = -INFINITY, to->hi = INFINITY;
    if (*n && (*n)->nin > 0 && (*n)->in[0] == *now && fac_cpu_is_clip(*n, &to->lo, &to->hi)) *now = (*n)->out[0], *n = (*n)->next;
    return true;
}

static bool is_pointwise(const fac_conv_geom *g) {
    for (int k = 1; k < 3; k++)
        if (g->kernel[k] != 1 || g->stride[k] != 1 || g->in[k] != g->out[k]) return false;
    return g->groups == 1;
}

/* The body as three convolutions; false when it is something else. */
static bool read_body(const fac_problem *p, plan *q) {
    const fac_graph *body = p->node->body[0];
    const fac_node *n = body->first;
    const fac_value *now = fac_graph_input(body, 0);
    if (!take(body, &n, &now, &q->e) || !take(body, &n, &now, &q->d) || !take(body, &n, &now, &q->p)) return false;
    q->residual = -1;
    if (n && !strcmp(n->op->name, "add") && q->p.lo == -INFINITY && q->p.hi == INFINITY) {
        const fac_value *other = n->in[0] == now ? n->in[1] : n->in[1] == now ? n->in[0] : NULL;
        if ((q->residual = input_of(body, other)) < 0 || !fac_dims_equal(&other->type.dims, &now->type.dims)) return false;
        now = n->out[0], n = n->next;
        if (n && n->nin > 0 && n->in[0] == now && fac_cpu_is_clip(n, &q->p.lo, &q->p.hi)) now = n->out[0], n = n->next;
    }
    if (n || fac_graph_output(body, 0) != now) return false;
    const fac_conv_geom *g = &q->d.g;
    const bool depthwise = g->groups == g->C && g->K == g->C && g->dilation[1] == 1 && g->dilation[2] == 1;
    return q->e.g.rank == 2 && depthwise && is_pointwise(&q->e.g) && is_pointwise(&q->p.g) && g->R <= WIDEST && g->S <= WIDEST;
}

/* All but the layouts. */
static bool schedule(plan *q, size_t *work) {
    const fac_conv_geom *g = &q->d.g;
    const int64_t lanes = q->cpu->simd->lanes, threads = q->cpu->pool.threads;
    const int64_t across = (g->Q - 1) * g->stride[2] + g->S, inside = g->W + g->pad[2];
    size_t ring, strip;
    q->blocks = (g->C + lanes - 1) / lanes;
    q->bands = g->N % threads == 0 ? 1 : threads < g->P ? threads : g->P;
    q->strip = STRIP < g->P ? STRIP : g->P;
    q->ring = (q->strip - 1) * g->stride[1] + g->R;
    q->row = (across > inside ? across : inside) * lanes;
    /* an odd number of vectors between blocks keeps them on different sets of the first cache */
    q->plane = (q->ring * q->row / lanes | 1) * lanes;
    q->d_plane = (q->strip * g->Q | 1) * lanes;
    if (!fac_size_mul((size_t)q->blocks, (size_t)q->plane, &ring)) return false;
    if (!fac_size_mul((size_t)q->blocks, (size_t)q->d_plane, &strip) || !fac_size_add(ring, strip, &q->per_thread)) return false;
    return fac_size_mul(q->per_thread, (size_t)threads * sizeof(float), work);
}

/* The estimates of the three solvers added up, but that the rows that bands have in common are computed twice, that short rows
 * cost a little more, and that what lies between them is not moved; where it stays in the second cache anyway there is nothing to
 * gain. */
static double seconds_of(const plan *q) {
    const fac_conv_geom *e = &q->e.g, *d = &q->d.g, *p = &q->p.g;
    const fac_cpu *c = q->cpu;
    const double outputs = (double)d->N * (double)(d->P * d->Q), inputs = (double)e->N * (double)(e->H * e->W);
    const int64_t common = d->R > d->stride[1] ? d->R - d->stride[1] : 0;
    const double twice = 1.05 + (double)((q->bands - 1) * common) / (double)e->H;
    const double e_weights = (double)fac_conv_packed(e, c->simd->lanes), p_weights = (double)fac_conv_packed(p, c->simd->lanes);
    const double expanded = (double)e->K * (inputs + outputs);
    const bool near = 4 * expanded < (double)c->l2 * c->pool.threads;
    const double bytes = 4 * (e_weights + p_weights + (double)e->C * inputs + (double)p->K * outputs + (near ? 2 * expanded : 0));
    return fac_cpu_seconds(c, 2 * inputs * e_weights * twice, 0.8, bytes) +
           fac_cpu_seconds(c, 2 * outputs * (double)(d->R * d->S * d->K), 0.5, 0) +
           fac_cpu_seconds(c, 2 * outputs * p_weights, 0.8, 0);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan q = { .cpu = fac_cpu_of(d) };
    const int lanes = q.cpu->simd->lanes;
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].type.dtype != FAC_F32 || fac_dims_count(&p->in[i].type.dims) <= 0) return false;
    if (fac_dims_count(&p->out[0].type.dims) <= 0 || !read_body(p, &q) || !schedule(&q, &o->work)) return false;
    if (q.e.g.N > INT_MAX / q.bands) return false;
    part *const parts[] = { &q.e, &q.d, &q.p };
    for (int k = 0; k < 3; k++) {
        const fac_conv_geom *g = &parts[k]->g;
        const size_t floats = k == 1 ? fac_conv_depthwise_bytes(g, lanes) / sizeof(float) : fac_conv_packed(g, lanes);
        if (!floats || parts[k]->w == 0 || parts[k]->b == 0 || o->packed[parts[k]->w]) return false;
        o->packed[parts[k]->w] = floats * sizeof(float);
        if (parts[k]->b >= 0 && o->packed[parts[k]->b]) return false;           /* one number of an input has one packed form */
        if (parts[k]->b >= 0) o->packed[parts[k]->b] = fac_bias_bytes(g->K, lanes);
    }
    if (q.residual >= 0 && q.residual < FAC_OFFER_PACKED && o->packed[q.residual]) return false;
    fac_want_blocked(q.cpu, &p->in[0], 0);
    fac_want_blocked_out(q.cpu, &p->out[0]);
    if (q.residual >= 0) fac_want_blocked(q.cpu, &p->in[q.residual], 0);
    o->seconds = seconds_of(&q);
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_alloc(1, sizeof *q);
    size_t work;
    if (!q) return fac_raise(err, FAC_E_NOMEM, "fused_conv/inverted: no memory for a plan");
    q->cpu = fac_cpu_of(d);
    read_body(p, q), schedule(q, &work);
    q->x = p->in[0].layout, q->y = p->out[0].layout;
    if (q->residual >= 0) q->r = p->in[q->residual].layout;
    *out = q;
    return FAC_OK;
}
static void done(fac_device *d, void *plan_) { (void)d, fac_release(plan_); }

/* ---- weights --------------------------------------------------------------------------------------------------------- */

/* Which convolution input number `input` belongs to; *bias: as its bias. */
static int part_of(const plan *p, int input, bool *bias) {
    const part *parts[] = { &p->e, &p->d, &p->p };
    int k = 0;
    while (k < 2 && parts[k]->w != input && parts[k]->b != input) k++;
    *bias = parts[k]->b == input;
    return k;
}

static uint64_t pack_key(const void *plan_, int input) {
    const plan *p = plan_;
    bool bias;
    const int k = part_of(p, input, &bias);
    return (uint64_t)k | (uint64_t)bias << 2 | (uint64_t)p->cpu->simd->lanes << 8;
}

static fac_status pack(const void *plan_, fac_device *d, int input, fac_span from, fac_span to, fac_error *err) {
    const plan *p = plan_;
    const part *parts[] = { &p->e, &p->d, &p->p };
    const int lanes = p->cpu->simd->lanes;
    bool bias;
    const int k = part_of(p, input, &bias);
    (void)d, (void)err;
    if (bias) fac_pack_bias(fac_span_packed(from), parts[k]->g.K, lanes, fac_span_packed(to));
    else if (k == 1) fac_conv_pack_depthwise(&p->d.g, lanes, false, fac_span_packed(from), fac_span_packed(to));
    else fac_conv_pack_input(p->cpu, &parts[k]->g, lanes, false, 1, fac_span_packed(from), fac_span_packed(to));
    return FAC_OK;
}

const fac_solver fac_cpu_conv_inverted = { "fused_conv/inverted", "fused_conv", offer, make, done, pack_key, pack, run };
