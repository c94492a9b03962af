/* The usual loop: epochs of steps, a look at the test set after each, checkpoints.  Which batch
 * comes next follows from the step number, which is part of the checkpoint. */
#include <math.h>
#include "base/clock.h"
#include "base/error.h"
#include "train/train_internal.h"

typedef struct loop {
    fac_trainer *t;
    const fac_dataset *train, *test;
    const fac_train_opts *o;
    fac_schedule schedule;
    fac_loader *loader;
    fac_progress now;
    int64_t in_epoch, images; /* steps of an epoch; samples that this call trained on */
    double start, stepping;   /* when it began; time in steps */
    bool stopped;
} loop;

static bool plateau_of(const loop *l) { return l->schedule.kind == FAC_SCHEDULE_PLATEAU; }

static fac_status step(loop *l, fac_error *err) {
    fac_progress *p = &l->now;
    fac_tensor *x, *labels;
    double start = fac_now();
    const fac_plateau plateau = fac_train_plateau(l->t);
    p->lr = plateau_of(l) ? fac_plateau_lr(&l->schedule, &plateau, p->step)
                          : fac_schedule_lr(&l->schedule, p->step);
    FAC_TRY(fac_loader_next(l->loader, &x, &labels, err));
    if ((p->step + 1) % l->in_epoch == 0 || p->step + 1 == p->steps)
        FAC_TRY(fac_trainer_flush(l->t, err)); /* nothing is left to the next epoch */
    FAC_TRY(fac_trainer_step(l->t, x, labels, p->lr, &p->batch, err));
    p->step++;
    fac_score_add(&p->train, &p->batch);
    l->images += p->batch.samples;
    l->stepping += fac_now() - start;
    p->seconds = fac_now() - l->start;
    p->images_per_s = (double)l->images / l->stepping;
    return FAC_OK;
}

static void report(loop *l) {
    if (l->o->report && !l->o->report(l->o->self, &l->now)) l->stopped = true;
}

/* The last one may be cut. */
static bool epoch_done(const loop *l) {
    return l->now.step % l->in_epoch == 0 || l->now.step == l->now.steps;
}

static fac_status epoch(loop *l, fac_train_result *r, fac_error *err) {
    fac_progress *p = &l->now;
    p->train = (fac_score){ 0 };
    do {
        FAC_TRY(step(l, err));
        report(l);
    } while (!epoch_done(l) && !l->stopped);
    r->train = p->train;
    if (epoch_done(l)) {
        const int64_t every = l->o->evaluate_every > 0 ? l->o->evaluate_every : 1;
        if (l->test && ((p->epoch + 1) % every == 0 || p->step == p->steps)) {
            FAC_TRY(fac_trainer_evaluate(l->t, l->test, l->o->batches.size, &r->test, err));
            p->test = &r->test;
            const double metric = l->schedule.rising ? r->test.accuracy : r->test.loss;
            if (plateau_of(l)) FAC_TRY(fac_train_plateau_next(l->t, &l->schedule, metric, err));
        }
        p->seconds = fac_now() - l->start;
        if (l->o->checkpoint) FAC_TRY(fac_trainer_save(l->t, l->o->checkpoint, err));
        if (p->test) report(l);
        p->test = NULL;
    } else if (l->o->checkpoint) {
        FAC_TRY(fac_trainer_save(l->t, l->o->checkpoint, err));
    }
    return FAC_OK;
}

static fac_status run(loop *l, fac_train_result *r, fac_error *err) {
    const fac_train_opts *o = l->o;
    int ahead = o->ahead ? o->ahead : 2;
    if (ahead < 0) ahead = 0;
    if (l->now.step >= l->now.steps && l->test)
        return fac_trainer_evaluate(l->t, l->test, o->batches.size, &r->test, err);
    FAC_TRY(
        fac_loader_new(l->train, &o->batches, l->now.step, l->now.steps, ahead, &l->loader, err));
    fac_status status = FAC_OK;
    while (l->now.step < l->now.steps && !l->stopped && !status) {
        l->now.epoch = l->now.step / l->in_epoch;
        status = epoch(l, r, err);
    }
    fac_loader_free(l->loader);
    return status;
}

/* What was left out becomes the usual, what cannot be is an error. */
static fac_status settle(const fac_trainer *t, int64_t steps, fac_schedule *s, fac_error *err) {
    const bool cycles = s->kind == FAC_SCHEDULE_STEP || s->kind == FAC_SCHEDULE_RESTARTS;
    if (s->lr == 0) s->lr = t->usual_lr;
    if (!s->steps) s->steps = steps;
    if (!(s->lr > 0 && isfinite(s->lr)))
        return fac_raise(err, FAC_E_ARGUMENT, "a learning rate of %g: it must be above 0", s->lr);
    if (cycles && s->every < 1)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "the schedule %s needs `every`, at least 1 step, not %lld",
                         fac_schedule_name(s->kind), (long long)s->every);
    return FAC_OK;
}

fac_status fac_train(fac_trainer *t, const fac_dataset *train, const fac_dataset *test,
                     const fac_train_opts *opts, fac_train_result *out, fac_error *err) {
    loop l = { .t = t,
               .train = train,
               .test = test,
               .o = opts,
               .schedule = opts->schedule,
               .start = fac_now() };
    fac_train_result r = { 0 };
    l.in_epoch = fac_batches_count(train, &opts->batches);
    if (l.in_epoch < 1 || opts->epochs < 1 || opts->epochs > INT64_MAX / l.in_epoch)
        return fac_raise(err, FAC_E_ARGUMENT, "%lld epochs in batches of %lld",
                         (long long)opts->epochs, (long long)opts->batches.size);
    if (opts->steps < 0 || opts->steps > opts->epochs * l.in_epoch)
        return fac_raise(err, FAC_E_ARGUMENT, "%lld steps in %lld epochs of %lld",
                         (long long)opts->steps, (long long)opts->epochs, (long long)l.in_epoch);
    if (t->sequences != train->sequences)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "data whose tokens have labels goes with `sequences` of the trainer");
    if (t->soft != (opts->batches.augment.mixup > 0))
        return fac_raise(
            err, FAC_E_ARGUMENT,
            "mixup makes labels of probabilities: it goes with soft_labels of the trainer");
    if (plateau_of(&l) && !test)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "the schedule plateau looks at a test set, and there is none");
    FAC_TRY(fac_trainer_continues(t, train, &opts->batches, err));
    l.now = (fac_progress){ .step = fac_trainer_steps(t), .epochs = opts->epochs };
    l.now.steps = opts->steps ? opts->steps : opts->epochs * l.in_epoch;
    FAC_TRY(settle(t, l.now.steps, &l.schedule, err));
    FAC_TRY(run(&l, &r, err));
    r.steps = l.now.step;
    r.epochs = (l.now.step + (l.now.step == l.now.steps ? l.in_epoch - 1 : 0)) / l.in_epoch;
    r.stopped = l.stopped && l.now.step < l.now.steps;
    r.seconds = fac_now() - l.start;
    r.images_per_s = l.now.images_per_s;
    *out = r;
    return FAC_OK;
}
