/* The usual loop: the same bits for any number of batches made ahead, looks at the test set every
 * few epochs, mixed labels, and a resumed training with all of it. */
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "facula/facula.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)

enum { N = 40, SIDE = 12, PLANE = SIDE * SIDE };
static uint8_t pixels[N * PLANE];
static int64_t labels_of[N];

/* Bright bars, upright or not. */
static fac_dataset bars(void) {
    for (int i = 0; i < N; i++) {
        labels_of[i] = i % 2;
        for (int k = 0; k < PLANE; k++) {
            const int along = i % 2 ? k / SIDE : k % SIDE;
            pixels[i * PLANE + k] =
                (uint8_t)((along == (i / 2) % SIDE ? 200 : 30) + (i * 31 + k * 17) % 23);
        }
    }
    return (fac_dataset){ .count = N,
                          .item = fac_shape(1, SIDE, SIDE),
                          .classes = 2,
                          .bytes = pixels,
                          .labels = labels_of };
}

static fac_value *stage(fac_value *x, const char *name, int channels, int kernel, int stride) {
    char bn[32];
    snprintf(bn, sizeof bn, "%s.bn", name);
    x = fac_nn_conv2d(
        x, name, channels, kernel,
        &(fac_nn_conv2d_opts){ .stride = stride, .pad = kernel / 2, .no_bias = true });
    return fac_relu(fac_nn_batch_norm(x, bn, 0));
}

/* Every kind of layer that the command's networks have. */
static fac_graph *network(void) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 1);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 1, SIDE, SIDE));
    x = stage(x, "conv1", 16, 5, 2);
    x = fac_add(x, stage(x, "res1", 16, 3, 1));
    x = stage(x, "conv2", 32, 3, 2);
    x = fac_add(x, stage(x, "res2", 32, 3, 1));
    x = fac_max_pool2d(stage(x, "conv3", 32, 3, 1), 2, 1, NULL);
    fac_output(g, "logits", fac_nn_linear(fac_flatten(x, 1), "fc", 2));
    OK(fac_graph_check(g, err));
    return g;
}

typedef struct training {
    fac_device *device;
    fac_graph *g;
    fac_trainer *t;
    fac_dataset data;
    fac_train_opts opts;
    fac_train_result result;
} training;

static training start(int threads, double mixup) {
    training r = { .data = bars(), .g = network() };
    const fac_trainer_opts o = { .optimizer = "adam",
                                 .soft_labels = mixup > 0,
                                 .label_smoothing = 0.1 };
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = threads }, &r.device, err));
    OK(fac_trainer_new(r.g, r.device, &o, &r.t, err));
    r.opts =
        (fac_train_opts){ .epochs = 6,
                          .schedule = { .kind = FAC_SCHEDULE_ONE_CYCLE, .lr = 0.01 },
                          .batches = { .size = 16,
                                       .shuffle = true,
                                       .seed = 4,
                                       .augment = { .crop = 1, .flip = true, .mixup = mixup } } };
    return r;
}

static void finish(training *r) {
    fac_trainer_free(r->t);
    fac_graph_free(r->g);
    fac_device_free(r->device);
}

static void run(training *r) { OK(fac_train(r->t, &r->data, &r->data, &r->opts, &r->result, err)); }

static void same_weights(const training *a, const training *b) {
    assert_int_equal(fac_graph_params(a->g), fac_graph_params(b->g));
    for (int i = 0; i < fac_graph_params(a->g); i++) {
        const fac_value *p = fac_graph_param(a->g, i);
        const fac_tensor *x = fac_value_tensor(p), *y = fac_value_tensor(fac_graph_param(b->g, i));
        const fac_type type = fac_tensor_type(x);
        if (memcmp(fac_tensor_data(x), fac_tensor_data(y), fac_type_bytes(&type)))
            fail_msg("%s differs", fac_value_name(p));
    }
    assert_true(a->result.test.loss == b->result.test.loss);
}

static void prefetching_changes_no_bit(void **state) {
    (void)state;
    static const int ahead[] = { -1, 1, 7 };
    for (int k = 0; k < 6; k++) {
        training a = start(1 + k % 2, k & 1), b = start(1 + k % 2, k & 1);
        b.opts.ahead = ahead[k / 2];
        run(&a);
        run(&b);
        same_weights(&a, &b);
        finish(&a);
        finish(&b);
    }
}

static void bars_are_told_apart(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        training a = start(2, k ? 0.2 : 0);
        a.opts.epochs = 25;
        run(&a);
        if (!(a.result.test.accuracy >= 0.95))
            fail_msg("mixup %d: accuracy %g", k, a.result.test.accuracy);
        finish(&a);
    }
}

typedef struct seen {
    int64_t epochs[16], stop;
    int n;
} seen;

static bool look(void *self, const fac_progress *p) {
    seen *s = self;
    if (p->test) s->epochs[s->n++] = p->epoch + 1;
    return !s->stop || p->step < s->stop;
}

static void the_test_set_is_looked_at_every_few_epochs(void **state) {
    (void)state;
    static const struct {
        int64_t every;
        int n;
        int64_t epochs[6];
    } cases[] = { { 0, 6, { 1, 2, 3, 4, 5, 6 } },
                  { 1, 6, { 1, 2, 3, 4, 5, 6 } },
                  { 4, 2, { 4, 6 } },
                  { 100, 1, { 6 } } };
    for (int k = 0; k < 4; k++) {
        seen s = { .n = 0 };
        training a = start(1, 0);
        a.opts.evaluate_every = cases[k].every;
        a.opts.report = look;
        a.opts.self = &s;
        run(&a);
        assert_int_equal(s.n, cases[k].n);
        assert_memory_equal(s.epochs, cases[k].epochs, (size_t)s.n * sizeof *s.epochs);
        assert_int_equal(a.result.test.samples, N);
        finish(&a);
    }
}

static void a_mixed_training_is_resumed(void **state) {
    (void)state;
    char path[] = "/tmp/facula-loop-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    training whole = start(2, 0.4), first = start(2, 0.4), second = start(2, 0.4);
    run(&whole);
    seen s = { .stop = 8 };
    first.opts.report = look;
    first.opts.self = &s;
    first.opts.checkpoint = path;
    run(&first);
    assert_true(first.result.stopped && first.result.steps == 8);
    OK(fac_trainer_load(second.t, path, err));
    run(&second);
    same_weights(&whole, &second);
    finish(&whole);
    finish(&first);
    finish(&second);
    unlink(path);
}

static void mixed_labels_need_a_trainer_for_them(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        fac_error e = { 0 };
        training a = start(1, k ? 0.2 : 0);
        a.opts.batches.augment.mixup = k ? 0 : 0.2;
        assert_int_equal(fac_train(a.t, &a.data, NULL, &a.opts, &a.result, &e), FAC_E_ARGUMENT);
        assert_non_null(strstr(e.text, "soft_labels"));
        finish(&a);
    }
}

/* A sample that cannot be used ends the training with its number; what was trained before stays. */
static void a_bad_label_is_named(void **state) {
    (void)state;
    fac_error e = { 0 };
    training a = start(1, 0);
    labels_of[33] = 2;
    a.opts.batches.shuffle = false;
    assert_int_equal(fac_train(a.t, &a.data, NULL, &a.opts, &a.result, &e), FAC_E_FORMAT);
    assert_non_null(strstr(e.text, "sample 33 has label 2"));
    assert_int_equal(fac_trainer_steps(a.t), 2);
    finish(&a);
}

/* A schedule that says nothing has the optimizer's usual rate; numbers that cannot be are refused.
 */
static void a_schedule_without_a_rate(void **state) {
    (void)state;
    training usual = start(1, 0), given = start(1, 0);
    usual.opts.schedule = (fac_schedule){ .kind = FAC_SCHEDULE_CONSTANT };
    given.opts.schedule =
        (fac_schedule){ .kind = FAC_SCHEDULE_CONSTANT, .lr = fac_optim_find("adam")->lr };
    run(&usual);
    run(&given);
    same_weights(&usual, &given);
    const fac_schedule wrong[] = { { .lr = -0.1 },
                                   { .lr = NAN },
                                   { .lr = INFINITY },
                                   { .kind = FAC_SCHEDULE_STEP, .lr = 0.1 },
                                   { .kind = FAC_SCHEDULE_RESTARTS, .lr = 0.1 } };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        fac_error e = { 0 };
        usual.opts.schedule = wrong[k];
        assert_int_equal(fac_train(usual.t, &usual.data, NULL, &usual.opts, &usual.result, &e),
                         FAC_E_ARGUMENT);
        assert_non_null(strstr(e.text, k < 3 ? "learning rate" : "`every`"));
    }
    finish(&usual);
    finish(&given);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefetching_changes_no_bit),
        cmocka_unit_test(bars_are_told_apart),
        cmocka_unit_test(the_test_set_is_looked_at_every_few_epochs),
        cmocka_unit_test(a_mixed_training_is_resumed),
        cmocka_unit_test(mixed_labels_need_a_trainer_for_them),
        cmocka_unit_test(a_bad_label_is_named),
        cmocka_unit_test(a_schedule_without_a_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
