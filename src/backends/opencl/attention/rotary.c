/* Solver "rotary": pairs of elements of heads rotated by the angles of their positions. */
#include "graph/attr.h"
#include "backends/opencl/attention/attention_few.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_index.h"
#include "cl_rotary.h"
#include "op_list.h"

enum { GROUP = 64, X = 0, COS, SIN, POSITIONS };

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    if (p->in[X].type.dtype == FAC_F64 || !fac_cl_settle(o, p)) return false;
    fac_cl_heads_want(&p->in[X]);
    fac_cl_heads_want(&p->out[0]);
    for (int i = COS; i <= POSITIONS; i++)
        if (p->in[i].type.dtype != FAC_NONE)
            p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
    offer->seconds = fac_cl_price(o, p, 1);
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const fac_dims *of = &p->in[COS].type.dims;
    const bool placed = p->in[POSITIONS].type.dtype != FAC_NONE;
    const bool neighbours = fac_attr_flag(p->node, "interleaved");
    int64_t heads = 0;
    fac_text options = { 0 }, source = { 0 };
    fac_cl_call *c = NULL;
    fac_attr_get_int(p->node, "heads", &heads);
    const fac_cl_heads x = fac_cl_heads_of(&p->in[X], heads),
                       y = fac_cl_heads_of(&p->out[0], heads);
    const int64_t pairs = of->d[of->n - 1], lines = p->in[X].type.dims.d[0] * x.rows;
    const int64_t count = lines * x.heads * (x.size - pairs);
    if (!count) return FAC_OK;
    fac_text_print(&options, "-DV=1 -DT=float -DX=%s -DC=%s -DSTEP=%d -DAPART=%d -DI=%s",
                   fac_cl_tag(p->in[X].type.dtype), fac_cl_tag(p->in[COS].type.dtype),
                   1 + neighbours, neighbours,
                   placed ? fac_cl_tag(p->in[POSITIONS].type.dtype) : "i64");
    if (placed) fac_text_add(&options, " -DPOSITIONS");
    fac_cl_option_wide(p, &options);
    fac_text_add(&source, fac_kernel_index);
    fac_text_add(&source, fac_kernel_rotary);
    options.failed |= source.failed;
    const fac_status status = fac_cl_call_new(o, plan, source.s, &options, "rotary", &c, err);
    fac_text_free(&source);
    fac_text_free(&options);
    FAC_TRY(status);
    for (int i = X; i <= SIN; i++) fac_cl_call_in(c, p, i);
    fac_cl_call_in(c, p, placed ? POSITIONS : COS);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_complaint(c);
    const int64_t numbers[] = { count, x.heads, x.rows, x.size, pairs, of->d[0] };
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
    fac_cl_push_heads(&x, c);
    fac_cl_push_heads(&y, c);
    fac_cl_call_items(c, (size_t)count, GROUP);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_rotary = { .name = "rotary",
                                   .op = &fac_op_rotary,
                                   .rank = 136,
                                   .offer = offer,
                                   .make = make,
                                   .done = fac_cl_plan_done,
                                   .run = fac_cl_plan_run };
