/* Solver "rotary": pairs of elements of heads rotated by the angles of their positions, f32. */
#include "graph/attr.h"
#include "backends/draft.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "op_list.h"
#include "tensor/tensor_internal.h"

enum { X, COS, SIN, POSITIONS };

typedef struct plan {
    int64_t batch, heads, rows, size, half, table; /* table: rows of cos and sin */
    int64_t x_batch, x_head, x_row, y_batch, y_head, y_row;
    bool interleaved;
    fac_layout x, cos, sin, at, y;
    fac_dtype at_type; /* FAC_NONE: a row of the table for each row of x */
} plan;

/* Steps of an operand B,H,S,D or B,S,HD. */
static void steps(const fac_operand *o, int64_t size, int64_t *batch, int64_t *head, int64_t *row) {
    const bool flat = o->type.dims.n == 3;
    *batch = o->layout.stride[0];
    *head = flat ? size : o->layout.stride[1];
    *row = o->layout.stride[flat ? 1 : 2];
}

static bool settle(plan *g, const fac_problem *p) {
    const fac_dims *x = &p->in[X].type.dims, *c = &p->in[COS].type.dims;
    int64_t heads = 0;
    const bool flat = x->n == 3;
    fac_attr_get_int(p->node, "heads", &heads);
    *g = (plan){ .batch = x->d[0],
                 .heads = flat ? heads : x->d[1],
                 .rows = x->d[flat ? 1 : 2],
                 .half = c->d[c->n - 1],
                 .table = c->d[0],
                 .interleaved = fac_attr_flag(p->node, "interleaved"),
                 .at_type = p->in[POSITIONS].type.dtype };
    if (!g->heads || !g->table) return false;
    g->size = flat ? x->d[2] / g->heads : x->d[3];
    steps(&p->in[X], g->size, &g->x_batch, &g->x_head, &g->x_row);
    steps(&p->out[0], g->size, &g->y_batch, &g->y_head, &g->y_row);
    g->x = p->in[X].layout;
    g->cos = p->in[COS].layout;
    g->sin = p->in[SIN].layout;
    g->at = p->in[POSITIONS].layout;
    g->y = p->out[0].layout;
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan g;
    if (p->node->body[0] || p->out[0].type.dtype != FAC_F32) return false;
    for (int i = X; i <= SIN; i++)
        if (p->in[i].type.dtype != FAC_F32) return false;
    for (int i = X; i <= POSITIONS; i++)
        if (p->in[i].type.dtype && !fac_layout_is_plain(&p->in[i].layout, &p->in[i].type.dims))
            p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
    if (!fac_layout_is_plain(&p->out[0].layout, &p->out[0].type.dims) || !settle(&g, p))
        return false;
    o->seconds =
        fac_cpu_speeds.step + 2 * (double)fac_type_bytes(&p->in[X].type) / fac_cpu_of(d)->bandwidth;
    *FAC_DRAFT(o, plan) = g;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    return fac_draft_plan(p, sizeof(plan), out, err);
}

typedef struct job {
    const plan *g;
    const float *x, *cos, *sin;
    const char *at;
    float *y;
} job;

static int64_t position(const job *j, int64_t row) {
    int64_t at = row;
    if (j->g->at_type != FAC_NONE)
        fac_convert(FAC_I64, &at, j->g->at_type, j->at + (size_t)row * fac_copy_size(j->g->at_type),
                    1);
    return at < 0 ? at + j->g->table : at;
}

static void rotate(const plan *g, const float *x, const float *c, const float *s, float *y) {
    const int64_t apart = g->interleaved ? 1 : g->half;
    const int64_t step = g->interleaved ? 2 : 1;
    for (int64_t k = 0; k < g->half; k++) {
        const float a = x[k * step], b = x[k * step + apart];
        y[k * step] = a * c[k] - b * s[k];
        y[k * step + apart] = b * c[k] + a * s[k];
    }
    for (int64_t k = 2 * g->half; k < g->size; k++) y[k] = x[k];
}

static void run_rows(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *g = j->g;
    (void)thread;
    for (int64_t u = first; u < last; u++) {
        const int64_t b = u / g->rows, r = u % g->rows, at = position(j, u) * g->half;
        for (int64_t h = 0; h < g->heads; h++)
            rotate(g, j->x + b * g->x_batch + h * g->x_head + r * g->x_row, j->cos + at,
                   j->sin + at, j->y + b * g->y_batch + h * g->y_head + r * g->y_row);
    }
}

/* All positions are looked at before anything is written; one below 0 counts from the end. */
static fac_status check(const job *j, fac_error *err) {
    for (int64_t u = 0; j->g->at_type != FAC_NONE && u < j->g->batch * j->g->rows; u++) {
        const int64_t at = position(j, u);
        if (at < 0 || at >= j->g->table)
            return fac_raise(err, FAC_E_ARGUMENT, "rotary: position %lld of %lld", (long long)at,
                             (long long)j->g->table);
    }
    return FAC_OK;
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *g = arg;
    job j = { g,
              fac_span_floats(in[X], &g->x),
              fac_span_floats(in[COS], &g->cos),
              fac_span_floats(in[SIN], &g->sin),
              NULL,
              fac_span_floats(out[0], &g->y) };
    (void)work;
    if (g->at_type != FAC_NONE)
        j.at = fac_span_bytes(in[POSITIONS]) + (size_t)g->at.offset * fac_copy_size(g->at_type);
    FAC_TRY(check(&j, err));
    const int64_t rows = g->batch * g->rows, floats = rows * g->heads * g->size;
    if (floats)
        fac_parallel_ranges(&fac_cpu_of(d)->pool, rows, floats < 16 << 10 ? 1 : 8, run_rows, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_rotary = { .name = "rotary",
                                    .op = &fac_op_rotary,
                                    .rank = 210,
                                    .offer = offer,
                                    .make = make,
                                    .done = fac_solver_done,
                                    .run = run };
