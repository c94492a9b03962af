/* detect_anomaly: the first node that makes NaN or infinity is named, with what it belongs to;
 * nothing changes. */
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/rng.h"
#include "facula/facula.h"
#include "program_check.h"

static fac_tensor *tensor(fac_dims d, float lo, float hi) {
    fac_tensor *t = NULL;
    float x[1024];
    size_t n = (size_t)fac_dims_count(&d);
    assert_true(n <= 1024);
    fac_random_fill(1, 2, lo, hi, n, x);
    OK(fac_tensor_new(NULL, FAC_F32, d, &t, err));
    OK(fac_tensor_write(t, x, n * sizeof *x, err));
    return t;
}

static void says(const fac_error *e, const char *what) {
    if (!strstr(e->text, what)) fail_msg("\"%s\" does not say \"%s\"", e->text, what);
}

/* ---- programs ---- */

/* y = mean(log(abs(x)) w): log(0) is -inf; its gradient 1/0 too. */
static void logarithm_of_zero(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2, 8));
    fac_tensor *t = tensor(fac_shape(8), 0.5f, 1), *in = tensor(fac_shape(2, 8), 1, 2), *y = NULL;
    fac_graph_push(g, "block.one");
    fac_value *w = fac_param(g, "w", t),
              *loss = fac_mean(fac_mul(fac_log(fac_abs(x)), w), (fac_dims){ 0 }, false);
    fac_graph_pop(g);
    fac_output(g, "loss", loss);
    fac_program *p = NULL;
    OK(fac_program_new(g, device, &(fac_program_opts){ .detect_anomaly = true }, &p, err));
    OK(fac_program_run(p, &in, &y, err));
    float values[16];
    OK(fac_tensor_read(in, values, sizeof values, err));
    values[3] = values[9] = 0;
    OK(fac_tensor_write(in, values, sizeof values, err));
    fac_error e = { 0 };
    assert_int_equal(fac_program_run(p, &in, &y, &e), FAC_E_ARGUMENT);
    says(&e, "block.one.log");
    says(&e, "log (forward) made 2 infinite of 16 values, f32[2,8]; its inputs are finite");
    values[4] = NAN;
    OK(fac_tensor_write(in, values, sizeof values, err));
    assert_int_not_equal(fac_program_run(p, &in, &y, &e), FAC_OK);
    says(&e, "abs (forward) made 1 NaN of 16 values");
    says(&e, "its input x has 1 NaN of 16 values");
    fac_tensor_free(t);
    fac_tensor_free(in);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_graph_free(g);
}

/* sqrt is fine at 0 and its gradient is not: the backward part is to blame, of the scope that has
 * the root. */
static void a_gradient_that_is_infinite(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_tensor *t = tensor(fac_shape(4), 0, 0), *y = NULL, *old = tensor(fac_shape(4), 0, 0);
    fac_value *w = fac_param(g, "w", t), *lr = fac_number(g, FAC_F64, 0.1);
    fac_graph_push(g, "head");
    fac_value *root = fac_sqrt(w);
    fac_graph_pop(g);
    fac_value *loss = fac_sum(root, (fac_dims){ 0 }, false);
    fac_output(g, "loss", loss);
    fac_sgd(loss, lr, NULL);
    fac_program *p = NULL;
    OK(fac_program_new(g, device, &(fac_program_opts){ .detect_anomaly = true }, &p, err));
    fac_error e = { 0 };
    assert_int_equal(fac_program_run(p, NULL, &y, &e), FAC_E_ARGUMENT);
    says(&e, "backward of head");
    says(&e, "4 infinite of 4 values");
    assert_memory_equal(fac_tensor_data(t), fac_tensor_data(old), 16);
    fac_tensor_free(t);
    fac_tensor_free(old);
    fac_program_free(p);
    fac_graph_free(g);
}

/* The -inf of a mask is meant; what softmax makes of a row of nothing else is NaN, and is not. */
static void masks_are_meant(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(3, 4)),
              *none = fac_number(g, FAC_F32, -INFINITY);
    fac_value *masked = fac_where(fac_greater(x, fac_number(g, FAC_F32, 0)), x, none);
    fac_output(g, "y", fac_softmax(fac_mul(masked, fac_number(g, FAC_F32, 2)), 1));
    fac_program *p = NULL;
    fac_tensor *in = NULL, *y = NULL;
    float values[12] = { 1, 2, -1, 3, 1, -1, -1, -1, 1, 1, 1, 1 };
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(3, 4), &in, err));
    OK(fac_tensor_write(in, values, sizeof values, err));
    OK(fac_program_new(g, device, &(fac_program_opts){ .detect_anomaly = true }, &p, err));
    OK(fac_program_run(p, &in, &y, err));
    values[4] = -1;
    OK(fac_tensor_write(in, values, sizeof values, err));
    fac_error e = { 0 };
    assert_int_not_equal(fac_program_run(p, &in, &y, &e), FAC_OK);
    says(&e, "softmax");
    says(&e, "4 NaN of 12 values");
    fac_tensor_free(in);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_graph_free(g);
}

/* ---- trainers ---- */

typedef struct training {
    fac_graph *model;
    fac_trainer *t;
    fac_tensor *x, *labels;
} training;

static training begin(bool detect, const char *optimizer) {
    training r = { .model = fac_graph_new() };
    const int64_t labels[8] = { 0, 1, 2, 0, 1, 2, 0, 1 };
    fac_nn_seed(r.model, 3);
    fac_value *x = fac_input(r.model, "x", FAC_F32, fac_shape(fac_symbol(r.model, "N"), 6));
    fac_output(r.model, "logits",
               fac_nn_linear(fac_tanh(fac_nn_linear(x, "first", 8)), "second", 3));
    OK(fac_trainer_new(r.model, device,
                       &(fac_trainer_opts){ .detect_anomaly = detect, .optimizer = optimizer },
                       &r.t, err));
    r.x = tensor(fac_shape(8, 6), -1, 1);
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(8), &r.labels, err));
    OK(fac_tensor_write(r.labels, labels, sizeof labels, err));
    return r;
}

static void end(training *r) {
    fac_trainer_free(r->t);
    fac_graph_free(r->model);
    fac_tensor_free(r->x);
    fac_tensor_free(r->labels);
}

/* A checksum of all parameters of the model. */
static double sum_of(const training *r) {
    double sum = 0;
    for (int i = 0; i < fac_graph_params(r->model); i++) {
        const fac_tensor *t = fac_value_tensor(fac_graph_param(r->model, i));
        fac_type type = fac_tensor_type(t);
        const float *x = fac_tensor_data(t);
        for (int64_t k = 0; k < fac_dims_count(&type.dims); k++)
            sum += (double)(k + 1) * (double)x[k];
    }
    return sum;
}

static void steps_are_the_usual_ones(void **state) {
    (void)state;
    training a = begin(false, "adam"), b = begin(true, "adam");
    for (int i = 0; i < 5; i++) {
        fac_score x, y;
        OK(fac_trainer_step(a.t, a.x, a.labels, 0.01, &x, err));
        OK(fac_trainer_step(b.t, b.x, b.labels, 0.01, &y, err));
        assert_true(fabs(x.loss - y.loss) < 1e-5);
    }
    assert_true(fabs(sum_of(&a) - sum_of(&b)) < 1e-2 && fac_trainer_steps(b.t) == 5);
    end(&a);
    end(&b);
}

static void an_infinite_weight_is_named(void **state) {
    (void)state;
    training r = begin(true, "adam");
    fac_tensor *w = fac_value_tensor(fac_graph_find(r.model, "second.weight"));
    float values[24];
    OK(fac_tensor_read(w, values, sizeof values, err));
    values[5] = INFINITY;
    OK(fac_tensor_write(w, values, sizeof values, err));
    fac_error e = { 0 };
    assert_int_equal(fac_trainer_step(r.t, r.x, r.labels, 0.01, NULL, &e), FAC_E_ARGUMENT);
    says(&e, "second");
    says(&e, "second.weight has 1 infinite of 24 values");
    assert_int_equal(fac_trainer_steps(r.t), 0);
    end(&r);
}

static void a_huge_learning_rate_is_found_in_its_own_step(void **state) {
    (void)state;
    training r = begin(true, "sgd"), blind = begin(false, "sgd");
    const double rate = 1e300;
    double before = sum_of(&r);
    fac_error e = { 0 };
    assert_int_equal(fac_trainer_step(r.t, r.x, r.labels, rate, NULL, &e), FAC_E_ARGUMENT);
    says(&e, "anomaly: ");
    says(&e, "infinite");
    assert_true(sum_of(&r) == before && fac_trainer_steps(r.t) == 0);
    /* without, it is the next loss that shows it, and the error says how to find out */
    OK(fac_trainer_step(blind.t, blind.x, blind.labels, rate, NULL, err));
    assert_int_equal(fac_trainer_step(blind.t, blind.x, blind.labels, rate, NULL, &e),
                     FAC_E_ARGUMENT);
    says(&e, "detect_anomaly");
    end(&r);
    end(&blind);
}

static void recomputing_trainers_give_the_same_bits(void **state) {
    (void)state;
    training a = begin(false, "adam");
    fac_trainer_opts o = { .recompute = 0.5 };
    training b = begin(false, "adam");
    fac_trainer_free(b.t);
    OK(fac_trainer_new(b.model, device, &o, &b.t, err));
    for (int i = 0; i < 4; i++) {
        fac_score x, y;
        OK(fac_trainer_step(a.t, a.x, a.labels, 0.01, &x, err));
        OK(fac_trainer_step(b.t, b.x, b.labels, 0.01, &y, err));
        assert_true(x.loss == y.loss);
    }
    assert_true(sum_of(&a) == sum_of(&b));
    fac_trainer *none = NULL;
    fac_error e = { 0 };
    o.recompute = 2;
    assert_int_equal(fac_trainer_new(b.model, device, &o, &none, &e), FAC_E_ARGUMENT);
    says(&e, "between 0 and 1");
    end(&a);
    end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithm_of_zero),
        cmocka_unit_test(a_gradient_that_is_infinite),
        cmocka_unit_test(masks_are_meant),
        cmocka_unit_test(steps_are_the_usual_ones),
        cmocka_unit_test(an_infinite_weight_is_named),
        cmocka_unit_test(a_huge_learning_rate_is_found_in_its_own_step),
        cmocka_unit_test(recomputing_trainers_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
