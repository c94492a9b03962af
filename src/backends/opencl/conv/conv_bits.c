/* conv2d_basis/count and conv2d_codes/count: convolutions of few bits by popcount, on any device;
 * see conv_bits.cl.  Weights are packed into words in each run, which takes little beside the rest.
 */
#include <limits.h>
#include "backends/opencl/conv/conv_bits.h"
#include "backends/opencl/device/calls.h"
#include "backends/opencl/product/gemm.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_bit_levels.h"
#include "cl_conv_bits.h"
#include "op_list.h"
#include "ops/conv_basis.h"

enum { GROUP = 64, WORD = 32, EACH = 4 };

static bool is_there(const fac_operand *x) { return x->type.dtype != FAC_NONE; }

/* Bits of a pixel as they come, or as `pixels` makes them. */
static bool read_input(const fac_problem *p, fac_cl_bits *s) {
    const fac_dtype t = p->in[FAC_CB_X].type.dtype;
    s->x_codes = t == FAC_U32;
    s->sign = !is_there(&p->in[FAC_CB_X_BASIS]);
    if (!s->sign) s->planes = (int)p->in[FAC_CB_X_BASIS].type.dims.d[0];
    const bool aligned = s->g.groups == 1 || s->C % WORD == 0; /* groups begin with a word */
    return t == FAC_F32 || (s->x_codes && aligned);
}

bool fac_cl_bits_read(const fac_opencl *o, fac_problem *p, fac_cl_bits *s) {
    const fac_conv_basis_attrs *a = p->node->attrs;
    *s = (fac_cl_bits){ .planes = 1, .relu = a->relu, .codes = FAC_IS(p->node, conv2d_codes) };
    if (p->in[FAC_CB_W_BASIS].type.dtype != FAC_F32 || !fac_cl_settle_plain(o, p)) return false;
    const fac_dims image = fac_conv_basis_image(&p->in[FAC_CB_X].type, a);
    if (!fac_conv_geometry_of(2, &a->conv, &image, &a->dims, &s->g)) return false;
    const fac_conv_geom *g = &s->g;
    if (g->N * g->C * g->K * g->P * g->Q * g->H * g->W * g->R * g->S == 0) return false;
    s->C = g->C / g->groups;
    s->K = g->K / g->groups;
    s->words = (s->C + WORD - 1) / WORD;
    s->each = !s->codes || g->groups == 1 || s->K % EACH == 0 ? EACH : 1;
    s->of_weights = (int)p->in[FAC_CB_W_BASIS].type.dims.d[0];
    if (!read_input(p, s)) return false;
    const double w = (double)(s->of_weights * g->K) * (double)(g->R * g->S * s->words);
    const double x = (double)(s->planes * g->N) * (double)(g->H * g->W * g->groups * s->words);
    if (w > INT_MAX / 4 || x > INT_MAX / 4 || (double)s->C * (double)(g->R * g->S) > INT_MAX / 4)
        return false;
    s->w_bytes = (size_t)w * sizeof(uint32_t);
    s->x_bytes = s->x_codes ? 0 : (size_t)x * sizeof(uint32_t);
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    fac_cl_bits s;
    if (p->node->body[0] || !fac_cl_bits_read(o, p, &s)) return false;
    const double products = (double)(s.g.N * s.g.P * s.g.Q) * (double)(s.g.K * s.words * WORD) *
                            (double)(s.g.R * s.g.S * s.of_weights * s.planes);
    offer->work = s.w_bytes + s.x_bytes;
    offer->seconds = fac_cl_price(o, p, 3) + 2 * products / (4 * fac_gpu_flops(&o->limits));
    *FAC_DRAFT(offer, fac_cl_bits) = s;
    return true;
}

static void code_options(const fac_problem *p, const fac_cl_bits *s, fac_text *to) {
    const fac_conv_basis_attrs *a = p->node->attrs;
    const fac_operand *basis = &p->in[FAC_CB_Y_BASIS];
    if (!s->codes) return;
    fac_text_print(to, " -DCODES -DY_PLANES=%d", is_there(basis) ? (int)basis->type.dims.d[0] : 1);
    if (!is_there(basis)) fac_text_add(to, " -DY_SIGNS");
    if (is_there(&p->in[FAC_CB_Z])) fac_text_add(to, " -DZ");
    if (a->y_relu) fac_text_add(to, " -DY_RELU");
    if (a->q_relu) fac_text_add(to, " -DQ_RELU");
    if (is_there(&p->out[1]))
        fac_text_add(to, " -DY");
    else if (is_there(&p->in[FAC_CB_LIMITS]) && s->planes == 1)
        fac_text_add(to, " -DLIMITS");
}

static void add_numbers(fac_cl_call *c, const fac_problem *p, const fac_cl_bits *s, int64_t units) {
    const fac_conv_geom *g = &s->g;
    const int64_t numbers[] = { units,
                                g->N,
                                s->C,
                                s->K,
                                g->groups,
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
                                s->words,
                                p->in[FAC_CB_BITS].type.dims.d[2],
                                is_there(&p->in[FAC_CB_B]),
                                is_there(&p->in[FAC_CB_SCALE]) };
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
}

static fac_status add_call(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                           const fac_cl_bits *s, const char *name, int64_t units, fac_error *err) {
    fac_text options = { 0 }, source = { 0 };
    fac_cl_call *c = NULL;
    fac_text_print(&options, "-DT=float -DV=1 -DPLANES=%d -DOF_WEIGHTS=%d -DEACH=%d", s->planes,
                   s->of_weights, s->each);
    if (s->sign) fac_text_add(&options, " -DSIGNS");
    if (s->relu) fac_text_add(&options, " -DRELU");
    if (s->x_codes) fac_text_add(&options, " -DX_CODES");
    code_options(p, s, &options);
    fac_cl_option_wide(p, &options);
    fac_text_print(&source, "%s%s", fac_kernel_bit_levels, fac_kernel_conv_bits);
    options.failed |= source.failed;
    const fac_status status =
        fac_cl_call_new(o, plan, source.s ? source.s : "", &options, name, &c, err);
    fac_text_free(&source);
    fac_text_free(&options);
    FAC_TRY(status);
    const int inputs = s->codes ? FAC_CC_PORTS : FAC_CB_PORTS;
    for (int i = 0; i < inputs; i++) fac_cl_call_in(c, p, i);
    fac_cl_call_work(c, 0, sizeof(uint32_t));
    fac_cl_call_work(c, s->w_bytes, sizeof(uint32_t));
    for (int k = 0; k < (s->codes ? 2 : 1); k++) fac_cl_call_out(c, p, k);
    add_numbers(c, p, s, units);
    fac_cl_call_items(c, (size_t)units, GROUP);
    return FAC_OK;
}

fac_status fac_cl_bits_pixels(fac_opencl *o, const fac_problem *p, const fac_cl_bits *s,
                              fac_cl_plan *plan, fac_error *err) {
    const fac_conv_geom *g = &s->g;
    const int64_t pixels = g->N * g->H * g->W * g->groups * s->words;
    return add_call(o, p, plan, s, "pixels", pixels, err);
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const fac_cl_bits *s = p->draft;
    const fac_conv_geom *g = &s->g;
    const int64_t weights = s->of_weights * g->K * g->R * g->S * s->words;
    const int64_t parts = g->groups * ((s->K + EACH - 1) / EACH);
    const int64_t places = g->N * g->P * g->Q;
    const int64_t bytes = (g->K + WORD - 1) / WORD * (int64_t)sizeof(uint32_t);
    FAC_TRY(add_call(o, p, plan, s, "weights", weights, err));
    if (!s->x_codes) FAC_TRY(fac_cl_bits_pixels(o, p, s, plan, err));
    if (!s->codes) return add_call(o, p, plan, s, "count", places * parts, err);
    return add_call(o, p, plan, s, "codes", places * bytes, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 3, add, out, err);
}

const fac_solver fac_cl_conv_bits = { .name = "conv2d_basis/count",
                                      .op = &fac_op_conv2d_basis,
                                      .rank = 140,
                                      .offer = offer,
                                      .make = make,
                                      .done = fac_cl_plan_done,
                                      .run = fac_cl_plan_run };

const fac_solver fac_cl_conv_codes = { .name = "conv2d_codes/count",
                                       .op = &fac_op_conv2d_codes,
                                       .rank = 141,
                                       .offer = offer,
                                       .make = make,
                                       .done = fac_cl_plan_done,
                                       .run = fac_cl_plan_run };
