/* Training steps that may fail and be tried again. */
#include "studio/server/training.h"
#include <math.h>
#include "base/clock.h"

static fac_status try(const studio_training *t, int64_t step, double lr, fac_score *score,
                      fac_error *err) {
    fac_tensor *x, *labels;
    fac_status status = FAC_OK;
    if (!*t->loader)
        status = fac_loader_new(t->train, t->order, step, INT64_MAX / 2, 0, t->loader, err);
    if (!status) status = fac_loader_next(*t->loader, &x, &labels, err);
    return status ? status : fac_trainer_step(t->trainer, x, labels, lr, score, err);
}

fac_status fac_studio_step(const studio_training *t, int64_t step, double lr, fac_score *score,
                           fac_error *err) {
    const fac_status status = try(t, step, lr, score, err);
    if (status) {
        fac_loader_free(*t->loader);
        *t->loader = NULL;
    }
    return status;
}

static void remember(studio_progress *p, const fac_score *s) {
    const double part = p->step ? fmax(1.0 / 30, 1.0 / (double)(p->step + 1)) : 1;
    p->loss += part * (s->loss - p->loss);
    p->accuracy += part * (s->accuracy - p->accuracy);
}

bool fac_studio_steps(const studio_training *t, double lr, int64_t end, int64_t n, int64_t most_ns,
                      studio_progress *p) {
    const int64_t start = fac_now_ns();
    bool on = true;
    while (on && n-- > 0 && fac_now_ns() - start <= most_ns) {
        fac_score score;
        on = !fac_studio_step(t, p->step, lr, &score, &p->stopped);
        if (on) {
            remember(p, &score);
            p->step++;
            on = p->step < end;
        }
    }
    p->seconds += 1e-9 * (double)(fac_now_ns() - start);
    return on;
}
