/* Looking at a trainer: predictions and confusions of a classifier whose answers are known,
 * gradients in closed form. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/rng.h"
#include "facula/facula.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)

enum { CLASSES = 3, SAMPLES = 7 };

static void write_to(fac_graph *g, const char *name, const float *x, size_t n) {
    OK(fac_tensor_write(fac_value_tensor(fac_graph_find(g, name)), x, n * sizeof *x, err));
}

/* logits = W x + b; what is dropped in training is all there when it predicts. */
static fac_graph *linear(const float *w, const float *b, double rate) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), CLASSES));
    if (rate > 0) x = fac_nn_dropout(x, rate);
    fac_output(g, "logits", fac_nn_linear(x, "fc", CLASSES));
    OK(fac_graph_check(g, err));
    write_to(g, "fc.weight", w, CLASSES * CLASSES);
    write_to(g, "fc.bias", b, CLASSES);
    return g;
}

/* Each sample is a unit vector: with W = 1 its place is the prediction. */
static const float samples[SAMPLES][CLASSES] = { { 1 },    { 1 },       { 0, 1 }, { 0, 0, 1 },
                                                 { 0, 1 }, { 0, 0, 1 }, { 1 } };
static const int64_t labels[SAMPLES] = { 0, 1, 1, 2, 0, 2, 0 };
static const float one[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 }, nothing[3];
static const fac_dataset data = { .count = SAMPLES,
                                  .item = { 1, { CLASSES } },
                                  .classes = CLASSES,
                                  .values = &samples[0][0],
                                  .labels = labels };

static void confusions_are_counted(void **state) {
    (void)state;
    static const int64_t want[9] = { 2, 1, 0, 1, 1, 0, 0, 0, 2 }; /* [truth][prediction] */
    fac_device *device = NULL;
    fac_trainer *t = NULL;
    fac_graph *g = linear(one, nothing, 0.5);
    OK(fac_device_open("cpu", NULL, &device, err));
    OK(fac_trainer_new(g, device, NULL, &t, err));
    for (int64_t batch = 1; batch <= SAMPLES + 1; batch++) {
        int64_t counts[9] = { 0 };
        OK(fac_trainer_confusion(t, &data, batch, counts, err));
        assert_memory_equal(counts, want, sizeof want);
    }
    int64_t counts[9] = { 77 };
    fac_error e = { 0 };
    assert_int_equal(fac_trainer_confusion(t, &data, 0, counts, &e), FAC_E_ARGUMENT);
    assert_int_equal(counts[0], 77);
    static const int64_t other[SAMPLES] = { 0, 1, 1, 0, 0, 1, 0 };
    fac_dataset two = data; /* a class less than the model has outputs: the third counts nowhere */
    two.classes = 2;
    two.labels = other;
    int64_t fewer[4] = { 0 };
    OK(fac_trainer_confusion(t, &two, 4, fewer, err));
    assert_true(fewer[0] == 2 && fewer[1] == 1 && fewer[2] == 1 && fewer[3] == 1);
    fac_trainer_free(t);
    fac_graph_free(g);
    fac_device_free(device);
}

/* Predictions follow the training, and are those that the evaluation counts. */
static void predictions_are_those_of_the_evaluation(void **state) {
    (void)state;
    fac_device *device = NULL;
    fac_trainer *t = NULL;
    fac_tensor *x = NULL, *y = NULL, *logits = NULL;
    fac_graph *g = linear(one, nothing, 0);
    const fac_batches all = { .size = SAMPLES };
    OK(fac_device_open("cpu", NULL, &device, err));
    OK(fac_trainer_new(g, device, &(fac_trainer_opts){ .optimizer = "sgd" }, &t, err));
    OK(fac_batch(&data, &all, 0, 0, &x, &y, err));
    for (int step = 0; step < 3; step++) {
        int64_t best[SAMPLES], right = 0;
        fac_score score;
        OK(fac_trainer_predict(t, x, &logits, err));
        OK(fac_tensor_best(logits, best, err));
        OK(fac_trainer_evaluate(t, &data, SAMPLES, &score, err));
        for (int i = 0; i < SAMPLES; i++) right += best[i] == labels[i];
        assert_true(fabs(score.accuracy - (double)right / SAMPLES) < 1e-6);
        const float *w = fac_tensor_data(fac_value_tensor(fac_graph_find(g, "fc.weight")));
        const float *b = fac_tensor_data(fac_value_tensor(fac_graph_find(g, "fc.bias")));
        assert_true(fabsf(*(const float *)fac_tensor_data(logits) - (w[0] + b[0])) < 1e-6f);
        fac_tensor_free(logits);
        OK(fac_trainer_step(t, x, y, 5, NULL, err));
    }
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_trainer_free(t);
    fac_graph_free(g);
    fac_device_free(device);
}

static void the_first_of_equal_ones_is_best(void **state) {
    (void)state;
    const float x[8] = { 1, 3, 3, 2, -1, -1, -INFINITY, -1 };
    fac_tensor *t = NULL;
    int64_t best[2] = { 9, 9 };
    OK(fac_tensor_borrow(FAC_F32, fac_shape(2, 4), NULL, x, NULL, NULL, &t, err));
    OK(fac_tensor_best(t, best, err));
    assert_true(best[0] == 1 && best[1] == 0);
    fac_tensor_free(t);
    OK(fac_tensor_borrow(FAC_F32, fac_shape(8), NULL, x, NULL, NULL, &t, err));
    fac_error e = { 0 };
    assert_int_equal(fac_tensor_best(t, best, &e), FAC_E_SHAPE);
    fac_tensor_free(t);
}

/* d loss / d W = (softmax(W x + b) - one_hot) x^T / N; the sum over x^T is d loss / d b. */
static void gradients_are_those_of_the_formula(void **state) {
    (void)state;
    const uint64_t seed = 5;
    printf("seed %llu\n", (unsigned long long)seed);
    float w[9], b[3];
    for (int i = 0; i < 9; i++) w[i] = (float)fac_random_normal(seed, 1, (uint64_t)i);
    for (int i = 0; i < 3; i++) b[i] = (float)fac_random_normal(seed, 2, (uint64_t)i);
    double dw[9] = { 0 }, db[3] = { 0 }, loss = 0;
    for (int i = 0; i < SAMPLES; i++) {
        double p[3], sum = 0;
        for (int c = 0; c < 3; c++) {
            double z = b[c];
            for (int k = 0; k < 3; k++) z += (double)w[3 * c + k] * samples[i][k];
            sum += p[c] = exp(z);
        }
        loss -= log(p[labels[i]] / sum) / SAMPLES;
        for (int c = 0; c < 3; c++) {
            double d = (p[c] / sum - (c == labels[i])) / SAMPLES;
            db[c] += d;
            for (int k = 0; k < 3; k++) dw[3 * c + k] += d * samples[i][k];
        }
    }
    fac_device *device = NULL;
    fac_trainer *t = NULL;
    fac_tensor *x = NULL, *y = NULL;
    fac_graph *g = linear(w, b, 0);
    OK(fac_device_open("cpu", NULL, &device, err));
    OK(fac_trainer_new(g, device, NULL, &t, err));
    OK(fac_batch(&data, &(fac_batches){ .size = SAMPLES }, 0, 0, &x, &y, err));
    for (int again = 0; again < 2; again++) {
        fac_gradients all;
        double norm = 0;
        OK(fac_trainer_gradients(t, x, y, &all, err));
        assert_int_equal(all.n, 2);
        for (int k = 0; k < all.n; k++) {
            bool weight = !strcmp(all.of[k].name, "fc.weight");
            if (!weight) assert_string_equal(all.of[k].name, "fc.bias");
            const float *got = fac_tensor_data(all.of[k].gradient),
                        *value = fac_tensor_data(all.of[k].parameter);
            double square = 0;
            for (int i = 0; i < (weight ? 9 : 3); i++) {
                double want = weight ? dw[i] : db[i];
                assert_true(fabs(got[i] - want) < 1e-6);
                assert_true(value[i] == (weight ? w : b)[i]); /* nothing was updated */
                square += want * want;
            }
            assert_true(fabs(all.of[k].norm - sqrt(square)) < 1e-6);
            norm += square;
        }
        assert_true(fabs(all.norm - sqrt(norm)) < 1e-6);
        fac_gradients_free(&all);
        assert_int_equal(all.n, 0);
    }
    assert_int_equal(fac_trainer_steps(t), 0);
    fac_score score;
    OK(fac_trainer_evaluate(t, &data, SAMPLES, &score, err));
    assert_true(fabs(score.loss - loss) < 1e-5);
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_trainer_free(t);
    fac_graph_free(g);
    fac_device_free(device);
}

/* Running statistics of a batch norm are left alone. */
static void states_stay_as_they_are(void **state) {
    (void)state;
    fac_device *device = NULL;
    fac_trainer *t = NULL;
    fac_tensor *x = NULL, *y = NULL;
    fac_graph *g = fac_graph_new();
    fac_value *v = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), CLASSES));
    fac_output(g, "logits", fac_nn_linear(fac_nn_batch_norm(v, "bn", 0), "fc", CLASSES));
    OK(fac_graph_check(g, err));
    OK(fac_device_open("cpu", NULL, &device, err));
    OK(fac_trainer_new(g, device, NULL, &t, err));
    OK(fac_batch(&data, &(fac_batches){ .size = SAMPLES }, 0, 0, &x, &y, err));
    fac_gradients all;
    OK(fac_trainer_gradients(t, x, y, &all, err));
    assert_int_equal(all.n, 4); /* weight and bias of both, no statistics */
    fac_gradients_free(&all);
    const float *mean = fac_tensor_data(fac_value_tensor(fac_graph_find(g, "bn.running_mean")));
    assert_true(mean[0] == 0 && mean[1] == 0 && mean[2] == 0);
    OK(fac_trainer_step(t, x, y, 0.1, NULL, err));
    assert_true(mean[0] != 0); /* a step does learn them */
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_trainer_free(t);
    fac_graph_free(g);
    fac_device_free(device);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(confusions_are_counted),
                                        cmocka_unit_test(predictions_are_those_of_the_evaluation),
                                        cmocka_unit_test(the_first_of_equal_ones_is_best),
                                        cmocka_unit_test(gradients_are_those_of_the_formula),
                                        cmocka_unit_test(states_stay_as_they_are) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
