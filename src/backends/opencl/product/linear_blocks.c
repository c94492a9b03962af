/* linear/blocks: a linear layer whose weights stay in blocks of few bits, with x in f32
 * (linear_blocks.cl).  What decides is how long the weights take to be read: once for each
 * FEW rows of x. */
#include "backends/opencl/device/speed.h"
#include "backends/opencl/product/blocks.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_linear_blocks.h"
#include "op_list.h"

enum { X, W, BIAS, INPUTS, FEW = 8, LANES = 32, GROUP = 128, GROUP_OF_CPU = 4 };

/* Rows of x that meet a unit of weights at once. */
static int together(int64_t M) {
    if (M <= 1) return 1;
    return M <= FEW / 2 ? FEW / 2 : FEW;
}

static int64_t rows_of(const fac_problem *p) {
    const int64_t K = p->in[W].type.dims.d[1];
    return K > 0 ? fac_dims_count(&p->in[X].type.dims) / K : 0;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    const fac_dtype bias = p->in[BIAS].type.dtype;
    if (p->node->body[0] || p->in[X].type.dtype != FAC_F32 ||
        !fac_cl_blocks_name(p->in[W].type.dtype))
        return false;
    if (p->in[W].type.dims.d[1] <= 0 || (bias != FAC_NONE && bias != FAC_F32)) return false;
    for (int i = 0; i <= INPUTS; i++) {
        fac_operand *x = i < INPUTS ? &p->in[i] : &p->out[0];
        if (x->type.dtype != FAC_NONE) x->layout = fac_layout_plain(&x->type.dims);
    }
    const int64_t M = rows_of(p), each = together(M);
    const double times = (double)((M + each - 1) / each);
    const double all = (double)fac_dims_count(&p->in[W].type.dims);
    offer->seconds = fac_cl_price(o, p, 1) +
                     times * (double)fac_type_bytes(&p->in[W].type) / fac_cl_bandwidth(o) +
                     4 * all * (double)M / fac_cl_flops(o);
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const fac_dims *w = &p->in[W].type.dims;
    const int64_t M = rows_of(p), N = w->d[0];
    const int lanes = o->limits.gpu ? LANES : 1, each = together(M);
    const int of_gpu = o->limits.group < GROUP ? LANES : GROUP;
    const int group = o->limits.gpu ? of_gpu : GROUP_OF_CPU;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    if (!M || !N) return FAC_OK;
    fac_cl_option_blocks(p->in[W].type.dtype, &options);
    fac_text_print(&options, " -DLANES=%d -DROWS=%d -DTM=%d", lanes, group / lanes, each);
    const fac_status status =
        fac_cl_call_blocks(o, plan, fac_kernel_linear_blocks, &options, "rows", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, X);
    fac_cl_call_bytes(c, W);
    fac_cl_call_in(c, p, BIAS);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_number(c, M);
    fac_cl_call_number(c, N);
    fac_cl_call_number(c, w->d[1]);
    fac_cl_call_number(c, p->in[BIAS].type.dtype != FAC_NONE);
    c->range = (fac_cl_range){ 2,
                               { (size_t)(N * lanes), (size_t)((M + each - 1) / each) },
                               { (size_t)group, 1 } };
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_linear_blocks = { .name = "linear/blocks",
                                          .op = &fac_op_linear,
                                          .rank = 435,
                                          .offer = offer,
                                          .make = make,
                                          .done = fac_cl_plan_done,
                                          .run = fac_cl_plan_run };
