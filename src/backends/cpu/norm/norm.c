/* Solver "norm": layer_norm, rms_norm, group_norm, instance_norm and batch_norm of f32.
 *   y = (x - mean) / sqrt(var + epsilon) scale + bias
 * A row is what one mean is taken over: the last dims of a sample, the channels of a group, a
 * plane.  batch_norm has its mean and variance given (or, in training, is left to the reference).
 * Moments are taken in two passes, f32 in short sums that are added up in f64; the rest is f32.
 * Contiguous tensors; batch_norm also takes channel blocks of one vector, and then its result has
 * them too. */
#include <math.h>
#include "graph/attr.h"
#include "backends/draft.h"
#include "backends/cpu/norm/parts.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "backends/cpu/device/streams.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"

enum { SERIAL = 8 << 10, SHARES = 8 };

typedef enum kind { LAYER, RMS, GROUP, BATCH, BATCH_BLOCKED, NONE } kind;

typedef struct plan {
    kind kind;
    int64_t rows, size; /* elements of a row                                           */
    int64_t groups, channels,
        plane; /* GROUP, BATCH: rows of a sample, channels of a row, elements of a channel */
    int64_t scales, biases; /* how many there are: one for a channel or for a group        */
    double epsilon;
    const fac_problem *problem;
    bool past; /* results go past the caches */
} plan;

static kind kind_of(const fac_op *op) {
    static const struct {
        const fac_op *op;
        kind kind;
    } kinds[] = { { &fac_op_layer_norm, LAYER },
                  { &fac_op_rms_norm, RMS },
                  { &fac_op_group_norm, GROUP },
                  { &fac_op_instance_norm, GROUP },
                  { &fac_op_batch_norm, BATCH } };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (op == kinds[k].op) return kinds[k].kind;
    return NONE;
}

static bool build(const fac_problem *p, plan *r) {
    const fac_dims *d = &p->in[0].type.dims;
    int64_t axis = 0;
    *r = (plan){ .kind = kind_of(p->node->op),
                 .rows = 1,
                 .size = 1,
                 .groups = 1,
                 .channels = 1,
                 .plane = 1,
                 .problem = p };
    if (r->kind == NONE || !fac_attr_get_real(p->node, "epsilon", &r->epsilon)) return false;
    if (r->kind <= RMS) {
        if (!fac_attr_get_int(p->node, "axis", &axis) || d->n == 0) return false;
        int at = fac_axis(axis, d->n);
        for (int k = 0; k < d->n; k++) *(k < at ? &r->rows : &r->size) *= d->d[k];
        for (int k = 1; k < p->nin; k++) /* no broadcasting of scale and bias inside a row */
            if (p->in[k].type.dtype != FAC_NONE && fac_dims_count(&p->in[k].type.dims) != r->size)
                return false;
        return r->size > 0; /* the mean of nothing is NaN, which the reference says */
    }
    if (d->n < 2) return false;
    for (int k = 2; k < d->n; k++) r->plane *= d->d[k];
    r->groups = d->d[1];
    if (r->kind == GROUP) fac_attr_get_int(p->node, "groups", &r->groups);
    if (r->groups < 1) return false;
    r->channels = d->d[1] / r->groups;
    r->size = r->channels * r->plane;
    r->rows = d->d[0] * r->groups;
    r->scales = p->nin > 1 && p->in[1].type.dtype != FAC_NONE ? p->in[1].type.dims.d[0] : 0;
    r->biases = p->nin > 2 && p->in[2].type.dtype != FAC_NONE ? p->in[2].type.dims.d[0] : 0;
    if (r->kind == BATCH && p->in[0].layout.block > 0) r->kind = BATCH_BLOCKED;
    return r->kind == GROUP || !fac_attr_flag(p->node, "training_mode");
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan r;
    const fac_cpu *c = fac_cpu_of(d);
    kind k = kind_of(p->node->op);
    if (k == NONE || p->node->body[0]) return false;
    for (int i = 0; i < p->nin; i++) {
        fac_operand *x = &p->in[i];
        if (x->type.dtype == FAC_NONE) continue;
        if (x->type.dtype != FAC_F32) return false;
        if (i == 0 && k == BATCH && fac_lies_blocked(x, c->simd->lanes)) continue;
        if (!fac_layout_is_plain(&x->layout, &x->type.dims))
            x->layout = fac_layout_plain(&x->type.dims);
    }
    for (int i = 1; i < p->nout; i++) {
        const fac_operand *s = &p->out[i];
        if (s->type.dtype == FAC_NONE) continue;
        if (k > RMS || i > 2 || s->type.dtype != FAC_F32 ||
            !fac_layout_is_plain(&s->layout, &s->type.dims))
            return false;
    }
    fac_operand *x = &p->in[0], *y = &p->out[0];
    if (y->type.dtype != FAC_F32) return false;
    if (x->layout.block > 0) {
        if (y->layout.block == 0 && !fac_layout_is_plain(&y->layout, &y->type.dims)) return false;
        if (!fac_lies_blocked(y, c->simd->lanes))
            y->layout = fac_layout_blocked(&y->type.dims, 1, c->simd->lanes, y->layout.halo);
    } else if (!fac_layout_is_plain(&y->layout, &y->type.dims))
        return false;
    if (!build(p, &r)) return false;
    o->seconds = fac_cpu_speeds.step + 12.0 * (double)(r.rows * r.size) / c->bandwidth;
    *FAC_DRAFT(o, plan) = r;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *r = fac_draft_copy(p, sizeof *r, err);
    if (!r) return FAC_E_NOMEM;
    r->problem = p;
    r->past = r->kind != BATCH_BLOCKED &&
              fac_streams_past(fac_cpu_of(d), (size_t)fac_type_bytes(&p->out[0].type));
    *out = r;
    return FAC_OK;
}

/* ---- running ---- */

typedef struct job {
    const plan *r;
    const fac_streams *f;
    int lanes;
    const float *x, *scale, *bias, *mean, *var; /* NULL: absent */
    float *y, *statistic[2]; /* layer_norm: mean and 1 / standard deviation; rms_norm: the latter */
    bool past;
} job;

/* The results of some elements of a row are made in the first cache, if they are to go past the
 * others. */
static void normalize_row(const job *j, const float *x, float *y, int64_t n, float mean,
                          float factor) {
    float part[FAC_STREAM_PART];
    for (int64_t k = 0, size; k < n; k += size) {
        size = fac_line_part(j->past, n - k);
        const float *scale = j->scale ? j->scale + k : NULL;
        const float *bias = j->bias ? j->bias + k : NULL;
        j->f->normalize_each(x + k, j->past ? part : y, size, mean, factor, scale, bias);
        if (j->past) j->f->put(y + k, part, (size_t)size * sizeof *part);
    }
}
static void normalize_plane(const job *j, const float *x, float *y, int64_t n, float mean,
                            float factor, float shift) {
    float part[FAC_STREAM_PART];
    for (int64_t k = 0, size; k < n; k += size) {
        size = fac_line_part(j->past, n - k);
        j->f->normalize(x + k, j->past ? part : y, size, mean, factor, shift);
        if (j->past) j->f->put(y + k, part, (size_t)size * sizeof *part);
    }
}

static void run_row(const job *j, int64_t row) {
    const plan *r = j->r;
    const float *x = j->x + row * r->size;
    float *y = j->y + row * r->size;
    double mean = 0, var;
    int64_t group = row % r->groups;
    if (r->kind == BATCH) {
        mean = (double)j->mean[group];
        var = (double)j->var[group];
    } else {
        if (r->kind == RMS)
            var = j->f->mean_square_row(x, r->size);
        else
            j->f->moments_row(x, r->size, &mean, &var);
    }
    double inverse = 1 / sqrt(var + r->epsilon);
    for (int k = 0; k < 2; k++)
        if (j->statistic[k])
            j->statistic[k][row] = (float)(r->kind == LAYER && k == 0 ? mean : inverse);
    if (r->kind <= RMS) {
        normalize_row(j, x, y, r->size, (float)mean, (float)inverse);
        return;
    }
    for (int64_t k = 0; k < r->channels; k++) {
        int64_t c = group * r->channels + k, all = r->groups * r->channels;
        double scale = 1;
        float bias = 0;
        if (j->scale) scale = (double)j->scale[r->scales == all ? c : group];
        if (j->bias) bias = j->bias[r->biases == all ? c : group];
        normalize_plane(j, x + k * r->plane, y + k * r->plane, r->plane, (float)mean,
                        (float)(inverse * scale), bias);
    }
}

/* One row of pixels of one channel block. */
static void run_blocked(const job *j, int64_t unit) {
    const fac_problem *p = j->r->problem;
    const fac_layout *a = &p->in[0].layout, *b = &p->out[0].layout;
    const fac_dims *d = &p->in[0].type.dims;
    int64_t blocks = (d->d[1] + a->block - 1) / a->block;
    int64_t row = unit % d->d[2], block = unit / d->d[2] % blocks, image = unit / d->d[2] / blocks;
    float mean[64] = { 0 }, factor[64] = { 0 }, shift[64] = { 0 };
    for (int64_t k = 0, c = block * a->block; k < a->block && c < d->d[1]; k++, c++) {
        mean[k] = j->mean[c];
        shift[k] = j->bias[c];
        factor[k] = (float)((double)j->scale[c] / sqrt((double)j->var[c] + j->r->epsilon));
    }
    j->f->normalize_lanes(j->x + image * a->stride[0] + block * a->stride[1] + row * a->stride[2],
                          j->y + image * b->stride[0] + block * b->stride[1] + row * b->stride[2],
                          d->d[3], mean, factor, shift);
}

static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    (void)thread;
    const job *j = arg;
    for (int64_t u = first; u < last; u++) {
        if (j->r->kind == BATCH_BLOCKED)
            run_blocked(j, u);
        else
            run_row(j, u);
    }
    if (j->past) fac_streams_end();
}

static const float *floats(const fac_problem *p, const fac_span *in, int k) {
    return k < p->nin && p->in[k].type.dtype != FAC_NONE ? fac_span_floats(in[k], &p->in[k].layout)
                                                         : NULL;
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)work, (void)err;
    const plan *r = arg;
    const fac_problem *p = r->problem;
    const fac_cpu *c = fac_cpu_of(d);
    job j = { r,
              c->simd->streams,
              c->simd->lanes,
              .x = floats(p, in, 0),
              .scale = floats(p, in, 1),
              .bias = floats(p, in, 2),
              .mean = floats(p, in, 3),
              .var = floats(p, in, 4),
              .y = fac_span_floats(out[0], &p->out[0].layout) };
    for (int k = 0; k < 2 && k + 1 < p->nout; k++)
        if (p->out[k + 1].type.dtype)
            j.statistic[k] = fac_span_floats(out[k + 1], &p->out[k + 1].layout);
    if (r->rows * r->size == 0) return FAC_OK;
    j.past = r->past && j.x != j.y;
    const fac_dims *dims = &p->in[0].type.dims;
    int64_t units = r->rows;
    if (r->kind == BATCH_BLOCKED)
        units = dims->d[0] * ((dims->d[1] + j.lanes - 1) / j.lanes) * dims->d[2];
    fac_parallel_ranges(&c->pool, units, r->rows * r->size < SERIAL ? 1 : SHARES * c->pool.threads,
                        run_units, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_norm = {
    .name = "norm", .rank = 810, .offer = offer, .make = make, .done = fac_solver_done, .run = run
};
