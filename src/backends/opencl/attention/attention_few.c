/* attention/few: few queries against many keys, as decoding has them, in one launch and f32: keys
 * that lengths leave out are not even read. */
#include <math.h>
#include "graph/attr.h"
#include "backends/opencl/attention/attention_few.h"
#include "backends/gpu/speed.h"
#include "backends/opencl/reduce/fold.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_attention_few.h"
#include "cl_team.h"
#include "op_list.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };
enum { MOST = 16, WIDEST = 256, ITEMS = 256, CHUNK = 1024 };

/* ---- shared ---- */

static int power_of(int64_t n) {
    int p = 16;
    while (p < n) p *= 2;
    return p;
}

bool fac_cl_few_read(const fac_opencl *o, const fac_problem *p, const fac_operand *const x[4],
                     int64_t kv_heads, fac_cl_few *s) {
    int64_t q_heads = 0;
    *s = (fac_cl_few){ .batch = x[0]->type.dims.d[0] };
    fac_attr_get_int(p->node, "q_heads", &q_heads);
    fac_attr_get_int(p->node, "window", &s->window);
    fac_attr_get_real(p->node, "scale", &s->scale);
    fac_attr_get_real(p->node, "softcap", &s->cap);
    s->q = fac_cl_heads_of(x[0], q_heads);
    s->k = fac_cl_heads_of(x[1], kv_heads);
    s->v = fac_cl_heads_of(x[2], kv_heads);
    s->y = fac_cl_heads_of(x[3], q_heads);
    if (s->scale == 0 && s->q.size) s->scale = 1 / sqrt((double)s->q.size);
    s->near = fac_cl_near(o, x, 4);
    if (s->q.size % s->near || s->v.size % s->near) s->near = 1;
    s->items = o->limits.gpu ? ITEMS : power_of(s->v.size);
    if (s->q.rows < 1 || s->q.rows > MOST || s->k.rows < 1 || s->q.size < 1 || s->v.size < 1)
        return false;
    if (s->batch < 1 || s->k.heads < 1) return false;
    return s->q.size <= WIDEST && s->v.size <= WIDEST && (size_t)s->items <= o->limits.group;
}

double fac_cl_few_seconds(const fac_opencl *o, const fac_problem *p, const fac_cl_few *s) {
    const double pairs = (double)(s->batch * s->q.heads) * (double)(s->q.rows * s->k.rows);
    return fac_cl_price(o, p, 1) +
           2 * pairs * (double)(s->q.size + s->v.size) / (0.1 * fac_gpu_flops(&o->limits));
}

void fac_cl_few_options(const fac_cl_few *s, fac_text *to) {
    fac_text_print(to, "-DT=float -DV=%d%s -DG=%d -DC=1 -DITEMS=%d -DCHUNK=%d -DSIZE=%d", s->near,
                   s->near > 1 ? " -DALIGNED" : "", s->items, s->items, CHUNK, power_of(s->q.size));
    if (s->cap > 0) fac_text_add(to, " -DSOFT");
}

void fac_cl_push_heads(const fac_cl_heads *h, fac_cl_call *c) {
    fac_cl_call_number(c, h->batch);
    fac_cl_call_number(c, h->head);
    fac_cl_call_number(c, h->row);
}

void fac_cl_few_numbers(const fac_cl_few *s, fac_cl_call *c) {
    const int64_t numbers[] = {
        s->q.heads, s->q.heads / s->k.heads, s->q.rows, s->k.rows, s->q.size, s->v.size, s->window
    };
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
    fac_cl_call_real(c, s->scale, FAC_F32);
    fac_cl_call_real(c, s->cap, FAC_F32);
    fac_cl_push_heads(&s->q, c);
    fac_cl_push_heads(&s->k, c);
    fac_cl_push_heads(&s->v, c);
    fac_cl_push_heads(&s->y, c);
}

fac_status fac_cl_few_call(fac_opencl *o, fac_cl_plan *plan, const char *before, fac_text *options,
                           fac_cl_call **out, fac_error *err) {
    fac_text source = { 0 };
    fac_text_add(&source, before);
    fac_text_add(&source, fac_kernel_team);
    fac_text_add(&source, fac_kernel_attention_few);
    options->failed |= source.failed;
    const fac_status status = fac_cl_call_new(o, plan, source.s, options, "attention", out, err);
    fac_text_free(&source);
    fac_text_free(options);
    return status;
}

/* ---- attention/few ---- */

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    const fac_dtype *precision = fac_attr_at(p->node, "precision", FAC_A_DTYPE);
    int64_t kv_heads = 0;
    fac_cl_few s;
    if (p->node->body[0] || (precision && *precision == FAC_F64)) return false;
    for (int i = Q; i <= V; i++)
        if (p->in[i].type.dtype != FAC_F32) return false;
    for (int i = MASK; i <= PAST_VALUE; i++)
        if (p->in[i].type.dtype != FAC_NONE) return false;
    for (int k = 0; k < p->nout; k++)
        if ((p->out[k].type.dtype == FAC_NONE) != (k > 0)) return false;
    if (!fac_cl_settle_operands(o, p)) return false;
    for (int i = Q; i <= V; i++) fac_cl_heads_want(&p->in[i]);
    fac_cl_heads_want(&p->out[0]);
    if (p->in[LENGTHS].type.dtype != FAC_NONE)
        p->in[LENGTHS].layout = fac_layout_plain(&p->in[LENGTHS].type.dims);
    const fac_operand *const x[] = { &p->in[Q], &p->in[K], &p->in[V], &p->out[0] };
    fac_attr_get_int(p->node, "kv_heads", &kv_heads);
    if (!fac_cl_few_read(o, p, x, kv_heads, &s)) return false;
    offer->seconds = fac_cl_few_seconds(o, p, &s);
    *FAC_DRAFT(offer, fac_cl_few) = s;
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const fac_cl_few s = *(const fac_cl_few *)p->draft;
    const bool counted = p->in[LENGTHS].type.dtype != FAC_NONE;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    fac_cl_few_options(&s, &options);
    fac_text_print(&options, " -DLENGTHS=%s",
                   counted ? fac_cl_tag(p->in[LENGTHS].type.dtype) : "i64");
    if (counted) fac_text_add(&options, " -DCOUNTED");
    if (fac_attr_flag(p->node, "causal")) fac_text_add(&options, " -DCAUSAL");
    FAC_TRY(fac_cl_few_call(o, plan, "", &options, &c, err));
    for (int i = Q; i <= V; i++) fac_cl_call_in(c, p, i);
    fac_cl_call_in(c, p, counted ? LENGTHS : Q);
    fac_cl_call_out(c, p, 0);
    fac_cl_few_numbers(&s, c);
    fac_cl_call_items(c, (size_t)(s.batch * s.q.heads * s.q.rows * s.items), (size_t)s.items);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_attention_few = { .name = "attention/few",
                                          .op = &fac_op_attention,
                                          .rank = 629,
                                          .offer = offer,
                                          .make = make,
                                          .done = fac_cl_plan_done,
                                          .run = fac_cl_plan_run };
