/* Bodies: calls of graphs are found again without a node, mix with ops, and give what the ops give
 * when they are recorded one by one. */
#include "lazy_check.h"

/* ---- bodies ---- */

/* result(...): from inputs f32[dims] to named values. */
typedef int build_body(fac_graph *g, fac_value *const x[], fac_value *y[]);

static fac_lazy_body *body_of(build_body *build, int n, fac_dims dims) {
    fac_value *x[4], *y[4];
    char name[8];
    fac_lazy_body *b;
    fac_graph *g = fac_graph_new();
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "x%d", i);
        x[i] = fac_input(g, name, FAC_F32, dims);
    }
    const int nout = build(g, x, y);
    for (int k = 0; k < nout; k++) {
        snprintf(name, sizeof name, "y%d", k);
        fac_output(g, name, y[k]);
    }
    OK(fac_graph_check(g, &err));
    OK(fac_lazy_body_new(rec, g, &b, &err));
    fac_graph_free(g);
    return b;
}

static int build_neg(fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    y[0] = fac_neg(x[0]);
    return 1;
}
static int build_mul_add(fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    y[0] = fac_mul(x[0], x[1]);
    y[1] = fac_add(x[0], x[1]);
    return 2;
}
/* An input, a value, the same value, a constant. */
static int build_aliases(fac_graph *g, fac_value *const x[], fac_value *y[]) {
    y[0] = x[0];
    y[1] = y[2] = fac_exp(x[0]);
    y[3] = fac_number(g, FAC_F32, 7);
    return 4;
}
static int build_second(fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    y[0] = fac_abs(x[1]);
    return 1;
}

static fac_lazy *call1(fac_lazy_body *b, fac_lazy *x) {
    fac_lazy *y;
    OK(fac_record_body(rec, b, &x, &y, &err));
    return y;
}

/* ---- tests ---- */

static void finds_calls_again(void **state) {
    (void)state;
    fac_lazy_body *neg = body_of(build_neg, 1, fac_shape(2)),
                  *both = body_of(build_mul_add, 2, fac_shape(2));
    for (int i = 0; i < 50; i++) {
        const float a[] = { (float)i, 3 };
        fac_lazy *x = lazy_of(fac_shape(2), a), *minus = call1(neg, x), *y[2];
        OK(fac_record_body(rec, both, (fac_lazy *[]){ x, minus }, y, &err));
        assert_int_equal(fac_recorder_stats(rec).pending, 3);
        assert_true(fac_lazy_pending(y[0]));
        fac_lazy_free(minus);
        assert_floats(y[0], (float[]){ (float)(-i * i), -9 }, 2, 0);
        assert_floats(y[1], (float[]){ 0, 0 }, 2, 0);
        assert_int_equal(fac_recorder_stats(rec).pending, 0);
        fac_lazy_free(x);
        fac_lazy_free(y[0]);
        fac_lazy_free(y[1]);
    }
    const fac_recorder_stat s = fac_recorder_stats(rec);
    assert_int_equal(s.planned, 1);
    assert_int_equal(s.hits, 49);
    fac_lazy_body_free(neg);
    fac_lazy_body_free(both);
}

static void results_may_be_inputs(void **state) {
    (void)state;
    fac_lazy_body *b = body_of(build_aliases, 1, fac_shape(2));
    fac_lazy *x = lazy_of(fac_shape(2), (float[]){ 0, 1 }), *y[4];
    for (int i = 0; i < 3; i++) {
        OK(fac_record_body(rec, b, &x, y, &err));
        assert_ptr_equal(y[0], x);
        assert_ptr_equal(y[1], y[2]);
        fac_lazy_free(y[2]); /* one of its two users */
        assert_floats(y[3], (float[]){ 7 }, 1, 0);
        assert_floats(y[1], (float[]){ 1, 2.7182817f }, 2, 1e-6);
        fac_lazy_free(y[0]);
        fac_lazy_free(y[1]);
        fac_lazy_free(y[3]);
    }
    fac_lazy_free(x);
    fac_lazy_body_free(b);
}

/* Whoever asks for a node has all calls before it as nodes, and keeps what was recorded. */
static void mixes_with_ops(void **state) {
    (void)state;
    fac_lazy_body *neg = body_of(build_neg, 1, fac_shape(3));
    const float a[] = { 1, -2, 3 };
    for (int i = 0; i < 6; i++) {
        fac_lazy *x = lazy_of(fac_shape(3), a), *y = call1(neg, x), *kept = call1(neg, y);
        then2(&y, "mul", kept);
        fac_lazy *z = call1(neg, y), *same;
        OK(fac_lazy_detach(z, &same, &err));
        assert_floats(z, (float[]){ 1, 4, 9 }, 3, 0);
        assert_floats(kept, a, 3, 0);
        assert_floats(same, (float[]){ 1, 4, 9 }, 3, 0);
        fac_lazy_free(x);
        fac_lazy_free(y);
        fac_lazy_free(kept);
        fac_lazy_free(z);
        fac_lazy_free(same);
    }
    assert_true(fac_recorder_stats(rec).planned <= 2);
    fac_lazy_body_free(neg);
}

/* Gradients of ops go over values that calls made, and not through them. */
static void gradients_stop_at_calls(void **state) {
    (void)state;
    fac_lazy_body *neg = body_of(build_neg, 1, fac_shape(2));
    fac_lazy *x = lazy_of(fac_shape(2), (float[]){ 2, 5 }), *grad;
    OK(fac_lazy_require(x, true, &err));
    fac_lazy *factor = call1(neg, x);
    assert_false(fac_lazy_requires(factor));
    fac_lazy *y = op2("mul", x, factor), *sum = op_with("sum", NULL, 1, &y);
    OK(fac_lazy_backward(1, &sum, NULL, 1, &x, &grad, FAC_BACKWARD_RECORD, &err));
    assert_floats(grad, (float[]){ -2, -5 }, 2, 0);
    fac_lazy_free(grad);
    fac_lazy_free(sum);
    fac_lazy_free(y);
    fac_lazy_free(factor);
    fac_lazy_free(x);
    fac_lazy_body_free(neg);
}

static void states_are_read_before_they_change(void **state) {
    (void)state;
    fac_lazy_body *neg = body_of(build_neg, 1, fac_shape(2));
    fac_tensor *t = tensor_of(fac_shape(2), (float[]){ 1, 2 });
    fac_lazy *w;
    OK(fac_lazy_state(rec, t, &w, &err));
    for (int i = 0; i < 4; i++) {
        const float f = i % 2 ? -1 : 1;
        fac_lazy *next = call1(neg, w);
        OK(fac_lazy_assign(w, next, &err));
        fac_lazy *now = call1(neg, w);
        assert_floats(now, (float[]){ f, 2 * f }, 2, 0);
        fac_lazy_free(next);
        fac_lazy_free(now);
    }
    fac_lazy_free(w);
    fac_tensor_free(t);
    fac_lazy_body_free(neg);
}

static void reads_only_what_it_reads(void **state) {
    (void)state;
    fac_lazy_body *b = body_of(build_second, 2, fac_shape(2)), *neg;
    neg = body_of(build_neg, 1, fac_shape(2));
    fac_lazy *x = lazy_of(fac_shape(2), (float[]){ -1, 2 }), *y;
    fac_lazy *wrong = lazy_of(fac_shape(3), (float[]){ 1, 2, 3 });
    OK(fac_record_body(rec, b, (fac_lazy *[]){ NULL, x }, &y, &err));
    fac_lazy_body_free(b); /* the call goes on */
    assert_int_equal(fac_record_body(rec, neg, &wrong, &y, &err), FAC_E_SHAPE);
    assert_string_equal(err.text, "fac_record_body: input 0 has another type than the body's");
    assert_int_equal(fac_record_body(rec, neg, (fac_lazy *[]){ NULL }, &wrong, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(fac_record_body(rec, NULL, &x, &wrong, &err), FAC_E_ARGUMENT);
    assert_floats(y, (float[]){ 1, 2 }, 2, 0);
    fac_lazy_free(x);
    fac_lazy_free(y);
    fac_lazy_free(wrong);
    fac_lazy_body_free(neg);
}

static void refuses_graphs_that_are_no_bodies(void **state) {
    (void)state;
    fac_lazy_body *b;
    fac_graph *g = fac_graph_new();
    assert_int_equal(fac_lazy_body_new(rec, g, &b, &err), FAC_E_ARGUMENT);
    fac_value *n = fac_input(g, "x", FAC_F32, (fac_dims){ 1, { fac_symbol(g, "N") } });
    fac_output(g, "y", fac_neg(n));
    assert_int_equal(fac_lazy_body_new(rec, g, &b, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_lazy_body_new(NULL, g, &b, &err), FAC_E_ARGUMENT);
    fac_graph_free(g);
}

static void numbers_change(void **state) {
    (void)state;
    fac_lazy_body *b = body_of(build_mul_add, 2, (fac_dims){ 0 });
    fac_lazy *x = number(3), *y[2];
    for (int i = 0; i < 20; i++) {
        fac_lazy *rate = number(0.5 * i);
        OK(fac_record_body(rec, b, (fac_lazy *[]){ x, rate }, y, &err));
        assert_floats(y[0], (float[]){ 1.5f * (float)i }, 1, 0);
        fac_lazy_free(rate);
        fac_lazy_free(y[0]);
        fac_lazy_free(y[1]);
    }
    assert_true(fac_recorder_stats(rec).planned <= 3);
    fac_lazy_free(x);
    fac_lazy_body_free(b);
}

/* Integers that a call reads are part of the key. */
static void contents_of_constants_count(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_lazy_body *b;
    fac_output(g, "y", fac_neg(fac_input(g, "x", FAC_I64, fac_shape(2))));
    OK(fac_lazy_body_new(rec, g, &b, &err));
    fac_graph_free(g);
    for (int64_t i = 0; i < 4; i++) {
        fac_lazy *x, *y;
        fac_tensor *t;
        int64_t have[2];
        OK(fac_lazy_ints(rec, 2, (int64_t[]){ i % 2, 5 }, &x, &err));
        OK(fac_record_body(rec, b, &x, &y, &err));
        OK(fac_lazy_tensor(y, &t, &err));
        OK(fac_tensor_read(t, have, sizeof have, &err));
        assert_int_equal(have[0], -(i % 2));
        assert_int_equal(have[1], -5);
        fac_tensor_free(t);
        fac_lazy_free(x);
        fac_lazy_free(y);
    }
    assert_int_equal(fac_recorder_stats(rec).planned, 2);
    fac_lazy_body_free(b);
}

/* A cache that grows by a call in each step is a few programs. */
static void caches_grow(void **state) {
    (void)state;
    fac_lazy *cache = lazy_of(fac_shape(1, 2), (float[]){ 0, 0 });
    for (int i = 1; i < 120; i++) {
        fac_graph *g = fac_graph_new();
        fac_value *both[2] = { fac_input(g, "a", FAC_F32, fac_shape(i, 2)),
                               fac_input(g, "b", FAC_F32, fac_shape(1, 2)) };
        fac_output(g, "y", fac_concat(both, 2, 0));
        fac_lazy_body *b;
        OK(fac_lazy_body_new(rec, g, &b, &err));
        fac_graph_free(g);
        fac_lazy *row = lazy_of(fac_shape(1, 2), (float[]){ (float)i, (float)-i }), *next;
        OK(fac_record_body(rec, b, (fac_lazy *[]){ cache, row }, &next, &err));
        fac_lazy_body_free(b);
        fac_lazy_free(cache);
        fac_lazy_free(row);
        cache = next;
        OK(fac_flush(rec, &err));
    }
    float have[240];
    read_lazy(cache, have, 240);
    for (int i = 0; i < 120; i++) assert_true(have[2 * i] == (float)i);
    assert_true(fac_recorder_stats(rec).planned < 12);
    fac_lazy_free(cache);
}

/* ---- drawn segments, by calls and by ops ---- */

enum { VALUES = 24, KINDS = 3 };

static fac_lazy *draw_one(int kind, fac_lazy_body *const b[], fac_lazy *x, fac_lazy *y) {
    fac_lazy *z[2];
    if (b) {
        OK(fac_record_body(rec, b[kind], (fac_lazy *[]){ x, y }, z, &err));
        if (kind == 1) fac_lazy_free(z[1]);
        return z[0];
    }
    if (kind == 1) return op2("mul", x, y);
    return kind == 0 ? op1("neg", x) : op1("abs", y);
}

static void run_drawn(unsigned drawn, fac_lazy_body *const b[], float *to) {
    fac_lazy *v[VALUES];
    for (int i = 0; i < 4; i++)
        v[i] = lazy_of(fac_shape(2), (float[]){ (float)(i + 1) / 2, (float)(i - 2) });
    for (int i = 4; i < VALUES; i++) {
        drawn = drawn * 1664525u + 1013904223u;
        const unsigned at = drawn >> 8;
        if (at % 11 == 0) OK(fac_flush(rec, &err));
        /* now and then one op among the calls */
        v[i] = draw_one((int)(at % KINDS), at % 7 ? b : NULL, v[(at >> 4) % (unsigned)i],
                        v[(at >> 12) % (unsigned)i]);
    }
    for (int i = 0; i < VALUES; i++) read_lazy(v[i], to + 2 * i, 2);
    for (int i = 0; i < VALUES; i++) fac_lazy_free(v[i]);
}

static void drawn_segments_agree(void **state) {
    (void)state;
    fac_lazy_body *b[KINDS] = { body_of(build_neg, 1, fac_shape(2)),
                                body_of(build_mul_add, 2, fac_shape(2)),
                                body_of(build_second, 2, fac_shape(2)) };
    for (unsigned k = 0; k < 60; k++) {
        float calls[2 * VALUES], ops[2 * VALUES];
        const unsigned drawn = (unsigned)seed + k / 2; /* each twice: the second is found again */
        run_drawn(drawn, b, calls);
        run_drawn(drawn, NULL, ops);
        assert_memory_equal(calls, ops, sizeof ops);
    }
    for (int k = 0; k < KINDS; k++) fac_lazy_body_free(b[k]);
}

static void eager_recorders_compute_at_once(void **state) {
    (void)state;
    fac_lazy_body *neg = body_of(build_neg, 1, fac_shape(2));
    fac_lazy *x = lazy_of(fac_shape(2), (float[]){ 1, 2 });
    fac_recorder_set_eager(rec, true);
    fac_lazy *y = call1(neg, x);
    assert_false(fac_lazy_pending(y));
    assert_floats(y, (float[]){ -1, -2 }, 2, 0);
    fac_lazy_free(x);
    fac_lazy_free(y);
    fac_lazy_body_free(neg);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_recorder, close_recorder)
    const struct CMUnitTest tests[] = { TEST(finds_calls_again),
                                        TEST(results_may_be_inputs),
                                        TEST(mixes_with_ops),
                                        TEST(gradients_stop_at_calls),
                                        TEST(states_are_read_before_they_change),
                                        TEST(reads_only_what_it_reads),
                                        TEST(refuses_graphs_that_are_no_bodies),
                                        TEST(numbers_change),
                                        TEST(contents_of_constants_count),
                                        TEST(caches_grow),
                                        TEST(drawn_segments_agree),
                                        TEST(eager_recorders_compute_at_once) };
    return cmocka_run_group_tests(tests, open_cpu, close_device);
}
