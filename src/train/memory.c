/* What a training remembers beside parameters and moments, as states of the step's graph, so that
 * it is part of a checkpoint:
 *   train.data         i64[3]   samples of the data set, of a batch, seed of the order: what the
 *                      step number counts
 *   schedule.plateau   f64[5]   the fields of fac_plateau
 * All zero before the first step.  No node reads them. */
#include <string.h>
#include "base/error.h"
#include "train/train_internal.h"

enum { DATA = 3, PLATEAU = 5 };

static fac_status new_state(fac_graph *g, const char *name, fac_dtype dtype, int64_t n,
                            fac_tensor **out, fac_error *err) {
    FAC_TRY(fac_tensor_new(NULL, dtype, fac_shape(n), out, err));
    fac_state(g, name, *out);
    fac_tensor_free(*out); /* it is the graph's now */
    return fac_graph_check(g, err);
}

fac_status fac_train_memory_new(fac_trainer *t, fac_error *err) {
    FAC_TRY(new_state(t->step, "train.data", FAC_I64, DATA, &t->data, err));
    return new_state(t->step, "schedule.plateau", FAC_F64, PLATEAU, &t->plateau, err);
}

fac_plateau fac_train_plateau(const fac_trainer *t) {
    const double *x = fac_tensor_data(t->plateau);
    return (fac_plateau){ (int64_t)x[0], (int64_t)x[1], (int64_t)x[2], x[3], x[4] };
}

fac_status fac_train_plateau_next(fac_trainer *t, const fac_schedule *s, double metric,
                                  fac_error *err) {
    fac_plateau p = fac_train_plateau(t);
    fac_plateau_next(s, metric, &p);
    const double x[PLATEAU] = { (double)p.seen, (double)p.bad, (double)p.cooldown, p.best, p.lr };
    return fac_tensor_write(t->plateau, x, sizeof x, err);
}

/* Which batch is next follows from the number of steps, so the batches must be those that were
 * counted. */
fac_status fac_trainer_continues(fac_trainer *t, const fac_dataset *d, const fac_batches *b,
                                 fac_error *err) {
    static const char *const what[DATA] = { "samples in the data set", "samples in a batch",
                                            "as seed of the order" };
    const int64_t now[DATA] = { d->count, b->size, (int64_t)b->seed };
    int64_t then[DATA];
    memcpy(then, fac_tensor_data(t->data), sizeof then);
    for (int k = 0; k < DATA && fac_trainer_steps(t) > 0 && then[1]; k++)
        if (then[k] != now[k])
            return fac_raise(err, FAC_E_ARGUMENT,
                             "this training was begun with %lld %s and cannot go on with %lld",
                             (long long)then[k], what[k], (long long)now[k]);
    return fac_tensor_write(t->data, now, sizeof now, err);
}
