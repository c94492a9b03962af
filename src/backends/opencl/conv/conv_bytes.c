/* conv_integer/dot, qlinear_conv/dot, matmul_integer/dot, qlinear_matmul/dot: products and
 * convolutions of bytes with sums in 32 bits, on any device; see conv_bytes.cl.  The same numbers
 * as those of the cpu, bit by bit.
 *
 * Weights become words in each run, which takes little beside the rest; x and y may lie in any
 * way, a result lies as x does. */
#include <limits.h>
#include <string.h>
#include "backends/byte_ports.h"
#include "backends/opencl/device/calls.h"
#include "backends/opencl/product/gemm.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_conv_bytes.h"
#include "op_list.h"
#include "ops/conv.h"

enum { GROUP = 64, WORD = 4, EACH = 4, PIXELS = 2, PORTS = 7 };

/* Steps of x and y, in elements. */
typedef struct steps {
    int64_t image, group, channel, row, column;
} steps;

typedef struct bytes {
    fac_conv_geom g;
    int64_t C, K, words, wide; /* of a group; wide: K to whole EACH */
    steps x, y;
    int64_t w[5]; /* steps along group, k, c, r, s */
    fac_byte_ports at;
    bool to_bytes, alone;
    size_t w_words, w_sums, x_words, x_sums; /* bytes of scratch */
} bytes;

static bool is_conv(const fac_problem *p) { return p->node->op->attrs_size != 0; }

static steps steps_of(const fac_operand *v, int64_t channels) {
    const int64_t *s = v->layout.stride;
    return (steps){ s[0], channels * s[1], s[1], s[2], s[3] };
}

static bool conv_geometry(fac_problem *p, bytes *b) {
    const fac_conv_geom *g = &b->g;
    if (!fac_conv_geometry_of(2, p->node->attrs, &p->in[0].type.dims, &p->in[1].type.dims, &b->g))
        return false;
    b->C = g->C / g->groups;
    b->K = g->K / g->groups;
    fac_cl_lay_alike(&p->in[0], &p->out[0]);
    b->x = steps_of(&p->in[0], b->C);
    b->y = steps_of(&p->out[0], b->K);
    const int64_t taps = g->R * g->S;
    const int64_t w[] = { b->K * b->C * taps, b->C * taps, taps, g->S, 1 };
    memcpy(b->w, w, sizeof w);
    return true;
}

/* A row is a pixel; a batch has a group for each matrix. */
static bool matmul_geometry(fac_problem *p, bytes *b) {
    const fac_dims *x = &p->in[0].type.dims, *w = &p->in[1].type.dims;
    if (x->n < 2 || w->n < 2 || fac_dims_count(x) <= 0 || fac_dims_count(w) <= 0) return false;
    const int64_t C = x->d[x->n - 1], K = w->d[w->n - 1], M = x->d[x->n - 2];
    const int64_t batch = fac_dims_count(w) / (C * K), all = fac_dims_count(x) / (M * C);
    if (batch > 1 && (batch != all || x->n != w->n)) return false;
    for (int k = 0; batch > 1 && k < w->n - 2; k++)
        if (x->d[k] != w->d[k]) return false;
    const int64_t rows = batch > 1 ? M : M * all;
    b->g = (fac_conv_geom){ .rank = 2, .N = 1, .C = batch * C, .K = batch * K, .groups = batch };
    for (int k = 0; k < 3; k++)
        b->g.in[k] = b->g.kernel[k] = b->g.out[k] = b->g.stride[k] = b->g.dilation[k] = 1;
    for (int k = 0; k < 2; k++) p->in[k].layout = fac_layout_plain(&p->in[k].type.dims);
    b->g.W = b->g.Q = rows;
    p->out[0].layout = fac_layout_plain(&p->out[0].type.dims);
    b->C = C;
    b->K = K;
    b->x = (steps){ batch * rows * C, rows * C, 1, rows * C, C };
    b->y = (steps){ batch * rows * K, rows * K, 1, rows * K, K };
    const int64_t steps_of_w[] = { C * K, 1, K, 0, 0 };
    memcpy(b->w, steps_of_w, sizeof steps_of_w);
    return true;
}

/* Scratch, and what 32 bits count. */
static bool measure(bytes *b) {
    const fac_conv_geom *g = &b->g;
    const double weights = (double)g->groups * (double)(g->R * g->S) * (double)b->wide;
    const double pixels = (double)g->N * (double)(g->H * g->W) * (double)g->groups;
    const double places = (double)g->N * (double)(g->P * g->Q) * (double)g->K;
    const double most = INT_MAX / 8;
    if (weights * (double)b->words > most || pixels * (double)b->words > most || places > most)
        return false;
    b->alone = b->C < WORD && b->K < WORD;
    if (b->alone) return true;
    b->w_sums = (size_t)weights * sizeof(int32_t);
    b->x_sums = (size_t)pixels * sizeof(int32_t);
    b->w_words = b->w_sums * (size_t)b->words;
    b->x_words = b->x_sums * (size_t)b->words;
    return true;
}

static bool read_problem(const fac_opencl *o, fac_problem *p, bytes *b) {
    const bool conv = is_conv(p);
    *b = (bytes){ .to_bytes = p->out[0].type.dtype != FAC_I32 };
    if (!fac_cl_settle(o, p)) return false;
    for (int k = 1; k < p->nin; k++)
        if (p->in[k].type.dtype != FAC_NONE)
            p->in[k].layout = fac_layout_plain(&p->in[k].type.dims);
    if (!(conv ? conv_geometry : matmul_geometry)(p, b)) return false;
    const fac_conv_geom *g = &b->g;
    if (!fac_byte_count(p, 0) || !fac_byte_count(p, 1) || !fac_dims_count(&p->out[0].type.dims))
        return false;
    b->at = *fac_byte_ports_of(p->node);
    b->words = (b->C + WORD - 1) / WORD;
    b->wide = (b->K + EACH - 1) / EACH * EACH;
    return fac_byte_numbers_fit(p, &b->at, conv ? g->K : b->K) && measure(b);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    bytes b;
    if (!read_problem(o, p, &b)) return false;
    const double macs = (double)(b.g.N * b.g.P * b.g.Q) * (double)(b.g.K * b.C * b.g.R * b.g.S);
    offer->work = b.w_words + b.w_sums + b.x_words + b.x_sums;
    offer->seconds =
        fac_cl_price(o, p, b.alone ? 1 : 3) + 2 * macs / (0.3 * fac_gpu_flops(&o->limits));
    *FAC_DRAFT(offer, bytes) = b;
    return true;
}

static void add_numbers(fac_cl_call *c, const fac_problem *p, const bytes *b, int64_t units) {
    const fac_conv_geom *g = &b->g;
    const int64_t numbers[] = {
        units,
        g->N,
        g->groups,
        b->C,
        b->K,
        g->H,
        g->W,
        g->P,
        g->Q,
        g->R,
        g->S,
        g->stride[1],
        g->stride[2],
        g->dilation[1],
        g->dilation[2],
        g->pad[1],
        g->pad[2],
        b->words,
        b->wide,
        b->x.image,
        b->x.group,
        b->x.channel,
        b->x.row,
        b->x.column,
        b->y.image,
        b->y.group,
        b->y.channel,
        b->y.row,
        b->y.column,
        b->w[0],
        b->w[1],
        b->w[2],
        b->w[3],
        b->w[4],
        fac_byte_count(p, b->at.b),
        fac_byte_count(p, b->at.x_zero),
        fac_byte_count(p, b->at.w_zero),
        fac_byte_count(p, b->at.w_scale),
    };
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
}

/* What is not there is not read: x stands in its place. */
static void add_buffers(fac_cl_call *c, const fac_problem *p, const bytes *b) {
    const fac_byte_ports *a = &b->at;
    /* in the order of the kernel's buffers */
    const int numbers[PORTS] = { a->b,       a->x_zero,  a->w_zero, a->x_scale,
                                 a->w_scale, a->y_scale, a->y_zero };
    fac_cl_call_in(c, p, 0);
    fac_cl_call_in(c, p, 1);
    for (int k = 0; k < (b->to_bytes ? PORTS : 3); k++)
        fac_cl_call_in(c, p, fac_byte_count(p, numbers[k]) ? numbers[k] : 0);
    fac_cl_call_work(c, 0, sizeof(uint32_t));
    fac_cl_call_work(c, b->w_words, sizeof(int32_t));
    fac_cl_call_work(c, b->w_words + b->w_sums, sizeof(uint32_t));
    fac_cl_call_work(c, b->w_words + b->w_sums + b->x_words, sizeof(int32_t));
    fac_cl_call_out(c, p, 0);
}

static fac_status add_call(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, const bytes *b,
                           const char *name, int64_t units, fac_error *err) {
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    fac_text_print(&options, "-DT=int -DV=1 -DX=%s -DW=%s -DY=%s -DEACH=%d -DPIXELS=%d",
                   fac_cl_tag(p->in[0].type.dtype), fac_cl_tag(p->in[1].type.dtype),
                   fac_cl_tag(p->out[0].type.dtype), EACH, PIXELS);
    if (b->to_bytes) fac_text_add(&options, " -DBYTES");
    fac_cl_option_wide(p, &options);
    const fac_status status =
        fac_cl_call_new(o, plan, fac_kernel_conv_bytes, &options, name, &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    add_buffers(c, p, b);
    add_numbers(c, p, b, units);
    fac_cl_call_items(c, (size_t)units, GROUP);
    return FAC_OK;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const bytes *b = p->draft;
    const fac_conv_geom *g = &b->g;
    const int64_t places = g->N * g->P * g->Q;
    if (b->alone) return add_call(o, p, plan, b, "alone", places * g->K, err);
    FAC_TRY(add_call(o, p, plan, b, "weights", g->groups * g->R * g->S * b->wide, err));
    FAC_TRY(add_call(o, p, plan, b, "pixels", g->N * g->H * g->W * g->groups, err));
    const int64_t units = (places + PIXELS - 1) / PIXELS * g->groups * (b->wide / EACH);
    return add_call(o, p, plan, b, "sums", units, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 3, add, out, err);
}

#define SOLVER(of)                                                                                 \
    .name = #of "/dot", .op = &fac_op_##of, .offer = offer, .make = make,                          \
    .done = fac_cl_plan_done, .run = fac_cl_plan_run
const fac_solver fac_cl_conv_integer = { SOLVER(conv_integer), .rank = 144 };
const fac_solver fac_cl_qlinear_conv = { SOLVER(qlinear_conv), .rank = 145 };
const fac_solver fac_cl_matmul_integer = { SOLVER(matmul_integer), .rank = 146 };
const fac_solver fac_cl_qlinear_matmul = { SOLVER(qlinear_matmul), .rank = 147 };
