/* Programs: plans for several shapes, memory, updates, prepared parameters, concurrent runs,
 * observers, what is refused. */
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/rng.h"
#include "facula/facula.h"
#include "facula/op.h"
#include "op_list.h"
#include "program_check.h"

static fac_tensor *random_tensor(fac_dims d, uint64_t stream) {
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, FAC_F32, d, &t, err));
    size_t n = (size_t)fac_dims_count(&d);
    float *x = malloc((n + 1) * sizeof *x);
    fac_random_fill(7, stream, -1, 1, n, x);
    OK(fac_tensor_write(t, x, n * sizeof *x, err));
    free(x);
    return t;
}

static float at(const fac_tensor *t, size_t i) { return ((const float *)fac_tensor_data(t))[i]; }

/* A small network with everything that planning does: convolution, batch norm, residual, concat,
 * views, a product. */
static fac_graph *network(fac_tensor **weight) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(
        g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 3, fac_symbol(g, "H"), fac_symbol(g, "W")));
    fac_nn_seed(g, 3);
    fac_value *a = fac_relu(fac_nn_batch_norm(
        fac_nn_conv2d(x, "c1", 16, 3, &(fac_nn_conv2d_opts){ .pad = 1 }), "bn", 0));
    fac_value *b = fac_nn_conv2d(a, "c2", 16, 3, &(fac_nn_conv2d_opts){ .pad = 1 });
    fac_value *c = fac_relu(fac_add(a, b));
    fac_value *parts[] = { c, fac_sigmoid(a) };
    fac_value *d = fac_concat(parts, 2, 1);
    fac_value *m = fac_mean(d, fac_shape(2, 3), false);
    fac_output(g, "y", fac_nn_linear(m, "fc", 5));
    fac_output(g, "c", c);
    OK(fac_graph_check(g, err));
    if (weight) *weight = fac_value_tensor(fac_graph_find(g, "c1.weight"));
    return g;
}

static void run_both(const fac_graph *g, const fac_program_opts *a, const fac_program_opts *b,
                     double tolerance) {
    fac_program *p = NULL, *q = NULL;
    OK(fac_program_new(g, device, a, &p, err));
    OK(fac_program_new(g, device, b, &q, err));
    for (int n = 1; n < 4; n++) {
        fac_tensor *x = random_tensor(fac_shape(n, 3, 5 + n, 9), (uint64_t)n), *y[2] = { NULL },
                   *z[2] = { NULL };
        OK(fac_program_run(p, &x, y, err));
        OK(fac_program_run(q, &x, z, err));
        for (int k = 0; k < 2; k++) {
            fac_type t = fac_tensor_type(y[k]), u = fac_tensor_type(z[k]);
            assert_true(fac_dims_equal(&t.dims, &u.dims));
            for (int64_t i = 0; i < fac_dims_count(&t.dims); i++)
                assert_true(fabs((double)at(y[k], (size_t)i) - at(z[k], (size_t)i)) <=
                            tolerance * (1 + fabs(at(z[k], (size_t)i))));
            fac_tensor_free(y[k]);
            fac_tensor_free(z[k]);
        }
        fac_tensor_free(x);
    }
    fac_program_free(p);
    fac_program_free(q);
}

static void fused_equals_reference(void **state) {
    (void)state;
    fac_graph *g = network(NULL);
    run_both(g, NULL, &(fac_program_opts){ .solver = "ref", .no_fuse = true }, 1e-5);
    fac_graph_free(g);
}

static void in_place_changes_no_bit(void **state) {
    (void)state;
    fac_graph *g = network(NULL);
    run_both(g, NULL, &(fac_program_opts){ .no_inplace = true }, 0);
    fac_graph_free(g);
}

/* ---- updates ---- */

/* p <- q, q <- p + q: every reader sees the old contents, so this is Fibonacci. */
static void updates_are_parallel(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_tensor *tp = NULL, *tq = NULL;
    float one = 1;
    OK(fac_tensor_new(NULL, FAC_F32, (fac_dims){ 0 }, &tp, err));
    OK(fac_tensor_new(NULL, FAC_F32, (fac_dims){ 0 }, &tq, err));
    OK(fac_tensor_write(tq, &one, sizeof one, err));
    fac_value *p = fac_state(g, "p", tp), *q = fac_state(g, "q", tq);
    fac_value *sum = fac_add(p, q);
    fac_update(p, q);
    fac_update(q, sum);
    fac_output(g, "sum", sum);
    fac_program *run = NULL;
    OK(fac_program_new(g, device, NULL, &run, err));
    fac_tensor *y = NULL;
    uint64_t version = fac_tensor_version(tp);
    for (int i = 0; i < 10; i++) OK(fac_program_run(run, NULL, &y, err));
    assert_true(at(tp, 0) == 55 && at(tq, 0) == 89 && at(y, 0) == 89);
    assert_true(fac_tensor_version(tp) > version);
    fac_tensor_free(y);
    fac_program_free(run);
    fac_graph_free(g);
    fac_tensor_free(tp);
    fac_tensor_free(tq);
}

/* A program that changes its own convolution weight packs it anew in every run. */
static void updated_weight_is_packed_each_run(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_tensor *w = random_tensor(fac_shape(16, 16, 3, 3), 4),
               *x = random_tensor(fac_shape(1, 16, 8, 8), 5);
    fac_tensor *y = NULL, *before = NULL;
    fac_value *in = fac_input(g, "x", FAC_F32, fac_shape(1, 16, 8, 8)),
              *weight = fac_param(g, "w", w);
    fac_output(g, "y", fac_conv2d(in, weight, NULL, NULL));
    fac_update(weight, fac_mul(weight, fac_number(g, FAC_F32, 2)));
    fac_program *p = NULL;
    OK(fac_program_new(g, device, NULL, &p, err));
    OK(fac_program_run(p, &x, &before, err));
    OK(fac_program_run(p, &x, &y, err));
    for (size_t i = 0; i < 16 * 36; i++) assert_true(at(y, i) == 2 * at(before, i));
    fac_tensor_free(before);
    fac_tensor_free(y);
    fac_tensor_free(x);
    fac_program_free(p);
    fac_graph_free(g);
    fac_tensor_free(w);
}

/* ---- prepare ---- */

static void written_weight_is_used_by_the_next_run(void **state) {
    (void)state;
    fac_tensor *w = NULL, *x = random_tensor(fac_shape(1, 3, 8, 8), 1), *y[2] = { NULL },
               *z[2] = { NULL }, *fresh[2] = { NULL };
    fac_graph *g = network(&w);
    fac_program *p = NULL, *q = NULL, *later = NULL;
    OK(fac_program_new(g, device, NULL, &p, err));
    OK(fac_program_new(g, device, NULL, &q, err));
    OK(fac_program_run(p, &x, y, err));
    size_t held = fac_device_memory(device).now;
    OK(fac_program_run(q, &x, z, err));
    fac_plan_stat stat;
    OK(fac_program_plan(q, &x, &stat, err));
    assert_true(stat.packed > 0);
    assert_true(fac_device_memory(device).now <
                held + stat.packed + stat.arena + 4096); /* packs are shared, not doubled */
    fac_type t = fac_tensor_type(w);
    size_t n = (size_t)fac_dims_count(&t.dims);
    float *wide = malloc(n * sizeof *wide);
    fac_random_fill(9, 9, -1, 1, n, wide);
    OK(fac_tensor_write(w, wide, n * sizeof *wide, err));
    OK(fac_program_run(p, &x, y, err));
    OK(fac_program_run(q, &x, z, err));
    OK(fac_program_new(g, device, NULL, &later, err));
    OK(fac_program_run(later, &x, fresh, err));
    for (size_t i = 0; i < 5; i++)
        assert_true(at(y[0], i) == at(fresh[0], i) && at(z[0], i) == at(fresh[0], i));
    free(wide);
    for (int k = 0; k < 2; k++) {
        fac_tensor_free(y[k]);
        fac_tensor_free(z[k]);
        fac_tensor_free(fresh[k]);
    }
    fac_tensor_free(x);
    fac_program_free(p);
    fac_program_free(q);
    fac_program_free(later);
    fac_graph_free(g);
}

/* A name that the device does not have would let any other solver run. */
static void solvers_are_asked_for_by_name(void **state) {
    (void)state;
    static const struct {
        const char *name;
        fac_status status;
    } cases[] = { { "ref", FAC_OK },
                  { "conv2d/direct", FAC_OK },
                  { "conv2d/nobody", FAC_E_ARGUMENT },
                  { "", FAC_E_ARGUMENT } };
    fac_graph *g = fac_graph_new();
    fac_output(g, "y", fac_relu(fac_input(g, "x", FAC_F32, fac_shape(3))));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fac_program *p = NULL;
        fac_error error = { 0 };
        assert_int_equal(
            fac_program_new(g, device, &(fac_program_opts){ .solver = cases[i].name }, &p, &error),
            cases[i].status);
        assert_true(!p == !!cases[i].status);
        if (cases[i].status) assert_non_null(strstr(error.text, "has no solver"));
        fac_program_free(p);
    }
    fac_graph_free(g);
}

/* ---- memory ---- */

static void plan_memory_is_reported(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(1000));
    for (int i = 0; i < 6; i++) x = fac_softmax(x, 0);
    fac_output(g, "y", x);
    fac_program *p = NULL;
    fac_tensor *t = random_tensor(fac_shape(1000), 1);
    fac_plan_stat s;
    OK(fac_program_new(g, device, &(fac_program_opts){ .solver = "ref" }, &p, err));
    OK(fac_program_plan(p, &t, &s, err));
    assert_int_equal(s.steps, 6);
    assert_true(s.values >= 6 * 4000 && s.arena < s.values + 3 * 16384 && s.arena >= s.bound &&
                s.bound >= 4000);
    fac_tensor_free(t);
    fac_program_free(p);
    fac_graph_free(g);
}

/* ---- threads ---- */

typedef struct worker {
    fac_program *program;
    fac_tensor *x[3];
    float want[3];
    int wrong;
} worker;

static void *work(void *arg) {
    worker *w = arg;
    fac_tensor *y[2] = { NULL };
    for (int i = 0; i < 30; i++) {
        fac_tensor *in[1] = { w->x[i % 3] };
        if (i % 7 == 0)
            for (int k = 0; k < 2; k++) {
                fac_tensor_free(y[k]);
                y[k] = NULL;
            }
        if (y[0]) {
            fac_tensor_free(y[1]);
            y[1] = NULL;
            fac_tensor_free(y[0]);
            y[0] = NULL;
        }
        if (fac_program_run(w->program, in, y, NULL))
            w->wrong++;
        else
            w->wrong += at(y[0], 0) != w->want[i % 3];
    }
    for (int k = 0; k < 2; k++) fac_tensor_free(y[k]);
    return NULL;
}

static void programs_run_in_many_threads(void **state) {
    (void)state;
    enum { THREADS = 4 };
    fac_graph *g = network(NULL);
    fac_program *p[2] = { NULL };
    worker w[THREADS];
    pthread_t thread[THREADS];
    for (int k = 0; k < 2; k++) OK(fac_program_new(g, device, NULL, &p[k], err));
    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){ .program = p[i % 2] };
        for (int k = 0; k < 3; k++) {
            fac_tensor *y[2] = { NULL };
            w[i].x[k] = random_tensor(fac_shape(k + 1, 3, 6, 6), (uint64_t)k);
            OK(fac_program_run(p[0], &w[i].x[k], y, err));
            w[i].want[k] = at(y[0], 0);
            fac_tensor_free(y[0]);
            fac_tensor_free(y[1]);
        }
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, work, &w[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(w[i].wrong, 0);
        for (int k = 0; k < 3; k++) fac_tensor_free(w[i].x[k]);
    }
    for (int k = 0; k < 2; k++) fac_program_free(p[k]);
    fac_graph_free(g);
}

/* ---- observers, profile ---- */

typedef struct seen {
    int n, stop;
    double last;
} seen;

static bool look(void *self, const char *node, const fac_tensor *value) {
    seen *s = self;
    assert_non_null(node);
    s->last = at(value, 0);
    return ++s->n != s->stop;
}

static void observer_sees_every_node(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(4));
    fac_output(g, "y", fac_relu(fac_neg(fac_exp(x))));
    seen s = { 0 };
    fac_program *p = NULL;
    fac_tensor *in = random_tensor(fac_shape(4), 1), *y = NULL;
    OK(fac_program_new(g, device, &(fac_program_opts){ .observe = look, .observe_self = &s }, &p,
                       err));
    OK(fac_program_run(p, &in, &y, err));
    assert_int_equal(s.n, 3);
    assert_true(s.last == at(y, 0));
    s = (seen){ .stop = 2 };
    fac_error e = { 0 };
    assert_int_not_equal(fac_program_run(p, &in, &y, &e), FAC_OK);
    assert_int_equal(s.n, 2);
    assert_non_null(strstr(e.text, "observer"));
    fac_program_free(p);
    OK(fac_program_new(g, device, NULL, &p, err));
    fac_program_profile(p, true);
    for (int i = 0; i < 3; i++) OK(fac_program_run(p, &in, &y, err));
    fac_step_stat step;
    assert_int_equal(fac_program_steps(p, &step, 1), 1); /* the chain is one step */
    assert_true(step.runs == 3 && step.seconds > 0 && step.solver && step.nodes);
    fac_program_free(p);
    fac_tensor_free(in);
    fac_tensor_free(y);
    fac_graph_free(g);
}

/* ---- shapes that inputs steer ---- */

static void contents_of_inputs_steer_shapes(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"))),
              *to = fac_input(g, "to", FAC_I64, fac_shape(2));
    fac_value *y = fac_apply(g, &fac_op_reshape, NULL, 2, (fac_value *[]){ x, to });
    fac_output(g, "y", fac_relu(y));
    fac_program *p = NULL;
    OK(fac_program_new(g, device, NULL, &p, err));
    fac_tensor *in[2] = { random_tensor(fac_shape(6), 1), NULL };
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(2), &in[1], err));
    const int64_t shapes[][2] = { { 2, 3 }, { 3, 2 }, { -1, 1 } }, want[] = { 2, 3, 6 };
    for (int i = 0; i < 3; i++) {
        fac_tensor *out = NULL;
        OK(fac_tensor_write(in[1], shapes[i], sizeof shapes[i], err));
        OK(fac_program_run(p, in, &out, err));
        fac_type t = fac_tensor_type(out);
        assert_true(t.dims.n == 2 && t.dims.d[0] == want[i]);
        fac_tensor_free(out);
    }
    fac_tensor_free(in[0]);
    fac_tensor_free(in[1]);
    fac_program_free(p);
    fac_graph_free(g);
}

/* ---- refusals ---- */

static void refuse(fac_program *p, fac_tensor *in, fac_tensor *out, fac_status status,
                   const char *says) {
    fac_error e = { 0 };
    fac_tensor *y[2] = { out, NULL };
    assert_int_equal(fac_program_run(p, &in, y, &e), status);
    assert_ptr_equal(y[0], out);
    assert_null(y[1]);
    if (!strstr(e.text, says)) fail_msg("\"%s\" does not say \"%s\"", e.text, says);
}

static void wrong_tensors_are_refused(void **state) {
    (void)state;
    fac_graph *g = network(NULL);
    fac_program *p = NULL;
    OK(fac_program_new(g, device, NULL, &p, err));
    fac_tensor *rank = random_tensor(fac_shape(1, 3, 8), 1),
               *channels = random_tensor(fac_shape(1, 4, 8, 8), 1);
    fac_tensor *good = random_tensor(fac_shape(1, 3, 8, 8), 1);
    fac_tensor *ints = NULL, *out = random_tensor(fac_shape(7), 1);
    OK(fac_tensor_new(NULL, FAC_I32, fac_shape(1, 3, 8, 8), &ints, err));
    refuse(p, NULL, NULL, FAC_E_ARGUMENT, "input x");
    refuse(p, rank, NULL, FAC_E_SHAPE, "4 dims");
    refuse(p, channels, NULL, FAC_E_SHAPE, "dim 1");
    refuse(p, ints, NULL, FAC_E_DTYPE, "i32");
    refuse(p, good, out, FAC_E_SHAPE, "output y");
    fac_tensor_free(rank);
    fac_tensor_free(channels);
    fac_tensor_free(good);
    fac_tensor_free(ints);
    fac_tensor_free(out);
    fac_program_free(p);
    fac_graph_free(g);
}

static void strided_inputs_are_taken(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_output(g, "y", fac_neg(fac_input(g, "x", FAC_F32, fac_shape(3, 2))));
    fac_program *p = NULL;
    fac_tensor *base = random_tensor(fac_shape(2, 3), 1), *view = NULL, *y = NULL;
    OK(fac_tensor_view(base, fac_shape(3, 2), (int64_t[]){ 1, 3 }, 0, &view, err));
    OK(fac_program_new(g, device, NULL, &p, err));
    OK(fac_program_run(p, &view, &y, err));
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 2; k++) assert_true(at(y, 2 * i + k) == -at(base, 3 * k + i));
    fac_tensor_free(view);
    fac_tensor_free(base);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_graph_free(g);
}

/* Outputs that are inputs, constants, views of one another, and the same value twice. */
static void outputs_of_every_kind(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2, 3)), *r = fac_relu(x);
    fac_output(g, "same", x);
    fac_output(g, "r", r);
    fac_output(g, "again", r);
    fac_output(g, "turned", fac_transpose(r, fac_shape(1, 0)));
    fac_output(g, "seven", fac_number(g, FAC_F32, 7));
    OK(fac_graph_check(g, err));
    fac_program *p = NULL;
    fac_tensor *in = random_tensor(fac_shape(2, 3), 1), *y[5] = { NULL };
    OK(fac_program_new(g, device, NULL, &p, err));
    OK(fac_program_run(p, &in, y, err));
    for (size_t i = 0; i < 6; i++) {
        float want = at(in, i) > 0 ? at(in, i) : 0;
        assert_true(at(y[0], i) == at(in, i) && at(y[1], i) == want && at(y[2], i) == want);
        assert_true(at(y[3], i % 3 * 2 + i / 3) == want);
    }
    assert_true(at(y[4], 0) == 7);
    for (int k = 0; k < 5; k++) fac_tensor_free(y[k]);
    fac_tensor_free(in);
    fac_program_free(p);
    fac_graph_free(g);
}

static void eval_computes_one_value(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *a = fac_number(g, FAC_F32, 3), *b = fac_number(g, FAC_F32, 4);
    fac_tensor *t = NULL;
    OK(fac_eval(fac_sqrt(fac_add(fac_mul(a, a), fac_mul(b, b))), device, &t, err));
    assert_true(at(t, 0) == 5);
    fac_tensor_free(t);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_equals_reference),
        cmocka_unit_test(in_place_changes_no_bit),
        cmocka_unit_test(updates_are_parallel),
        cmocka_unit_test(updated_weight_is_packed_each_run),
        cmocka_unit_test(written_weight_is_used_by_the_next_run),
        cmocka_unit_test(solvers_are_asked_for_by_name),
        cmocka_unit_test(plan_memory_is_reported),
        cmocka_unit_test(programs_run_in_many_threads),
        cmocka_unit_test(observer_sees_every_node),
        cmocka_unit_test(contents_of_inputs_steer_shapes),
        cmocka_unit_test(wrong_tensors_are_refused),
        cmocka_unit_test(strided_inputs_are_taken),
        cmocka_unit_test(outputs_of_every_kind),
        cmocka_unit_test(eval_computes_one_value),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
