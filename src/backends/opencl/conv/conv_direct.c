/* conv/direct: convolutions with few channels in a group (depthwise above all) and their gradients,
 * as sums over their windows. Memory bound: the floor is what x and y take at the device's
 * bandwidth. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/opencl/conv/conv.h"
#include "backends/gpu/speed.h"
#include "opencl_solvers.h"
#include "base/clamp.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/tensor_internal.h"
#include "cl_conv_direct_pixels.h"
#include "cl_conv_direct_grad.h"
#include "cl_gemm_common.h"

/* As the kernels have them. */
typedef struct planes {
    int64_t image, channel, at, d, h, w;
} planes;
typedef struct window {
    int64_t at, group, row, channel, t, r, s;
} window;
typedef struct pixels {
    int32_t D, H, W, P, Q, O, channels, rows, pad_t, pad_r, pad_s, across;
    planes x;
    window w;
} pixels;
typedef struct weights {
    int32_t D, H, W, O, P, Q, channels, rows, pad_t, pad_r, pad_s, images;
    planes x, y;
} weights;

/* How a cpu's item goes through a channel that comes from one other: rows of y at a time, and
 * elements of a line of local memory for each stride; rows 0: not that way. */
typedef struct strip {
    int64_t rows, line;
} strip;

typedef struct plan {
    fac_cl_conv c;
    fac_cl_kernel kernel;
    fac_cl_gemm sum; /* of the parts of grad_w, with sizes of elements for all */
    fac_cl_range range;
    union {
        pixels p;
        weights w;
    } of;
} plan;

enum {
    TAPS = 64,
    SEEN = 8192
}; /* of grad_w: sums in registers; elements of a strip, within a first cache */

/* An item of scalars reads what four neighbours see of a row at once, unless that is too much or
 * falls apart into phases. */
static bool has_window(const fac_opencl *o, const fac_cl_conv *c) {
    const fac_conv_geom *g = &c->g;
    const bool grad_x = c->kind == FAC_GPU_GRAD_X;
    return o->limits.gpu && !(grad_x && g->stride[2] > 1) &&
           3 * g->stride[2] + (g->kernel[2] - 1) * g->dilation[2] < 32;
}

/* Neighbours that an item makes: a cpu's item has vectors of its own. */
static int neighbours(const fac_opencl *o, const fac_cl_conv *c) {
    const int64_t across = c->kind == FAC_GPU_GRAD_X ? c->g.in[2] : c->g.out[2];
    if (o->limits.gpu) return has_window(o, c) ? 4 : 1;
    if (across >= 32 && c->r.dtype != FAC_F64) return 16;
    return across >= 8 ? 8 : 4;
}
static int items_of(const fac_opencl *o) { return o->limits.gpu ? 128 : 16; }

static strip strip_of(const fac_opencl *o, const fac_cl_conv *c) {
    const fac_conv_geom *g = &c->g;
    const bool grad_x = c->kind == FAC_GPU_GRAD_X;
    const int64_t *to = grad_x ? g->in : g->out, *k = g->kernel, *s = g->stride, *e = g->dilation,
                  each = neighbours(o, c);
    strip none = { 0 },
          t = { .line = (to[2] + each - 1) / each * each + (k[2] - 1) * e[2] / s[2] + 1 };
    if (o->limits.gpu || g->rank != 2 || c->C != 1 || c->kind == FAC_GPU_GRAD_W ||
        k[1] * k[2] > TAPS)
        return none;
    if ((grad_x && (s[1] > 1 || s[2] > 1)) || s[2] > 8 || t.line > SEEN || to[1] < 1) return none;
    const int64_t lines = SEEN / (t.line * s[2]), most = (lines - 1 - (k[1] - 1) * e[1]) / s[1] + 1;
    if (lines < 1 + (k[1] - 1) * e[1] || 2 * SEEN * fac_gpu_sum_bytes(c->r.dtype) > o->limits.local)
        return none;
    const int64_t units = g->N * g->groups * c->M,
                  want = (4 * (int64_t)o->limits.units + units - 1) / units;
    int64_t strips = (to[1] + most - 1) / most;
    if (strips < want) strips = want;
    t.rows = (to[1] + strips - 1) / strips;
    return t;
}

static planes planes_of(const fac_operand *x, int rank) {
    const int64_t *s = x->layout.stride;
    const int64_t depth = rank > 2 ? s[rank - 1] : 0;
    const int64_t height = rank > 1 ? s[rank] : 0;
    return (planes){ s[0], s[1], x->layout.offset, depth, height, s[rank + 1] };
}

/* grad_w: how many parts fill the device. */
static void split(const fac_opencl *o, fac_cl_conv *c) {
    fac_gpu_shape *s = &c->r.s;
    const int64_t kernels = c->g.K * c->C, items = items_of(o), most = s->K / (8 * items),
                  want = 8 * (int64_t)o->limits.units / kernels;
    s->splits = most < 1 ? 1 : fac_clamp(want, 1, most);
    s->each_k = s->K ? (s->K + s->splits - 1) / s->splits : 1;
    s->splits = s->K ? (s->K + s->each_k - 1) / s->each_k : 1;
}

static bool read_direct(const fac_opencl *o, fac_problem *p, fac_cl_conv *c) {
    if (!fac_cl_conv_read(o, p, false, c)) return false;
    const fac_conv_geom *g = &c->g;
    const bool by_w = c->kind == FAC_GPU_GRAD_W;
    double most = (double)g->N * (double)g->groups;
    for (int d = 0; d < 3; d++) most *= (double)(g->in[d] > g->out[d] ? g->in[d] : g->out[d]);
    if (most * (double)c->M > INT_MAX || most * (double)c->C > INT_MAX || c->r.s.N * c->C > INT_MAX)
        return false;
    for (int d = 0; d < 3; d++)
        if (g->stride[d] > 1000 || g->dilation[d] > 100000 || g->pad[d] > 1000000) return false;
    if (by_w && g->kernel[0] * g->kernel[1] * g->kernel[2] > TAPS) return false;
    if (!by_w && p->in[1].layout.block) p->in[1].layout = fac_layout_plain(&p->in[1].type.dims);
    if (by_w) split(o, c);
    return true;
}

/* A GPU's item goes through the channels of its group one after the other, and waits for memory
 * each time: of few images there are not enough items to hide it. */
static double waiting(const fac_opencl *o, const fac_cl_conv *c) {
    const double turns = c->kind == FAC_GPU_GRAD_W
                             ? (double)c->r.s.each_k / items_of(o)
                             : (double)c->C * (double)(c->g.kernel[0] * c->g.kernel[1]);
    return o->limits.gpu ? fac_gpu_costs.direct_turn * turns : 0;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    fac_cl_conv c;
    if (!read_direct(o, p, &c)) return false;
    const fac_conv_geom *g = &c.g;
    const bool by_w = c.kind == FAC_GPU_GRAD_W;
    double macs = (double)g->N * (double)g->K * (double)(g->C / g->groups), bytes = 0;
    for (int k = 0; k < 3; k++) macs *= (double)g->out[k] * (double)g->kernel[k];
    if (c.kind == FAC_GPU_GRAD_X)
        for (int k = 0; k < 3; k++) macs *= (double)g->stride[k]; /* tries them all */
    for (int i = 0; i < p->nin; i++) bytes += (double)fac_type_bytes(&p->in[i].type);
    bytes += (double)fac_type_bytes(&p->out[0].type);
    /* on a cpu products are no rival where a group has one channel: eleven of their twelve rows are
     * empty */
    const double cpu_share = neighbours(o, &c) > 8 && g->stride[2] < 3 ? 0.1
                             : c.C == 1 && c.M == 1                    ? 0.05
                                                                       : 0.02;
    const double gpu_share = by_w ? 0.03 : 0.08;
    const double share = o->limits.gpu          ? gpu_share
                         : by_w                 ? 0.01
                         : strip_of(o, &c).rows ? 0.2
                                                : cpu_share;
    offer->seconds = fac_gpu_speed_of(&o->limits)->launch * (by_w ? 2 : 1) +
                     2 * macs / (fac_gpu_flops(&o->limits) * share) +
                     bytes / fac_gpu_bandwidth(&o->limits) + waiting(o, &c);
    if (by_w)
        offer->work =
            (size_t)(c.r.s.splits * c.r.s.batch * c.r.s.M * c.r.s.N) * fac_gpu_sum_bytes(c.r.dtype);
    *FAC_DRAFT(offer, fac_cl_conv) = c;
    return true;
}

static void done(fac_device *d, void *arg) {
    plan *q = arg;
    if (!q) return;
    fac_cl_kernel_free(fac_opencl_of(d), &q->kernel);
    fac_cl_gemm_free(fac_opencl_of(d), &q->sum);
    fac_release(q);
}

static fac_status build_kernel(fac_opencl *o, plan *q, fac_error *err) {
    const fac_cl_conv *c = &q->c;
    const fac_conv_geom *g = &c->g;
    const bool by_w = c->kind == FAC_GPU_GRAD_W;
    fac_text text = { 0 };
    bool good = fac_cl_finish_text(&c->r, o->limits.fp64, false, &text);
    static const char axis[] = "TRS";
    for (int k = 0; k < 3; k++)
        fac_text_print(&text, "#define K%c %lld\n#define S%c %lld\n#define D%c %lld\n", axis[k],
                       (long long)g->kernel[k], axis[k], (long long)g->stride[k], axis[k],
                       (long long)g->dilation[k]);
    if (c->kind == FAC_GPU_GRAD_X) fac_text_add(&text, "#define GRAD_X\n");
    if (c->r.dtype == FAC_F32 || c->r.dtype == FAC_F64) fac_text_add(&text, "#define STRAIGHT\n");
    if (!by_w && has_window(o, c)) fac_text_add(&text, "#define WINDOW\n");
    const int each = neighbours(o, c);
    fac_text_print(&text, "#define PX %d\n#define HALF %d\n#define ITEMS %d\n", each, each / 2,
                   items_of(o));
    const strip t = strip_of(o, c);
    if (t.rows)
        fac_text_print(&text, "#define STRIP %lld\n#define LINE %lld\n", (long long)t.rows,
                       (long long)t.line);
    fac_text_add(&text, fac_kernel_gemm_common);
    fac_text_add(&text, by_w ? fac_kernel_conv_direct_grad : fac_kernel_conv_direct_pixels);
    fac_status status = good && !text.failed ? fac_cl_kernel_new(o, text.s, fac_cl_options(&c->r),
                                                                 by_w     ? "direct_weights"
                                                                 : t.rows ? "direct_strip"
                                                                          : "direct_sum",
                                                                 &q->kernel, err)
                                             : fac_raise_memory(err, "the text of a kernel");
    fac_text_free(&text);
    return status;
}

static void describe_pixels(const fac_opencl *o, const fac_problem *p, plan *q) {
    const fac_cl_conv *c = &q->c;
    const fac_conv_geom *g = &c->g;
    const bool grad_x = c->kind == FAC_GPU_GRAD_X;
    const int64_t *from = grad_x ? g->out : g->in;
    const int64_t *to = grad_x ? g->in : g->out;
    const int64_t *w = p->in[1].layout.stride;
    const int rank = g->rank, each = neighbours(o, c);
    pixels *d = &q->of.p;
    d->D = (int32_t)from[0];
    d->H = (int32_t)from[1];
    d->W = (int32_t)from[2];
    d->O = (int32_t)to[0];
    d->P = (int32_t)to[1];
    d->Q = (int32_t)to[2];
    d->channels = (int32_t)c->C;
    d->rows = (int32_t)c->M;
    d->pad_t = (int32_t)g->pad[0];
    d->pad_r = (int32_t)g->pad[1];
    d->pad_s = (int32_t)g->pad[2];
    d->across = (d->Q + each - 1) / each;
    d->x = planes_of(&p->in[0], rank);
    d->w = (window){ .at = p->in[1].layout.offset,
                     .group = g->K / g->groups * w[0],
                     .row = grad_x ? w[1] : w[0],
                     .channel = grad_x ? w[0] : w[1],
                     .t = rank > 2 ? w[rank - 1] : 0,
                     .r = rank > 1 ? w[rank] : 0,
                     .s = w[rank + 1] };
    const strip t = strip_of(o, c);
    if (t.rows) {
        q->range = (fac_cl_range){ 3,
                                   { (size_t)((d->P + t.rows - 1) / t.rows),
                                     (size_t)(c->M * g->groups), (size_t)g->N },
                                   { 1, 1, 1 } };
        return;
    }
    const size_t items = (size_t)d->across * (size_t)d->P * (size_t)d->O,
                 most = (size_t)items_of(o);
    size_t wide = 1; /* small images: several channels in a group of items */
    while (wide < items && wide < most) wide *= 2;
    q->range = (fac_cl_range){ 3,
                               { items, (size_t)(c->M * g->groups), (size_t)g->N },
                               { wide, most / wide, 1 } };
}

static void describe_weights(const fac_opencl *o, const fac_problem *p, plan *q) {
    const fac_cl_conv *c = &q->c;
    const fac_conv_geom *g = &c->g;
    weights *d = &q->of.w;
    d->D = (int32_t)g->in[0];
    d->H = (int32_t)g->in[1];
    d->W = (int32_t)g->in[2];
    d->O = (int32_t)g->out[0];
    d->P = (int32_t)g->out[1];
    d->Q = (int32_t)g->out[2];
    d->channels = (int32_t)c->C;
    d->rows = (int32_t)c->M;
    d->images = (int32_t)g->N;
    d->pad_t = (int32_t)g->pad[0];
    d->pad_r = (int32_t)g->pad[1];
    d->pad_s = (int32_t)g->pad[2];
    d->x = planes_of(&p->in[0], g->rank);
    d->y = planes_of(&p->in[1], g->rank);
    const size_t items = (size_t)items_of(o);
    q->range =
        (fac_cl_range){ 2, { items * (size_t)(g->K * c->C), (size_t)c->r.s.splits }, { items, 1 } };
}

static fac_status build(fac_device *d, const fac_problem *p, plan *q, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    q->c = *(const fac_cl_conv *)p->draft;
    const bool by_w = q->c.kind == FAC_GPU_GRAD_W;
    if (by_w) q->c.r.right = FAC_GPU_MATRIX; /* the sum of parts has no tables */
    if (by_w)
        describe_weights(o, p, q);
    else
        describe_pixels(o, p, q);
    FAC_TRY(build_kernel(o, q, err));
    return fac_cl_sum_make(o, &q->c.r, by_w, &q->sum, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    fac_status status = build(d, p, q, err);
    return fac_solver_made(status, d, q, done, out);
}

static int64_t element_at(fac_span s, size_t bytes) { return (int64_t)(fac_cl_at(s) / bytes); }

static fac_status run_weights(const plan *q, fac_opencl *o, const fac_span *in, const fac_span *out,
                              fac_span work, fac_error *err) {
    fac_gpu_shape s = q->c.r.s;
    weights d = q->of.w;
    const fac_cl_operands x = { .y = out[0], .work = work };
    s.parts = element_at(work, q->sum.sums);
    d.x.at += element_at(in[0], q->sum.element);
    d.y.at += element_at(in[1], q->sum.element);
    const fac_cl_arg args[] = { fac_cl_shape_arg(&q->sum, &s), fac_cl_arg_value(&d, sizeof d),
                                fac_cl_arg_span(in[0]), fac_cl_arg_span(in[1]),
                                fac_cl_arg_span(work) };
    FAC_TRY(fac_cl_launch(o, &q->kernel, &q->range, 5, args, err));
    return fac_cl_sum_run(o, &q->sum, &q->c.r.s, &x, err);
}

static fac_status run(const void *arg, fac_device *device, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *q = arg;
    const fac_gpu_product *r = &q->c.r;
    fac_opencl *o = fac_opencl_of(device);
    if (q->c.kind == FAC_GPU_GRAD_W) return run_weights(q, o, in, out, work, err);
    fac_cl_operands x = { .y = out[0] };
    for (int i = 0; i < r->extras; i++) x.e[i] = in[r->input[i]];
    const fac_gpu_shape s = fac_cl_placed(&q->sum, &r->s, &x);
    pixels d = q->of.p;
    d.x.at += element_at(in[0], q->sum.element);
    d.w.at += element_at(in[1], q->sum.element);
    fac_cl_arg args[5 + FAC_GPU_EXTRAS] = { fac_cl_shape_arg(&q->sum, &s),
                                            fac_cl_arg_value(&d, sizeof d), fac_cl_arg_span(in[0]),
                                            fac_cl_arg_span(in[1]), fac_cl_arg_span(out[0]) };
    for (int i = 0; i < r->extras; i++) args[5 + i] = fac_cl_arg_span(x.e[i]);
    return fac_cl_launch(o, &q->kernel, &q->range, 5 + r->extras, args, err);
}

const fac_solver fac_cl_conv_direct = {
    .name = "conv/direct", .rank = 570, .offer = offer, .make = make, .done = done, .run = run
};
