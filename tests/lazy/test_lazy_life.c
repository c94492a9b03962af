/* The recorder's life: nothing grows, programs are bounded, threads get equal results, lost
 * memory is an error. */
#include <malloc.h>
#include <pthread.h>
#include "lazy_check.h"
#include "allocations.h"
#include "op_list.h"

/* ---- a small training, both ways ---- */

typedef struct training {
    fac_lazy *x, *w, *m, *rate;
} training;

static training new_training(void) {
    training t;
    stream = 100;
    t.x = lazy_random(fac_shape(4, 3), false);
    t.w = lazy_random(fac_shape(3, 2), true);
    t.m = lazy_random(fac_shape(3, 2), true);
    OK(fac_lazy_require(t.w, true, &err));
    return t;
}

static void free_training(training *t) {
    fac_lazy_free(t->x);
    fac_lazy_free(t->w);
    fac_lazy_free(t->m);
}

static fac_lazy *quiet2(const char *name, fac_lazy *x, fac_lazy *y) {
    fac_lazy *z;
    OK(fac_record(rec, fac_op_find(name), NULL, 2, (fac_lazy *[]){ x, y }, FAC_RECORD_NO_GRAD, 1,
                  &z, &err));
    return z;
}

/* m = 0.9 m + g;  w = w - rate m; the loss is the caller's. */
static fac_lazy *train(training *t, int step) {
    fac_lazy *axes, *loss = op2("matmul", t->x, t->w), *g, *rate = number(0.1 / (1 + step)),
                    *keep = number(0.9);
    OK(fac_lazy_ints(rec, 2, (int64_t[]){ 0, 1 }, &axes, &err));
    then1(&loss, "tanh");
    then2(&loss, "mul", loss);
    then2(&loss, "sum", axes);
    OK(fac_lazy_backward(1, &loss, NULL, 1, &t->w, &g, 0, &err));
    fac_lazy *m = quiet2("mul", t->m, keep), *sum = quiet2("add", m, g),
             *by = quiet2("mul", sum, rate);
    fac_lazy *w = quiet2("sub", t->w, by);
    OK(fac_lazy_assign(t->m, sum, &err));
    OK(fac_lazy_assign(t->w, w, &err));
    fac_lazy *all[] = { axes, g, rate, keep, m, sum, by, w };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fac_lazy_free(all[i]);
    return loss;
}

static void lazy_and_eager_agree(void **state) {
    (void)state;
    float loss[2][30], w[2][6];
    for (int eager = 0; eager < 2; eager++) {
        fac_recorder_set_eager(rec, eager);
        training t = new_training();
        for (int step = 0; step < 30; step++) {
            fac_lazy *l = train(&t, step);
            loss[eager][step] = item(l);
            fac_lazy_free(l);
        }
        read_lazy(t.w, w[eager], 6);
        free_training(&t);
    }
    for (int step = 0; step < 30; step++)
        assert_true(fabsf(loss[0][step] - loss[1][step]) <= 1e-5f * fabsf(loss[1][step]) + 1e-6f);
    for (int i = 0; i < 6; i++) assert_true(fabsf(w[0][i] - w[1][i]) < 1e-5f);
    assert_true(loss[0][29] < loss[0][0]);
}

/* Two programs serve the loop: the rate is a constant, then an input. */
static void a_loop_plans_twice(void **state) {
    (void)state;
    training t = new_training();
    for (int step = 0; step < 100; step++) {
        fac_lazy *l = train(&t, step);
        item(l);
        fac_lazy_free(l);
    }
    const fac_recorder_stat s = fac_recorder_stats(rec);
    assert_int_equal(s.flushes, 100);
    assert_true(s.planned <= 3); /* and x, which comes unchanged, is bound */
    free_training(&t);
    assert_int_equal(fac_recorder_stats(rec).programs, 0);
}

static size_t in_use(void) { return mallinfo2().uordblks; }

/* What grew in the quarter that grew least: a thread that works for the first time takes its room
 * once, a leak is in all four. */
static size_t least_growth(const size_t marks[5]) {
    size_t least = SIZE_MAX;
    for (int k = 0; k < 4; k++) {
        const size_t grown = marks[k + 1] > marks[k] ? marks[k + 1] - marks[k] : 0;
        if (grown < least) least = grown;
    }
    return least;
}

static void nothing_grows(void **state) {
    enum { FIRST = 98, QUARTER = 2475 };
    (void)state;
    for (int eager = 0; eager < 2; eager++) {
        training t = new_training();
        size_t marks[5];
        fac_recorder_set_eager(rec, eager);
        for (int step = 0; step < 10000; step++) {
            fac_lazy *l = train(&t, step);
            if (step % 3) item(l);
            fac_lazy_free(l);
            if (step >= FIRST && (step - FIRST) % QUARTER == 0)
                marks[(step - FIRST) / QUARTER] = in_use();
        }
        assert_true(least_growth(marks) < 2 * QUARTER); /* two bytes a step */
        OK(fac_flush(rec, &err));
        free_training(&t);
    }
}

/* Every size is another program; the cache holds what it may. */
static void programs_are_bounded(void **state) {
    (void)state;
    fac_recorder *small;
    OK(fac_recorder_new(device, &(fac_recorder_opts){ .cache_bytes = 400000 }, &small, &err));
    fac_recorder *own = rec;
    rec = small;
    for (int n = 1; n < 60; n++) {
        fac_lazy *x = lazy_random(fac_shape(n), false);
        then1(&x, "exp");
        then1(&x, "tanh");
        float y[60];
        read_lazy(x, y, (size_t)n);
        assert_true(isfinite(y[n - 1]));
        fac_lazy_free(x);
    }
    assert_true(fac_recorder_stats(rec).bytes <= 400000);
    assert_in_range(fac_recorder_stats(rec).programs, 2, 20);
    fac_recorder_free(small);
    rec = own;
}

static fac_lazy *scaled(fac_lazy *x, fac_lazy *a, fac_lazy *b, fac_lazy *c) {
    fac_lazy *y = op2("mul", x, a);
    then2(&y, "add", b);
    then2(&y, "mul", c);
    return y;
}

/* A number that changed at one size is no constant of the others: each size is planned once. */
static void sizes_are_planned_once(void **state) {
    (void)state;
    enum { SIZES = 20 };
    for (int turn = 0; turn < 3; turn++)
        for (int n = 1; n <= SIZES; n++) {
            fac_lazy *x = lazy_random(fac_shape(n, 3), false), *rate = number(turn + 0.01 * n);
            fac_lazy *keep = number(2), *y = scaled(x, rate, keep, keep);
            float have[3 * SIZES];
            read_lazy(y, have, (size_t)n * 3);
            assert_true(isfinite(have[0]));
            fac_lazy *all[] = { x, rate, keep, y };
            for (size_t i = 0; i < sizeof all / sizeof *all; i++) fac_lazy_free(all[i]);
        }
    const fac_recorder_stat s = fac_recorder_stats(rec);
    assert_int_equal(s.flushes, 3 * SIZES);
    assert_in_range(s.planned, SIZES, SIZES + 1);
}

/* The same ops, of numbers here and of tensors there. */
static void numbers_are_no_tensors(void **state) {
    (void)state;
    for (int numbers = 0; numbers < 8; numbers++)
        for (int turn = 1; turn < 4; turn++) {
            const float part[3] = { (float)turn, 2, (float)turn };
            fac_lazy *x = lazy_of(fac_shape(2), (float[]){ 1, 3 }), *a[3];
            for (int k = 0; k < 3; k++)
                a[k] =
                    numbers >> k & 1 ? number((double)part[k]) : lazy_of((fac_dims){ 0 }, &part[k]);
            fac_lazy *y = scaled(x, a[0], a[1], a[2]);
            const float t = (float)turn;
            assert_floats(y, (float[]){ (t + 2) * t, (3 * t + 2) * t }, 2, 1e-5);
            fac_lazy *all[] = { x, a[0], a[1], a[2], y };
            for (size_t i = 0; i < sizeof all / sizeof *all; i++) fac_lazy_free(all[i]);
        }
}

/* More ops than a segment may have. */
static void long_segments_are_cut(void **state) {
    (void)state;
    fac_recorder *small, *own = rec;
    OK(fac_recorder_new(device, &(fac_recorder_opts){ .most_nodes = 16 }, &small, &err));
    rec = small;
    fac_lazy *x = lazy_of(fac_shape(2), (float[]){ 1, 2 });
    fac_lazy *one = number(1);
    for (int i = 0; i < 100; i++) then2(&x, "add", one);
    assert_true(fac_recorder_stats(rec).pending < 16);
    assert_true(fac_recorder_stats(rec).flushes >= 6);
    assert_floats(x, (float[]){ 101, 102 }, 2, 0);
    fac_lazy_free(x);
    fac_lazy_free(one);
    fac_recorder_free(small);
    rec = own;
}

/* A history of 100,000 ops goes without a stack of that depth. */
static void long_histories_go(void **state) {
    (void)state;
    fac_lazy *x = lazy_of((fac_dims){ 0 }, (float[]){ 1 }), *one = number(0), *y, *d;
    OK(fac_lazy_require(x, true, &err));
    y = fac_lazy_retain(x);
    for (int i = 0; i < 100000; i++) then2(&y, "add", one);
    assert_true(item(y) == 1);
    fac_lazy_free(y);
    y = fac_lazy_retain(x);
    for (int i = 0; i < 2000; i++) then2(&y, "add", one);
    OK(fac_lazy_backward(1, &y, NULL, 1, &x, &d, 0, &err));
    assert_true(item(d) == 1);
    fac_lazy_free(x);
    fac_lazy_free(one);
    fac_lazy_free(y);
    fac_lazy_free(d);
}

/* ---- threads ---- */

enum { THREADS = 6, TURNS = 60 };
static fac_lazy *common;

static void *thread_main(void *arg) {
    const int me = *(int *)arg;
    bool good = true;
    for (int i = 0; i < TURNS && good; i++) {
        fac_error e = { 0 };
        fac_lazy *y = NULL, *z = NULL;
        fac_tensor *t = NULL;
        float have[3] = { 0 };
        const unsigned now = (me + i) % 3 ? 0 : FAC_RECORD_NOW;
        good = !fac_record(rec, &fac_op_add, NULL, 2, (fac_lazy *[]){ common, common }, now, 1, &y,
                           &e);
        for (int k = 0; k < me && good; k++) {
            good =
                !fac_record(rec, &fac_op_add, NULL, 2, (fac_lazy *[]){ y, common }, now, 1, &z, &e);
            fac_lazy_free(y);
            y = z;
        }
        good = good && !fac_lazy_tensor(y, &t, &e) && !fac_tensor_read(t, have, sizeof have, &e);
        for (int k = 0; k < 3; k++) good = good && have[k] == (float)((k + 1) * (me + 2));
        if (!good) fprintf(stderr, "thread %d, turn %d: %s\n", me, i, e.text);
        fac_tensor_free(t);
        fac_lazy_free(y);
    }
    return good ? arg : NULL;
}

static void threads_agree(void **state) {
    (void)state;
    pthread_t thread[THREADS];
    int number_of[THREADS];
    common = lazy_of(fac_shape(3), (float[]){ 1, 2, 3 });
    for (int i = 0; i < THREADS; i++) {
        number_of[i] = i;
        assert_int_equal(pthread_create(&thread[i], NULL, thread_main, &number_of[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *good;
        pthread_join(thread[i], &good);
        assert_non_null(good);
    }
    fac_lazy_free(common);
}

/* ---- memory that is not there ---- */

static bool step_without_memory(training *t, float *loss) {
    fac_lazy *axes = NULL, *l = NULL, *y = NULL, *g = NULL, *w = NULL;
    fac_tensor *out = NULL;
    const fac_op *matmul = &fac_op_matmul, *sum = &fac_op_sum, *sub = &fac_op_sub;
    bool ok = !fac_lazy_ints(rec, 2, (int64_t[]){ 0, 1 }, &axes, &err);
    ok = ok && !fac_record(rec, matmul, NULL, 2, (fac_lazy *[]){ t->x, t->w }, 0, 1, &y, &err);
    ok = ok && !fac_record(rec, sum, NULL, 2, (fac_lazy *[]){ y, axes }, 0, 1, &l, &err);
    ok = ok && !fac_lazy_backward(1, &l, NULL, 1, &t->w, &g, 0, &err);
    ok = ok &&
         !fac_record(rec, sub, NULL, 2, (fac_lazy *[]){ t->w, g }, FAC_RECORD_NO_GRAD, 1, &w, &err);
    ok = ok && !fac_lazy_assign(t->m, w, &err);
    ok = ok && !fac_lazy_tensor(l, &out, &err) && !fac_tensor_read(out, loss, sizeof *loss, &err);
    fac_tensor_free(out);
    fac_lazy *all[] = { axes, l, y, g, w };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fac_lazy_free(all[i]);
    return ok;
}

/* The two losses that a step may have, with all memory: x is an input of the first programs and a
 * state of the later ones, whose product may add in another order. */
static void losses_of_steps(float want[2]) {
    training t = new_training();
    for (int step = 0; step < 5; step++) assert_true(step_without_memory(&t, &want[step > 0]));
    free_training(&t);
    assert_true(fabsf(want[1] - want[0]) < 1e-5f);
}

/* One step with so many allocations; true: none was refused. */
static bool step_with(long left, training *t, const float want[2], int *failures) {
    float loss = 0;
    fac_recorder_trim(rec);
    err = (fac_error){ 0 };
    allocations_left = left;
    const bool ok = step_without_memory(t, &loss);
    const bool all = allocations_left > 0;
    allocations_left = -1;
    if (ok)
        assert_true(loss == want[0] || loss == want[1]);
    else
        assert_int_not_equal(err.status, FAC_OK);
    fac_flush(rec, NULL);
    *failures += !ok;
    return all;
}

static void lost_memory_is_an_error(void **state) {
    (void)state;
    for (int eager = 0; eager < 2; eager++) {
        float want[2], again;
        int failures = 0;
        long left = 0;
        fac_recorder_set_eager(rec, eager);
        losses_of_steps(want);
        training t = new_training();
        while (!step_with(left, &t, want, &failures)) left += 1 + left / 40;
        assert_true(failures > 10);
        assert_true(step_without_memory(&t, &again));
        assert_true(again == want[0] || again == want[1]);
        free_training(&t);
    }
}

#define LAZY_TEST(f) cmocka_unit_test_setup_teardown(f, open_recorder, close_recorder)
int main(void) {
    const struct CMUnitTest tests[] = {
        LAZY_TEST(lazy_and_eager_agree),   LAZY_TEST(a_loop_plans_twice),
        LAZY_TEST(nothing_grows),          LAZY_TEST(programs_are_bounded),
        LAZY_TEST(sizes_are_planned_once), LAZY_TEST(numbers_are_no_tensors),
        LAZY_TEST(long_segments_are_cut),  LAZY_TEST(long_histories_go),
        LAZY_TEST(threads_agree),          LAZY_TEST(lost_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_device);
}
