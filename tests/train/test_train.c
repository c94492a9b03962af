/* Training: toys are learned; the same bits for any number of threads; a resumed training equals an
 * uninterrupted one; gradients of pieces make those of a batch; moving averages are judged and
 * kept. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "facula/facula.h"
#include "plan/plan.h"
#include "run/program_internal.h"
#include "train/train_internal.h"
#include "golden/batch_norm.h"
#include "folder.h"

static fac_graph *mlp(void) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 1);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 2));
    x = fac_relu(fac_nn_linear(x, "fc1", 32));
    x = fac_relu(fac_nn_linear(x, "fc2", 32));
    fac_output(g, "logits", fac_nn_linear(x, "fc3", 2));
    OK(fac_graph_check(g, err));
    return g;
}

typedef struct setup {
    int threads;
    const char *optimizer, *toy;
    int64_t epochs, batch;
    double lr;
    int accumulate;
    double ema;
    bool plateau;
} setup;

/* A trainer of a fresh network on a toy. */
typedef struct training {
    fac_device *device;
    fac_graph *g;
    fac_trainer *t;
    fac_dataset data;
    fac_train_opts opts;
} training;

static training start(const setup *s) {
    training r = { 0 };
    fac_trainer_opts o = {
        .optimizer = s->optimizer,
        .optim = { .momentum = 0.9, .accumulate = s->accumulate, .ema = s->ema, .ema_warmup = true }
    };
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = s->threads }, &r.device, err));
    OK(fac_dataset_toy(s->toy, 50, 3, &r.data, err));
    r.g = mlp();
    OK(fac_trainer_new(r.g, r.device, &o, &r.t, err));
    r.opts = (fac_train_opts){ .epochs = s->epochs,
                               .batches = { .size = s->batch, .shuffle = true, .seed = 4 },
                               .schedule = { .kind = FAC_SCHEDULE_COSINE, .lr = s->lr } };
    if (s->plateau)
        r.opts.schedule = (fac_schedule){ .kind = FAC_SCHEDULE_PLATEAU,
                                          .lr = s->lr,
                                          .gamma = 0.5,
                                          .patience = -1,
                                          .threshold = 0.2 };
    return r;
}

static void finish(training *r) {
    fac_trainer_free(r->t);
    fac_graph_free(r->g);
    fac_dataset_free(&r->data);
    fac_device_free(r->device);
}

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

static void other_checkpoints_are_refused(void **state) {
    (void)state;
    char path[128];
    fac_error e = { 0 };
    snprintf(path, sizeof path, "%s/sgd.safetensors", folder);
    training sgd = start(&(setup){ 1, "sgd", "circle", 1, 16, 0.01, 0, 0, false });
    training adam = start(&(setup){ 1, "adam", "circle", 1, 16, 0.01, 0, 0, false });
    OK(fac_trainer_save(sgd.t, path, err));
    assert_int_equal(fac_trainer_load(adam.t, path, &e), FAC_E_ARGUMENT);
    assert_non_null(strstr(e.text, "exp_avg"));
    assert_int_equal(fac_trainer_load(adam.t, folder, &e), FAC_E_IO);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_not_equal(fac_trainer_load(sgd.t, path, &e), FAC_OK);
    finish(&sgd);
    finish(&adam);
}

/* The weights alone are read back by a graph of the same model. */
static void weights_are_saved(void **state) {
    (void)state;
    char path[128];
    fac_weights *w = NULL;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    fac_graph *g = mlp();
    OK(fac_graph_save_weights(g, path, err));
    OK(fac_weights_load(path, &w, err));
    assert_int_equal(fac_weights_count(w), 6);
    const fac_tensor *read = fac_weights_find(w, "fc2.weight"),
                     *had = fac_value_tensor(fac_graph_find(g, "fc2.weight"));
    assert_memory_equal(fac_tensor_data(read), fac_tensor_data(had), 32 * 32 * sizeof(float));
    fac_weights_free(w);
    fac_graph_free(g);
}

static void a_loss_that_is_not_finite_changes_nothing(void **state) {
    (void)state;
    training r = start(&(setup){ 1, "adam", "xor", 1, 50, 0.01, 0, 0, false });
    fac_tensor *x = NULL, *labels = NULL, *w = fac_value_tensor(fac_graph_find(r.g, "fc1.weight"));
    float before[64], bad[100];
    memcpy(before, fac_tensor_data(w), sizeof before);
    OK(fac_batch(&r.data, &r.opts.batches, 0, 0, &x, &labels, err));
    for (int i = 0; i < 100; i++) bad[i] = i == 7 ? NAN : 1;
    OK(fac_tensor_write(x, bad, sizeof bad, err));
    fac_error e = { 0 };
    assert_int_equal(fac_trainer_step(r.t, x, labels, 0.1, NULL, &e), FAC_E_ARGUMENT);
    assert_non_null(strstr(e.text, "loss of step 0"));
    assert_memory_equal(before, fac_tensor_data(w), sizeof before);
    assert_int_equal(fac_trainer_steps(r.t), 0);
    fac_tensor_free(x);
    fac_tensor_free(labels);
    finish(&r);
}

static void set(fac_graph *g, const char *name, int n, const double *from) {
    float x[72] = { 0 };
    for (int i = 0; i < n && from; i++) x[i] = (float)from[i];
    OK(fac_tensor_write(fac_value_tensor(fac_graph_find(g, name)), x, (size_t)n * sizeof *x, err));
}

/* A batch norm in inference form learns: parameters and running statistics after three steps are
 * torch's. */
static void batch_norms_learn(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int n;
    } params[] = { { "bn.weight", 3 },      { "bn.bias", 3 },    { "bn.running_mean", 3 },
                   { "bn.running_var", 3 }, { "fc.weight", 24 }, { "fc.bias", 2 } };
    fac_device *device = NULL;
    fac_trainer *t = NULL;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 3, 2, 2));
    fac_output(g, "logits", fac_nn_linear(fac_flatten(fac_nn_batch_norm(x, "bn", 0), 1), "fc", 2));
    set(g, "fc.weight", 24, golden_bn_w);
    set(g, "fc.bias", 2, NULL);
    float samples[72];
    for (int i = 0; i < 72; i++) samples[i] = (float)golden_bn_x[i];
    fac_tensor *in = NULL, *labels = NULL;
    OK(fac_tensor_borrow(FAC_F32, fac_shape(6, 3, 2, 2), NULL, samples, NULL, NULL, &in, err));
    OK(fac_tensor_borrow(FAC_I64, fac_shape(6), NULL, golden_bn_labels, NULL, NULL, &labels, err));
    OK(fac_device_open("cpu", NULL, &device, err));
    OK(fac_trainer_new(g, device, &(fac_trainer_opts){ .optimizer = "sgd" }, &t, err));
    for (int i = 0; i < 3; i++) OK(fac_trainer_step(t, in, labels, 0.1, NULL, err));
    const double *want = golden_bn_after;
    for (int k = 0; k < 6; want += params[k++].n) {
        const float *got = fac_tensor_data(fac_value_tensor(fac_graph_find(g, params[k].name)));
        for (int i = 0; i < params[k].n; i++)
            if (!(fabs(got[i] - want[i]) <= 1e-5))
                fail_msg("%s %d: %.9g, torch has %.9g", params[k].name, i, got[i], want[i]);
    }
    fac_tensor_free(in);
    fac_tensor_free(labels);
    fac_trainer_free(t);
    fac_graph_free(g);
    fac_device_free(device);
}

static fac_tensor *outputs_of(const fac_graph *g, fac_device *device, fac_tensor *in) {
    fac_program *p = NULL;
    fac_tensor *y = NULL;
    OK(fac_program_new(g, device, NULL, &p, err));
    OK(fac_program_run(p, &in, &y, err));
    fac_program_free(p);
    return y;
}

/* The inference form of a training form is the model again: its batch norms use the running
 * statistics. */
static void training_forms_lead_back(void **state) {
    (void)state;
    fac_device *device = NULL;
    fac_graph *g = fac_graph_new();
    const double mean[3] = { 0.5, -1, 2 }, var[3] = { 2, 0.25, 1 }, weight[3] = { 1, 2, -1 };
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 3, 2, 2));
    fac_output(g, "y", fac_nn_dropout(fac_relu(fac_nn_batch_norm(x, "bn", 0)), 0.5));
    set(g, "bn.running_mean", 3, mean);
    set(g, "bn.running_var", 3, var);
    set(g, "bn.weight", 3, weight);
    float samples[72];
    for (int i = 0; i < 72; i++) samples[i] = (float)golden_bn_x[i];
    fac_tensor *in = NULL;
    OK(fac_tensor_borrow(FAC_F32, fac_shape(6, 3, 2, 2), NULL, samples, NULL, NULL, &in, err));
    OK(fac_device_open("cpu", NULL, &device, err));
    fac_graph *form = fac_graph_training(g), *back = fac_graph_inference(form),
              *plain = fac_graph_inference(g);
    fac_tensor *want = outputs_of(plain, device, in), *got = outputs_of(back, device, in);
    const float *a = fac_tensor_data(want), *b = fac_tensor_data(got);
    for (int c = 0; c < 3; c++)
        for (int n = 0; n < 6; n++)
            for (int i = 0; i < 4; i++) {
                const int at = n * 12 + c * 4 + i;
                double y = (samples[at] - mean[c]) / sqrt(var[c] + 1e-5) * weight[c];
                assert_true(fabs(a[at] - (y > 0 ? y : 0)) < 1e-5 && a[at] == b[at]);
            }
    fac_tensor *batch = outputs_of(form, device, in);
    assert_true(
        memcmp(fac_tensor_data(batch), a, sizeof samples)); /* that one takes those of the batch */
    fac_tensor *moved = fac_value_tensor(fac_graph_find(g, "bn.running_mean"));
    assert_true(((const float *)fac_tensor_data(moved))[0] != 0.5f);
    fac_tensor_free(want);
    fac_tensor_free(got);
    fac_tensor_free(batch);
    fac_tensor_free(in);
    fac_graph_free(form);
    fac_graph_free(back);
    fac_graph_free(plain);
    fac_graph_free(g);
    fac_device_free(device);
}

static void wrong_models_are_refused(void **state) {
    (void)state;
    fac_error e = { 0 };
    fac_trainer *t = NULL;
    fac_device *device = NULL;
    fac_graph *g = mlp();
    OK(fac_device_open("cpu", NULL, &device, err));
    assert_int_equal(
        fac_trainer_new(g, device, &(fac_trainer_opts){ .optimizer = "adamant" }, &t, &e),
        FAC_E_ARGUMENT);
    fac_input(g, "second", FAC_F32, fac_shape(1));
    assert_int_equal(fac_trainer_new(g, device, NULL, &t, &e), FAC_E_ARGUMENT);
    assert_non_null(strstr(e.text, "one input"));
    assert_null(t);
    fac_graph_free(g);
    fac_device_free(device);
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
        cmocka_unit_test(other_checkpoints_are_refused),
        cmocka_unit_test(weights_are_saved),
        cmocka_unit_test(a_loss_that_is_not_finite_changes_nothing),
        cmocka_unit_test(batch_norms_learn),
        cmocka_unit_test(training_forms_lead_back),
        cmocka_unit_test(wrong_models_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
