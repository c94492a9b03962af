/* Solver "boxes": non_max_suppression of f32, a class of an image for each item of work.
 *
 * Every class first lists its boxes where the list would have them if all were left; then the lists
 * move together.  The arithmetic is that of the reference, in f64. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/device/blocked.h"
#include "backends/cpu/move/copy.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/attr.h"
#include "op_list.h"
#include "ops/boxes.h"

enum { BOXES, SCORES, MOST, IOU, SCORE };

typedef struct plan {
    const fac_problem *problem;
    int64_t images, classes, n;
    bool centers;
    size_t boxes, counts, share; /* bytes of scratch: of both, of one thread */
} plan;

typedef struct job {
    const plan *p;
    const float *boxes, *scores;
    int64_t most, *list, *counts;
    double iou, score;
    fac_box *box;
    char *own;
} job;

static void measure(void *arg, int image, int thread) {
    const job *j = arg;
    (void)thread;
    for (int64_t k = 0; k < j->p->n; k++) {
        const int64_t at = image * j->p->n + k;
        const float *b = j->boxes + 4 * at;
        j->box[at] = fac_box_at(
            (double[]){ (double)b[0], (double)b[1], (double)b[2], (double)b[3] }, j->p->centers);
    }
}

static void choose(void *arg, int item, int thread) {
    const job *j = arg;
    const int64_t n = j->p->n, image = item / j->p->classes;
    fac_box *kept = (void *)(j->own + (size_t)thread * j->p->share);
    fac_box_candidate *all = (void *)(kept + n);
    int64_t *left = (void *)(all + n), *to = j->list + 3 * n * item, count = 0;
    const float *scores = j->scores + n * item;
    for (int64_t k = 0; k < n; k++)
        if ((double)scores[k] > j->score)
            all[count++] = (fac_box_candidate){ (double)scores[k], k };
    count = fac_boxes_choose(j->box + image * n, j->most, j->iou, all, count, kept, left);
    for (int64_t k = 0; k < count; k++, to += 3) {
        to[0] = image;
        to[1] = item % j->p->classes;
        to[2] = left[k];
    }
    j->counts[item] = count;
}

/* The contents of an input of one number. */
static const char *number(const plan *p, const fac_span *in, int k) {
    const fac_operand *o = &p->problem->in[k];
    return fac_span_bytes(in[k]) + o->layout.offset * fac_dtype_get(o->type.dtype)->block_bytes;
}
static bool is_there(const fac_problem *p, int k) { return p->in[k].type.dtype != FAC_NONE; }

static fac_status run(const void *plan_, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *p = plan_;
    const fac_problem *q = p->problem;
    const fac_pool *pool = &fac_cpu_of(d)->pool;
    char *scratch = fac_span_bytes(work);
    const int64_t items = p->images * p->classes;
    job j = { .p = p,
              .boxes = (const float *)(const void *)fac_span_bytes(in[BOXES]) +
                       q->in[BOXES].layout.offset,
              .scores = (const float *)(const void *)fac_span_bytes(in[SCORES]) +
                        q->in[SCORES].layout.offset,
              .list = (int64_t *)(void *)fac_span_bytes(out[0]) + q->out[0].layout.offset,
              .score = -INFINITY,
              .box = (void *)scratch,
              .counts = (void *)(scratch + p->boxes),
              .own = scratch + p->boxes + p->counts };
    float value;
    if (is_there(q, MOST)) memcpy(&j.most, number(p, in, MOST), sizeof j.most);
    if (is_there(q, IOU)) memcpy(&value, number(p, in, IOU), sizeof value), j.iou = (double)value;
    if (is_there(q, SCORE))
        memcpy(&value, number(p, in, SCORE), sizeof value), j.score = (double)value;
    (void)err;
    fac_parallel(pool, (int)p->images, measure, &j);
    fac_parallel(pool, (int)items, choose, &j);
    int64_t rows = 0;
    for (int64_t k = 0; k < items; k++) {
        const size_t bytes = 3 * (size_t)j.counts[k] * sizeof *j.list;
        memmove(j.list + 3 * rows, j.list + 3 * p->n * k, bytes);
        rows += j.counts[k];
    }
    for (int64_t k = 3 * rows; k < 3 * p->n * items; k++) j.list[k] = -1;
    if (q->nout > 1 && q->out[1].type.dtype != FAC_NONE) {
        int64_t *count = (int64_t *)(void *)fac_span_bytes(out[1]) + q->out[1].layout.offset;
        *count = rows;
    }
    return FAC_OK;
}

static bool settle(const fac_problem *p, plan *q) {
    static const fac_dtype types[] = { FAC_F32, FAC_F32, FAC_I64, FAC_F32, FAC_F32 };
    const fac_dims *s = &p->in[SCORES].type.dims;
    if (p->nin != 5 || p->node->body[0] || fac_dims_count(&p->out[0].type.dims) <= 0) return false;
    for (int k = 0; k < p->nin; k++)
        if (p->in[k].type.dtype != types[k] && (k < MOST || is_there(p, k))) return false;
    *q = (plan){ .images = s->d[0],
                 .classes = s->d[1],
                 .n = s->d[2],
                 .centers = fac_attr_flag(p->node, "centers") };
    return q->images <= INT_MAX / q->classes;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *c = fac_cpu_of(d);
    plan q;
    size_t own;
    if (!settle(p, &q)) return false;
    q.share = (size_t)q.n * (sizeof(fac_box) + sizeof(fac_box_candidate) + sizeof(int64_t));
    q.boxes = (size_t)(q.images * q.n) * sizeof(fac_box);
    q.counts = (size_t)(q.images * q.classes) * sizeof(int64_t);
    if (!fac_size_mul(q.share, (size_t)c->pool.threads, &own) ||
        !fac_size_add(own, q.boxes + q.counts, &o->work))
        return false;
    for (int k = 0; k < p->nin; k++)
        if (is_there(p, k)) fac_want_plain(&p->in[k]);
    for (int k = 0; k < p->nout; k++)
        if (p->out[k].type.dtype != FAC_NONE) fac_want_plain(&p->out[k]);
    o->seconds =
        fac_cpu_speeds.step + 8 * (double)fac_type_bytes(&p->in[SCORES].type) / c->bandwidth;
    *FAC_DRAFT(o, plan) = q;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_draft_copy(p, sizeof *q, err);
    (void)d;
    if (!q) return FAC_E_NOMEM;
    q->problem = p;
    *out = q;
    return FAC_OK;
}

const fac_solver fac_cpu_boxes = { .name = "boxes",
                                   .op = &fac_op_non_max_suppression,
                                   .rank = 774,
                                   .offer = offer,
                                   .make = make,
                                   .done = fac_solver_done,
                                   .run = run };
