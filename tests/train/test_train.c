/* Training: toys are learned; the same bits for any number of threads; a resumed training equals an
 * uninterrupted one; gradients of pieces make those of a batch; moving averages are judged and
 * kept. */
#include "train_check.h"

static void toys_are_learned(void **state) {
    (void)state;
    static const char *const toys[] = { "simple", "diag", "split", "xor", "circle" };
    for (int k = 0; k < 5; k++) {
        training r = start(&(setup){ 1, "adam", toys[k], 300, 50, 0.02, 0, 0, false });
        fac_train_result result;
        OK(fac_train(r.t, &r.data, &r.data, &r.opts, &result, err));
        if (!(result.test.accuracy >= 0.96))
            fail_msg("%s: accuracy %g", toys[k], result.test.accuracy);
        assert_int_equal(result.steps, 300);
        assert_int_equal(result.epochs, 300);
        finish(&r);
    }
}

static bool same_weights(const fac_graph *a, const fac_graph *b) {
    bool same = fac_graph_params(a) == fac_graph_params(b);
    for (int i = 0; i < fac_graph_params(a) && same; i++) {
        fac_tensor *x = fac_value_tensor(fac_graph_param(a, i)),
                   *y = fac_value_tensor(fac_graph_param(b, i));
        fac_type type = fac_tensor_type(x);
        same = !memcmp(fac_tensor_data(x), fac_tensor_data(y), fac_type_bytes(&type));
    }
    return same;
}

static void threads_change_no_bit(void **state) {
    (void)state;
    training a = start(&(setup){ 1, "adam", "spiral", 20, 16, 0.01, 0, 0, false });
    training b = start(&(setup){ 2, "adam", "spiral", 20, 16, 0.01, 0, 0, false });
    fac_train_result ra, rb;
    OK(fac_train(a.t, &a.data, &a.data, &a.opts, &ra, err));
    OK(fac_train(b.t, &b.data, &b.data, &b.opts, &rb, err));
    assert_true(ra.test.loss == rb.test.loss);
    assert_true(same_weights(a.g, b.g));
    finish(&a);
    finish(&b);
}

static bool stop_at_13(void *self, const fac_progress *p) {
    (void)self;
    return p->step < 13;
}

/* Stopped in the middle of an epoch, saved, loaded into a trainer of fresh weights, finished. */
static void resumed_is_as_if_never_stopped(void **state) {
    (void)state;
    static const setup setups[] = {
        /* 4 steps an epoch; step 13 is the first of an epoch and of an accumulation */
        { 1, "sgd", "circle", 8, 16, 0.003, 0, 0, false },
        { 1, "adam", "circle", 8, 16, 0.003, 0, 0.9, false },
        { 1, "rmsprop", "circle", 8, 16, 0.003, 3, 0, true },
        { 1, "lion", "circle", 8, 16, 0.003, 2, 0.5, true }
    };
    char path[128];
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    for (int k = 0; k < 4; k++) {
        const setup s = setups[k];
        training whole = start(&s), first = start(&s), second = start(&s);
        fac_train_result r;
        OK(fac_train(whole.t, &whole.data, &whole.data, &whole.opts, &r, err));
        const fac_score test = r.test;
        assert_false(r.stopped);
        first.opts.report = stop_at_13;
        first.opts.checkpoint = path;
        OK(fac_train(first.t, &first.data, &first.data, &first.opts, &r, err));
        assert_true(r.stopped && r.steps == 13);
        assert_false(same_weights(whole.g, first.g));
        float zeros[32 * 32] = { 0 }; /* nothing may survive from the start */
        for (int i = 0; i < fac_graph_params(second.g); i++) {
            fac_tensor *t = fac_value_tensor(fac_graph_param(second.g, i));
            fac_type type = fac_tensor_type(t);
            OK(fac_tensor_write(t, zeros, fac_type_bytes(&type), err));
        }
        OK(fac_trainer_load(second.t, path, err));
        assert_int_equal(fac_trainer_steps(second.t), 13);
        OK(fac_train(second.t, &second.data, &second.data, &second.opts, &r, err));
        assert_int_equal(r.steps, 32);
        assert_true(r.test.loss == test.loss);
        assert_true(same_weights(whole.g, second.g));
        finish(&whole);
        finish(&first);
        finish(&second);
    }
}

/* The rate of the last step, as a report sees it. */
static bool note_rate(void *self, const fac_progress *p) {
    *(double *)self = p->lr;
    return true;
}

static void plateaus_lower_the_rate(void **state) {
    (void)state;
    training r = start(&(setup){ 1, "sgd", "circle", 12, 50, 1e-4, 0, 0, true });
    fac_train_result result;
    double rate = 0;
    r.opts.report = note_rate;
    r.opts.self = &rate;
    OK(fac_train(r.t, &r.data, &r.data, &r.opts, &result, err));
    assert_true(rate < 1e-4 &&
                rate > 0); /* a fifth less loss in each epoch is not to be had with such a rate */
    fac_error e = { 0 };
    assert_int_equal(fac_train(r.t, &r.data, NULL, &r.opts, &result, &e), FAC_E_ARGUMENT);
    assert_non_null(strstr(e.text, "test set"));
    finish(&r);
}

/* The step number counts batches: with others it would mean another place in the data. */
static void other_batches_are_refused(void **state) {
    (void)state;
    char path[128];
    fac_error e = { 0 };
    fac_train_result result;
    snprintf(path, sizeof path, "%s/batches.safetensors", folder);
    const setup s = { 1, "sgd", "circle", 2, 16, 0.01, 0, 0, false };
    training first = start(&s), second = start(&s);
    OK(fac_train(first.t, &first.data, NULL, &first.opts, &result, err));
    OK(fac_trainer_save(first.t, path, err));
    OK(fac_trainer_load(second.t, path, err));
    second.opts.batches.size = 10;
    assert_int_equal(fac_train(second.t, &second.data, NULL, &second.opts, &result, &e),
                     FAC_E_ARGUMENT);
    assert_non_null(strstr(e.text, "begun with 16 samples in a batch and cannot go on with 10"));
    second.opts.batches = first.opts.batches;
    second.opts.batches.seed++;
    assert_int_equal(fac_train(second.t, &second.data, NULL, &second.opts, &result, &e),
                     FAC_E_ARGUMENT);
    second.opts.batches = first.opts.batches;
    second.opts.epochs = 3; /* longer than it was meant to be */
    OK(fac_train(second.t, &second.data, NULL, &second.opts, &result, err));
    assert_int_equal(result.steps, 12);
    finish(&first);
    finish(&second);
}

static bool near_weights(const fac_graph *a, const fac_graph *b, double tolerance) {
    for (int i = 0; i < fac_graph_params(a); i++) {
        fac_tensor *x = fac_value_tensor(fac_graph_param(a, i)),
                   *y = fac_value_tensor(fac_graph_param(b, i));
        fac_type type = fac_tensor_type(x);
        const float *p = fac_tensor_data(x), *q = fac_tensor_data(y);
        for (size_t k = 0; k < fac_type_bytes(&type) / sizeof *p; k++)
            if (!(fabs((double)p[k] - q[k]) <= tolerance)) return false;
    }
    return true;
}

/* Batches of 16, 16, 16 and 2 whose gradients accumulate are batches of 48 and 2. */
static void pieces_train_like_batches(void **state) {
    (void)state;
    training whole = start(&(setup){ 1, "sgd", "circle", 6, 48, 0.05, 0, 0, false });
    training parts = start(&(setup){ 1, "sgd", "circle", 6, 16, 0.05, 3, 0, false });
    whole.opts.schedule.kind = parts.opts.schedule.kind =
        FAC_SCHEDULE_CONSTANT; /* a schedule counts batches */
    fac_train_result a, b;
    OK(fac_train(whole.t, &whole.data, &whole.data, &whole.opts, &a, err));
    OK(fac_train(parts.t, &parts.data, &parts.data, &parts.opts, &b, err));
    assert_int_equal(a.steps, 12);
    assert_int_equal(b.steps, 24);
    assert_true(near_weights(whole.g, parts.g, 1e-5));
    assert_true(fabs(a.test.loss - b.test.loss) < 1e-5);
    assert_false(same_weights(
        whole.g, parts.g)); /* other sums round otherwise: else one of them did not happen */
    finish(&whole);
    finish(&parts);
}

static void averages_are_judged(void **state) {
    (void)state;
    training plain = start(&(setup){ 1, "adam", "circle", 20, 16, 0.01, 0, 0, false });
    training mean = start(&(setup){ 1, "adam", "circle", 20, 16, 0.01, 0, 0.9, false });
    fac_train_result a, b;
    OK(fac_train(plain.t, &plain.data, &plain.data, &plain.opts, &a, err));
    OK(fac_train(mean.t, &mean.data, &mean.data, &mean.opts, &b, err));
    assert_true(same_weights(plain.g, mean.g)); /* they do not change the training */
    assert_true(a.test.loss != b.test.loss);
    OK(fac_trainer_average(mean.t, err));
    assert_false(same_weights(plain.g, mean.g));
    fac_trainer *fresh = NULL;
    fac_score score;
    OK(fac_trainer_new(mean.g, mean.device, NULL, &fresh, err));
    OK(fac_trainer_evaluate(fresh, &mean.data, 16, &score, err));
    assert_true(score.loss == b.test.loss);
    fac_trainer_free(fresh);
    finish(&plain);
    finish(&mean);
}

/* 50 samples in batches of 16: two shapes, each planned once, however many epochs there are. */
static void the_last_batch_is_planned_once(void **state) {
    (void)state;
    training r = start(&(setup){ 1, "sgd", "circle", 5, 16, 0.01, 0, 0, false });
    fac_train_result result;
    OK(fac_train(r.t, &r.data, &r.data, &r.opts, &result, err));
    assert_int_equal(fac_trainer_program(r.t)->nplans, 2);
    assert_int_equal(r.t->tester->nplans, 2);
    finish(&r);
}

/* Everything at once, the guard against a loss that is no number with it: the updates are still few
 * steps. */
static void updates_are_few_steps(void **state) {
    (void)state;
    static fac_step_stat steps[1024];
    static const fac_optim_group vectors = { .vectors = true, .weight_decay = -1, .lr = 0.5 };
    const fac_trainer_opts o = { .optimizer = "adamw",
                                 .optim = { .accumulate = 2,
                                            .ema = 0.9,
                                            .ema_warmup = true,
                                            .clip_value = 1,
                                            .clip_norm = 1,
                                            .groups = &vectors,
                                            .ngroups = 1 } };
    training r = start(&(setup){ 1, "adam", "circle", 1, 50, 0.01, 0, 0, false });
    fac_trainer *t = NULL;
    fac_train_result result;
    OK(fac_trainer_new(r.g, r.device, &o, &t, err));
    OK(fac_train(t, &r.data, NULL, &r.opts, &result, err));
    size_t n = fac_program_steps(fac_trainer_program(t), steps, 1024), updates = 0, groups = 0;
    for (size_t i = 0; i < n && i < 1024; i++) {
        updates += !strcmp(steps[i].nodes, "update");
        groups += !strcmp(steps[i].solver, "group");
    }
    assert_in_range(updates, 2, 5);
    assert_in_range(groups, 1, updates);
    fac_trainer_free(t);
    finish(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(toys_are_learned),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(resumed_is_as_if_never_stopped),
        cmocka_unit_test(plateaus_lower_the_rate),
        cmocka_unit_test(other_batches_are_refused),
        cmocka_unit_test(pieces_train_like_batches),
        cmocka_unit_test(averages_are_judged),
        cmocka_unit_test(the_last_batch_is_planned_once),
        cmocka_unit_test(updates_are_few_steps),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
