/* Convolutions read for the matrix units: see conv.h. */
#include <string.h>
#include "backends/opencl/nvidia/conv/conv.h"
#include "graph/attr.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "ops/conv_pool.h"
#include "tensor/tensor_internal.h"

enum { PHASES = 64, COORDINATE = 1 << 24, GROUPS = 1 << 16 };

/* grad_x: a gradient, whose phases are as many as the steps of a stride have places. */
static bool small(const fac_conv_geom *g, bool grad_x) {
    for (int k = 0; k < 3; k++) {
        const int64_t sizes[] = { g->in[k],     g->out[k],      g->kernel[k],
                                  g->stride[k], g->dilation[k], g->pad[k] };
        for (int i = 0; i < 6; i++)
            if (sizes[i] < 0 || sizes[i] > COORDINATE) return false;
        if (g->kernel[k] * g->dilation[k] > COORDINATE ||
            g->out[k] * g->stride[k] > 4 * (int64_t)COORDINATE)
            return false;
    }
    if (g->N > INT32_MAX || g->groups > GROUPS) return false;
    return !grad_x || (double)g->stride[0] * (double)g->stride[1] * (double)g->stride[2] <= PHASES;
}

/* The steps of the image that taps look at.  Fours (f32: of 16 bytes; 16 bits: eights) are read at
 * once. */
static bool read_image(fac_problem *p, fac_nv_conv *c) {
    fac_operand *x = &p->in[0];
    const int fours = c->r.dtype == FAC_F32 ? 4 : 8;
    for (int turn = 0; turn < 2; turn++) {
        if (turn && c->few)
            x->layout = fac_layout_plain(&x->type.dims);
        else if (turn)
            fac_nv_lay_last(x);
        if (!fac_nv_place_of(x, &x->type.dims, &c->x)) continue;
        if (c->few) return true;
        const int64_t steps = c->x.at | c->x.image | c->x.depth | c->x.row | c->x.column;
        if (c->x.channel == 1 && steps % fours == 0) return true;
    }
    return false;
}

static bool settle_moments(fac_problem *p) {
    for (int k = 1; k < p->nout; k++) {
        if (p->out[k].type.dtype == FAC_NONE) return false;
        p->out[k].layout = fac_layout_plain(&p->out[k].type.dims);
    }
    return p->nout == 3;
}

static int add_extra(const fac_problem *p, int input, fac_nv_conv *c) {
    if (c->r.extras == FAC_GPU_EXTRAS || p->in[input].type.dtype == FAC_NONE) return -1;
    c->r.input[c->r.extras] = input;
    c->r.extra_dtype[c->r.extras] = p->in[input].type.dtype;
    return c->r.extras++;
}

/* The operands of the norm, as extras that no body takes. */
static bool read_norm(const fac_node *of, fac_problem *p, fac_nv_conv *c) {
    enum { X = 3, MEAN, VAR, SCALE, BIAS, ADD, Y, MASK };
    fac_nv_norm *n = &c->norm;
    const bool mask = p->nin > MASK && p->in[MASK].type.dtype != FAC_NONE;
    const bool y = !mask && p->nin > Y && p->in[Y].type.dtype != FAC_NONE;
    for (int i = MEAN; i <= BIAS; i++) {
        if (p->in[i].type.dtype != FAC_F32) return false;
        p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
    }
    *n = (fac_nv_norm){ -1, -1, -1, -1, -1, -1, -1, -1, 1, 0, 0, 0 };
    fac_attr_get_int(of, "apart", &n->apart);
    fac_attr_get_real(of, "epsilon", &n->epsilon), fac_attr_get_real(of, "lo", &n->lo),
        fac_attr_get_real(of, "hi", &n->hi);
    if (p->nin > ADD) n->add = add_extra(p, ADD, c);
    if (y) n->y = add_extra(p, Y, c);
    if (mask) n->mask = add_extra(p, MASK, c);
    n->x = add_extra(p, X, c);
    n->mean = add_extra(p, MEAN, c);
    if (!y && !mask) {
        n->var = add_extra(p, VAR, c);
        n->scale = add_extra(p, SCALE, c);
        n->bias = add_extra(p, BIAS, c);
    }
    int masks = y ? n->y : n->bias; /* what the mask is, or is found by */
    if (mask) masks = n->mask;
    return n->x >= 0 && n->mean >= 0 && masks >= 0;
}

bool fac_nv_conv_read(const fac_opencl *o, fac_problem *p, fac_nv_conv *c) {
    const fac_conv_geom *g = &c->g;
    int bias;
    const fac_node *own = p->node;
    fac_node plain =
        *p->node; /* the convolution without statistics: the same operands and attributes */
    fac_problem conv = *p;
    memset(c, 0, sizeof *c);
    c->moments = plain.op == &fac_op_conv2d_moments || plain.op == &fac_op_conv2d_grad_x_norm;
    if (c->moments) {
        if (p->in[0].type.dtype == FAC_F64 || !settle_moments(p)) return false;
        c->sums = plain.op != &fac_op_conv2d_moments;
        plain.op = c->sums ? &fac_op_conv2d_grad_x : &fac_op_conv2d;
        plain.nout = conv.nout = 1;
        conv.node = &plain;
        p = &conv;
    }
    if (plain.op == &fac_op_conv2d_max_pool) {
        fac_pool_geom pool;
        if (!fac_conv_pool_geometry(&plain, &c->g, &pool) || !fac_conv_pool_halves(&pool))
            return false;
        c->pooled = true;
        plain.op = &fac_op_conv2d; /* whose attributes come first */
        conv.node = &plain;
        p = &conv;
    }
    if (!fac_cl_conv_node(p->node, &c->kind, &c->g, &bias) || c->kind == FAC_GPU_GRAD_W)
        return false;
    const bool grad_x = c->kind == FAC_GPU_GRAD_X;
    if (!small(g, grad_x)) return false;
    if (!fac_cl_product_start(o, p, bias, &c->r) ||
        !fac_nv_mode_of(c->r.dtype, p->precision, &c->mode))
        return false;
    if (c->sums && !read_norm(own, p, c)) return false;
    const int64_t rows = (grad_x ? g->C : g->K) / g->groups,
                  channels = (grad_x ? g->K : g->C) / g->groups;
    if (rows < 4 || rows % 4 || rows > COORDINATE || channels < 1 || channels > COORDINATE)
        return false;
    c->groups = (int32_t)g->groups;
    c->rows = (int32_t)rows;
    c->channels = (int32_t)channels;
    c->few = !grad_x && channels <= FAC_NV_FEW && g->groups == 1;
    if (!c->few && channels % (c->r.dtype == FAC_F32 ? 4 : 8)) return false;
    c->promote_from = p->precision == FAC_PRECISION_HIGHEST ? 300 : 600;
    c->phases = grad_x ? (int)(g->stride[0] * g->stride[1] * g->stride[2]) : 1;
    const int64_t *out = grad_x ? g->in : g->out;
    if ((double)g->N * (double)out[0] * (double)out[1] * (double)out[2] >= INT32_MAX) return false;
    const int64_t taps = g->kernel[0] * g->kernel[1] * g->kernel[2];
    if ((double)rows * (double)channels * (double)g->groups * (double)taps >= 1e9) return false;
    const int64_t apart = c->sums && c->norm.add >= 0 ? c->norm.apart : 1;
    if (apart > 1 && (c->phases > 1 || apart > COORDINATE)) return false;
    const fac_nv_unlike unlike = { apart > 1 ? c->norm.add : -1, (int)apart,
                                   c->sums ? c->norm.mask : -1 };
    return read_image(p, c) && fac_nv_ends_read(p, &c->r, &unlike, &c->ends);
}
