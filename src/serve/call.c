/* Requests between the client's thread and the engine's. */
#include <time.h>
#include "base/memory.h"
#include "serve/engine.h"

fac_call *fac_call_new(fac_wish *w, int tasks) {
    fac_call *c = fac_alloc(1, sizeof *c);
    if (!c) return NULL;
    c->tasks = fac_alloc((size_t)tasks, sizeof *c->tasks);
    if (!c->tasks) {
        fac_release(c);
        return NULL;
    }
    c->wish = *w;
    c->ntasks = tasks;
    for (int k = 0; k < tasks; k++) c->tasks[k].call = c;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->moved, NULL);
    atomic_store(&c->users, 1);
    return c;
}

void fac_call_release(fac_call *c) {
    if (atomic_fetch_sub(&c->users, 1) > 1) return;
    for (int k = 0; k < c->ntasks; k++) {
        fac_text_free(&c->tasks[k].text);
        fac_release(c->tasks[k].records);
    }
    fac_release(c->tasks);
    fac_grammar_free(c->grammar);
    fac_wish_free(&c->wish);
    pthread_cond_destroy(&c->moved);
    pthread_mutex_destroy(&c->lock);
    fac_release(c);
}

void fac_call_wait(fac_call *c, int ms) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&c->moved, &c->lock, &until);
}
