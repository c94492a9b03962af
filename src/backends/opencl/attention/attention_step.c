/* Solver "attention_step": a step of decoding in one launch, f32: query and key are rotated, the
 * new rows go into caches that lie where the next ones shall, and attention reads all. */
#include "graph/attr.h"
#include "ops/attention_step.h"
#include "backends/opencl/attention/attention_few.h"
#include "backends/opencl/reduce/fold.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_attention_few.h"
#include "cl_index.h"
#include "cl_keep.h"
#include "cl_team.h"
#include "op_list.h"

enum { KEEP_KEYS, KEEP_VALUES, WORK, CALLS, GROUP = 64 };

static bool settle(const fac_opencl *o, fac_problem *p) {
    for (int i = 0; i < STEP_INPUTS; i++) {
        const fac_dtype t = p->in[i].type.dtype;
        const bool number = i == STEP_AT || i == STEP_LENGTHS || i == STEP_POSITIONS;
        if (t != FAC_NONE && !number && t != FAC_F32) return false;
    }
    if (p->node->body[0] || !fac_cl_settle_operands(o, p)) return false;
    for (int i = 0; i < STEP_INPUTS; i++) {
        const bool rows = i >= STEP_Q && i <= STEP_V;
        if (rows)
            fac_cl_heads_want(&p->in[i]);
        else if (p->in[i].type.dtype != FAC_NONE)
            p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
    }
    for (int k = 0; k < 2; k++) p->out[k].layout = fac_layout_plain(&p->out[k].type.dims);
    fac_cl_heads_want(&p->out[2]);
    return true;
}

/* The new value is read in whole accesses, as those of the cache are. */
static bool read(fac_opencl *o, const fac_problem *p, fac_cl_few *s) {
    const fac_operand *const x[] = { &p->in[STEP_Q], &p->in[STEP_KEYS], &p->in[STEP_VALUES],
                                     &p->out[2] };
    const fac_operand *const all[] = { x[0], x[1], x[2], x[3], &p->in[STEP_V] };
    if (!fac_cl_few_read(o, p, x, 0, s) || s->q.rows != 1) return false;
    if (s->near > fac_cl_near(o, all, 5)) s->near = 1;
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    fac_cl_few s;
    if (!settle(o, p) || !read(o, p, &s)) return false;
    offer->seconds = fac_cl_few_seconds(o, p, &s);
    *FAC_DRAFT(offer, fac_cl_few) = s;
    return true;
}

/* A cache that does not lie there yet is copied first. */
static fac_status add_keep(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, int which,
                           fac_error *err) {
    const size_t count = (size_t)fac_dims_count(&p->out[which].type.dims);
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    fac_text_add(&options, "-DV=1 -DT=float");
    const fac_status status = fac_cl_call_new(o, plan, fac_kernel_keep, &options, "keep", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, which);
    fac_cl_call_out(c, p, which);
    fac_cl_call_number(c, (int64_t)count);
    fac_cl_call_items(c, count, GROUP);
    return FAC_OK;
}

static void add_options(const fac_problem *p, const fac_cl_few *s, fac_text *to) {
    const bool rotated = p->in[STEP_COS].type.dtype != FAC_NONE;
    const bool placed = p->in[STEP_POSITIONS].type.dtype != FAC_NONE;
    fac_cl_few_options(s, to);
    fac_text_print(to, " -DSTEP -DCAUSAL -DCOUNTED -DLENGTHS=%s -DAT=%s -DPOSITIONS=%s",
                   fac_cl_tag(p->in[STEP_LENGTHS].type.dtype),
                   fac_cl_tag(p->in[STEP_AT].type.dtype),
                   placed ? fac_cl_tag(p->in[STEP_POSITIONS].type.dtype) : "i64");
    if (placed) fac_text_add(to, " -DPLACED");
    if (rotated)
        fac_text_print(to, " -DROTATED -DINTERLEAVED=%d", fac_attr_flag(p->node, "interleaved"));
}

/* The operand, or q in place of one that is not there. */
static void add_in(fac_cl_call *c, const fac_problem *p, int i) {
    fac_cl_call_in(c, p, p->in[i].type.dtype != FAC_NONE ? i : STEP_Q);
}

static fac_status add_work(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const fac_cl_few s = *(const fac_cl_few *)p->draft;
    const fac_dims *cos = &p->in[STEP_COS].type.dims;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    add_options(p, &s, &options);
    FAC_TRY(fac_cl_few_call(o, plan, fac_kernel_index, &options, &c, err));
    fac_cl_call_in(c, p, STEP_Q);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_out(c, p, 1);
    fac_cl_call_in(c, p, STEP_LENGTHS);
    fac_cl_call_out(c, p, 2);
    fac_cl_call_in(c, p, STEP_AT);
    fac_cl_call_in(c, p, STEP_K);
    fac_cl_call_in(c, p, STEP_V);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_out(c, p, 1);
    for (int i = STEP_COS; i < STEP_INPUTS; i++) add_in(c, p, i);
    fac_cl_call_complaint(c);
    fac_cl_call_number(c, cos->n ? cos->d[cos->n - 1] : 0);
    fac_cl_call_number(c, cos->n ? cos->d[0] : 0);
    fac_cl_few_numbers(&s, c);
    const fac_cl_heads k = fac_cl_heads_of(&p->in[STEP_K], s.k.heads);
    const fac_cl_heads v = fac_cl_heads_of(&p->in[STEP_V], s.k.heads);
    fac_cl_push_heads(&k, c);
    fac_cl_push_heads(&v, c);
    fac_cl_call_items(c, (size_t)(s.batch * s.q.heads * s.items), (size_t)s.items);
    return FAC_OK;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    FAC_TRY(add_keep(o, p, plan, KEEP_KEYS, err));
    FAC_TRY(add_keep(o, p, plan, KEEP_VALUES, err));
    return add_work(o, p, plan, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, CALLS, add, out, err);
}

static bool lies(const fac_span *in, const fac_span *out) {
    return in->memory == out->memory && fac_cl_at(*in) == fac_cl_at(*out);
}

static fac_status run(const void *plan, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const bool keys = lies(&in[STEP_KEYS], &out[0]), values = lies(&in[STEP_VALUES], &out[1]);
    return fac_cl_plan_run_from(plan, keys && values ? WORK : KEEP_KEYS, d, in, out, work, err);
}

const fac_solver fac_cl_attention_step = { .name = "attention_step",
                                           .op = &fac_op_attention_step,
                                           .rank = 137,
                                           .offer = offer,
                                           .make = make,
                                           .done = fac_cl_plan_done,
                                           .run = run };
