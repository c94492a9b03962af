/* Fork and join.
 *
 * Each worker owns one word on a cache line of its own, with the offer beside it.  A caller offers
 * work by writing it, a worker takes the offer with a compare-and-swap and says on the same word
 * when it is done: nothing is counted by all, so many threads cost a caller little more than the
 * way of their lines, which are all under way at once.  When the caller has finished its own part
 * it takes back the offers that nothing took yet, so it never waits for a worker that is still
 * asleep, only for those that run.  An idle worker watches its word for a while and then sleeps on
 * a condition variable. */
#include "base/clock.h"
#include "base/threads.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include "base/memory.h"

enum { CACHE_LINE = 64, SPIN_NS = 200000 };

/* What a worker's word says. */
enum { IDLE, OFFERED, RUNS, QUIT };

typedef struct worker {
    _Alignas(CACHE_LINE) atomic_int state;
    int n; /* the offer: see run_share; written before the word */
    void (*task)(void *arg, int i);
    void *arg;
    int index; /* which task of a call is its own */
    fac_threads *pool;

    _Alignas(CACHE_LINE) atomic_bool asleep;
    pthread_t thread;
    pthread_mutex_t lock; /* for sleeping only */
    pthread_cond_t wake;
} worker;

struct fac_threads {
    int threads;     /* workers and the caller */
    worker *workers; /* [threads - 1]          */

    _Alignas(CACHE_LINE) atomic_flag busy; /* a call is being served                      */
    atomic_int asleep;                     /* workers that sleep, or are about to         */

    _Alignas(CACHE_LINE) atomic_bool waiting; /* the caller sleeps, or is about to           */
    pthread_mutex_t lock;
    pthread_cond_t done;
};

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Tasks i, i + threads, i + 2 threads...: in the usual call there is one for each thread. */
static void run_share(const fac_threads *t, int first, int n, void (*task)(void *arg, int i),
                      void *arg) {
    for (int i = first; i < n; i += t->threads) task(arg, i);
}

static int state_of(worker *w) { return atomic_load_explicit(&w->state, memory_order_acquire); }

/* An offer becomes `to`.  Looking first leaves the line where it is when there is none. */
static bool take(worker *w, int to) {
    int offered = OFFERED;
    return atomic_load_explicit(&w->state, memory_order_relaxed) == OFFERED &&
           atomic_compare_exchange_strong_explicit(&w->state, &offered, to, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* One of two comes later on t->asleep: this, and sees what the word says; or wake_sleepers(), and
 * sees that somebody sleeps. */
static void fall_asleep(worker *w) {
    fac_threads *t = w->pool;
    pthread_mutex_lock(&w->lock);
    atomic_store_explicit(&w->asleep, true, memory_order_relaxed);
    atomic_fetch_add(&t->asleep, 1);
    while (state_of(w) == IDLE) pthread_cond_wait(&w->wake, &w->lock);
    atomic_store_explicit(&w->asleep, false, memory_order_relaxed);
    atomic_fetch_sub(&t->asleep, 1);
    pthread_mutex_unlock(&w->lock);
}

/* After what the words of the first `workers` have been told. */
static void wake_sleepers(fac_threads *t, int workers) {
    if (!atomic_fetch_add(&t->asleep, 0)) return;
    for (int k = 0; k < workers; k++) {
        worker *w = &t->workers[k];
        if (!atomic_load(&w->asleep)) continue;
        pthread_mutex_lock(&w->lock);
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
    }
}

static void *work(void *arg) {
    worker *w = arg;
    fac_threads *t = w->pool;
    int64_t since = fac_now_ns();
    for (unsigned turn = 1;; turn++) {
        if (take(w, RUNS)) {
            run_share(t, w->index, w->n, w->task, w->arg);
            atomic_store(&w->state, IDLE);
            if (atomic_load(&t->waiting)) {
                pthread_mutex_lock(&t->lock);
                pthread_cond_signal(&t->done);
                pthread_mutex_unlock(&t->lock);
            }
            since = fac_now_ns();
        } else if (state_of(w) == QUIT) {
            return NULL;
        } else if (turn % 64 == 0 && fac_now_ns() - since > SPIN_NS) {
            fall_asleep(w);
            since = fac_now_ns();
        }
        relax();
    }
}

static void wait_for(fac_threads *t, worker *w) {
    int64_t since = 0;
    for (unsigned turn = 1; state_of(w) != IDLE; turn++) {
        relax();
        if (turn % 64) continue;
        if (!since) since = fac_now_ns();
        if (fac_now_ns() - since < SPIN_NS) continue;
        pthread_mutex_lock(&t->lock);
        atomic_store(&t->waiting, true);
        while (atomic_load(&w->state) != IDLE) pthread_cond_wait(&t->done, &t->lock);
        atomic_store(&t->waiting, false);
        pthread_mutex_unlock(&t->lock);
    }
}

static void run_all(void *self, int n, void (*task)(void *arg, int i), void *arg) {
    fac_threads *t = self;
    const int workers = n < t->threads ? n - 1 : t->threads - 1;
    if (workers < 1 || atomic_flag_test_and_set_explicit(&t->busy, memory_order_acquire)) {
        for (int i = 0; i < n; i++) task(arg, i);
        return;
    }
    for (int k = 0; k < workers; k++) {
        worker *w = &t->workers[k];
        w->n = n;
        w->task = task;
        w->arg = arg;
        atomic_store_explicit(&w->state, OFFERED, memory_order_release);
    }
    wake_sleepers(t, workers);
    run_share(t, 0, n, task, arg);
    for (int k = 0; k < workers; k++)
        if (take(&t->workers[k], IDLE)) run_share(t, t->workers[k].index, n, task, arg);
    for (int k = 0; k < workers; k++) wait_for(t, &t->workers[k]);
    atomic_flag_clear_explicit(&t->busy, memory_order_release);
}

/* The program's signals are for its own threads. */
static bool start(worker *w) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    atomic_init(&w->state, IDLE);
    atomic_init(&w->asleep, false);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool started = !pthread_create(&w->thread, NULL, work, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!started) {
        pthread_cond_destroy(&w->wake);
        pthread_mutex_destroy(&w->lock);
    }
    return started;
}

fac_threads *fac_threads_new(int threads) {
    if (threads <= 0) threads = fac_cores();
    if (threads > FAC_MOST_THREADS) threads = FAC_MOST_THREADS;
    size_t workers = (size_t)threads - 1;
    fac_threads *t = fac_alloc_aligned(sizeof *t);
    worker *w = fac_alloc_aligned(workers * sizeof *w);
    if (!t || !w) {
        fac_release_aligned(t);
        fac_release_aligned(w);
        return NULL;
    }
    t->threads = 1;
    t->workers = w;
    atomic_flag_clear(&t->busy);
    atomic_init(&t->asleep, 0);
    atomic_init(&t->waiting, false);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->done, NULL);
    for (size_t k = 0; k < workers; k++) {
        w[k].index = (int)k + 1;
        w[k].pool = t;
        if (!start(&w[k])) break;
        t->threads++;
    }
    return t;
}

void fac_threads_free(fac_threads *t) {
    if (!t) return;
    for (int k = 0; k < t->threads - 1; k++) atomic_store(&t->workers[k].state, QUIT);
    wake_sleepers(t, t->threads - 1);
    for (int k = 0; k < t->threads - 1; k++) {
        pthread_join(t->workers[k].thread, NULL);
        pthread_cond_destroy(&t->workers[k].wake);
        pthread_mutex_destroy(&t->workers[k].lock);
    }
    pthread_cond_destroy(&t->done);
    pthread_mutex_destroy(&t->lock);
    fac_release_aligned(t->workers);
    fac_release_aligned(t);
}

fac_pool fac_threads_pool(fac_threads *t) { return (fac_pool){ t->threads, t, run_all }; }

/* ---- sharing items out, over any pool ---- */

typedef struct share {
    _Alignas(CACHE_LINE) atomic_int taken;
} share;
typedef struct job {
    int n, shares;
    fac_task *task;
    void *arg;
    share *share;
} job;

static int begin_of(const job *j, int k) { return (int)((int64_t)j->n * k / j->shares); }

/* The own share first, then what is left of the others', nearest first. */
static void run_items(void *arg, int thread) {
    const job *j = arg;
    for (int k = 0; k < j->shares; k++) {
        int of = (thread + k) % j->shares, first = begin_of(j, of),
            size = begin_of(j, of + 1) - first;
        /* looking before taking keeps thieves off the counters of finished shares */
        while (atomic_load_explicit(&j->share[of].taken, memory_order_relaxed) < size) {
            int i = atomic_fetch_add_explicit(&j->share[of].taken, 1, memory_order_relaxed);
            if (i < size) j->task(j->arg, first + i, thread);
        }
    }
}

void fac_parallel(const fac_pool *pool, int n, fac_task *task, void *arg) {
    int threads = pool ? pool->threads : 1;
    if (threads > n) threads = n;
    if (threads > FAC_MOST_THREADS) threads = FAC_MOST_THREADS;
    if (threads < 2) {
        for (int i = 0; i < n; i++) task(arg, i, 0);
        return;
    }
    share shares[FAC_MOST_THREADS];
    for (int k = 0; k < threads; k++) atomic_init(&shares[k].taken, 0);
    job j = { n, threads, task, arg, shares };
    pool->run(pool->self, threads, run_items, &j);
}
