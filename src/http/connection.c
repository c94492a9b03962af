/* The connections that there are.  A thread looks twice a second for those that take too long to
 * send a request, or to take an answer, and cuts them, so that slow clients hold no place for ever.
 * libmicrohttpd's own timeout would also cut those whose answer takes long to make. */
#include <errno.h>
#include <sys/socket.h>
#include <time.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "http/http.h"

static void cut_slow(fac_http_watch *w) {
    const int64_t now = fac_now_ns();
    for (fac_http_connection *c = w->first; c; c = c->next)
        if (c->phase != FAC_HTTP_WORKS && now - c->since > w->patience)
            shutdown(c->socket, SHUT_RDWR);
}

static void *watch(void *self) {
    fac_http_watch *w = self;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 500000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&w->ends, &w->lock, &until);
        cut_slow(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

fac_status fac_http_watch_start(fac_http_watch *w, int seconds, fac_error *err) {
    *w = (fac_http_watch){ .patience = (int64_t)seconds * 1000000000 };
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->ends, NULL);
    if (!pthread_create(&w->thread, NULL, watch, w)) return FAC_OK;
    pthread_cond_destroy(&w->ends);
    pthread_mutex_destroy(&w->lock);
    return fac_raise(err, FAC_E_NOMEM, "no thread for the server");
}

void fac_http_watch_stop(fac_http_watch *w) {
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->ends);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->ends);
    pthread_mutex_destroy(&w->lock);
}

fac_http_connection *fac_http_connection_new(fac_http_watch *w, int socket) {
    fac_http_connection *c = fac_alloc(1, sizeof *c);
    if (!c) return NULL;
    c->socket = socket;
    c->since = fac_now_ns();
    pthread_mutex_lock(&w->lock);
    c->next = w->first;
    if (w->first) w->first->before = c;
    w->first = c;
    pthread_mutex_unlock(&w->lock);
    return c;
}

void fac_http_connection_free(fac_http_watch *w, fac_http_connection *c) {
    pthread_mutex_lock(&w->lock);
    if (c->next) c->next->before = c->before;
    if (c->before)
        c->before->next = c->next;
    else
        w->first = c->next;
    pthread_mutex_unlock(&w->lock);
    fac_release(c);
}

void fac_http_phase_set(fac_http_watch *w, fac_http_connection *c, fac_http_phase phase) {
    pthread_mutex_lock(&w->lock);
    c->phase = phase;
    c->since = fac_now_ns();
    pthread_mutex_unlock(&w->lock);
}
