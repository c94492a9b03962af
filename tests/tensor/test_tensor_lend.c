/* Memory of the caller that is written: both sides see it. */
#include "lazy_check.h"

static int releases;
static void release(void *owner) {
    (void)owner;
    releases++;
}

static fac_tensor *lend(float *x, int64_t n) {
    fac_tensor *t;
    OK(fac_tensor_lend(FAC_F32, fac_shape(n), NULL, x, release, NULL, &t, &err));
    return t;
}

static void writes_are_seen(void **state) {
    (void)state;
    float x[3] = { 1, 2, 3 }, y[3] = { 4, 5, 6 };
    fac_tensor *t = lend(x, 3), *view, *copy;
    const uint64_t version = fac_tensor_version(t);
    OK(fac_tensor_write(t, y, sizeof y, &err));
    assert_memory_equal(x, y, sizeof y);
    assert_ptr_equal(fac_tensor_data(t), x);
    assert_true(fac_tensor_version(t) > version);
    OK(fac_tensor_view(t, fac_shape(2), (int64_t[]){ 2 }, 0, &view, &err));
    OK(fac_tensor_write(view, (float[]){ 7, 8 }, 8, &err));
    assert_true(x[0] == 7 && x[1] == 5 && x[2] == 8);
    releases = 0;
    fac_tensor_free(t);
    assert_int_equal(releases, 0);
    fac_tensor_free(view);
    assert_int_equal(releases, 1);
    /* what is only borrowed stays as it is */
    OK(fac_tensor_borrow(FAC_F32, fac_shape(3), NULL, x, NULL, NULL, &copy, &err));
    OK(fac_tensor_write(copy, y, sizeof y, &err));
    assert_true(x[0] == 7);
    fac_tensor_free(copy);
}

static void runs_write_there(void **state) {
    (void)state;
    float x[3] = { 1, 2, 3 }, y[3] = { 0 }, w[3] = { 10, 20, 30 };
    fac_tensor *in = lend(x, 3), *out = lend(y, 3), *state_of = lend(w, 3);
    fac_graph *g = fac_graph_new();
    fac_value *v = fac_input(g, "x", FAC_F32, fac_shape(3)), *s = fac_state(g, "w", state_of);
    fac_output(g, "y", fac_mul(v, s));
    fac_update(s, fac_add(s, v));
    fac_program *p;
    OK(fac_program_new(g, device, NULL, &p, &err));
    for (int i = 0; i < 3; i++) {
        const float was[] = { w[0], w[1], w[2] };
        OK(fac_program_run(p, &in, &out, &err));
        fac_tensor_data(out);
        fac_tensor_data(state_of);
        for (int k = 0; k < 3; k++) assert_true(y[k] == x[k] * was[k] && w[k] == was[k] + x[k]);
    }
    /* the caller writes its memory and says so */
    w[0] = -5;
    fac_tensor_touch(state_of);
    OK(fac_program_run(p, &in, &out, &err));
    assert_true(y[0] == -5 * x[0]);
    fac_program_free(p);
    fac_graph_free(g);
    fac_tensor_free(in);
    fac_tensor_free(out);
    fac_tensor_free(state_of);
}

/* Weights are packed again once they were touched. */
static void touched_weights_are_packed_again(void **state) {
    (void)state;
    enum { N = 64 };
    static float w[N * N], x[N];
    for (int i = 0; i < N; i++) w[i * N + i] = x[i] = 1;
    fac_tensor *weight, *in, *y = NULL;
    OK(fac_tensor_lend(FAC_F32, fac_shape(N, N), NULL, w, NULL, NULL, &weight, &err));
    OK(fac_tensor_borrow(FAC_F32, fac_shape(1, N), NULL, x, NULL, NULL, &in, &err));
    fac_graph *g = fac_graph_new();
    fac_output(g, "y",
               fac_matmul(fac_input(g, "x", FAC_F32, fac_shape(1, N)), fac_param(g, "w", weight)));
    fac_program *p;
    OK(fac_program_new(g, device, NULL, &p, &err));
    for (int i = 1; i < 4; i++) {
        w[0] = (float)i;
        fac_tensor_touch(weight);
        OK(fac_program_run(p, &in, &y, &err));
        assert_true(((const float *)fac_tensor_data(y))[0] == (float)i);
        fac_tensor_free(y);
        y = NULL;
    }
    fac_program_free(p);
    fac_graph_free(g);
    fac_tensor_free(weight);
    fac_tensor_free(in);
}

/* A recorder's result in memory that it is made from. */
static void results_over_their_operands(void **state) {
    (void)state;
    float x[4] = { 1, 2, 3, 4 };
    fac_tensor *t = lend(x, 4);
    fac_lazy *v, *order, *y;
    OK(fac_lazy_of(rec, t, &v, &err));
    OK(fac_lazy_ints(rec, 4, (int64_t[]){ 3, 2, 1, 0 }, &order, &err));
    y = op2("gather", v, order);
    OK(fac_lazy_write(y, t, &err));
    assert_true(x[0] == 4 && x[1] == 3 && x[2] == 2 && x[3] == 1);
    fac_lazy_free(v);
    fac_lazy_free(order);
    fac_lazy_free(y);
    fac_tensor_free(t);
}

static void texts_are_refused(void **state) {
    (void)state;
    char *x[1] = { NULL };
    fac_tensor *t = NULL;
    assert_int_equal(fac_tensor_lend(FAC_TEXT, fac_shape(1), NULL, x, NULL, NULL, &t, &err),
                     FAC_E_DTYPE);
    assert_null(t);
}

#define LAZY_TEST(f) cmocka_unit_test_setup_teardown(f, open_recorder, close_recorder)
int main(void) {
    const struct CMUnitTest tests[] = {
        LAZY_TEST(writes_are_seen),
        LAZY_TEST(runs_write_there),
        LAZY_TEST(touched_weights_are_packed_again),
        LAZY_TEST(results_over_their_operands),
        LAZY_TEST(texts_are_refused),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_device);
}
