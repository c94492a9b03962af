/* What grows by concat: programs are few, results exact, and rows that were there stay what they
 * were. */
#include "allocations.h"
#include "lazy_check.h"

enum { WIDTH = 3, STEPS = 200 };

static float row_of(int step, int k) { return (float)((7 * step + 3 * k) % 11) - 5; }

static fac_lazy *row(int step) {
    float x[WIDTH];
    for (int k = 0; k < WIDTH; k++) x[k] = row_of(step, k);
    return lazy_of(fac_shape(1, WIDTH), x);
}

/* The caller's; *x is freed. */
static fac_status grow(fac_lazy **x, int step) {
    fac_lazy *next = row(step), *y;
    const fac_status status = fac_record_text(rec, fac_op_find("concat"), "axis=0", 2,
                                              (fac_lazy *[]){ *x, next }, 0, 1, &y, &err);
    fac_lazy_free(next);
    if (status) return status;
    fac_lazy_free(*x);
    *x = y;
    return FAC_OK;
}

/* softmax(q x^T) x for a q of ones. */
static fac_status weighted(fac_lazy *x, float to[WIDTH]) {
    static const float ones[WIDTH] = { 1, 1, 1 };
    fac_lazy *q = lazy_of(fac_shape(1, WIDTH), ones), *t = NULL, *s = NULL, *p = NULL, *y = NULL;
    fac_tensor *have = NULL;
    fac_status status =
        fac_record_text(rec, fac_op_find("transpose"), "perm=1,0", 1, &x, 0, 1, &t, &err);
    if (!status)
        status = fac_record_text(rec, fac_op_find("matmul"), NULL, 2, (fac_lazy *[]){ q, t }, 0, 1,
                                 &s, &err);
    if (!status)
        status = fac_record_text(rec, fac_op_find("softmax"), "axis=1", 1, &s, 0, 1, &p, &err);
    if (!status)
        status = fac_record_text(rec, fac_op_find("matmul"), NULL, 2, (fac_lazy *[]){ p, x }, 0, 1,
                                 &y, &err);
    if (!status) status = fac_lazy_tensor(y, &have, &err);
    if (!status) status = fac_tensor_read(have, to, WIDTH * sizeof *to, &err);
    fac_tensor_free(have);
    fac_lazy_free(q);
    fac_lazy_free(t);
    fac_lazy_free(s);
    fac_lazy_free(p);
    fac_lazy_free(y);
    return status;
}

static void assert_weighted(const float have[WIDTH], int rows) {
    double sum = 0, want[WIDTH] = { 0 };
    for (int i = 0; i < rows; i++) {
        double s = 0;
        for (int k = 0; k < WIDTH; k++) s += (double)row_of(i, k);
        s = exp(s);
        sum += s;
        for (int k = 0; k < WIDTH; k++) want[k] += s * (double)row_of(i, k);
    }
    for (int k = 0; k < WIDTH; k++)
        if (!(fabs((double)have[k] - want[k] / sum) < 1e-4))
            fail_msg("%d rows, element %d: %g, not %g", rows, k, (double)have[k], want[k] / sum);
}

static void assert_rows(fac_lazy *x, int rows) {
    float have[(STEPS + 1) * WIDTH];
    assert_int_equal(fac_lazy_type(x).dims.d[0], rows);
    read_lazy(x, have, (size_t)rows * WIDTH);
    for (int i = 0; i < rows * WIDTH; i++) assert_true(have[i] == row_of(i / WIDTH, i % WIDTH));
}

static void grows_with_few_programs(void **state) {
    (void)state;
    float y[WIDTH];
    fac_lazy *x = row(0), *early = NULL;
    for (int step = 1; step <= STEPS; step++) {
        OK(grow(&x, step));
        OK(weighted(x, y));
        assert_weighted(y, step + 1);
        assert_true(step < 3 || fac_lazy_pending(x));
        if (step == 20) early = fac_lazy_retain(x);
    }
    assert_true(fac_recorder_stats(rec).planned <= 12); /* rooms of 64, 128, 192 and 256 rows */
    assert_rows(x, STEPS + 1);
    assert_rows(early, 21);
    assert_false(fac_lazy_pending(x));
    fac_lazy_free(x);
    fac_lazy_free(early);
}

/* Joined again within one segment, as networks do: nothing grows, and nothing gets room. */
static void joins_of_one_segment_are_exact(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        fac_lazy *x = row(0);
        for (int step = 1; step < 5; step++) OK(grow(&x, step));
        fac_lazy *y = op1("neg", x);
        assert_int_equal(fac_recorder_stats(rec).pending, 5);
        float have[5 * WIDTH];
        read_lazy(y, have, 5 * WIDTH);
        assert_true(have[14] == -row_of(4, 2));
        fac_lazy_free(x);
        fac_lazy_free(y);
    }
    assert_int_equal(fac_recorder_stats(rec).planned, 1);
}

/* Who reads all of it in each step pays for no room. */
static void read_whole_it_is_joined_as_before(void **state) {
    (void)state;
    fac_lazy *x = row(0);
    for (int step = 1; step < 20; step++) {
        OK(grow(&x, step));
        assert_rows(x, step + 1);
        assert_false(fac_lazy_pending(x));
        if (step < 4) continue;
        fac_lazy *old = fac_lazy_retain(x);
        OK(grow(&x, step + 1));
        assert_int_equal(fac_recorder_stats(rec).pending, 1);
        fac_lazy_free(x);
        x = old;
    }
    fac_lazy_free(x);
}

static void freed_unread_it_is_not_computed(void **state) {
    (void)state;
    float y[WIDTH];
    fac_lazy *x = row(0);
    for (int step = 1; step < 6; step++) {
        OK(grow(&x, step));
        OK(weighted(x, y));
    }
    OK(grow(&x, 6));
    fac_lazy_free(x);
    const uint64_t planned = fac_recorder_stats(rec).planned;
    OK(fac_flush(rec, &err));
    assert_int_equal(fac_recorder_stats(rec).planned, planned);
}

static void lost_memory_is_an_error(void **state) {
    (void)state;
    int failures = 0;
    bool all = false;
    for (long left = 0; !all; left += 1 + left / 30) {
        float y[WIDTH];
        fac_lazy *x = row(0);
        for (int step = 1; step < 4; step++) {
            OK(grow(&x, step));
            OK(weighted(x, y));
        }
        fac_lazy *old = fac_lazy_retain(x), *next = row(4), *z = NULL;
        allocations_left = left;
        fac_status status = fac_record_text(rec, fac_op_find("concat"), "axis=0", 2,
                                            (fac_lazy *[]){ x, next }, 0, 1, &z, &err);
        if (!status) {
            fac_tensor *t = NULL;
            status = fac_lazy_tensor(z, &t, &err);
            fac_tensor_free(t);
        }
        all = allocations_left > 0;
        allocations_left = -1;
        failures += status != FAC_OK;
        if (!status) assert_rows(z, 5);
        assert_rows(old, 4);
        fac_lazy_free(next);
        fac_lazy_free(z);
        fac_lazy_free(old);
        fac_lazy_free(x);
        fac_recorder_trim(rec);
    }
    assert_true(failures > 10);
}

/* Attention over what a division makes of rows: the zeros of the room become infinite. */
static void the_room_of_operands_is_not_seen(void **state) {
    (void)state;
    static const float one[1] = { 1 };
    fac_lazy *rows = lazy_of(fac_shape(1, 1, 1, 1), one);
    for (int step = 1; step < 6; step++) {
        fac_lazy *all, *wide, *inverse, *y[2], *q = lazy_of(fac_shape(1, 1, 1, 1), one);
        OK(fac_record_text(rec, fac_op_find("concat"), "axis=2", 2, (fac_lazy *[]){ rows, q }, 0, 1,
                           &all, &err));
        OK(fac_record_text(rec, fac_op_find("cast"), "to=f64", 1, &all, 0, 1, &wide, &err));
        OK(fac_record_text(rec, fac_op_find("reciprocal"), NULL, 1, &wide, 0, 1, &inverse, &err));
        fac_lazy *wide_q;
        OK(fac_record_text(rec, fac_op_find("cast"), "to=f64", 1, &q, 0, 1, &wide_q, &err));
        OK(fac_record_text(rec, fac_op_find("attention"), NULL, 3,
                           (fac_lazy *[]){ wide_q, wide, inverse }, 0, 1, &y[0], &err));
        OK(fac_record_text(rec, fac_op_find("attention"), NULL, 3,
                           (fac_lazy *[]){ wide_q, inverse, wide }, 0, 1, &y[1], &err));
        for (int k = 0; k < 2; k++) {
            fac_tensor *t;
            double have;
            OK(fac_lazy_tensor(y[k], &t, &err));
            OK(fac_tensor_read(t, &have, sizeof have, &err));
            if (!(fabs(have - 1) < 1e-12)) fail_msg("step %d, %d: %g", step, k, have);
            fac_tensor_free(t);
            fac_lazy_free(y[k]);
        }
        fac_lazy_free(rows);
        fac_lazy_free(q);
        fac_lazy_free(wide_q);
        fac_lazy_free(wide);
        fac_lazy_free(inverse);
        rows = all;
    }
    fac_lazy_free(rows);
}

#define ROOM_TEST(f) cmocka_unit_test_setup_teardown(f, open_recorder, close_recorder)
int main(void) {
    const struct CMUnitTest tests[] = {
        ROOM_TEST(grows_with_few_programs),           ROOM_TEST(joins_of_one_segment_are_exact),
        ROOM_TEST(read_whole_it_is_joined_as_before), ROOM_TEST(freed_unread_it_is_not_computed),
        ROOM_TEST(lost_memory_is_an_error),           ROOM_TEST(the_room_of_operands_is_not_seen),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_device);
}
