/* linear/blocks: a linear layer whose weights stay in blocks of few bits, with x in f32, and what
 * is done to its result, such as an activation or a sum (linear_blocks.cl).  What decides is how
 * long the weights take to be read: once for each FEW rows of x. */
#include "backends/gpu/speed.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/product/blocks.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_linear_blocks.h"
#include "op_list.h"

enum { X, W, BIAS, INPUTS, EXTRAS = 4, FEW = 8, LANES = 32, GROUP = 128, GROUP_OF_CPU = 4 };

/* Rows of x that meet a unit of weights at once. */
static int together(int64_t M) {
    if (M <= 1) return 1;
    return M <= FEW / 2 ? FEW / 2 : FEW;
}

static int64_t rows_of(const fac_problem *p) {
    const int64_t K = p->in[W].type.dims.d[1];
    return K > 0 ? fac_dims_count(&p->in[X].type.dims) / K : 0;
}

static const char *words(const fac_text *t) { return t->s ? t->s : ""; }

/* finish() and what goes with it: the body's ops, of a sum and of further operands at its place. */
static bool finish_text(const fac_opencl *o, const fac_problem *p, fac_text *to) {
    static const char *const names[1 + EXTRAS] = { "sum", "e0[at]", "e1[at]", "e2[at]", "e3[at]" };
    fac_text functions = { 0 }, statements = { 0 }, given = { 0 }, taken = { 0 };
    const int extras = p->nin - INPUTS;
    bool good = true;
    if (p->node->body[0])
        good = fac_cl_body_text(p->node->body[0], names, o->limits.fp64, &functions, &statements);
    for (int i = 0; i < extras; i++) {
        fac_text_print(&given, ", global const float *e%d", i);
        fac_text_print(&taken, ", e%d + s.e[%d]", i, i);
    }
    fac_text_print(to, "#define EXTRAS %d\n#define EXTRA_PARAMS %s\n#define EXTRA_ARGS %s\n%s",
                   extras, words(&given), words(&taken), words(&functions));
    fac_text_print(to, "static inline float finish(float sum, long at%s) {\n%s    return %s;\n}\n",
                   words(&given), words(&statements), p->node->body[0] ? "result" : "sum");
    to->failed |= functions.failed | statements.failed | given.failed | taken.failed;
    fac_text_free(&functions);
    fac_text_free(&statements);
    fac_text_free(&given);
    fac_text_free(&taken);
    return good;
}

/* Further operands are of the result's size; what cannot be written is another solver's. */
static bool takes_body(const fac_opencl *o, const fac_problem *p) {
    fac_text text = { 0 };
    if (p->nin > INPUTS + EXTRAS || p->out[0].type.dtype != FAC_F32) return false;
    for (int i = INPUTS; i < p->nin; i++)
        if (p->in[i].type.dtype != FAC_F32 ||
            !fac_dims_equal(&p->in[i].type.dims, &p->out[0].type.dims))
            return false;
    const bool good = finish_text(o, p, &text);
    fac_text_free(&text);
    return good;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    const fac_dtype bias = p->in[BIAS].type.dtype;
    if (p->in[X].type.dtype != FAC_F32 || !fac_cl_blocks_name(p->in[W].type.dtype)) return false;
    if (p->node->body[0] && !takes_body(o, p)) return false;
    if (p->in[W].type.dims.d[1] <= 0 || (bias != FAC_NONE && bias != FAC_F32)) return false;
    for (int i = 0; i <= p->nin; i++) {
        fac_operand *x = i < p->nin ? &p->in[i] : &p->out[0];
        if (x->type.dtype != FAC_NONE) x->layout = fac_layout_plain(&x->type.dims);
    }
    const int64_t M = rows_of(p), each = together(M);
    const double times = (double)((M + each - 1) / each);
    const double all = (double)fac_dims_count(&p->in[W].type.dims);
    offer->seconds =
        fac_cl_price(o, p, 1) +
        times * (double)fac_type_bytes(&p->in[W].type) / fac_gpu_bandwidth(&o->limits) +
        4 * all * (double)M / fac_gpu_flops(&o->limits);
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const fac_dims *w = &p->in[W].type.dims;
    const int64_t M = rows_of(p), N = w->d[0];
    const int lanes = o->limits.gpu ? LANES : 1, each = together(M);
    const int of_gpu = o->limits.group < GROUP ? LANES : GROUP;
    const int group = o->limits.gpu ? of_gpu : GROUP_OF_CPU;
    fac_text options = { 0 }, source = { 0 };
    fac_cl_call *c = NULL;
    if (!M || !N) return FAC_OK;
    finish_text(o, p, &source);
    fac_text_add(&source, fac_kernel_linear_blocks);
    options.failed |= source.failed;
    fac_cl_option_blocks(p->in[W].type.dtype, &options);
    fac_text_print(&options, " -DLANES=%d -DROWS=%d -DTM=%d", lanes, group / lanes, each);
    const fac_status status =
        fac_cl_call_blocks(o, plan, words(&source), &options, "rows", &c, err);
    fac_text_free(&source);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, X);
    fac_cl_call_bytes(c, W);
    fac_cl_call_in(c, p, BIAS);
    fac_cl_call_out(c, p, 0);
    for (int i = INPUTS; i < p->nin; i++) fac_cl_call_in(c, p, i);
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
