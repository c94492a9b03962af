/* Optimizers against torch: parameters after ten steps, groups, clipping, moving averages, learning
 * rates; accumulation against the whole batch; freezing, refusals. */
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "facula/facula.h"
#include "golden/optim.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)

static fac_device *device;

static int open_device(void **state) {
    (void)state;
    return fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &device, NULL);
}

static int close_device(void **state) {
    (void)state;
    fac_device_free(device);
    return 0;
}

static fac_tensor *tensor(fac_dtype dtype, fac_dims dims, const double *from) {
    fac_tensor *wide = NULL, *t = NULL;
    fac_type type = { FAC_F64, dims };
    OK(fac_tensor_new(NULL, FAC_F64, dims, &wide, err));
    OK(fac_tensor_write(wide, from, fac_type_bytes(&type), err));
    OK(fac_tensor_convert(wide, dtype, &t, err));
    fac_tensor_free(wide);
    return t;
}

static double at(const fac_tensor *t, size_t i) {
    const void *data = fac_tensor_data(t);
    return fac_tensor_type(t).dtype == FAC_F64 ? ((const double *)data)[i]
                                               : (double)((const float *)data)[i];
}

/* loss = sum (a w v - y)^2 with parameters w[2,3] and v[3] */
static fac_graph *problem(fac_dtype dtype, fac_value **loss, fac_value **lr, fac_tensor *param[2]) {
    fac_graph *g = fac_graph_new();
    fac_tensor *a = tensor(dtype, fac_shape(2, 3), golden_a),
               *y = tensor(dtype, fac_shape(2, 3), golden_y);
    param[0] = tensor(dtype, fac_shape(2, 3), golden_w);
    param[1] = tensor(dtype, fac_shape(3), golden_v);
    fac_value *w = fac_param(g, "layer.w", param[0]), *v = fac_param(g, "v", param[1]);
    *lr = fac_input(g, "lr", FAC_F64, (fac_dims){ 0 });
    *loss = fac_mse_loss(fac_mul(fac_mul(fac_const(g, a), w), v), fac_const(g, y), FAC_REDUCE_SUM);
    fac_output(g, "loss", *loss);
    fac_tensor_free(a);
    fac_tensor_free(y);
    return g;
}

static void run(fac_graph *g, int steps) {
    fac_program *p = NULL;
    const double rate = 0.05;
    fac_tensor *in = tensor(FAC_F64, (fac_dims){ 0 }, &rate), *loss = NULL;
    OK(fac_graph_check(g, err));
    OK(fac_program_new(g, device, NULL, &p, err));
    for (int i = 0; i < steps; i++) OK(fac_program_run(p, &in, &loss, err));
    fac_tensor_free(in);
    fac_tensor_free(loss);
    fac_program_free(p);
}

static void ten_steps_are_torchs(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof golden_cases / sizeof *golden_cases; k++)
        for (int wide = 0; wide < 2; wide++) {
            fac_value *loss, *lr;
            fac_tensor *param[2];
            fac_graph *g = problem(wide ? FAC_F64 : FAC_F32, &loss, &lr, param);
            const fac_optim *o = fac_optim_find(golden_cases[k].name);
            assert_non_null(o);
            o->build(loss, lr, &golden_cases[k].opts);
            run(g, 10);
            for (size_t i = 0; i < 9; i++) {
                double got = i < 6 ? at(param[0], i) : at(param[1], i - 6),
                       want = golden_cases[k].after[i];
                double tolerance = wide ? 1e-10 : 1e-5;
                if (!(fabs(got - want) <= tolerance))
                    fail_msg("case %zu (%s), number %zu: %.12g, torch has %.12g", k, o->name, i,
                             got, want);
            }
            fac_tensor *count = fac_value_tensor(fac_graph_find(g, "optimizer.step"));
            assert_int_equal(*(const int64_t *)fac_tensor_data(count), 10);
            fac_graph_free(g);
            fac_tensor_free(param[0]);
            fac_tensor_free(param[1]);
        }
}

/* One step by hand: m = 0.1 g, p <- p (1 - lr decay) - lr sign(m) */
static void lion_moves_by_signs(void **state) {
    (void)state;
    fac_value *loss, *lr;
    fac_tensor *param[2];
    fac_graph *g = problem(FAC_F64, &loss, &lr, param);
    fac_lion(loss, lr, &(fac_optim_opts){ .weight_decay = 0.1 });
    run(g, 1);
    for (size_t i = 0; i < 6; i++) {
        double slope = 2 * (golden_a[i] * golden_w[i] * golden_v[i % 3] - golden_y[i]) *
                       golden_a[i] * golden_v[i % 3];
        double want = golden_w[i] * (1 - 0.05 * 0.1) - (slope > 0 ? 0.05 : -0.05);
        assert_true(fabs(at(param[0], i) - want) < 1e-12);
        assert_true(fabs(at(fac_value_tensor(fac_graph_find(g, "layer.w.exp_avg")), i) -
                         0.01 * slope) < 1e-12);
    }
    fac_graph_free(g);
    fac_tensor_free(param[0]);
    fac_tensor_free(param[1]);
}

static void frozen_parameters_stay(void **state) {
    (void)state;
    fac_value *loss, *lr;
    fac_tensor *param[2];
    fac_graph *g = problem(FAC_F32, &loss, &lr, param);
    fac_adam(loss, lr,
             &(fac_optim_opts){ .freeze = (const char *const[]){ "nothing", "layer.*", NULL } });
    run(g, 2);
    for (size_t i = 0; i < 6; i++) assert_true(at(param[0], i) == (double)(float)golden_w[i]);
    for (size_t i = 0; i < 3; i++) assert_true(at(param[1], i) != (double)(float)golden_v[i]);
    assert_null(fac_graph_find(g, "layer.w.exp_avg"));
    assert_non_null(fac_graph_find(g, "v.exp_avg"));
    fac_graph_free(g);
    fac_tensor_free(param[0]);
    fac_tensor_free(param[1]);
}

static void nothing_to_train_is_refused(void **state) {
    (void)state;
    fac_value *loss, *lr;
    fac_tensor *param[2];
    fac_error e = { 0 };
    fac_graph *g = problem(FAC_F32, &loss, &lr, param);
    fac_sgd(loss, lr, &(fac_optim_opts){ .freeze = (const char *const[]){ "*", NULL } });
    assert_int_equal(fac_graph_check(g, &e), FAC_E_ARGUMENT);
    assert_non_null(strstr(e.text, "no parameter"));
    fac_graph_free(g);
    fac_tensor_free(param[0]);
    fac_tensor_free(param[1]);
    g = problem(FAC_F32, &loss, &lr, param);
    fac_sgd(loss, lr, &(fac_optim_opts){ .ema = 1 });
    assert_int_equal(fac_graph_check(g, &e), FAC_E_ARGUMENT);
    assert_non_null(strstr(e.text, "moving averages"));
    fac_graph_free(g);
    fac_tensor_free(param[0]);
    fac_tensor_free(param[1]);
    g = problem(FAC_F32, &loss, &lr, param);
    fac_sgd(loss, fac_expand(lr, fac_shape(3)), NULL);
    assert_int_equal(fac_graph_check(g, &e), FAC_E_ARGUMENT);
    assert_non_null(strstr(e.text, "learning rate"));
    fac_graph_free(g);
    fac_tensor_free(param[0]);
    fac_tensor_free(param[1]);
}

/* Ten steps of an optimizer on the problem, and what it holds after them: the parameters, or the
 * states of this name. */
static void compare_steps(const char *optimizer, const fac_optim_opts *opts, const char *states,
                          const double *want) {
    fac_value *loss, *lr;
    fac_tensor *param[2];
    fac_graph *g = problem(FAC_F64, &loss, &lr, param);
    char name[2][32];
    fac_optim_find(optimizer)->build(loss, lr, opts);
    run(g, 10);
    snprintf(name[0], sizeof name[0], "layer.w%s", states);
    snprintf(name[1], sizeof name[1], "v%s", states);
    for (size_t i = 0; i < 9; i++) {
        const fac_tensor *t = fac_value_tensor(fac_graph_find(g, name[i >= 6]));
        double got = at(t, i < 6 ? i : i - 6);
        if (!(fabs(got - want[i]) <= 1e-10))
            fail_msg("%s, number %zu: %.12g, torch has %.12g", optimizer, i, got, want[i]);
    }
    fac_graph_free(g);
    fac_tensor_free(param[0]);
    fac_tensor_free(param[1]);
}

static void groups_are_torchs(void **state) {
    (void)state;
    static const fac_optim_group groups[] = { { .pattern = "x*", .freeze = true },
                                              { .vectors = true, .weight_decay = -1 },
                                              { .pattern = "*.w", .lr = 0.1 },
                                              { .pattern = "layer.*", .freeze = true } };
    compare_steps("adamw", &(fac_optim_opts){ .weight_decay = 0.3, .groups = groups, .ngroups = 4 },
                  "", golden_groups);
}

static void clipping_by_value_is_torchs(void **state) {
    (void)state;
    compare_steps("sgd", &(fac_optim_opts){ .momentum = 0.9, .clip_value = 0.2 }, "",
                  golden_clip_value);
}

static void moving_averages_are_torchs(void **state) {
    (void)state;
    compare_steps("sgd", &(fac_optim_opts){ .ema = 0.8 }, ".ema", golden_ema);
    compare_steps("sgd", &(fac_optim_opts){ .ema = 0.3, .ema_warmup = true }, ".ema",
                  golden_ema_warm);
}

/* ---- accumulation ---- */

enum { ROWS = 12, COLUMNS = 3 };

/* loss = mean over rows of (x w - y)^2; the pieces are 5, 4 and 3 rows of 12, and weigh as much. */
typedef struct regression {
    fac_graph *g;
    fac_program *p;
    fac_tensor *w;
} regression;

static regression regress(const char *optimizer, fac_optim_opts opts, bool pieces) {
    regression r = { .g = fac_graph_new() };
    const double start[COLUMNS] = { 0.3, -0.2, 0.7 };
    r.w = tensor(FAC_F64, fac_shape(COLUMNS, 1), start);
    fac_value *x = fac_input(r.g, "x", FAC_F64, fac_shape(fac_symbol(r.g, "N"), COLUMNS));
    fac_value *y = fac_input(r.g, "y", FAC_F64, fac_shape(fac_symbol(r.g, "N"), 1));
    fac_value *lr = fac_input(r.g, "lr", FAC_F64, (fac_dims){ 0 });
    fac_value *loss = fac_mse_loss(fac_matmul(x, fac_param(r.g, "w", r.w)), y, FAC_REDUCE_MEAN);
    fac_output(r.g, "loss", loss);
    if (pieces) {
        opts.accumulate = 3;
        opts.weight = fac_size_of(y);
        opts.flush = fac_input(r.g, "flush", FAC_BOOL, (fac_dims){ 0 });
    }
    fac_optim_find(optimizer)->build(loss, lr, &opts);
    OK(fac_graph_check(r.g, err));
    OK(fac_program_new(r.g, device, NULL, &r.p, err));
    return r;
}

static void feed(const regression *r, int first, int rows, bool flush) {
    double x[ROWS * COLUMNS], y[ROWS];
    const double rate = 0.05, flag = flush;
    for (int i = 0; i < rows; i++) {
        for (int k = 0; k < COLUMNS; k++) x[i * COLUMNS + k] = sin(1.0 + 3.0 * (first + i) + k);
        y[i] = cos(2.0 * (first + i));
    }
    fac_tensor *loss = NULL, *in[4] = { tensor(FAC_F64, fac_shape(rows, COLUMNS), x),
                                        tensor(FAC_F64, fac_shape(rows, 1), y),
                                        tensor(FAC_F64, (fac_dims){ 0 }, &rate),
                                        tensor(FAC_BOOL, (fac_dims){ 0 }, &flag) };
    OK(fac_program_run(r->p, in, &loss, err));
    for (int i = 0; i < 4; i++) fac_tensor_free(in[i]);
    fac_tensor_free(loss);
}

static void forget(regression *r) {
    fac_program_free(r->p);
    fac_graph_free(r->g);
    fac_tensor_free(r->w);
}

static void pieces_make_the_whole_batch(void **state) {
    (void)state;
    static const struct {
        const char *name;
        fac_optim_opts opts;
    } cases[] = { { "sgd", { .momentum = 0.9, .clip_norm = 0.1, .ema = 0.5 } },
                  { "adam", { .weight_decay = 0.01 } },
                  { "adamw", { .clip_value = 0.02 } },
                  { "rmsprop", { .centered = true } },
                  { "adagrad", { .lr_decay = 0.1 } },
                  { "lion", { .weight_decay = 0.1 } } };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        regression whole = regress(cases[c].name, cases[c].opts, false),
                   parts = regress(cases[c].name, cases[c].opts, true);
        for (int step = 0; step < 4; step++) {
            double before = at(parts.w, 0);
            feed(&whole, 0, 12, false);
            feed(&parts, 0, 5, false);
            feed(&parts, 5, 4, false);
            assert_true(at(parts.w, 0) == before);
            feed(&parts, 9, 3, false);
            assert_true(at(parts.w, 0) != before);
            for (size_t i = 0; i < COLUMNS; i++)
                assert_true(fabs(at(whole.w, i) - at(parts.w, i)) < 1e-12);
        }
        feed(&whole, 2, 6, false); /* two pieces that are told to be all */
        feed(&parts, 2, 4, false);
        feed(&parts, 6, 2, true);
        for (size_t i = 0; i < COLUMNS; i++)
            assert_true(fabs(at(whole.w, i) - at(parts.w, i)) < 1e-12);
        static const struct {
            const char *name;
            int64_t want;
        } counts[] = { { "optimizer.step", 5 },
                       { "optimizer.batch", 14 },
                       { "optimizer.micro", 0 } };
        for (int k = 0; k < 3; k++) {
            const fac_tensor *t = fac_value_tensor(fac_graph_find(parts.g, counts[k].name));
            assert_int_equal(*(const int64_t *)fac_tensor_data(t), counts[k].want);
        }
        forget(&whole);
        forget(&parts);
    }
}

static void compare_rates(const fac_schedule *s, int steps, const double *want) {
    for (int t = 0; t < steps; t++)
        if (!(fabs(fac_schedule_lr(s, s->warmup + t) - want[t]) < 1e-12))
            fail_msg("%s, step %d: %.15g, torch has %.15g", fac_schedule_name(s->kind), t,
                     fac_schedule_lr(s, s->warmup + t), want[t]);
}

static void rates_are_torchs(void **state) {
    (void)state;
    compare_rates(&(fac_schedule){ .kind = FAC_SCHEDULE_STEP, .lr = 0.1, .every = 6 }, 20,
                  golden_step);
    compare_rates(&(fac_schedule){ .kind = FAC_SCHEDULE_EXPONENTIAL, .lr = 0.1, .gamma = 0.9 }, 20,
                  golden_exponential);
    compare_rates(
        &(fac_schedule){ .kind = FAC_SCHEDULE_COSINE, .lr = 0.1, .low = 0.01, .steps = 20 }, 20,
        golden_cosine);
    compare_rates(&(fac_schedule){ .kind = FAC_SCHEDULE_ONE_CYCLE, .lr = 0.1, .steps = 20 }, 20,
                  golden_one_cycle);
    compare_rates(
        &(fac_schedule){ .kind = FAC_SCHEDULE_LINEAR, .lr = 0.1, .low = 0.01, .steps = 15 }, 120,
        golden_linear);
    compare_rates(
        &(fac_schedule){ .kind = FAC_SCHEDULE_POLYNOMIAL, .lr = 0.1, .power = 0.9, .steps = 100 },
        120, golden_polynomial);
    compare_rates(
        &(fac_schedule){
            .kind = FAC_SCHEDULE_RESTARTS, .lr = 0.1, .low = 0.01, .every = 10, .multiple = 2 },
        120, golden_restarts);
    compare_rates(&(fac_schedule){ .kind = FAC_SCHEDULE_RESTARTS, .lr = 0.1, .every = 25 }, 120,
                  golden_restarts_even);
    compare_rates(
        &(fac_schedule){ .kind = FAC_SCHEDULE_COSINE, .lr = 0.1, .low = 0.001, .steps = 120 }, 120,
        golden_long_cosine);
    compare_rates(&(fac_schedule){ .kind = FAC_SCHEDULE_ONE_CYCLE, .lr = 0.1, .steps = 120 }, 120,
                  golden_long_one_cycle);
    fac_schedule warm = {
        .kind = FAC_SCHEDULE_COSINE, .lr = 0.1, .low = 0.01, .steps = 24, .warmup = 4
    };
    compare_rates(&warm, 20, golden_cosine);
    for (int t = 0; t < 4; t++)
        assert_true(fabs(fac_schedule_lr(&warm, t) - 0.025 * (t + 1)) < 1e-15);
    for (int k = 0; k <= FAC_SCHEDULE_PLATEAU; k++) {
        fac_schedule_kind kind;
        assert_true(fac_schedule_find(fac_schedule_name((fac_schedule_kind)k), &kind) &&
                    (int)kind == k);
    }
    fac_schedule_kind kind;
    assert_false(fac_schedule_find("spiral", &kind));
}

static void plateaus_are_torchs(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof golden_plateaus / sizeof *golden_plateaus; k++) {
        fac_schedule s = golden_plateaus[k].schedule;
        fac_plateau p = { 0 };
        assert_true(fac_plateau_lr(&s, &p, 0) == 0.1);
        for (int t = 0; t < 120; t++) {
            fac_plateau_next(&s, golden_metric[t], &p);
            double got = fac_plateau_lr(&s, &p, t), want = golden_plateaus[k].rates[t];
            if (!(fabs(got - want) < 1e-15))
                fail_msg("plateau %zu, epoch %d: %.15g, torch has %.15g", k, t, got, want);
        }
        assert_true(p.lr < 0.1);
        s.warmup = 4;
        assert_true(fabs(fac_plateau_lr(&s, &p, 1) - p.lr / 2) < 1e-15);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_steps_are_torchs),       cmocka_unit_test(lion_moves_by_signs),
        cmocka_unit_test(groups_are_torchs),          cmocka_unit_test(clipping_by_value_is_torchs),
        cmocka_unit_test(moving_averages_are_torchs), cmocka_unit_test(pieces_make_the_whole_batch),
        cmocka_unit_test(frozen_parameters_stay),     cmocka_unit_test(nothing_to_train_is_refused),
        cmocka_unit_test(rates_are_torchs),           cmocka_unit_test(plateaus_are_torchs),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
