/* Solver "attention/row": attention of one query a head, as each step of decoding has it, whose
 * keys are all seen: no mask is needed, a window begins later.
 *
 * An item is a head of k and v with all heads of q that share it.  Its keys and values are read
 * once, one after the other, which is what takes the time (simd/lines/attention_row.c). */
#include <math.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/attention/attention_row.h"
#include "backends/cpu/attention/attention_rows.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/device/ranges.h"
#include "backends/cpu/move/copy.h"
#include "backends/problem.h"
#include "base/clamp.h"
#include "cpu_solvers.h"
#include "graph/attr.h"
#include "op_list.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };

typedef struct plan {
    fac_attention_shape shape;
    fac_attention_place q, k, v, y;
    fac_layout layout[4]; /* of q, k, v, y */
    double softcap;
    int64_t window;
    fac_dtype lengths;
    int64_t lengths_at;
    size_t share; /* floats of scratch of one thread */
} plan;

static bool all_floats(const fac_problem *p) {
    for (int i = Q; i <= V; i++)
        if (p->in[i].type.dtype != FAC_F32) return false;
    for (int i = MASK; i <= PAST_VALUE; i++)
        if (p->in[i].type.dtype) return false;
    for (int k = 1; k < p->nout; k++)
        if (p->out[k].type.dtype) return false;
    const fac_dtype *precision = fac_attr_at(p->node, "precision", FAC_A_DTYPE);
    return p->out[0].type.dtype == FAC_F32 &&
           (!precision || *precision == FAC_NONE || *precision == FAC_F32);
}

static bool settle(plan *a, const fac_problem *p, const fac_cpu *cpu) {
    const fac_attention_shape *s = &a->shape;
    const int lanes = cpu->simd->lanes;
    if (p->node->body[0] || !all_floats(p)) return false;
    if (!fac_attention_shape_of(p, cpu, &p->in[MASK], 0, &a->shape)) return false;
    fac_attr_get_int(p->node, "window", &a->window);
    fac_attr_get_real(p->node, "softcap", &a->softcap);
    a->lengths = p->in[LENGTHS].type.dtype;
    a->share = (size_t)fac_attention_row_floats(s->T);
    const bool sees_all = a->lengths != FAC_NONE || !s->causal; /* what its length says */
    return s->Q == 1 && sees_all && s->scale > 0 && s->D % lanes == 0 && s->E % lanes == 0;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *cpu = fac_cpu_of(d);
    plan a = { .window = 0 };
    if (!settle(&a, p, cpu)) return false;
    for (int i = Q; i <= V; i++) fac_attention_want_rows(&p->in[i]);
    if (a.lengths) fac_want_plain(&p->in[LENGTHS]);
    fac_lay_in_order(&p->in[Q], &p->out[0]);
    fac_attention_want_rows(&p->out[0]);
    o->work = a.share * sizeof(float) * (size_t)cpu->pool.threads;
    const fac_attention_shape *s = &a.shape;
    const double pairs = (double)(s->B * s->H) * (double)s->T;
    o->seconds = fac_cpu_seconds(cpu, pairs * (2 * (double)(s->D + s->E) + 12), 0.9, 0);
    *FAC_DRAFT(o, plan) = a;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *a = fac_draft_copy(p, sizeof *a, err);
    (void)d;
    if (!a) return FAC_E_NOMEM;
    const fac_attention_shape *s = &a->shape;
    a->q = fac_attention_place_of(&p->in[Q], s->H);
    a->k = fac_attention_place_of(&p->in[K], s->G);
    a->v = fac_attention_place_of(&p->in[V], s->G);
    a->y = fac_attention_place_of(&p->out[0], s->H);
    for (int i = Q; i <= V; i++) a->layout[i] = p->in[i].layout;
    a->layout[3] = p->out[0].layout;
    if (a->lengths) a->lengths_at = p->in[LENGTHS].layout.offset;
    *out = a;
    return FAC_OK;
}

/* ---- running ---- */

typedef struct job {
    const plan *a;
    const float *q, *k, *v;
    float *y, *work;
    const char *lengths;
} job;

static int64_t keys_of(const job *j, int64_t batch) {
    const int64_t all = j->a->shape.T;
    int64_t n = 0;
    if (!j->lengths) return all;
    const size_t each = fac_copy_size(j->a->lengths);
    fac_convert(FAC_I64, &n, j->a->lengths, j->lengths + (size_t)(batch + j->a->lengths_at) * each,
                1);
    return fac_clamp(n, 0, all);
}

static void run_item(const job *j, int64_t unit, float *scratch) {
    const plan *a = j->a;
    const fac_attention_shape *s = &a->shape;
    const int64_t batch = unit / s->G, group = unit % s->G, rows = s->H / s->G;
    const int64_t n = keys_of(j, batch);
    const bool part = s->causal && a->window > 0 && a->window < n;
    const int64_t first = part ? n - a->window : 0;
    const fac_attention_row t = {
        .q = j->q + batch * a->q.batch + group * rows * a->q.head,
        .k = j->k + batch * a->k.batch + group * a->k.head + first * a->k.row,
        .v = j->v + batch * a->v.batch + group * a->v.head + first * a->v.row,
        .y = j->y + batch * a->y.batch + group * rows * a->y.head,
        .rows = rows,
        .keys = n - first,
        .D = s->D,
        .E = s->E,
        .q_row = a->q.head,
        .k_row = a->k.row,
        .v_row = a->v.row,
        .y_row = a->y.head,
        .scale = s->scale,
        .softcap = a->softcap,
        .s = scratch
    };
    if (n)
        s->cpu->simd->attention_row(&t);
    else /* a query that sees no key gives zeros */
        for (int64_t r = 0; r < rows; r++) memset(t.y + r * t.y_row, 0, (size_t)s->E * sizeof *t.y);
}

static void run_items(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    float *scratch = j->work + (size_t)thread * j->a->share;
    for (int64_t u = first; u < last; u++) run_item(j, u, scratch);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *a = arg;
    const fac_attention_shape *s = &a->shape;
    const fac_pool *pool = &s->cpu->pool;
    (void)d, (void)err;
    job j = { .a = a,
              .q = fac_span_floats(in[Q], &a->layout[Q]),
              .k = fac_span_floats(in[K], &a->layout[K]),
              .v = fac_span_floats(in[V], &a->layout[V]),
              .y = fac_span_floats(out[0], &a->layout[3]),
              .work = fac_span_packed(work),
              .lengths = a->lengths ? fac_span_bytes(in[LENGTHS]) : NULL };
    fac_parallel_ranges(pool, s->B * s->G, 8 * pool->threads, run_items, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_attention_row = { .name = "attention/row",
                                           .op = &fac_op_attention,
                                           .rank = 355,
                                           .offer = offer,
                                           .make = make,
                                           .done = fac_solver_done,
                                           .run = run };
