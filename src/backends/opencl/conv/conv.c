/* conv/tile and conv/vector: conv2d, conv3d and their gradients, of any stride, dilation, padding
 * and groups, as products (conv.h). Weights are packed once; where they change in the run, as a
 * step of it. */
#include <string.h>
#include "backends/draft.h"
#include "backends/opencl/conv/conv.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/gpu/speed.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/table.h"
#include "base/memory.h"
#include "tensor/tensor_internal.h"
#include "cl_gemm_pack.h"

/* As product/gemm_pack.cl has it. */
typedef struct packing {
    int64_t batch, K, M, padded, from, to, row, z, terms;
} packing;

enum {
    TABLES = 4,
    GRAD_W_VERSION = 2
}; /* taps, pixels, places, weights; for tuning, of gradients by weights */

typedef struct plan {
    fac_cl_conv c;
    fac_cl_gemm g;
    fac_cl_kernel pack;
    fac_span table[TABLES];
    size_t bytes[TABLES];
} plan;

/* What make() goes on with. */
typedef struct draft {
    fac_cl_conv c;
    fac_gpu_tile t;
} draft;

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_gpu_way way = *(const fac_gpu_way *)p->solver->how;
    const fac_opencl *o = fac_opencl_of(d);
    fac_cl_conv c;
    fac_gpu_tile t;
    if (!fac_cl_conv_read(o, p, true, &c)) return false;
    c.r.variant = p->variant;
    if (!fac_gpu_tile_choose(&o->limits, &c.r, way, &t)) return false;
    offer->variants = fac_gpu_tile_variants(&o->limits, c.r.dtype, way);
    offer->version = c.kind == FAC_GPU_GRAD_W ? GRAD_W_VERSION : FAC_GPU_TILE_VERSION;
    fac_cl_conv_settle(&c, &t);
    *FAC_DRAFT(offer, draft) = (draft){ c, t };
    offer->seconds = t.seconds * c.phases;
    const int64_t most =
        fac_cl_phase_shape(&c, 0).N; /* pixels; the phase that has most to do may have less */
    if (most > c.r.s.N) c.r.s.N = most;
    offer->work = fac_gpu_tile_work(&t, &c.r);
    if (c.kind == FAC_GPU_GRAD_W) return true;
    offer->packed[1] = fac_cl_conv_packed(&c) * (size_t)fac_dtype_get(c.r.dtype)->block_bytes;
    if (!offer->packed[1]) return false;
    if (p->in[1].time == FAC_RUN)
        offer->seconds += fac_gpu_costs.second_launch +
                          2 * (double)offer->packed[1] / fac_gpu_bandwidth(&o->limits);
    return true;
}

static void done(fac_device *d, void *arg) {
    plan *q = arg;
    if (!q) return;
    for (int i = 0; i < TABLES; i++) fac_device_release(d, q->table[i].memory, q->bytes[i]);
    fac_cl_gemm_free(fac_opencl_of(d), &q->g);
    fac_cl_kernel_free(fac_opencl_of(d), &q->pack);
    fac_release(q);
}

static fac_status upload(fac_device *d, plan *q, int i, const void *from, size_t bytes,
                         fac_error *err) {
    if (!bytes) return FAC_OK;
    FAC_TRY(fac_device_alloc(d, bytes, &q->table[i].memory, err));
    q->bytes[i] = bytes;
    return d->backend->write(d, q->table[i], from, bytes, err);
}

static fac_status make_tables(fac_device *d, plan *q, fac_error *err) {
    fac_cl_tables t;
    FAC_TRY(fac_cl_tables_make(&q->c, &t, err));
    const bool patches = q->c.r.right != FAC_GPU_MATRIX;
    fac_status status = patches ? upload(d, q, 0, t.tap, t.taps * sizeof(cl_int4), err) : FAC_OK;
    if (!status && patches) status = upload(d, q, 1, t.pixel, t.pixels * sizeof(cl_int4), err);
    if (!status) status = upload(d, q, 2, t.place, t.places * sizeof(cl_int), err);
    if (!status) status = upload(d, q, 3, t.term, t.terms * sizeof(cl_int), err);
    fac_cl_tables_free(&t);
    return status;
}

/* Weights are found by a table: they are flipped, or in blocks. */
static bool has_terms(const fac_cl_conv *c) { return c->kind == FAC_GPU_GRAD_X || c->block; }

static fac_status make_pack(fac_opencl *o, plan *q, fac_error *err) {
    fac_text text = { 0 };
    const bool table = has_terms(&q->c);
    fac_text_print(&text, "#define MEM %s\n#define TERMS_PARAM%s\n#define TERM(k) %s\n",
                   fac_cl_in_memory(q->c.r.dtype),
                   table ? " , global const int *restrict terms" : "",
                   table ? "terms[s.terms + k]" : "k");
    if (q->c.r.panel) fac_text_print(&text, "#define PANEL %d\n", q->c.r.panel);
    fac_text_add(&text, fac_kernel_gemm_pack);
    fac_status status = text.failed ? fac_raise_memory(err, "the text of a kernel")
                                    : fac_cl_kernel_new(o, text.s, "", "pack", &q->pack, err);
    fac_text_free(&text);
    return status;
}

static fac_status build(fac_device *d, const fac_problem *p, plan *q, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    const draft *settled = p->draft;
    q->c = settled->c;
    FAC_TRY(make_tables(d, q, err));
    if (q->c.kind != FAC_GPU_GRAD_W) FAC_TRY(make_pack(o, q, err));
    return fac_cl_gemm_make(o, &q->c.r, &settled->t, &q->g, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    fac_status status = build(d, p, q, err);
    return fac_solver_made(status, d, q, done, out);
}

/* ---- weights ---- */

static uint64_t pack_key(const void *arg, int input) {
    const fac_cl_conv *c = &((const plan *)arg)->c;
    fac_hash h = fac_hash_int(fac_hash_start((uint64_t)input),
                              (uint64_t)c->kind << 32 | (uint64_t)c->g.groups);
    h = fac_hash_int(h, (uint64_t)c->block << 8 | (uint64_t)c->r.panel);
    for (int k = 0; k < 3 && c->kind == FAC_GPU_GRAD_X; k++) {
        h = fac_hash_int(h, (uint64_t)c->g.stride[k]);
        h = fac_hash_int(h, (uint64_t)c->g.dilation[k] << 32 | (uint64_t)c->g.pad[k]);
    }
    return h.a;
}

static fac_status pack(const void *arg, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *q = arg;
    const fac_cl_conv *c = &q->c;
    const fac_conv_geom *g = &c->g;
    const bool grad_x = c->kind == FAC_GPU_GRAD_X, table = has_terms(c);
    const int64_t taps = g->kernel[0] * g->kernel[1] * g->kernel[2], row = g->C / g->groups * taps,
                  element = (int64_t)q->g.element;
    fac_opencl *o = fac_opencl_of(d);
    (void)input;
    for (int i = 0; i < c->phases; i++) {
        const fac_gpu_shape s = fac_cl_phase_shape(c, i);
        packing a = {
            .batch = s.batch, .K = s.K, .M = s.M, .padded = s.a.column, .row = grad_x ? taps : row
        };
        a.from = (int64_t)fac_cl_at(from) / element;
        a.to = (int64_t)fac_cl_at(to) / element + s.a.at;
        a.z = g->K / g->groups * row;
        if (table)
            a.terms = (int64_t)(fac_cl_at(q->table[3]) / sizeof(cl_int)) +
                      s.a.at / (s.batch * s.a.column);
        const size_t count = (size_t)(a.batch * a.K * a.padded),
                     most = (size_t)o->limits.units * 2048;
        const fac_cl_range range = { 1,
                                     { count < most ? count : most },
                                     { o->limits.group < 256 ? o->limits.group : 256 } };
        const fac_cl_arg args[] = { fac_cl_arg_value(&a, sizeof a), fac_cl_arg_span(from),
                                    fac_cl_arg_span(to), fac_cl_arg_span(q->table[3]) };
        FAC_TRY(fac_cl_launch(o, &q->pack, &range, table ? 4 : 3, args, err));
    }
    return FAC_OK;
}

/* ---- run ---- */

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *q = arg;
    const bool by_w = q->c.kind == FAC_GPU_GRAD_W;
    fac_cl_operands x = { .a = in[1],
                          .b = in[0],
                          .y = out[0],
                          .work = work,
                          .taps = q->table[0],
                          .pixels = q->table[1],
                          .places = q->table[2] };
    for (int i = 0; i < q->c.r.extras; i++) x.e[i] = in[q->c.r.input[i]];
    for (int i = 0; i < (by_w ? 1 : q->c.phases); i++) {
        const fac_gpu_shape s = fac_cl_phase_shape(&q->c, i);
        FAC_TRY(fac_cl_gemm_run(fac_opencl_of(d), &q->g, &s, &x, err));
    }
    return FAC_OK;
}

const fac_solver fac_cl_conv_tile = { .name = "conv/tile",
                                      .rank = 440,
                                      .how = &(const fac_gpu_way){ FAC_GPU_TILED },
                                      .offer = offer,
                                      .make = make,
                                      .done = done,
                                      .pack_key = pack_key,
                                      .pack = pack,
                                      .run = run };
const fac_solver fac_cl_conv_vector = { .name = "conv/vector",
                                        .rank = 450,
                                        .how = &(const fac_gpu_way){ FAC_GPU_VECTOR },
                                        .offer = offer,
                                        .make = make,
                                        .done = done,
                                        .pack_key = pack_key,
                                        .pack = pack,
                                        .run = run };
