/* Sessions: each has a thread, which lets commands run between its slices. */
#include "studio/server/session.h"
#include <pthread.h>
#include <stdatomic.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

#define FRAME_NS INT64_C(22000000) /* between two pictures */

struct session {
    const page *page;
    void *self;
    frames *frames;
    pthread_t thread;
    pthread_mutex_t turn; /* of self */
    pthread_cond_t wake;
    atomic_int waiting;   /* commands that wait */
    int64_t shown;        /* when the last frames were made */
    _Atomic int64_t used; /* when the last command came */
    bool stop, fresh;     /* fresh: there was a command since the last frames */
};

static void show(session *s) {
    const int64_t now = fac_now_ns();
    if (!s->fresh && (now - s->shown < FRAME_NS || !fac_frames_taken(s->frames))) return;
    s->shown = now;
    s->fresh = false;
    s->page->show(s->self, s->frames);
}

static void pause_for(session *s, int64_t ns) {
    const int64_t until = fac_now_ns() + (ns < 0 || ns > 10 * FRAME_NS ? 10 * FRAME_NS : ns);
    const struct timespec end = { until / 1000000000, until % 1000000000 };
    pthread_cond_timedwait(&s->wake, &s->turn, &end);
}

static void *work(void *self) {
    session *s = self;
    pthread_mutex_lock(&s->turn);
    while (!s->stop) {
        const int64_t pause = s->page->work(s->self);
        show(s);
        if (atomic_load(&s->waiting))
            pause_for(s, FRAME_NS);
        else if (pause)
            pause_for(s, pause > 0 && pause < FRAME_NS ? pause : FRAME_NS);
    }
    pthread_mutex_unlock(&s->turn);
    return NULL;
}

static fac_status start(session *s, fac_error *err) {
    if (pthread_create(&s->thread, NULL, work, s))
        return fac_raise(err, FAC_E_NOMEM, "cannot start a thread for the page");
    return FAC_OK;
}

static void init(session *s) {
    pthread_condattr_t how;
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &how);
    pthread_condattr_destroy(&how);
    pthread_mutex_init(&s->turn, NULL);
    atomic_init(&s->waiting, 0);
    s->fresh = true;
    atomic_init(&s->used, fac_now_ns());
}

static void release(session *s) {
    fac_frames_free(s->frames);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->turn);
    fac_release(s);
}

fac_status fac_studio_session_new(const page *p, const studio_means *with, const cJSON *how,
                                  session **out, fac_error *err) {
    session *s = fac_alloc(1, sizeof *s);
    if (!s) return fac_raise_memory(err, "a session");
    init(s);
    s->page = p;
    s->frames = fac_frames_new();
    fac_status status =
        s->frames ? p->open(with, how, &s->self, err) : fac_raise_memory(err, "a session");
    if (!status) status = start(s, err);
    if (status) {
        if (s->self) p->close(s->self);
        release(s);
        return status;
    }
    *out = s;
    return FAC_OK;
}

static void enter(session *s) {
    atomic_fetch_add(&s->waiting, 1);
    pthread_mutex_lock(&s->turn);
    atomic_fetch_sub(&s->waiting, 1);
    atomic_store(&s->used, fac_now_ns());
}

static void leave(session *s) {
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->turn);
}

void fac_studio_session_free(session *s) {
    if (!s) return;
    fac_frames_end(s->frames);
    enter(s);
    s->stop = true;
    leave(s);
    pthread_join(s->thread, NULL);
    s->page->close(s->self);
    release(s);
}

fac_status fac_studio_session_command(session *s, const cJSON *what, fac_text *answer,
                                      fac_error *err) {
    enter(s);
    const fac_status status = s->page->command(s->self, what, answer, err);
    s->fresh = true;
    leave(s);
    return status;
}

fac_status fac_studio_session_file(session *s, const char *name, fac_text *out, const char **type,
                                   fac_error *err) {
    if (!s->page->file) return fac_raise(err, FAC_E_ARGUMENT, "this page has no files to export");
    enter(s);
    const fac_status status = s->page->file(s->self, name, out, type, err);
    leave(s);
    return status;
}

fac_status fac_studio_session_put(session *s, const char *name, const void *bytes, size_t n,
                                  fac_error *err) {
    if (!s->page->put) return fac_raise(err, FAC_E_ARGUMENT, "this page accepts no files");
    enter(s);
    const fac_status status = s->page->put(s->self, name, bytes, n, err);
    leave(s);
    return status;
}

frames *fac_studio_session_frames(session *s) { return s->frames; }

int64_t fac_studio_session_idle_ns(session *s) {
    return fac_frames_read(s->frames) ? 0 : fac_now_ns() - atomic_load(&s->used);
}
