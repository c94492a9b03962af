/* Solver "lrn": local response normalization of f32 across neighbouring channels of a contiguous N,C,... tensor.
 *   y_c = x_c base_c^-beta,  base_c = bias + alpha / size sum of x_j^2 over the window of c
 * Some hundred pixels of all channels at a time.  The usual exponents 0.5, 0.75 and 1 are square roots and a division, any
 * other is exp(-beta log(base)); base is positive, as bias > 0 and alpha >= 0 are asked for.  Within 1e-6 of y. */
#include "backends/cpu/attr.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/ranges.h"
#include "backends/cpu/solvers.h"
#include "backends/cpu/streams.h"
#include "base/error.h"
#include "base/memory.h"

enum { SHARES = 8 };

typedef struct plan { int64_t images, channels, plane, tiles, size, in, out; double alpha, beta, bias; } plan;

static bool build(const fac_problem *p, plan *r) {
    const fac_dims *d = &p->in[0].type.dims;
    *r = (plan){ d->d[0], d->d[1], 1, 0, 0, p->in[0].layout.offset, p->out[0].layout.offset, 0, 0, 0 };
    for (int k = 2; k < d->n; k++) r->plane *= d->d[k];
    r->tiles = (r->plane + FAC_LINES - 1) / FAC_LINES;
    return fac_attr_int(p->node, "size", &r->size) && fac_attr_real(p->node, "alpha", &r->alpha) &&
           fac_attr_real(p->node, "beta", &r->beta) && fac_attr_real(p->node, "bias", &r->bias) && r->bias > 0 && r->alpha >= 0;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan r;
    fac_operand *x = &p->in[0], *y = &p->out[0];
    if (x->type.dtype != FAC_F32 || p->node->body[0] || !fac_layout_is_plain(&y->layout, &y->type.dims)) return false;
    if (!fac_layout_is_plain(&x->layout, &x->type.dims)) x->layout = fac_layout_plain(&x->type.dims);
    if (!build(p, &r)) return false;
    double count = (double)(r.images * r.channels * r.plane);
    o->seconds = 1e-6 + count * (double)(r.size + 12) / (4e9 * fac_cpu_of(d)->pool.threads);
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    (void)d;
    plan *r = fac_alloc(1, sizeof *r);
    if (!r) return fac_raise(err, FAC_E_NOMEM, "lrn: no memory for a plan");
    build(p, r);
    *out = r;
    return FAC_OK;
}

static void done(fac_device *d, void *arg) {
    (void)d;
    fac_release(arg);
}

typedef struct job { const plan *r; const fac_streams *f; const float *x; float *y; } job;

static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    (void)thread;
    const job *j = arg;
    const plan *r = j->r;
    int64_t before = (r->size - 1) / 2, behind = r->size - 1 - before;
    const float factor = (float)(r->alpha / (double)r->size);
    for (int64_t u = first; u < last; u++) {
        int64_t column = u % r->tiles * FAC_LINES, image = u / r->tiles * r->channels * r->plane + column;
        int64_t n = r->plane - column < FAC_LINES ? r->plane - column : FAC_LINES;
        for (int64_t c = 0; c < r->channels; c++) {
            int64_t from = c > before ? c - before : 0, to = behind < r->channels - c ? c + behind + 1 : r->channels;
            j->f->lrn_columns(j->x + image + from * r->plane, to - from, r->plane, n, factor, (float)r->bias, (float)r->beta,
                              j->x + image + c * r->plane, j->y + image + c * r->plane);
        }
    }
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out, fac_span work, fac_error *err) {
    (void)work, (void)err;
    const plan *r = arg;
    const fac_cpu *c = fac_cpu_of(d);
    job j = { r, c->simd->streams, (const float *)((const char *)in[0].memory + in[0].at) + r->in,
              (float *)((char *)out[0].memory + out[0].at) + r->out };
    if (r->images * r->channels * r->plane == 0) return FAC_OK;
    fac_parallel_ranges(&c->pool, r->images * r->tiles, SHARES * c->pool.threads, run_units, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_lrn = { .name = "lrn", .op = "lrn", .offer = offer, .make = make, .done = done, .run = run };
