/* Programs in use: threads, observers, shapes that inputs steer, what is refused. */
#include "network_check.h"

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
    fac_output(g, "transposed", fac_transpose(r, fac_shape(1, 0)));
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
