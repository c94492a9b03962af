/* conv/winograd_wgmma: 3 x 3 convolutions of stride 1 and their gradients by x with a quarter of
 * the multiplications, those on matrix units by split numbers (3XTF32): nv_winograd.cl. The
 * 36 products are one convolution of 1 x 1 with 36 times the groups, whose pixels are tiles;
 * weights are transformed while they are packed for it.
 *
 * Images go through in slices, so that V and M stay bounded.  Only for the default precision:
 * errors are about 1e-5 of the largest result. */
#include <string.h>
#include "backends/draft.h"
#include "backends/opencl/nvidia/conv/conv_rows.h"
#include "backends/opencl/nvidia/unit/pack.h"
#include "backends/gpu/nvidia/speed.h"
#include "opencl_solvers.h"
#include "base/clamp.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/table.h"
#include "tensor/tensor_internal.h"
#include "cl_nv_common.h"
#include "cl_nv_winograd.h"

enum { VERSION = 1, VARIANTS = 3, POINTS = 36, OUT = 4, GROUP = 128 };

/* As the kernels have it. */
typedef struct tiles {
    int64_t x, v;
    int32_t image, row, column, height, width, pad_h, pad_w, down, across, first, tiles, channels;
} tiles;

typedef struct plan {
    fac_nv_conv c;
    fac_nv_rows r; /* the products of a slice */
    fac_cl_kernel pack, input, output;
    int64_t images, down, across; /* of a slice; tiles of an image */
    size_t v, m;                  /* bytes of a slice */
} plan;

/* Bytes of V and M of a slice.  Weights that the second cache does not hold are read again for each
 * row of tiles: less of the other operands leaves more room for them. */
static double slice(const fac_nv_conv *c, int variant) {
    static const double bytes[] = { 500e6, 100e6, 30e6 };
    const double weights =
        2.0 * POINTS * sizeof(float) * (double)c->groups * (double)c->rows * (double)c->channels;
    return bytes[variant ? variant - 1 : weights > 50e6];
}

static int64_t rows_of(const fac_nv_conv *c) { return (int64_t)c->groups * c->rows; }
static int64_t channels_of(const fac_nv_conv *c) { return (int64_t)c->groups * c->channels; }

/* The product: image = tile, group = point and group. */
static void describe_product(plan *q) {
    const fac_nv_conv *c = &q->c;
    fac_nv_conv *m = &q->r.c;
    memset(m, 0, sizeof *m);
    m->kind = FAC_GPU_FORWARD;
    m->mode = c->mode;
    m->phases = 1;
    m->promote_from = c->promote_from;
    m->groups = POINTS * c->groups;
    m->rows = c->rows;
    m->channels = c->channels;
    m->g = (fac_conv_geom){ .rank = 2,
                            .N = q->images * q->down * q->across,
                            .C = POINTS * channels_of(c),
                            .K = POINTS * rows_of(c),
                            .groups = m->groups };
    for (int d = 0; d < 3; d++)
        m->g.in[d] = m->g.out[d] = m->g.kernel[d] = m->g.stride[d] = m->g.dilation[d] = 1;
    m->r.dtype = m->r.result = FAC_F32;
    m->r.alpha = m->r.beta = 1;
    m->x = (fac_nv_place){ .image = (int32_t)m->g.C, .channel = 1 };
    m->ends.p[0] = (fac_nv_place){ .image = (int32_t)m->g.K, .channel = 1 };
}

static bool settle(const fac_opencl *o, fac_problem *p, plan *q) {
    const fac_nv_conv *c = &q->c;
    const fac_conv_geom *g = &c->g;
    if (p->precision != FAC_PRECISION_DEFAULT || !fac_nv_conv_read(o, p, &q->c) || q->c.moments ||
        q->c.pooled)
        return false;
    if (c->mode != FAC_NV_3XTF32 || c->few || g->rank != 2) return false;
    for (int k = 1; k < 3; k++)
        if (g->kernel[k] != 3 || g->stride[k] != 1 || g->dilation[k] != 1 || g->pad[k] > 2)
            return false;
    const int64_t *to = c->kind == FAC_GPU_GRAD_X ? g->in : g->out;
    q->down = (to[1] + OUT - 1) / OUT;
    q->across = (to[2] + OUT - 1) / OUT;
    const double tile = (double)POINTS * (double)(channels_of(c) + rows_of(c)) * sizeof(float);
    const double image = tile * (double)q->down * (double)q->across;
    if (image > 1e9 || POINTS * channels_of(c) > INT32_MAX / 64 ||
        POINTS * rows_of(c) > INT32_MAX / 64)
        return false;
    q->images = (int64_t)(slice(c, p->variant) / image);
    q->images = fac_clamp(q->images, 1, g->N);
    const int64_t slices = (g->N + q->images - 1) / q->images;
    q->images = (g->N + slices - 1) / slices;
    const size_t count = (size_t)(q->images * q->down * q->across) * POINTS * sizeof(float);
    q->v = count * (size_t)channels_of(c);
    q->m = count * (size_t)rows_of(c);
    if (q->v / 4 > INT32_MAX || q->m / 4 > INT32_MAX) return false;
    describe_product(q);
    if (!fac_nv_tile_choose(&o->limits, &q->r.c, 0, &q->r.t)) return false;
    q->r.t.k.points = POINTS;
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    plan q;
    memset(&q, 0, sizeof q);
    if (!fac_cl_has_path(o, FAC_CL_WGMMA) || p->variant > VARIANTS || !settle(o, p, &q))
        return false;
    const double slices = (double)((q.c.g.N + q.images - 1) / q.images);
    offer->work = q.v + q.m + fac_nv_tile_work(&q.r.c, &q.r.t);
    offer->packed[1] = fac_nv_packed_bytes(&q.r.c, &q.r.t.k);
    /* that M is written is part of the product's time; each slice reads all weights */
    const double moved = 2 * (double)q.v + (double)q.m + (double)offer->packed[1];
    offer->seconds = slices * (q.r.t.seconds + moved / fac_nv_speeds.winograd_memory +
                               fac_nv_speeds.winograd_slice) +
                     fac_nv_conv_bytes(p) / fac_nv_speeds.winograd_memory;
    if (p->in[1].time == FAC_RUN)
        offer->seconds +=
            fac_nv_speeds.pack_launch + 2 * (double)offer->packed[1] / fac_nv_speeds.winograd_pack;
    offer->variants = VARIANTS;
    offer->version = VERSION;
    *FAC_DRAFT(offer, plan) = q;
    return true;
}

static void done(fac_device *d, void *arg) {
    fac_opencl *o = fac_opencl_of(d);
    plan *q = arg;
    if (!q) return;
    fac_nv_rows_free(d, &q->r);
    fac_cl_kernel_free(o, &q->pack);
    fac_cl_kernel_free(o, &q->input);
    fac_cl_kernel_free(o, &q->output);
    fac_release(q);
}

static fac_status make_kernels(fac_opencl *o, plan *q, fac_error *err) {
    fac_text input = { 0 }, output = { 0 };
    fac_text_print(&input, "#define INPUTS\n%s", fac_kernel_nv_winograd);
    fac_text_add(&output, fac_kernel_nv_common);
    const bool good = fac_nv_epilogue_text(&q->c.r, &q->c.ends, o->limits.fp64, &output);
    fac_text_print(&output, "#define RESULTS\n%s", fac_kernel_nv_winograd);
    fac_status status = good && !input.failed && !output.failed
                            ? FAC_OK
                            : fac_raise_memory(err, "the text of a kernel");
    if (!status)
        status =
            fac_cl_kernel_new(o, input.s, fac_cl_options(&q->c.r), "input_tiles", &q->input, err);
    if (!status)
        status = fac_cl_kernel_new(o, output.s, fac_cl_options(&q->c.r), "output_tiles", &q->output,
                                   err);
    fac_text_free(&input);
    fac_text_free(&output);
    return status;
}

static fac_status build(fac_device *d, const fac_problem *p, plan *q, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    *q = *(const plan *)p->draft;
    FAC_TRY(fac_nv_pack_make(o, &q->c, &q->r.t.k, &q->pack, err));
    FAC_TRY(make_kernels(o, q, err));
    return fac_nv_rows_make(d, &q->r, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    fac_status status = build(d, p, q, err);
    return fac_solver_made(status, d, q, done, out);
}

static uint64_t pack_key(const void *arg, int input) {
    const plan *q = arg;
    return fac_hash_int(fac_hash_start(fac_nv_pack_key(&q->c, &q->r.t.k, input)), POINTS).a;
}

fac_nv_weights fac_nv_winograd_wgmma_weights(const void *arg) {
    const plan *q = arg;
    return (fac_nv_weights){ &q->c, &q->r.c, &q->r.t.k };
}

static fac_status pack(const void *arg, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *q = arg;
    (void)input;
    return fac_nv_pack_points(fac_opencl_of(d), &q->c, &q->r.c, &q->r.t.k, &q->pack, from, to, err);
}

static fac_status run_slice(const plan *q, fac_opencl *o, int64_t first, int64_t images,
                            const fac_span *in, fac_span out, fac_span work, fac_error *err) {
    const fac_nv_conv *c = &q->c;
    const fac_conv_geom *g = &c->g;
    const bool grad_x = c->kind == FAC_GPU_GRAD_X;
    const int64_t *from = grad_x ? g->out : g->in;
    const int64_t *to = grad_x ? g->in : g->out;
    const int64_t count = images * q->down * q->across;
    const fac_span V = work, M = { work.memory, work.at + q->v },
                   parts = { work.memory, work.at + q->v + q->m };
    tiles s = { .x = c->x.at + fac_cl_floats_at(in[0]),
                .v = fac_cl_floats_at(V),
                .image = c->x.image,
                .row = c->x.row,
                .column = c->x.column,
                .height = (int32_t)from[1],
                .width = (int32_t)from[2],
                .down = (int32_t)q->down,
                .across = (int32_t)q->across,
                .first = (int32_t)first,
                .tiles = (int32_t)count,
                .channels = (int32_t)channels_of(c) };
    s.pad_h = (int32_t)(grad_x ? 2 - g->pad[1] : g->pad[1]);
    s.pad_w = (int32_t)(grad_x ? 2 - g->pad[2] : g->pad[2]);
    const fac_cl_range fill = { 1, { (size_t)(count * channels_of(c) / 2) }, { GROUP } };
    const fac_cl_arg seen[] = { fac_cl_arg_value(&s, sizeof s), fac_cl_arg_span(in[0]),
                                fac_cl_arg_span(V) };
    FAC_TRY(fac_cl_launch(o, &q->input, &fill, 3, seen, err));
    FAC_TRY(fac_nv_rows_run(o, &q->r, count, V, in[1], M, NULL, parts, err));
    s.v = fac_cl_floats_at(M);
    s.height = (int32_t)to[1];
    s.width = (int32_t)to[2];
    s.channels = (int32_t)rows_of(c);
    fac_nv_ends e = c->ends;
    fac_cl_arg args[4 + FAC_GPU_EXTRAS] = { fac_cl_arg_value(&s, sizeof s),
                                            fac_cl_arg_value(&e, fac_nv_ends_bytes(&c->r)),
                                            fac_cl_arg_span(M), fac_cl_arg_span(out) };
    e.p[0].at += (int64_t)(fac_cl_at(out) / (size_t)fac_dtype_get(c->r.result)->block_bytes);
    for (int i = 0; i < c->r.extras; i++) {
        const fac_span x = in[c->r.input[i]];
        e.p[1 + i].at +=
            (int64_t)(fac_cl_at(x) / (size_t)fac_dtype_get(c->r.extra_dtype[i])->block_bytes);
        args[4 + i] = fac_cl_arg_span(x);
    }
    const fac_cl_range finish = { 1, { (size_t)(count * rows_of(c) / 4) }, { GROUP } };
    return fac_cl_launch(o, &q->output, &finish, 4 + c->r.extras, args, err);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *q = arg;
    const int64_t all = q->c.g.N;
    for (int64_t first = 0; first < all; first += q->images) {
        const int64_t images = all - first < q->images ? all - first : q->images;
        FAC_TRY(run_slice(q, fac_opencl_of(d), first, images, in, out[0], work, err));
    }
    return FAC_OK;
}

const fac_solver fac_cl_winograd_wgmma = { .name = "conv/winograd_wgmma",
                                           .rank = 490,
                                           .offer = offer,
                                           .make = make,
                                           .done = done,
                                           .pack_key = pack_key,
                                           .pack = pack,
                                           .run = run };
