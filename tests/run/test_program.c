/* Programs: plans for several shapes, memory, updates, prepared parameters. */
#include "network_check.h"

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

/* Attention over parameters alone, as one node and spelled out: it is computed before the run,
 * where there is no kernel for it. Decoders of DETR begin so. */
static void attention_of_parameters(void **state) {
    (void)state;
    const fac_dims dims = fac_shape(1, 2, 4, 8);
    fac_tensor *w = random_tensor(dims, 4), *x = random_tensor(dims, 5), *y[2] = { NULL };
    fac_graph *g = fac_graph_new();
    fac_program *p = NULL;
    fac_value *in = fac_input(g, "x", FAC_F32, dims), *v = fac_param(g, "w", w);
    fac_value *scores = fac_matmul(v, fac_transpose(v, fac_shape(0, 1, 3, 2)));
    fac_value *shares = fac_softmax(fac_mul(scores, fac_number(g, FAC_F32, sqrt(0.125))), -1);
    fac_value *one = fac_attention(v, v, v, NULL, NULL, NULL, NULL, NULL);
    fac_output(g, "one", fac_add(in, one));
    fac_output(g, "spelled", fac_add(in, fac_matmul(shares, v)));
    OK(fac_program_new(g, device, NULL, &p, err));
    OK(fac_program_run(p, &x, y, err));
    for (size_t i = 0; i < 64; i++) assert_true(fabs((double)at(y[0], i) - at(y[1], i)) < 1e-5);
    for (int k = 0; k < 2; k++) fac_tensor_free(y[k]);
    fac_tensor_free(x);
    fac_program_free(p);
    fac_graph_free(g);
    fac_tensor_free(w);
}

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_equals_reference),
        cmocka_unit_test(in_place_changes_no_bit),
        cmocka_unit_test(updates_are_parallel),
        cmocka_unit_test(updated_weight_is_packed_each_run),
        cmocka_unit_test(attention_of_parameters),
        cmocka_unit_test(written_weight_is_used_by_the_next_run),
        cmocka_unit_test(solvers_are_asked_for_by_name),
        cmocka_unit_test(plan_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
