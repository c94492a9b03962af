/* conv/depthwise: convolutions of each channel alone, or of few channels in a group, channels last,
 * with their gradients by x; of single channels also by w.  Memory bound: the floor is what x and y
 * take at the device's bandwidth.  Weights are taken as they are; each group of items brings its
 * own into local memory. */
#include <limits.h>
#include <stdio.h>
#include "backends/opencl/conv/conv.h"
#include "backends/opencl/device/probe.h"
#include "backends/opencl/pool/quads.h"
#include "opencl_solvers.h"
#include "base/clamp.h"
#include "base/error.h"
#include "ops/conv_grad.h"
#include "op_list.h"
#include "cl_conv_depthwise.h"
#include "cl_conv_depthwise_grad.h"
#include "cl_conv_depthwise_rows.h"
#include "cl_conv_grouped.h"
#include "cl_conv_taps.h"

enum {
    FEW = 32,
    LOCAL = 40 << 10
};                  /* channels that are read for one of the result; bytes of their weights */
enum { SEVEN = 7 }; /* columns of a wide tile */
enum { SMALL = 9, TAPS = 64, TAPS_BY_W = 25, SUM_GROUP = 128, SUM_WIDE = 16, SPLIT_WAVES = 2 };

typedef struct depthwise {
    fac_gpu_conv_kind kind;
    fac_conv_geom g;
    int64_t read, made; /* channels of a group: for one of the result, and of the result */
    fac_cl_tail tail;
    fac_cl_tiling q;
    bool flipped; /* by x, as a convolution with the taps from the last to the first */
    const fac_operand *in,
        *out; /* images that windows slide over, and what they make; grad_x: the other way */
    int64_t splits, high, wide; /* by w: parts of the sum, tiles of an image */
} depthwise;

static bool geometry(const fac_node *n, depthwise *d) {
    if (n->op == &fac_op_conv2d)
        d->kind = FAC_GPU_FORWARD;
    else if (n->op == &fac_op_conv2d_grad_x)
        d->kind = FAC_GPU_GRAD_X;
    else if (n->op == &fac_op_conv2d_grad_w)
        d->kind = FAC_GPU_GRAD_W;
    else
        return false;
    return d->kind == FAC_GPU_FORWARD ? fac_conv_geometry(n, &d->g)
                                      : fac_conv_grad_geometry(n, &d->g);
}

/* By w: tiles go round the splits, so that all units have some. */
static void split(const fac_opencl *o, depthwise *d) {
    const int64_t lanes = d->q.lanes, blocks = (d->g.C / 4 + lanes - 1) / lanes,
                  items = d->q.group / lanes;
    d->high = (d->g.P + d->q.rows - 1) / d->q.rows;
    d->wide = (d->g.Q + d->q.columns - 1) / d->q.columns;
    const int64_t most = (d->g.N * d->high * d->wide + 2 * items - 1) / (2 * items);
    const int64_t want = SPLIT_WAVES * (int64_t)o->limits.units / blocks;
    d->splits = most < 1 ? 1 : fac_clamp(want, 1, most);
}

/* The gradient by x of stride 1 slides over dy as the convolution does over x. */
static void flip_window(fac_window *w) {
    const int64_t in = w->in;
    w->pad = (w->kernel - 1) * w->dilation - w->pad;
    w->in = w->out;
    w->out = in;
}

static void flip(depthwise *d) {
    flip_window(&d->q.h);
    flip_window(&d->q.w);
    d->q.grad_x = false;
    d->flipped = true;
}

/* As measured on an H200; variants of quads.c. */
static int favourite(const depthwise *d) {
    const fac_conv_geom *g = &d->g;
    if (d->kind == FAC_GPU_GRAD_W) return 1;
    if (d->kind == FAC_GPU_FORWARD && d->q.goes && g->R * g->S > SMALL) {
        if (g->Q <= SEVEN) return 6;
        return g->Q % SEVEN ? 3 : 19;
    }
    if (d->kind == FAC_GPU_GRAD_X || d->read > 1 || g->R * g->S > SMALL) return 2;
    return g->stride[1] > 1 || g->stride[2] > 1 ? 5 : 2;
}

static bool read_problem(const fac_opencl *o, fac_problem *p, depthwise *d) {
    *d = (depthwise){ 0 };
    if (!geometry(p->node, d)) return false;
    const fac_conv_geom *g = &d->g;
    const bool by_w = d->kind == FAC_GPU_GRAD_W;
    const fac_dtype t = p->in[0].type.dtype;
    if (g->groups < 2 || !g->C || g->C % 4) return false;
    d->read = (d->kind == FAC_GPU_GRAD_X ? g->K : g->C) / g->groups;
    d->made = (d->kind == FAC_GPU_GRAD_X ? g->C : g->K) / g->groups;
    const bool alone = d->read == 1 && d->made == 1;
    if (!alone && (by_w || !d->made || d->read % 4 || d->made % 4 || d->read > FEW)) return false;
    if (g->N * g->P * g->Q == 0 || g->N * g->H * g->W == 0) return false;
    if (!fac_cl_quad_type(t) || p->in[1].type.dtype != t || g->R * g->S > (by_w ? TAPS_BY_W : TAPS))
        return false;
    const int64_t most = g->C > g->K ? g->C : g->K;
    if ((double)g->N * (double)(g->H + g->P) * (double)(g->W + g->Q) * (double)most > INT_MAX)
        return false;
    for (int k = 1; k < 3; k++)
        if (g->stride[k] > 4 || g->dilation[k] > 8 || g->pad[k] > 64) return false;
    fac_cl_quad_lay(&p->in[0]);
    fac_cl_quad_lay(by_w ? &p->in[1] : &p->out[0]);
    fac_operand *w = by_w ? &p->out[0] : &p->in[1];
    if (!fac_layout_is_plain(&w->layout, &w->type.dims))
        w->layout = fac_layout_plain(&w->type.dims);
    if (by_w && (p->node->body[0] || w->type.dtype != t)) return false;
    if (!by_w && !fac_cl_tail_read(o, p, d->kind == FAC_GPU_FORWARD ? 2 : -1, &d->tail))
        return false;
    d->in = &p->in[0];
    d->out = by_w ? &p->in[1] : &p->out[0];
    d->q = (fac_cl_tiling){ .h = fac_conv_window(g, 1),
                            .w = fac_conv_window(g, 2),
                            .grad_x = d->kind == FAC_GPU_GRAD_X,
                            .N = g->N,
                            .C = d->made * g->groups };
    if (!alone) d->q.most = (int)(LOCAL / (d->read * g->R * g->S * 16));
    d->q.goes = alone && !by_w && g->dilation[1] == 1 &&
                (d->kind == FAC_GPU_FORWARD || (g->stride[1] == 1 && g->stride[2] == 1));
    d->q.favourite = favourite(d);
    if (!fac_cl_tiling_cut(o, p->variant, &d->q)) return false;
    if (d->q.down_rows && d->q.grad_x) flip(d);
    if (by_w) split(o, d);
    return true;
}

static size_t parts_bytes(const depthwise *d) {
    return (size_t)(d->splits * d->g.C * d->g.R * d->g.S) * sizeof(float);
}

static bool offer(fac_device *device, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(device);
    depthwise d;
    if (!o->limits.gpu || !read_problem(o, p, &d)) return false;
    const bool by_w = d.kind == FAC_GPU_GRAD_W;
    const double macs =
        (double)(d.g.N * d.g.P * d.g.Q) * (double)(d.g.K * d.g.C / d.g.groups * d.g.R * d.g.S);
    offer->variants = FAC_CL_QUAD_VARIANTS;
    offer->version = 1;
    offer->work = by_w ? parts_bytes(&d) : 0;
    offer->seconds =
        fac_cl_streaming(o, p, by_w ? 2 : 1) + 2 * macs / (0.4 * fac_gpu_flops(&o->limits));
    *FAC_DRAFT(offer, depthwise) = d;
    return true;
}

static fac_status new_call(fac_opencl *o, fac_cl_plan *plan, const depthwise *d, fac_dtype in,
                           fac_dtype out, const char *define, const char *source, const char *name,
                           fac_cl_call **c, fac_error *err) {
    fac_text text = { 0 };
    fac_text_add(&text, define);
    fac_cl_tiling tiling = d->q;
    /* which is inline PTX; where sums are not kept in their order (MADE4), larger windows would be
     * loaded as a whole, beyond the registers */
    const bool ordered = d->read == 1 && d->kind != FAC_GPU_GRAD_W;
    tiling.ptx = (ordered || d->g.R * d->g.S <= SMALL) && fac_cl_has_path(o, FAC_CL_MMA);
    fac_cl_tiling_text(&tiling, in, out, &text);
    if (d->kind != FAC_GPU_GRAD_W)
        text.failed |= !fac_cl_tail_text(&d->tail, o->limits.fp64, &text);
    if (source == fac_kernel_conv_depthwise || source == fac_kernel_conv_depthwise_rows)
        fac_text_add(&text, fac_kernel_conv_taps);
    fac_text_add(&text, source);
    fac_status status =
        fac_cl_call_text(o, plan, &text, "-cl-single-precision-constant", name, c, err);
    fac_text_free(&text);
    return status;
}

static fac_status add_images(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                             const depthwise *d, fac_error *err) {
    fac_cl_call *c = NULL;
    const bool alone = d->read == 1;
    const char *source = fac_kernel_conv_depthwise, *name = "depthwise";
    if (!alone) {
        source = fac_kernel_conv_grouped;
        name = "grouped";
    } else if (d->q.down_rows) {
        source = fac_kernel_conv_depthwise_rows;
        name = "depthwise_rows";
    }
    char more[64] = "";
    if (!alone)
        snprintf(more, sizeof more, "#define EACH %d\n#define MADE %d\n", (int)d->read,
                 (int)d->made);
    if (d->flipped) snprintf(more, sizeof more, "#define FLIPPED\n");
    FAC_TRY(new_call(o, plan, d, p->in[0].type.dtype, p->out[0].type.dtype, more, source, name, &c,
                     err));
    fac_cl_call_in(c, p, 0);
    fac_cl_call_in(c, p, 1);
    fac_cl_call_out(c, p, 0);
    fac_cl_tail_buffers(&d->tail, p, c);
    fac_cl_tiling_numbers(&d->q, d->in, d->out, c);
    if (d->q.down_rows) fac_cl_call_number(c, d->q.down_rows);
    fac_cl_tail_numbers(&d->tail, c);
    fac_cl_tiling_range(&d->q, c);
    return FAC_OK;
}

static fac_status add_weights(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                              const depthwise *d, fac_error *err) {
    const fac_dtype t = p->in[0].type.dtype;
    const int64_t lanes = d->q.lanes, blocks = (d->g.C / 4 + lanes - 1) / lanes,
                  count = d->g.C * d->g.R * d->g.S;
    fac_cl_call *c = NULL;
    FAC_TRY(new_call(o, plan, d, t, t, "", fac_kernel_conv_depthwise_grad, "depthwise_weights", &c,
                     err));
    fac_cl_call_in(c, p, 0);
    fac_cl_call_in(c, p, 1);
    fac_cl_call_work(c, 0, sizeof(float));
    fac_cl_tiling_numbers(&d->q, d->in, d->out, c);
    fac_cl_call_number(c, d->g.N);
    fac_cl_call_number(c, d->high);
    fac_cl_call_number(c, d->wide);
    fac_cl_call_number(c, d->splits);
    c->range = (fac_cl_range){ 2,
                               { (size_t)(blocks * d->q.group), (size_t)d->splits },
                               { (size_t)d->q.group, 1 } };
    depthwise sum = *d;
    sum.q.group = (size_t)SUM_GROUP < o->limits.group ? SUM_GROUP : (int)o->limits.group;
    FAC_TRY(new_call(o, plan, &sum, t, t, "#define SUM\n", fac_kernel_conv_depthwise_grad,
                     "depthwise_sum", &c, err));
    fac_cl_call_work(c, 0, sizeof(float));
    fac_cl_call_out(c, p, 0);
    fac_cl_call_number(c, d->g.C);
    fac_cl_call_number(c, d->splits);
    fac_cl_call_items(c, (size_t)((count + SUM_WIDE - 1) / SUM_WIDE * sum.q.group),
                      (size_t)sum.q.group);
    return FAC_OK;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    depthwise d = *(const depthwise *)p->draft;
    d.in = &p->in[0];
    d.out = d.kind == FAC_GPU_GRAD_W ? &p->in[1] : &p->out[0];
    return d.kind == FAC_GPU_GRAD_W ? add_weights(o, p, plan, &d, err)
                                    : add_images(o, p, plan, &d, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 2, add, out, err);
}

const fac_solver fac_cl_conv_depthwise = { .name = "conv/depthwise",
                                           .rank = 150,
                                           .offer = offer,
                                           .make = make,
                                           .done = fac_cl_plan_done,
                                           .run = fac_cl_plan_run };
