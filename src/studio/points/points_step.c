/* Training on the page of points, in slices so short that a click never has to wait. */
#include <math.h>
#include <string.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "studio/points/points.h"
#include "studio/server/training.h"

#define SLICE_NS INT64_C(8000000)

/* ---- size of an update ---- */

static void norms(const points *p, float *before, points_update *to) {
    for (int i = 0; i < fac_graph_params(p->model); i++) {
        const fac_tensor *t = fac_value_tensor(fac_graph_param(p->model, i));
        const fac_type type = fac_tensor_type(t);
        const int64_t n = fac_dims_count(&type.dims);
        const float *now = fac_tensor_data(t);
        double update = 0, weight = 0;
        for (int64_t k = 0; now && k < n; k++) {
            const double d = (double)now[k] - (double)before[k];
            update += d * d;
            weight += (double)before[k] * (double)before[k];
        }
        to[i] = (points_update){ sqrt(update), sqrt(weight) };
        before += n;
    }
}

static float *copy_weights(const points *p) {
    size_t n = 0;
    for (int i = 0; i < fac_graph_params(p->model); i++) {
        const fac_type type = fac_value_type(fac_graph_param(p->model, i));
        n += (size_t)fac_dims_count(&type.dims);
    }
    float *to = fac_alloc(n + 1, sizeof *to), *at = to;
    for (int i = 0; to && i < fac_graph_params(p->model); i++) {
        const fac_tensor *t = fac_value_tensor(fac_graph_param(p->model, i));
        const fac_type type = fac_tensor_type(t);
        const size_t bytes = fac_type_bytes(&type);
        if (fac_tensor_read(t, at, bytes, NULL)) memset(at, 0, bytes);
        at += bytes / sizeof *at;
    }
    return to;
}

/* ---- steps ---- */

static fac_status step(points *p, fac_error *err) {
    const studio_training t = { p->trainer, &p->train, &p->order, &p->loader };
    fac_score score;
    FAC_TRY(fac_studio_step(&t, p->step, p->setup.lr, &score, err));
    p->batch_loss = score.loss;
    p->step++;
    p->dirty = true;
    return FAC_OK;
}

static bool over(const points *p) { return p->step >= p->setup.epochs * p->in_epoch; }

/* False: the training has ended or failed. */
static bool one(points *p) {
    float *before = p->measure ? copy_weights(p) : NULL;
    const fac_status status = step(p, &p->stopped);
    if (before && !status) {
        norms(p, before, p->updates);
        p->measured = true;
        p->measure = false;
    }
    fac_release(before);
    if (!status && !over(p)) return true;
    p->playing = false;
    return false;
}

void fac_points_steps(points *p, int64_t n) {
    const int64_t start = fac_now_ns();
    const bool was = p->playing;
    if (over(p))
        p->setup.epochs = (p->step + n + p->in_epoch - 1) / p->in_epoch; /* the user continues */
    p->stopped = (fac_error){ 0 };
    while (n-- > 0 && one(p)) {}
    p->playing = was && p->playing;
    p->seconds += 1e-9 * (double)(fac_now_ns() - start);
}

/* Steps due since the last slice; without a limit of speed, as many as fit. */
static int64_t earned(points *p, int64_t now) {
    if (p->speed <= 0) return INT64_MAX;
    p->owed += 1e-9 * (double)(now - p->last) * p->speed * (double)p->in_epoch;
    const double whole = floor(p->owed);
    p->owed -= whole;
    return (int64_t)fmin(whole, 1e6);
}

int64_t fac_points_work(void *self) {
    points *p = self;
    const int64_t start = fac_now_ns();
    if (!p->playing) {
        p->last = start;
        p->owed = 0;
        return -1;
    }
    int64_t n = earned(p, start), now = start;
    p->last = start;
    for (bool more = true; more && n > 0 && now - start < SLICE_NS; n--) {
        more = one(p);
        now = fac_now_ns();
    }
    p->seconds += 1e-9 * (double)(now - start);
    return p->speed > 0 ? SLICE_NS / 2 : 0;
}
