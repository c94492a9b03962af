/* conv/winograd_grad_w_2x2 and conv/winograd_grad_w_4x4: gradients of the weights of 3 x 3
 * convolutions of stride 1 with 2.25 and 4 times fewer multiplications: the adjoint of Winograd's
 * convolution by its filters (winograd.cl).
 *
 *   dg = G' W G     W[point][k][c] = sum over tiles of D[point][k][tile] V[point][c][tile]
 *
 * x and dy are transformed, one product for each point sums over the tiles (gemm.h), its results
 * are transformed back.  Either operand is transformed in the order that it has, with tiles or with
 * channels side by side; products read both.  Tiles go through in slices, so that the scratch stays
 * bounded: the product of each slice but the first adds to what is there, in their order, so the
 * bits are the same every time.
 *
 * The rule of accuracy: the largest error of a layer, of its largest result, is at most 4 times
 * (2x2), 16 times (4x4: 3e-6) that of the direct sum on the same data, which a GPU cuts into so
 * many parts that it rounds little itself: a program that wants exact results gets neither. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "opencl_solvers.h"
#include "backends/opencl/conv/winograd.h"
#include "backends/gpu/speed.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "tensor/tensor_internal.h"

enum {
    VERSION = 1,
    LAYERS = 65535
}; /* LAYERS: groups that a launch may have in its last dimension */

/* As the kernel has it. */
typedef struct weights {
    int64_t from, to, row, channel, h, w;
    int32_t channels, rows;
} weights;

typedef struct plan {
    fac_cl_conv c;
    fac_gpu_product r, more; /* one product for each point; the one that adds */
    fac_gpu_tile t;
    fac_cl_gemm g, add;
    fac_cl_kernel inputs, gradients, back;
    int out;                    /* rows and columns of a tile */
    bool x_last, dy_last;       /* channels side by side */
    int64_t tiles, slices, row; /* of all images; tiles of a slice with those that fill it up */
    size_t v, d, u;             /* bytes */
    fac_cl_sight x, dy;
    weights weights;
} plan;

static int points(const plan *q) { return (q->out + 2) * (q->out + 2); }
static int64_t rows_of(const plan *q) { return q->c.M * q->c.g.groups; }
static int64_t channels_of(const plan *q) { return q->c.C * q->c.g.groups; }

/* Slices of equal size, and none smaller than the sums that it is added to. */
static bool cut(const fac_opencl *o, int variant, plan *q) {
    const double tile = 4.0 * points(q) * (double)(channels_of(q) + rows_of(q)),
                 sums = (double)q->u;
    double room = fac_cl_winograd_slice(o, variant);
    if (room < 2 * sums) room = 2 * sums;
    const double slices = (double)q->tiles * tile / room + 1;
    if (slices > 1e6) return false;
    q->row = fac_cl_padded((q->tiles + (int64_t)slices - 1) / (int64_t)slices);
    q->slices = (q->tiles + q->row - 1) / q->row;
    if ((double)q->row * (double)channels_of(q) > INT_MAX ||
        (double)q->row * (double)rows_of(q) > INT_MAX)
        return false;
    q->v = (size_t)(points(q) * channels_of(q) * q->row) * sizeof(float);
    q->d = (size_t)(points(q) * rows_of(q) * q->row) * sizeof(float);
    return true;
}

/* Steps of an operand of the products, of `all` channels, `group` of a group: from channel to
 * channel, and from tile to tile. */
static void step(const plan *q, bool last, int64_t all, int64_t group, int64_t *channel,
                 int64_t *tile, int64_t *z) {
    *channel = last ? 1 : q->row;
    *tile = last ? all : 1;
    z[2] = all * q->row;
    z[3] = group * *channel;
}

static void describe_product(plan *q) {
    const fac_cl_conv *c = &q->c;
    fac_gpu_product *r = &q->r;
    fac_gpu_shape *s = &r->s;
    r->dtype = r->result = FAC_F32;
    r->alpha = r->beta = 1;
    s->M = c->M;
    s->N = s->inner_n = c->C;
    s->K = q->row;
    s->splits = 1;
    s->z[0] = s->z[1] = 1;
    s->z[2] = points(q);
    s->z[3] = c->g.groups;
    s->batch = points(q) * c->g.groups;
    step(q, q->dy_last, rows_of(q), c->M, &s->a.row, &s->a.column, s->a.z);
    step(q, q->x_last, channels_of(q), c->C, &s->b.column, &s->b.row, s->b.z);
    s->y =
        (fac_gpu_matrix){ .row = c->C, .column = 1, .z = { 0, 0, rows_of(q) * c->C, c->M * c->C } };
}

/* What is there already is the product's bias. */
static void describe_more(plan *q) {
    q->more = q->r;
    q->more.biased = true;
    q->more.extras = 1;
    q->more.extra_dtype[0] = FAC_F32;
    q->more.s.e[0] = q->r.s.y;
}

static fac_cl_sight sight_of(const plan *q, const fac_operand *x, const int64_t *size,
                             const int64_t *pad, int64_t channels) {
    const int64_t *step = x->layout.stride, *out = q->c.g.out;
    return (fac_cl_sight){ .at = x->layout.offset,
                           .image = step[0],
                           .channel = step[1],
                           .h = step[2],
                           .w = step[3],
                           .height = (int32_t)size[1],
                           .width = (int32_t)size[2],
                           .pad_h = (int32_t)pad[1],
                           .pad_w = (int32_t)pad[2],
                           .down = (int32_t)((out[1] + q->out - 1) / q->out),
                           .across = (int32_t)((out[2] + q->out - 1) / q->out),
                           .row = (int32_t)q->row,
                           .channels = (int32_t)channels };
}

static bool settle(const fac_opencl *o, fac_problem *p, int out, plan *q) {
    static const int64_t none[3] = { 0 };
    fac_cl_conv *c = &q->c;
    const fac_conv_geom *g = &c->g;
    memset(q, 0, sizeof *q);
    if (!fac_cl_conv_read(o, p, true, c) || c->kind != FAC_GPU_GRAD_W ||
        !fac_cl_winograd_takes(p, c, out))
        return false;
    q->out = out;
    const double tiles = (double)g->N * (double)((g->out[1] + out - 1) / out) *
                         (double)((g->out[2] + out - 1) / out);
    if (tiles > INT_MAX || tiles < 1) return false;
    q->tiles = (int64_t)tiles;
    q->u = (size_t)(points(q) * rows_of(q) * c->C) * sizeof(float);
    if (!cut(o, p->variant, q)) return false;
    q->x = sight_of(q, &p->in[0], g->in, g->pad, channels_of(q));
    q->dy = sight_of(q, &p->in[1], g->out, none, rows_of(q));
    q->x_last = q->x.channel < q->x.w;
    q->dy_last = q->dy.channel < q->dy.w;
    const int64_t *to = p->out[0].layout.stride;
    q->weights = (weights){ .row = to[0],
                            .channel = to[1],
                            .h = to[2],
                            .w = to[3],
                            .channels = (int32_t)c->C,
                            .rows = (int32_t)rows_of(q),
                            .to = p->out[0].layout.offset };
    describe_product(q);
    fac_gpu_tile other;
    const bool tiled = fac_gpu_tile_choose(&o->limits, &q->r, FAC_GPU_TILED, &q->t),
               vector = fac_gpu_tile_choose(&o->limits, &q->r, FAC_GPU_VECTOR, &other);
    if (vector && (!tiled || other.seconds < q->t.seconds)) q->t = other;
    if (q->t.way == FAC_GPU_VECTOR)
        q->t.TK /= out * out; /* a slab of as many pixels as the direct sum has */
    describe_more(q);
    return (tiled || vector) && q->t.splits * q->r.s.batch <= LAYERS;
}

/* A GPU's: 1.0 to 1.3 times what an H200 took, most where slices are many.  A cpu gathers one
 * operand: there direct sums were faster in all that was tried. */
static double seconds(const fac_opencl *o, const plan *q, const fac_problem *p) {
    static const double GATHERED = 8.4, MEMORY = 1.4;
    const bool gpu = o->limits.gpu;
    const double slices = (double)q->slices;
    double bytes = slices * 2 * (double)(q->v + q->d) + (3 * slices - 1) * (double)q->u;
    for (int i = 0; i < 2; i++) bytes += (double)fac_type_bytes(&p->in[i].type);
    return slices * (fac_gpu_costs.winograd_grads + q->t.seconds * (gpu ? 1 : GATHERED)) +
           fac_gpu_costs.second_launch + bytes / fac_gpu_bandwidth(&o->limits) * (gpu ? 1 : MEMORY);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const int out = *(const int *)p->solver->how;
    const fac_opencl *o = fac_opencl_of(d);
    plan q;
    if (!settle(o, p, out, &q)) return false;
    offer->seconds = seconds(o, &q, p);
    offer->variants = FAC_CL_WINOGRAD_VARIANTS;
    offer->version = VERSION;
    offer->work = q.v + q.d + q.u + fac_gpu_tile_work(&q.t, &q.r);
    *FAC_DRAFT(offer, plan) = q;
    return true;
}

static void done(fac_device *d, void *arg) {
    fac_opencl *o = fac_opencl_of(d);
    plan *q = arg;
    if (!q) return;
    fac_cl_gemm_free(o, &q->g);
    fac_cl_gemm_free(o, &q->add);
    fac_cl_kernel_free(o, &q->inputs);
    fac_cl_kernel_free(o, &q->gradients);
    fac_cl_kernel_free(o, &q->back);
    fac_release(q);
}

static fac_status build(fac_opencl *o, const fac_problem *p, plan *q, fac_error *err) {
    static const char *const inputs[] = { "#define INPUTS\n", "#define INPUTS\n#define LAST\n" },
                             *const gradients[] = { "#define GRADIENTS\n",
                                                    "#define GRADIENTS\n#define LAST\n" };
    *q = *(const plan *)p->draft;
    const int out = q->out;
    FAC_TRY(
        fac_cl_winograd_kernel(o, &q->r, out, inputs[q->x_last], "input_tiles", &q->inputs, err));
    FAC_TRY(fac_cl_winograd_kernel(o, &q->r, out, gradients[q->dy_last], "input_tiles",
                                   &q->gradients, err));
    FAC_TRY(
        fac_cl_winograd_kernel(o, &q->r, out, "#define WEIGHTS\n", "weight_tiles", &q->back, err));
    FAC_TRY(fac_cl_gemm_make(o, &q->r, &q->t, &q->g, err));
    return q->slices > 1 ? fac_cl_gemm_make(o, &q->more, &q->t, &q->add, err) : FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **to, fac_error *err) {
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    fac_status status = build(fac_opencl_of(d), p, q, err);
    return fac_solver_made(status, d, q, done, to);
}

/* One operand's tiles of a slice. */
static fac_status transform(fac_opencl *o, const fac_cl_kernel *k, const fac_cl_sight *sight,
                            bool last, int64_t first, int64_t tiles, fac_span from, fac_span to,
                            fac_error *err) {
    fac_cl_sight s = *sight;
    s.at += fac_cl_floats_at(from);
    s.to = fac_cl_floats_at(to);
    s.first = (int32_t)first;
    s.tiles = (int32_t)tiles;
    const fac_cl_range range = last ? fac_cl_winograd_range(o, (int64_t)s.row * s.channels, 1)
                                    : fac_cl_winograd_range(o, s.row, s.channels);
    const fac_cl_arg args[] = { fac_cl_arg_value(&s, sizeof s), fac_cl_arg_span(from),
                                fac_cl_arg_span(to) };
    return fac_cl_launch(o, k, &range, 3, args, err);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *q = arg;
    fac_opencl *o = fac_opencl_of(d);
    const fac_span V = work, D = { work.memory, V.at + q->v }, U = { work.memory, D.at + q->d },
                   parts = { work.memory, U.at + q->u };
    for (int64_t i = 0; i < q->slices; i++) {
        const int64_t first = i * q->row,
                      tiles = q->tiles - first < q->row ? q->tiles - first : q->row;
        FAC_TRY(transform(o, &q->inputs, &q->x, q->x_last, first, tiles, in[0], V, err));
        FAC_TRY(transform(o, &q->gradients, &q->dy, q->dy_last, first, tiles, in[1], D, err));
        const fac_cl_operands x = { .a = D, .b = V, .y = U, .e = { U }, .work = parts };
        if (i)
            FAC_TRY(fac_cl_gemm_run(o, &q->add, &q->more.s, &x, err));
        else
            FAC_TRY(fac_cl_gemm_run(o, &q->g, &q->r.s, &x, err));
    }
    weights w = q->weights;
    w.from = fac_cl_floats_at(U);
    w.to += fac_cl_floats_at(out[0]);
    const fac_cl_range range = fac_cl_winograd_range(o, (int64_t)w.rows * w.channels, 1);
    const fac_cl_arg args[] = { fac_cl_arg_value(&w, sizeof w), fac_cl_arg_span(U),
                                fac_cl_arg_span(out[0]) };
    return fac_cl_launch(o, &q->back, &range, 3, args, err);
}

const fac_solver fac_cl_winograd_grad_w_2x2 = { .name = "conv/winograd_grad_w_2x2",
                                                .op = &fac_op_conv2d_grad_w,
                                                .rank = 550,
                                                .how = &(const int){ 2 },
                                                .offer = offer,
                                                .make = make,
                                                .done = done,
                                                .run = run };
const fac_solver fac_cl_winograd_grad_w_4x4 = { .name = "conv/winograd_grad_w_4x4",
                                                .op = &fac_op_conv2d_grad_w,
                                                .rank = 560,
                                                .how = &(const int){ 4 },
                                                .offer = offer,
                                                .make = make,
                                                .done = done,
                                                .run = run };
