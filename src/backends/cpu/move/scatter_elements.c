/* Solver "scatter_elements": x with elements replaced or met by updates, one index each.  Any
 * numbers; f16 and bf16 meet in f32, which is rounded at the end, the others in their own type.
 *
 * Lines along the dim that is counted do not touch each other, so threads share out lines; where
 * there are too few, a thread owns a range of places and looks through all indices for them. Either
 * way updates of one place meet in the order of the indices: the same bits with any number of
 * threads.  Every index is seen by somebody; of those out of range the first one is told. */
#include <math.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/elements.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/scatter.h"
#include "tensor/dtype.h"

enum { SERIAL = 4 << 10, AT_ONCE = 256, SHARES_MOST = 4096 };

typedef struct meeting { /* of n updates with their places in y */
    const void *from;
    void *y;
    const int64_t *place; /* only those in lo .. hi - 1          */
    int64_t n, step, stride, lo, hi;
} meeting;
typedef void meet(const meeting *m);

#define MEET(name, T, met)                                                                         \
    static void name##_##T(const meeting *m) {                                                     \
        const T *from = m->from;                                                                   \
        T *y = m->y;                                                                               \
        const uint64_t range = (uint64_t)(m->hi - m->lo);                                          \
        for (int64_t i = 0; i < m->n; i++, y += m->step) {                                         \
            if ((uint64_t)(m->place[i] - m->lo) >= range) continue;                                \
            T *at = y + m->place[i] * m->stride, a = *at, b = from[i];                             \
            (void)a;                                                                               \
            *at = (T)(met);                                                                        \
        }                                                                                          \
    }
/* clang-format off */
#define OF_INTEGER(T, wide)                                                                        \
    MEET(add, T, (wide)a + (wide)b)                                                                \
    MEET(mul, T, (wide)a * (wide)b)                                                                \
    MEET(least, T, a < b ? a : b)                                                                  \
    MEET(most, T, a > b ? a : b)
#define OF_FLOAT(T)                                                                                \
    MEET(add, T, a + b)                                                                            \
    MEET(mul, T, a * b)                                                                            \
    MEET(least, T, isnan(a) || a < b ? a : b)                                                      \
    MEET(most, T, isnan(a) || a > b ? a : b)
/* clang-format on */
MEET(put, uint8_t, b)
MEET(put, uint16_t, b)
MEET(put, uint32_t, b)
MEET(put, uint64_t, b)
OF_INTEGER(int8_t, uint32_t)
OF_INTEGER(int16_t, uint32_t)
OF_INTEGER(int32_t, uint32_t)
OF_INTEGER(int64_t, uint64_t)
OF_INTEGER(uint8_t, uint32_t)
OF_INTEGER(uint16_t, uint32_t)
OF_INTEGER(uint32_t, uint32_t)
OF_INTEGER(uint64_t, uint64_t)
OF_FLOAT(float)
OF_FLOAT(double)
#define ALL(T)                                                                                     \
    { NULL, add_##T, mul_##T, least_##T, most_##T }
    static meet *meet_of(fac_dtype dtype, fac_scatter_reduction how) {
    static meet *const of[FAC_DTYPES][5] = {
        [FAC_F32] = ALL(float),
        [FAC_F64] = ALL(double),
        [FAC_F16] = ALL(float),
        [FAC_BF16] = ALL(float),
        [FAC_I8] = ALL(int8_t),
        [FAC_I16] = ALL(int16_t),
        [FAC_I32] = ALL(int32_t),
        [FAC_I64] = ALL(int64_t),
        [FAC_U8] = ALL(uint8_t),
        [FAC_U16] = ALL(uint16_t),
        [FAC_U32] = ALL(uint32_t),
        [FAC_U64] = ALL(uint64_t),
        [FAC_BOOL] = { NULL, most_uint8_t, least_uint8_t, least_uint8_t, most_uint8_t }
    }; /* or, and, and, or */
    const size_t size = fac_copy_size(dtype);
    if (how == FAC_SCATTER_NONE)
        return size == 1   ? put_uint8_t
               : size == 2 ? put_uint16_t
               : size == 4 ? put_uint32_t
                           : put_uint64_t;
    return of[dtype][how];
}

typedef struct plan {
    fac_elements e;
    meet *meet;
    fac_dtype dtype;
    bool widened;                  /* what meets is f32, in work */
    int64_t element, x, u, y, all; /* bytes: of one; where x, updates and y begin; elements of x */
} plan;

static bool build(const fac_problem *p, plan *g) {
    if (!fac_elements_of(p, &g->e)) return false;
    const char *const how = fac_attr_choice(p->node, "reduction");
    fac_scatter_reduction reduction = FAC_SCATTER_NONE;
    for (int k = 0; fac_scatter_names[k]; k++)
        if (!strcmp(how, fac_scatter_names[k])) reduction = (fac_scatter_reduction)k;
    g->dtype = p->in[0].type.dtype;
    g->meet = meet_of(g->dtype, reduction);
    g->widened = reduction != FAC_SCATTER_NONE && fac_dtype_is_half(g->dtype);
    g->element = (int64_t)fac_copy_size(g->dtype);
    g->all = fac_dims_count(&p->in[0].type.dims);
    g->x = p->in[0].layout.offset * g->element;
    g->u = p->in[2].layout.offset * g->element;
    g->y = p->out[0].layout.offset * g->element;
    return g->meet != NULL;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *c = fac_cpu_of(d);
    plan g = { .meet = NULL };
    if (!fac_elements_fit(p) || !build(p, &g)) return false;
    if (g.widened && !fac_size_mul((size_t)g.all, sizeof(float), &o->work)) return false;
    const double bytes = 2 * (double)fac_type_bytes(&p->in[0].type) +
                         (double)fac_type_bytes(&p->in[1].type) + 2.0 * (double)o->work;
    o->seconds = fac_cpu_speeds.step + bytes / c->bandwidth +
                 fac_cpu_speeds.scattered * (double)g.e.count / c->pool.threads;
    *FAC_DRAFT(o, plan) = g;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    return fac_draft_plan(p, sizeof(plan), out, err);
}
typedef struct job {
    const plan *g;
    const char *x, *u;
    char *y;
    float *work;
    int split; /* -1: units are places */
    fac_picks picks;
} job;
typedef struct share {
    job *j;
    int64_t lo, hi;
} share; /* of the places */

static void row(void *arg, int64_t first, int64_t x, int64_t n, int64_t step) {
    const share *s = arg;
    job *j = s->j;
    const plan *g = j->g;
    int64_t place[AT_ONCE];
    float wide[AT_ONCE];
    meeting m = { .place = place, .step = step, .stride = g->e.stride, .lo = s->lo, .hi = s->hi };
    for (int64_t i = 0; i < n; i += AT_ONCE) {
        m.n = n - i < AT_ONCE ? n - i : AT_ONCE;
        fac_pick_many(&j->picks, first + i, m.n, place);
        m.from = j->u + (first + i) * g->element;
        m.y = j->y + (x + i * step) * g->element;
        if (g->widened) {
            fac_convert(FAC_F32, wide, g->dtype, m.from, (size_t)m.n);
            m.from = wide;
            m.y = j->work + x + i * step;
        }
        g->meet(&m);
    }
}

static void run_share(void *arg, int64_t first, int64_t last, int thread) {
    job *j = arg;
    const bool places = j->split < 0;
    share s = { j, 0, j->g->e.size };
    (void)thread;
    if (places) s = (share){ j, first, last };
    fac_elements_walk(&j->g->e, j->split, first, last, row, &s);
}

static void start(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *g = j->g;
    const char *from = j->x + first * g->element;
    (void)thread;
    if (g->widened)
        fac_convert(FAC_F32, j->work + first, g->dtype, from, (size_t)(last - first));
    else
        memcpy(j->y + first * g->element, from, (size_t)((last - first) * g->element));
}
static void end(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    (void)thread;
    fac_convert(j->g->dtype, j->y + first * j->g->element, FAC_F32, j->work + first,
                (size_t)(last - first));
}

/* Shares of the turns of loop `split`, or of places.  Where turns lie side by side in x, few enough
 * of them that all places of theirs stay in the second cache: updates go to any of those. */
static int shares_of(const plan *g, const fac_cpu *c, int split) {
    const fac_elements *e = &g->e;
    if (e->count < SERIAL) return 1;
    if (split < 0 || e->loop[split].step != 1 || e->size < 2) return c->pool.threads;
    const int64_t fit =
        (int64_t)(c->l2 / 2) / (e->size * (g->widened ? (int64_t)sizeof(float) : g->element));
    const int64_t panels = e->loop[split].count / (fit > 32 ? fit : 32);
    return panels > SHARES_MOST       ? SHARES_MOST
           : panels > c->pool.threads ? (int)panels
                                      : c->pool.threads;
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *g = arg;
    const fac_elements *e = &g->e;
    const fac_pool *pool = &fac_cpu_of(d)->pool;
    job j = { g,
              fac_span_bytes(in[0]) + g->x,
              fac_span_bytes(in[2]) + g->u,
              fac_span_bytes(out[0]) + g->y,
              fac_span_packed(work),
              -1,
              { fac_span_bytes(in[1]) + e->at, e->dtype, e->bytes, e->count, e->size, e->count } };
    const int copies = g->all < SERIAL ? 1 : pool->threads,
              turns = e->count < SERIAL ? 1 : pool->threads;
    if (g->all) fac_parallel_ranges(pool, g->all, copies, start, &j);
    if (e->count) {
        j.split = fac_elements_split(e, turns, false);
        if (j.split >= 0 && e->loop[j.split].count < turns) j.split = -1;
        fac_parallel_ranges(pool, j.split >= 0 ? e->loop[j.split].count : e->size,
                            shares_of(g, fac_cpu_of(d), j.split), run_share, &j);
    }
    if (g->all && g->widened) fac_parallel_ranges(pool, g->all, copies, end, &j);
    return fac_picks_check(&j.picks, err);
}

const fac_solver fac_cpu_scatter_elements = { .name = "scatter_elements",
                                              .op = &fac_op_scatter_elements,
                                              .rank = 930,
                                              .offer = offer,
                                              .make = make,
                                              .done = fac_solver_done,
                                              .run = run };
