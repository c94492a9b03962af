/* Steps that may fail and be asked for again. */
#include "studio/training.h"

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
