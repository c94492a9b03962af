/* The recorder: nothing is computed before a read, segments are found again, states,
 * numbers, outputs in the caller's memory, errors. */
#include "lazy_check.h"
#include "op_list.h"

static void records_and_computes(void **state) {
    (void)state;
    const float a[] = { 1, 2, 3, 4 }, b[] = { 10, 20, 30, 40 };
    fac_lazy *x = lazy_of(fac_shape(2, 2), a), *y = lazy_of(fac_shape(2, 2), b);
    fac_lazy *sum = op2("add", x, y), *product = op2("mul", sum, x);
    assert_true(fac_lazy_pending(product));
    assert_int_equal(fac_recorder_stats(rec).flushes, 0);
    assert_int_equal(fac_recorder_stats(rec).pending, 2);
    assert_floats(product, (float[]){ 11, 44, 99, 176 }, 4, 0);
    assert_false(fac_lazy_pending(sum));
    assert_floats(sum, (float[]){ 11, 22, 33, 44 }, 4, 0);
    assert_int_equal(fac_recorder_stats(rec).flushes, 1);
    fac_lazy_free(x);
    fac_lazy_free(y);
    fac_lazy_free(sum);
    fac_lazy_free(product);
}

/* Values nothing holds are no outputs: the chain is one step, and the program has one result. */
static void finds_segments_again(void **state) {
    (void)state;
    for (int i = 0; i < 50; i++) {
        const float a[] = { (float)i, 1, -2 };
        fac_lazy *x = lazy_of(fac_shape(3), a);
        then1(&x, "neg");
        then1(&x, "abs");
        then2(&x, "add", x);
        assert_floats(x, (float[]){ (float)(2 * i), 2, 4 }, 3, 0);
        fac_lazy_free(x);
    }
    const fac_recorder_stat s = fac_recorder_stats(rec);
    assert_int_equal(s.flushes, 50);
    assert_int_equal(s.planned, 1);
    assert_int_equal(s.hits, 49);
}

static void numbers_become_inputs(void **state) {
    (void)state;
    const float a[] = { 1, 2, 3 };
    fac_lazy *x = lazy_of(fac_shape(3), a);
    for (int i = 0; i < 20; i++) {
        fac_lazy *rate = number(0.5 * i), *fixed = number(2);
        fac_lazy *y = op2("mul", x, rate);
        then2(&y, "mul", fixed);
        assert_floats(y, (float[]){ (float)i, (float)(2 * i), (float)(3 * i) }, 3, 0);
        fac_lazy_free(rate);
        fac_lazy_free(fixed);
        fac_lazy_free(y);
    }
    /* with the number as a constant, as an input, and once more when x came to be a state */
    assert_true(fac_recorder_stats(rec).planned <= 4);
    fac_lazy_free(x);
}

static void states_are_updated(void **state) {
    (void)state;
    fac_tensor *t = tensor_of(fac_shape(2), (float[]){ 1, 2 });
    fac_lazy *w, *two = number(2);
    OK(fac_lazy_state(rec, t, &w, &err));
    for (int i = 0; i < 5; i++) {
        fac_lazy *next = op2("mul", w, two), *old = op1("neg", w);
        OK(fac_lazy_assign(w, next, &err));
        fac_lazy *now = op1("neg", w);
        const float f = (float)(1 << i);
        assert_floats(old, (float[]){ -f, -2 * f }, 2, 0);
        assert_floats(now, (float[]){ -2 * f, -4 * f }, 2, 0);
        fac_lazy_free(next);
        fac_lazy_free(old);
        fac_lazy_free(now);
    }
    float have[2];
    OK(fac_tensor_read(t, have, sizeof have, &err)); /* the very tensor */
    assert_true(have[0] == 32 && have[1] == 64);
    assert_int_equal(fac_recorder_stats(rec).planned, 1);
    fac_lazy_free(two);
    fac_lazy_free(w);
    fac_tensor_free(t);
}

/* a, b = b, a: what is assigned is what it was when it was assigned. */
static void states_swap(void **state) {
    (void)state;
    fac_lazy *a = lazy_random(fac_shape(3), true), *b = lazy_random(fac_shape(3), true);
    float x[3], y[3];
    read_lazy(a, x, 3);
    read_lazy(b, y, 3);
    fac_lazy *was = op1("identity", a);
    OK(fac_lazy_assign(a, b, &err));
    OK(fac_lazy_assign(b, was, &err));
    assert_floats(a, y, 3, 0);
    assert_floats(b, x, 3, 0);
    fac_lazy *chain = op2("add", a, a);
    OK(fac_lazy_assign(b, chain, &err));
    OK(fac_lazy_assign(a, b, &err));
    OK(fac_lazy_assign(b, was, &err));
    assert_floats(b, x, 3, 0);
    assert_floats(a, (float[]){ 2 * y[0], 2 * y[1], 2 * y[2] }, 3, 0);
    fac_lazy_free(was);
    fac_lazy_free(chain);
    fac_lazy_free(a);
    fac_lazy_free(b);
}

/* What comes unchanged is bound; an input again when it changes, and bound once more after that,
 * to the program that is there. */
static void weights_are_found(void **state) {
    (void)state;
    fac_tensor *t = tensor_of(fac_shape(2), (float[]){ 1, 2 });
    fac_lazy *w;
    OK(fac_lazy_of(rec, t, &w, &err));
    for (int i = 0; i < 12; i++) {
        if (i == 6) OK(fac_tensor_write(t, (float[]){ 5, 6 }, 8, &err));
        fac_lazy *x = lazy_of(fac_shape(2), (float[]){ (float)i, 1 });
        then2(&x, "mul", w);
        const float before[] = { (float)i, 2 }, after[] = { (float)(5 * i), 6 };
        assert_floats(x, i < 6 ? before : after, 2, 0);
        fac_lazy_free(x);
        if (i == 5) assert_int_equal(fac_recorder_stats(rec).states, 4);
    }
    assert_int_equal(fac_recorder_stats(rec).states, 8);
    assert_int_equal(fac_recorder_stats(rec).planned, 2);
    fac_lazy_free(w);
    fac_tensor_free(t);
    assert_int_equal(fac_recorder_stats(rec).programs, 1); /* that which was bound to it went */
}

/* Batches that are held and come in turns are no weights, nor is one tensor after the other that
 * lies where the last one lay. */
static void turns_are_inputs(void **state) {
    (void)state;
    fac_lazy *held[] = { lazy_of(fac_shape(2), (float[]){ 1, 2 }),
                         lazy_of(fac_shape(2), (float[]){ 3, 4 }) };
    for (int i = 0; i < 12; i++) {
        fac_lazy *fresh = lazy_of(fac_shape(2), (float[]){ (float)i, 1 }),
                 *x = fac_lazy_retain(held[i % 2]);
        then2(&x, "mul", fresh);
        const int first = 1 + 2 * (i % 2);
        assert_floats(x, (float[]){ (float)(i * first), (float)(first + 1) }, 2, 0);
        fac_lazy_free(x);
        fac_lazy_free(fresh);
    }
    assert_int_equal(fac_recorder_stats(rec).states, 0);
    assert_int_equal(fac_recorder_stats(rec).planned, 1);
    for (int i = 0; i < 2; i++) fac_lazy_free(held[i]);
}

static void places(void *self, fac_graph *g, fac_value *const in[], fac_value *y[]) {
    (void)self, (void)g;
    y[0] = fac_nonzero(in[0]);
}

static void steered_by_data(void **state) {
    (void)state;
    const float a[] = { 0, 3, 0, 4, 5, 0 };
    fac_lazy *x = lazy_of(fac_shape(6), a), *shape, *flat;
    OK(fac_lazy_ints(rec, 2, (int64_t[]){ 2, -1 }, &shape, &err));
    fac_lazy *y = op2("reshape", x, shape);
    assert_int_equal(fac_lazy_type(y).dims.d[1], 3);
    fac_lazy *where; /* its size is known when it was computed */
    OK(fac_record_graph(rec, places, NULL, 1, &x, 0, 1, &where, &err));
    assert_int_equal(fac_lazy_type(where).dims.d[1], 3);
    OK(fac_lazy_ints(rec, 1, (int64_t[]){ -1 }, &flat, &err));
    fac_lazy *doubled = op2("add", shape, shape);    /* [4,-2]: computed, then it steers */
    fac_lazy *one_more = op2("sub", doubled, shape); /* [2,-1] */
    fac_lazy *z = op2("reshape", x, one_more);
    assert_int_equal(fac_lazy_type(z).dims.d[1], 3);
    fac_lazy *all[] = { x, shape, y, where, flat, doubled, one_more, z };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fac_lazy_free(all[i]);
}

static void writes_where_it_is_told(void **state) {
    (void)state;
    fac_lazy *x = lazy_of(fac_shape(3), (float[]){ 1, 2, 3 }), *y = op1("neg", x),
             *z = op1("neg", y);
    fac_tensor *to;
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(3), &to, &err));
    OK(fac_lazy_write(y, to, &err));
    const float *have = fac_tensor_data(to);
    assert_true(have[0] == -1 && have[2] == -3);
    OK(fac_lazy_write(z, to, &err));
    assert_true(have[0] == 1 && have[2] == 3);
    fac_tensor *wrong;
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(4), &wrong, &err));
    assert_int_equal(fac_lazy_write(z, wrong, &err), FAC_E_SHAPE);
    fac_tensor_free(wrong);
    fac_tensor_free(to);
    fac_lazy_free(x);
    fac_lazy_free(y);
    fac_lazy_free(z);
}

static void wrong_ops_change_nothing(void **state) {
    (void)state;
    fac_lazy *x = lazy_of(fac_shape(3), (float[]){ 1, 2, 3 }),
             *w = lazy_of(fac_shape(2), (float[]){ 1, 2 }), *y;
    fac_lazy *z = op1("neg", x);
    const fac_op *add = &fac_op_add;
    assert_int_equal(fac_record(rec, add, NULL, 2, (fac_lazy *[]){ z, w }, 0, 1, &y, &err),
                     FAC_E_SHAPE);
    assert_non_null(strstr(err.text, "f32[3]"));
    assert_int_equal(fac_record(rec, add, NULL, 1, &z, 0, 1, &y, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_record(rec, NULL, NULL, 1, &z, 0, 1, &y, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_record_text(rec, add, "no=3", 1, &z, 0, 1, &y, &err), FAC_E_FORMAT);
    assert_int_equal(
        fac_record(rec, add, NULL, 2, (fac_lazy *[]){ z, w }, FAC_RECORD_NOW, 1, &y, &err),
        FAC_E_SHAPE);
    fac_recorder *other;
    OK(fac_recorder_new(device, NULL, &other, &err));
    assert_int_equal(fac_record(other, add, NULL, 2, (fac_lazy *[]){ x, x }, 0, 1, &y, &err),
                     FAC_E_ARGUMENT);
    fac_recorder_free(other);
    assert_floats(z, (float[]){ -1, -2, -3 }, 3, 0);
    fac_lazy_free(x);
    fac_lazy_free(w);
    fac_lazy_free(z);
}

/* An index out of range is found in the run: who reads values of that segment is told. */
static void lost_values_say_why(void **state) {
    (void)state;
    fac_lazy *x = lazy_of(fac_shape(3), (float[]){ 1, 2, 3 }), *five;
    fac_tensor *t;
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(1), &t, &err));
    OK(fac_tensor_write(t, (int64_t[]){ 5 }, 8, &err));
    OK(fac_lazy_of(rec, t, &five, &err));
    fac_lazy *bad = op2("gather", x, five), *other = op1("neg", x);
    assert_int_not_equal(fac_lazy_tensor(bad, &t, &err), FAC_OK);
    assert_non_null(strstr(err.text, "gather"));
    fac_tensor *none;
    assert_int_not_equal(fac_lazy_tensor(other, &none, &err), FAC_OK);
    assert_non_null(strstr(err.text, "not computed"));
    fac_lazy *again = op1("neg", x);
    assert_floats(again, (float[]){ -1, -2, -3 }, 3, 0);
    fac_lazy *all[] = { x, five, bad, other, again };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fac_lazy_free(all[i]);
    fac_tensor_free(t);
}

static void eager_runs_at_once(void **state) {
    (void)state;
    fac_recorder_set_eager(rec, true);
    fac_lazy *x = lazy_of(fac_shape(3), (float[]){ 1, 2, 3 }), *half = number(0.5);
    for (int i = 0; i < 10; i++) {
        fac_lazy *y = op2("mul", x, half);
        assert_false(fac_lazy_pending(y));
        assert_floats(y, (float[]){ 0.5f, 1, 1.5f }, 3, 0);
        fac_lazy_free(y);
    }
    assert_int_equal(fac_recorder_stats(rec).now_planned, 1);
    assert_int_equal(fac_recorder_stats(rec).flushes, 0);
    fac_lazy_free(x);
    fac_lazy_free(half);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(records_and_computes, open_recorder, close_recorder),
        cmocka_unit_test_setup_teardown(finds_segments_again, open_recorder, close_recorder),
        cmocka_unit_test_setup_teardown(numbers_become_inputs, open_recorder, close_recorder),
        cmocka_unit_test_setup_teardown(states_are_updated, open_recorder, close_recorder),
        cmocka_unit_test_setup_teardown(states_swap, open_recorder, close_recorder),
        cmocka_unit_test_setup_teardown(weights_are_found, open_recorder, close_recorder),
        cmocka_unit_test_setup_teardown(turns_are_inputs, open_recorder, close_recorder),
        cmocka_unit_test_setup_teardown(steered_by_data, open_recorder, close_recorder),
        cmocka_unit_test_setup_teardown(writes_where_it_is_told, open_recorder, close_recorder),
        cmocka_unit_test_setup_teardown(wrong_ops_change_nothing, open_recorder, close_recorder),
        cmocka_unit_test_setup_teardown(lost_values_say_why, open_recorder, close_recorder),
        cmocka_unit_test_setup_teardown(eager_runs_at_once, open_recorder, close_recorder),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_device);
}
