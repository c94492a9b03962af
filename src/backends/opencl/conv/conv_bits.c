/* conv2d_basis/count: convolutions of few bits by popcount,
    on any device; see kernels/conv_bits.cl.  Weights are turned into words
 * in each run, which takes little beside the rest. */
#include <limits.h>
#include "backends/opencl/device/calls.h"
#include "backends/opencl/product/gemm.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_conv_bits.h"
#include "op_list.h"
#include "ops/conv_basis.h"

enum { GROUP = 64, WORD = 32, EACH = 4 };

typedef struct counting {
    fac_conv_geom g;
    int64_t C, K, words; /* of a group */
    int planes, of_weights;
    bool sign, relu;
    size_t w_bytes, x_bytes; /* of scratch */
} counting;

static bool read_problem(const fac_opencl *o, fac_problem *p, counting *s) {
    const fac_conv_basis_attrs *a = p->node->attrs;
    *s = (counting){ .planes = 1, .relu = a->relu };
    if (p->in[0].type.dtype != FAC_F32 || !fac_cl_settle_plain(o, p)) return false;
    if (!fac_conv_geometry_of(2, &a->conv, &p->in[0].type.dims, &a->dims, &s->g)) return false;
    const fac_conv_geom *g = &s->g;
    if (g->N * g->C * g->K * g->P * g->Q * g->H * g->W * g->R * g->S == 0) return false;
    s->C = g->C / g->groups;
    s->K = g->K / g->groups;
    s->words = (s->C + WORD - 1) / WORD;
    s->sign = p->in[FAC_CB_X_BASIS].type.dtype == FAC_NONE;
    if (!s->sign) s->planes = (int)p->in[FAC_CB_X_BASIS].type.dims.d[0];
    s->of_weights = (int)p->in[FAC_CB_W_BASIS].type.dims.d[0];
    const double w = (double)(s->of_weights * g->K) * (double)(g->R * g->S * s->words);
    const double x = (double)(s->planes * g->N) * (double)(g->H * g->W * g->groups * s->words);
    if (w > INT_MAX / 4 || x > INT_MAX / 4 || (double)s->C * (double)(g->R * g->S) > INT_MAX / 4)
        return false;
    s->w_bytes = (size_t)w * sizeof(uint32_t);
    s->x_bytes = (size_t)x * sizeof(uint32_t);
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    counting s;
    if (p->node->body[0] || !read_problem(o, p, &s)) return false;
    const double products = (double)(s.g.N * s.g.P * s.g.Q) * (double)(s.g.K * s.words * WORD) *
                            (double)(s.g.R * s.g.S * s.of_weights * s.planes);
    offer->work = s.w_bytes + s.x_bytes;
    offer->seconds = fac_cl_price(o, p, 3) + 2 * products / (4 * fac_cl_flops(o));
    return true;
}

static fac_status add_call(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                           const counting *s, const char *name, int64_t units, fac_error *err) {
    const fac_conv_geom *g = &s->g;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    fac_text_print(&options, "-DT=float -DV=1 -DPLANES=%d -DOF_WEIGHTS=%d -DEACH=%d", s->planes,
                   s->of_weights, EACH);
    if (s->sign) fac_text_add(&options, " -DSIGNS");
    if (s->relu) fac_text_add(&options, " -DRELU");
    fac_cl_option_wide(p, &options);
    const fac_status status =
        fac_cl_call_new(o, plan, fac_kernel_conv_bits, &options, name, &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    for (int i = 0; i < FAC_CB_PORTS; i++) fac_cl_call_in(c, p, i);
    fac_cl_call_work(c, 0, sizeof(uint32_t));
    fac_cl_call_work(c, s->w_bytes, sizeof(uint32_t));
    fac_cl_call_out(c, p, 0);
    const bool biased = p->in[FAC_CB_B].type.dtype != FAC_NONE;
    const bool scaled = p->in[FAC_CB_SCALE].type.dtype != FAC_NONE;
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
                                biased,
                                scaled };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) fac_cl_call_number(c, numbers[i]);
    fac_cl_call_items(c, (size_t)units, GROUP);
    return FAC_OK;
}

static fac_status add(fac_opencl *o, const fac_problem *given, fac_cl_plan *plan, fac_error *err) {
    fac_problem p = *given;
    counting s;
    if (!read_problem(o, &p, &s))
        return fac_raise(err, FAC_E_INTERNAL, "conv2d_basis: an offer that is none");
    const fac_conv_geom *g = &s.g;
    const int64_t weights = s.of_weights * g->K * g->R * g->S * s.words;
    const int64_t pixels = g->N * g->H * g->W * g->groups * s.words;
    const int64_t counts = g->N * g->groups * ((s.K + EACH - 1) / EACH) * g->P * g->Q;
    FAC_TRY(add_call(o, &p, plan, &s, "weights", weights, err));
    FAC_TRY(add_call(o, &p, plan, &s, "pixels", pixels, err));
    return add_call(o, &p, plan, &s, "count", counts, err);
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
