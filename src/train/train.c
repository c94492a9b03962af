/* The usual loop: epochs of steps, a look at the test set behind each, checkpoints.  Which batch comes next follows from the
 * step number, which is part of the checkpoint. */
#include <time.h>
#include "base/error.h"
#include "train/train_internal.h"

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct loop {
    fac_trainer          *t;
    const fac_dataset    *train, *test;
    const fac_train_opts *o;
    fac_schedule          schedule;
    fac_progress          now;
    int64_t               in_epoch, images;     /* steps of an epoch; samples that this call trained on */
    double                start, stepping;      /* when it began; time in steps */
    bool                  stopped;
} loop;

static fac_status step(loop *l, fac_error *err) {
    fac_progress *p = &l->now;
    fac_tensor *x, *labels;
    double start = seconds_now();
    p->lr = fac_schedule_lr(&l->schedule, p->step);
    FAC_TRY(fac_batch(l->train, &l->o->batches, p->epoch, p->step % l->in_epoch, &x, &labels, err));
    fac_status status = fac_trainer_step(l->t, x, labels, p->lr, &p->batch, err);
    fac_tensor_free(x);
    fac_tensor_free(labels);
    FAC_TRY(status);
    p->step++;
    fac_score_add(&p->train, &p->batch);
    l->images += p->batch.samples;
    l->stepping += seconds_now() - start;
    p->seconds = seconds_now() - l->start;
    p->images_per_s = (double)l->images / l->stepping;
    return FAC_OK;
}

static void report(loop *l) {
    if (l->o->report && !l->o->report(l->o->self, &l->now)) l->stopped = true;
}

static fac_status epoch(loop *l, fac_train_result *r, fac_error *err) {
    fac_progress *p = &l->now;
    p->train = (fac_score){ 0 };
    do {
        FAC_TRY(step(l, err));
        report(l);
    } while (p->step % l->in_epoch && !l->stopped);
    r->train = p->train;
    if (p->step % l->in_epoch == 0) {
        if (l->test) {
            FAC_TRY(fac_trainer_evaluate(l->t, l->test, l->o->batches.size, &r->test, err));
            p->test = &r->test;
        }
        p->seconds = seconds_now() - l->start;
        if (l->o->checkpoint) FAC_TRY(fac_trainer_save(l->t, l->o->checkpoint, err));
        if (l->test) report(l);
        p->test = NULL;
    } else if (l->o->checkpoint) {
        FAC_TRY(fac_trainer_save(l->t, l->o->checkpoint, err));
    }
    return FAC_OK;
}

fac_status fac_train(fac_trainer *t, const fac_dataset *train, const fac_dataset *test, const fac_train_opts *opts,
                     fac_train_result *out, fac_error *err) {
    loop l = { .t = t, .train = train, .test = test, .o = opts, .schedule = opts->schedule, .start = seconds_now() };
    fac_train_result r = { 0 };
    l.in_epoch = fac_batches_count(train, &opts->batches);
    if (l.in_epoch < 1 || opts->epochs < 1 || opts->epochs > INT64_MAX / l.in_epoch)
        return fac_raise(err, FAC_E_ARGUMENT, "%lld epochs in batches of %lld", (long long)opts->epochs,
                         (long long)opts->batches.size);
    l.now = (fac_progress){ .step = fac_trainer_steps(t), .steps = opts->epochs * l.in_epoch, .epochs = opts->epochs };
    if (!l.schedule.steps) l.schedule.steps = l.now.steps;
    if (l.now.step >= l.now.steps && test) FAC_TRY(fac_trainer_evaluate(t, test, opts->batches.size, &r.test, err));
    while (l.now.step < l.now.steps && !l.stopped) {
        l.now.epoch = l.now.step / l.in_epoch;
        FAC_TRY(epoch(&l, &r, err));
    }
    r.steps = l.now.step;
    r.epochs = l.now.step / l.in_epoch;
    r.stopped = l.stopped && l.now.step < l.now.steps;
    r.seconds = seconds_now() - l.start;
    r.images_per_s = l.now.images_per_s;
    *out = r;
    return FAC_OK;
}
