/* src/base/threads.h: every item runs once, for pools of any size, nested and called from many
 * threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "allocations.h"
#include "base/error.h"
#include "base/threads.h"

enum { ITEMS = 1000 };
typedef struct tally {
    atomic_int count[ITEMS], running[300], clashes;
    int threads;
    const fac_pool *inner;
} tally;

static void count_item(void *arg, int item, int thread) {
    tally *t = arg;
    if (thread < 0 || thread >= t->threads || atomic_fetch_add(&t->running[thread], 1))
        atomic_fetch_add(&t->clashes, 1);
    atomic_fetch_add(&t->count[item], 1);
    if (item % 97 == 0)
        for (volatile int k = 0; k < 5000; k++) {}
    atomic_fetch_sub(&t->running[thread], 1);
}

static void count_once(const fac_pool *pool, int n) {
    tally *t = calloc(1, sizeof *t);
    t->threads = pool ? pool->threads : 1;
    fac_parallel(pool, n, count_item, t);
    for (int i = 0; i < ITEMS; i++)
        if (atomic_load(&t->count[i]) != (i < n))
            fail_msg("item %d of %d ran %d times", i, n, atomic_load(&t->count[i]));
    assert_int_equal(atomic_load(&t->clashes), 0);
    free(t);
}

static void every_item_runs_once(void **state) {
    (void)state;
    count_once(NULL, 0);
    count_once(NULL, 10);
    for (int threads = 1; threads <= 5; threads++) {
        fac_threads *t = fac_threads_new(threads);
        fac_pool pool = fac_threads_pool(t);
        assert_int_equal(pool.threads, threads);
        for (int n = 0; n < 40; n++) count_once(&pool, n);
        for (int k = 0; k < 50; k++) count_once(&pool, ITEMS);
        struct timespec nap = { 0, 1000000 }; /* long enough for the workers to fall asleep */
        nanosleep(&nap, NULL);
        count_once(&pool, ITEMS);
        fac_threads_free(t);
    }
    fac_threads_free(NULL);
    assert_true(fac_cores() >= 1);
}

static void empty_task(void *arg, int item, int thread) { (void)arg, (void)item, (void)thread; }

static void pools_start_and_stop(void **state) {
    (void)state;
    for (int k = 0; k < 200; k++) {
        fac_threads *t = fac_threads_new(4);
        fac_pool pool = fac_threads_pool(t);
        if (k % 3) fac_parallel(&pool, k % 7, empty_task, NULL);
        fac_threads_free(t);
    }
}

static void plain_task(void *arg, int i) { atomic_fetch_add(&((tally *)arg)->count[i], 1); }

static void pool_runs_any_number_of_tasks(void **state) {
    (void)state;
    fac_threads *threads = fac_threads_new(3);
    fac_pool pool = fac_threads_pool(threads);
    for (int n = 0; n <= 20; n++) {
        tally *t = calloc(1, sizeof *t);
        pool.run(pool.self, n, plain_task, t);
        for (int i = 0; i < ITEMS; i++) assert_int_equal(atomic_load(&t->count[i]), i < n);
        free(t);
    }
    fac_threads_free(threads);
}

/* Two callers at once, and calls from inside a task. */
static void nested_item(void *arg, int item, int thread) {
    tally *t = arg;
    (void)item, (void)thread;
    count_once(t->inner, 50);
}

static void *caller(void *arg) {
    fac_pool *pool = arg;
    for (int k = 0; k < 300; k++) {
        count_once(pool, k % 200);
        if (k % 50 == 0) {
            tally t = { .inner = pool };
            fac_parallel(pool, 10, nested_item, &t);
        }
    }
    return NULL;
}

static void callers_at_once_are_served(void **state) {
    (void)state;
    fac_threads *t = fac_threads_new(3);
    fac_pool pool = fac_threads_pool(t);
    pthread_t other[2];
    for (int k = 0; k < 2; k++) pthread_create(&other[k], NULL, caller, &pool);
    caller(&pool);
    for (int k = 0; k < 2; k++) pthread_join(other[k], NULL);
    fac_threads_free(t);
}

/* A caller's pool that runs everything itself, last task first. */
static void run_backwards(void *self, int n, void (*task)(void *arg, int i), void *arg) {
    ++*(int *)self;
    while (n--) task(arg, n);
}

static void a_callers_pool_is_used(void **state) {
    (void)state;
    int calls = 0;
    fac_pool pool = { 4, &calls, run_backwards };
    for (int n = 0; n < 30; n++) count_once(&pool, n);
    assert_int_equal(calls, 28); /* none for 0 and 1 items */
    pool.threads = 100000;
    count_once(&pool, ITEMS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_runs_once),
        cmocka_unit_test(pools_start_and_stop),
        cmocka_unit_test(pool_runs_any_number_of_tasks),
        cmocka_unit_test(callers_at_once_are_served),
        cmocka_unit_test(a_callers_pool_is_used),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
