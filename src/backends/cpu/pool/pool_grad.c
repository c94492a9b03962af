/* max_pool2d_grad/plain, avg_pool2d_grad/plain: gradients of two-dimensional pooling, plane by
 * plane; f32.
 *
 * The taps that a window has inside of x depend on its row and its column alone, so both are looked
 * up in tables.  Of several maxima the first in memory takes all, as the pooling itself says. */
#include <limits.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/pool_grad.h"

typedef struct taps {
    int32_t first, last, padded;
} taps; /* inside of x; those that do not reach after the padding */

typedef struct plan {
    fac_pool_geom g;
    fac_layout x, dy, dx;
    const fac_cpu *cpu;
    bool max;
    int64_t planes;
    taps table[]; /* of the rows of outputs, then of the columns */
} plan;

typedef struct job {
    const plan *p;
    const float *x, *dy;
    float *dx;
} job;

/* One row of outputs: dy to where the maxima are, NaN above all.  Tap after tap over some columns
 * at once, which become vectors: in training nobody, and no branch predictor, can guess where a
 * maximum is. */
static void row_of_max(const plan *p, const float *x, const float *dy, float *dx, int64_t a) {
    enum { MOST = 128 };
    const fac_window *h = &p->g.window[1], *w = &p->g.window[2];
    taps rows = p->table[a];
    for (int64_t from = 0; from < w->out; from += MOST) {
        int64_t end = from + MOST < w->out ? from + MOST : w->out;
        int32_t best[MOST];
        float top[MOST];
        for (int64_t q = from; q < end; q++) {
            best[q - from] = -1;
            top[q - from] = 0;
        }
        for (int64_t r = rows.first; r < rows.last; r++)
            for (int64_t s = 0; s < w->kernel; s++) {
                int64_t q0, q1,
                    at = (a * h->stride + r * h->dilation - h->pad) * w->in + s * w->dilation -
                         w->pad;
                fac_window_inside(w, s, &q0, &q1);
                q0 = q0 > from ? q0 : from;
                q1 = q1 < end ? q1 : end;
                for (int64_t q = q0; q < q1; q++) {
                    float v = x[at + q * w->stride], t = top[q - from];
                    int32_t i = best[q - from];
                    int above = (v > t) | ((v != v) & (t == t)) | (i < 0);
                    top[q - from] = above ? v : t;
                    best[q - from] = above ? (int32_t)(at + q * w->stride) : i;
                }
            }
        for (int64_t q = from; q < end; q++)
            if (best[q - from] >= 0) dx[best[q - from]] += dy[q];
    }
}

static void item(void *arg, int i, int thread) {
    const job *j = arg;
    const plan *p = j->p;
    const fac_window *h = &p->g.window[1], *w = &p->g.window[2];
    const float *x = p->max ? j->x + i * h->in * w->in : NULL, *dy = j->dy + i * h->out * w->out;
    float *dx = j->dx + i * h->in * w->in;
    int64_t row = h->dilation * w->in, column = w->dilation;
    (void)thread;
    memset(dx, 0, (size_t)(h->in * w->in) * sizeof *dx);
    for (int64_t a = 0; p->max && a < h->out; a++) row_of_max(p, x, dy + a * w->out, dx, a);
    for (int64_t a = 0; !p->max && a < h->out; a++)
        for (int64_t b = 0; b < w->out; b++, dy++) {
            taps r = p->table[a], s = p->table[h->out + b];
            int64_t at = (a * h->stride - h->pad) * w->in + b * w->stride - w->pad;
            if (r.first == r.last || s.first == s.last) continue;
            int seen = p->g.count_include_pad ? r.padded * s.padded
                                              : (r.last - r.first) * (s.last - s.first);
            float each = *dy / (float)seen;
            for (int64_t u = r.first; u < r.last; u++)
                for (int64_t v = s.first; v < s.last; v++) dx[at + u * row + v * column] += each;
        }
}

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    job j = { p, p->max ? fac_span_floats(in[0], &p->x) : NULL, fac_span_floats(in[1], &p->dy),
              fac_span_floats(out[0], &p->dx) };
    (void)d, (void)work, (void)err;
    fac_parallel(&p->cpu->pool, (int)p->planes, item, &j);
    return FAC_OK;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    fac_pool_geom g;
    if (p->node->body[0] || !fac_pool_grad_geometry(p->node, &g) || g.rank != 2) return false;
    if (p->in[1].type.dtype != FAC_F32 || p->out[0].type.dtype != FAC_F32) return false;
    const fac_window *h = &g.window[1], *w = &g.window[2];
    double outputs = (double)(g.N * g.C) * (double)h->out * (double)w->out,
           inputs = (double)fac_dims_count(&p->out[0].type.dims);
    if (outputs <= 0 || inputs <= 0 || g.N * g.C > INT_MAX) return false;
    if (h->kernel > INT_MAX / w->kernel || h->in > INT_MAX / w->in) return false;
    if (p->in[0].type.dtype) fac_want_plain(&p->in[0]);
    fac_want_plain(&p->in[1]);
    fac_want_plain(&p->out[0]);
    o->seconds = fac_cpu_seconds(fac_cpu_of(d), outputs * (double)(h->kernel * w->kernel), 0.008,
                                 4 * (2 * inputs + outputs));
    *FAC_DRAFT(o, fac_pool_geom) = g;
    return true;
}

static void fill(const fac_window *w, taps *to) {
    for (int64_t i = 0; i < w->out; i++) {
        int64_t first, last, padded = fac_window_taps(w, i, &first, &last);
        to[i] = (taps){ (int32_t)first, (int32_t)last, (int32_t)padded };
    }
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    const fac_pool_geom g = *(const fac_pool_geom *)p->draft;
    size_t bytes;
    bool fits = fac_size_mul((size_t)(g.window[1].out + g.window[2].out), sizeof(taps), &bytes) &&
                fac_size_add(bytes, sizeof(plan), &bytes);
    plan *q = fits ? fac_alloc(1, bytes) : NULL;
    if (!q) return fac_raise(err, FAC_E_NOMEM, "%s/plain: no memory for a plan", p->node->op->name);
    q->g = g;
    q->cpu = fac_cpu_of(d);
    q->x = p->in[0].layout;
    q->dy = p->in[1].layout;
    q->dx = p->out[0].layout;
    q->max = FAC_IS(p->node, max_pool2d_grad);
    q->planes = g.N * g.C;
    fill(&g.window[1], q->table);
    fill(&g.window[2], q->table + g.window[1].out);
    *out = q;
    return FAC_OK;
}
const fac_solver fac_cpu_max_pool_grad = { .name = "max_pool2d_grad/plain",
                                           .op = &fac_op_max_pool2d_grad,
                                           .rank = 590,
                                           .offer = offer,
                                           .make = make,
                                           .done = fac_solver_done,
                                           .run = run };
const fac_solver fac_cpu_avg_pool_grad = { .name = "avg_pool2d_grad/plain",
                                           .op = &fac_op_avg_pool2d_grad,
                                           .rank = 600,
                                           .offer = offer,
                                           .make = make,
                                           .done = fac_solver_done,
                                           .run = run };
