/* Solver "fit_basis": a step of the levels of quantizers (LQ-Nets' QEM), once in each step of a
 * training for each of its layers.
 *
 * x is cut into chunks, or into channels where each has a basis of its own.  Of each, numbers are
 * counted and added up by level; the small systems of equations are those of the reference.  The
 * result does not depend on the number of threads. */
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "backends/cpu/device/streams.h"
#include "backends/cpu/device/blocked.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/attr.h"
#include "op_list.h"
#include "ops/basis.h"

enum { CHUNK = 16 << 10, SERIAL = 32 << 10, SHARES = 4 };

typedef struct plan {
    const fac_problem *problem;
    fac_basis_grid grid;
    bool positive;
    int64_t chunks; /* where all channels share one basis */
} plan;

static bool takes(const fac_problem *p, plan *t) {
    int64_t axis = 0;
    for (int i = 0; i < 2; i++)
        if (p->in[i].type.dtype != FAC_F32) return false;
    if (p->node->body[0] || !fac_attr_get_int(p->node, "axis", &axis)) return false;
    *t = (plan){ .problem = p, .positive = fac_attr_flag(p->node, "positive") };
    t->grid = fac_basis_grid_of(&p->in[0].type.dims, &p->in[1].type.dims, axis);
    if (p->in[1].type.dims.n == 1) t->chunks = (t->grid.inner + CHUNK - 1) / CHUNK;
    return true;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan t;
    if (!takes(p, &t)) return false;
    fac_want_plain(&p->in[0]);
    fac_want_plain(&p->in[1]);
    fac_want_plain(&p->out[0]);
    o->work = (size_t)t.chunks * sizeof(fac_basis_cells);
    o->seconds =
        fac_cpu_speeds.step + (double)fac_type_bytes(&p->in[0].type) / fac_cpu_of(d)->bandwidth;
    *FAC_DRAFT(o, plan) = t;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *t = fac_alloc(1, sizeof *t);
    (void)d;
    if (!t) return fac_raise_memory(err, "a plan");
    *t = *(const plan *)p->draft;
    t->problem = p;
    *out = t;
    return FAC_OK;
}

static void done(fac_device *d, void *arg) {
    (void)d;
    fac_release(arg);
}

typedef struct job {
    const plan *t;
    fac_level_kernel *kernel;
    const float *x, *basis;
    float *y;
    fac_basis_cells *part;
} job;

/* The basis of a channel, and its thresholds in f32, which they are already. */
static void basis_of(const job *j, int64_t channel, fac_basis *b, float threshold[]) {
    const fac_basis_grid *g = &j->t->grid;
    double v[FAC_BASIS_BITS];
    for (int k = 0; k < g->bits; k++) v[k] = (double)j->basis[k * g->channels + channel];
    fac_basis_of(v, 1, g->bits, j->t->positive, true, b);
    for (int k = 0; k + 1 < b->levels; k++) threshold[k] = (float)b->threshold[k];
}

static void write(const job *j, int64_t channel, const fac_basis *b, const fac_basis_cells *c) {
    double y[FAC_BASIS_BITS];
    fac_basis_fit(b, c, y);
    for (int k = 0; k < b->bits; k++) j->y[k * j->t->grid.channels + channel] = (float)y[k];
}

static void run_channels(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const fac_basis_grid *g = &j->t->grid;
    (void)thread;
    for (int64_t c = first; c < last; c++) {
        fac_basis b;
        fac_basis_cells cells = { { 0 }, { 0 } };
        float threshold[FAC_BASIS_LEVELS];
        basis_of(j, c, &b, threshold);
        for (int64_t k = 0; k < g->outer; k++)
            j->kernel(j->x + (k * g->channels + c) * g->inner, g->inner, threshold, b.levels,
                      cells.count, cells.sum);
        write(j, c, &b, &cells);
    }
}

static void run_chunks(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const int64_t all = j->t->grid.inner;
    fac_basis b;
    float threshold[FAC_BASIS_LEVELS];
    (void)thread;
    basis_of(j, 0, &b, threshold);
    for (int64_t c = first; c < last; c++) {
        const int64_t at = c * CHUNK, n = all - at < CHUNK ? all - at : CHUNK;
        j->part[c] = (fac_basis_cells){ { 0 }, { 0 } };
        j->kernel(j->x + at, n, threshold, b.levels, j->part[c].count, j->part[c].sum);
    }
}

static void add_chunks(const job *j) {
    fac_basis b;
    fac_basis_cells all = { { 0 }, { 0 } };
    float threshold[FAC_BASIS_LEVELS];
    basis_of(j, 0, &b, threshold);
    for (int64_t c = 0; c < j->t->chunks; c++)
        for (int k = 0; k < b.levels; k++) {
            all.count[k] += j->part[c].count[k];
            all.sum[k] += j->part[c].sum[k];
        }
    write(j, 0, &b, &all);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *t = arg;
    const fac_cpu *c = fac_cpu_of(d);
    const fac_operand *x = t->problem->in;
    job j = { t,
              c->simd->streams->level_sums,
              fac_span_floats(in[0], &x[0].layout),
              fac_span_floats(in[1], &x[1].layout),
              fac_span_floats(out[0], &t->problem->out[0].layout),
              (fac_basis_cells *)((char *)work.memory + work.at) };
    (void)err;
    const bool serial = fac_dims_count(&x->type.dims) < SERIAL;
    const int shares = serial ? 1 : SHARES * c->pool.threads;
    const bool one = x[1].type.dims.n == 1;
    const int64_t units = one ? t->chunks : t->grid.channels;
    if (units) fac_parallel_ranges(&c->pool, units, shares, one ? run_chunks : run_channels, &j);
    if (one) add_chunks(&j);
    return FAC_OK;
}

const fac_solver fac_cpu_fit_basis = { .name = "fit_basis",
                                       .op = &fac_op_fit_basis,
                                       .rank = 745,
                                       .offer = offer,
                                       .make = make,
                                       .done = done,
                                       .run = run };
