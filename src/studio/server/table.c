/* The sessions of a studio. */
#include "studio/server/table.h"
#include <string.h>
#include "base/clock.h"
#include "base/error.h"
#include "facula/http.h"

/* Frees ended sessions without users.  The lock is held, except while a session ends. */
static void sweep(table *t) {
    for (int k = 0; k < TABLE_SESSIONS; k++) {
        table_entry *e = &t->of[k];
        if (!e->session || !e->over || e->users) continue;
        session *s = e->session;
        e->users++; /* keeps the entry taken */
        pthread_mutex_unlock(&t->lock);
        fac_studio_session_free(s);
        pthread_mutex_lock(&t->lock);
        *e = (table_entry){ .session = NULL };
    }
}

static void end(table_entry *e) {
    if (!e->session || e->over) return;
    e->over = true;
    fac_frames_end(fac_studio_session_frames(e->session));
}

static void *clean(void *self) {
    table *t = self;
    pthread_mutex_lock(&t->lock);
    while (!t->stop) {
        const int64_t until = fac_now_ns() + 1000000000;
        const struct timespec when = { until / 1000000000, until % 1000000000 };
        pthread_cond_timedwait(&t->wake, &t->lock, &when);
        for (int k = 0; k < TABLE_SESSIONS; k++) {
            table_entry *e = &t->of[k];
            if (e->session && !e->users && fac_studio_session_idle_ns(e->session) > t->patience)
                end(e);
        }
        sweep(t);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

fac_status fac_sessions_start(table *t, int64_t patience_ns, fac_error *err) {
    pthread_condattr_t how;
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&t->wake, &how);
    pthread_condattr_destroy(&how);
    pthread_mutex_init(&t->lock, NULL);
    t->patience = patience_ns;
    if (!pthread_create(&t->janitor, NULL, clean, t)) return FAC_OK;
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    return fac_raise(err, FAC_E_NOMEM, "cannot start a thread for the pages");
}

void fac_sessions_end_all(table *t) {
    pthread_mutex_lock(&t->lock);
    for (int k = 0; k < TABLE_SESSIONS; k++) end(&t->of[k]);
    pthread_mutex_unlock(&t->lock);
}

void fac_sessions_stop(table *t) {
    fac_sessions_end_all(t);
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->janitor, NULL);
    pthread_mutex_lock(&t->lock);
    sweep(t);
    pthread_mutex_unlock(&t->lock);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
}

static table_entry *find_room(table *t) {
    for (int k = 0; k < TABLE_SESSIONS; k++)
        if (!t->of[k].session) return &t->of[k];
    return NULL;
}

/* Ends the session that has been idle longest, if there is one. */
static void make_room(table *t) {
    table_entry *idle = NULL;
    int64_t most = 0;
    for (int k = 0; k < TABLE_SESSIONS; k++) {
        table_entry *e = &t->of[k];
        const int64_t ns = e->users || e->over ? 0 : fac_studio_session_idle_ns(e->session);
        if (ns > most) {
            most = ns;
            idle = e;
        }
    }
    if (idle) end(idle);
    sweep(t);
}

fac_status fac_sessions_add(table *t, session *s, char name[TABLE_NAME], fac_error *err) {
    fac_status status = fac_http_new_key(name, err);
    pthread_mutex_lock(&t->lock);
    if (!status && !find_room(t)) make_room(t);
    table_entry *e = status ? NULL : find_room(t);
    if (e) {
        *e = (table_entry){ .session = s };
        memcpy(e->name, name, TABLE_NAME);
    }
    pthread_mutex_unlock(&t->lock);
    if (e) return FAC_OK;
    fac_studio_session_free(s);
    return status ? status
                  : fac_raise(err, FAC_E_ARGUMENT,
                              "%d pages are open, the most that are allowed: close one",
                              TABLE_SESSIONS);
}

table_entry *fac_sessions_use(table *t, const char *name) {
    table_entry *found = NULL;
    pthread_mutex_lock(&t->lock);
    for (int k = 0; k < TABLE_SESSIONS; k++) {
        table_entry *e = &t->of[k];
        if (e->session && !e->over && !strcmp(e->name, name)) found = e;
    }
    if (found) found->users++;
    pthread_mutex_unlock(&t->lock);
    return found;
}

void fac_sessions_leave(table *t, table_entry *e) {
    pthread_mutex_lock(&t->lock);
    e->users--;
    sweep(t);
    pthread_mutex_unlock(&t->lock);
}

void fac_sessions_end(table *t, const char *name) {
    table_entry *e = fac_sessions_use(t, name);
    if (!e) return;
    pthread_mutex_lock(&t->lock);
    end(e);
    pthread_mutex_unlock(&t->lock);
    fac_sessions_leave(t, e);
}
