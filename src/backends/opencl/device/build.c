/* See build.h.  Threads are started when there is work and end when there is none. */
#include "backends/opencl/device/opencl.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"

enum {
    THREADS = 8,
    KEPT = 1024
}; /* KEPT: programs, used or not; beyond it those that nothing uses go */

fac_status fac_cl_builds_init(fac_cl_builds *b, const char *texts, fac_error *err) {
    if (texts && !(b->texts = fac_copy_text(texts)))
        return fac_raise(err, FAC_E_NOMEM, "opencl: no memory for the name of a folder");
    if (pthread_mutex_init(&b->lock, NULL)) {
        fac_release(b->texts);
        return fac_raise(err, FAC_E_NOMEM, "opencl: no mutex");
    }
    if (!pthread_cond_init(&b->changed, NULL)) return FAC_OK;
    pthread_mutex_destroy(&b->lock);
    fac_release(b->texts);
    return fac_raise(err, FAC_E_NOMEM, "opencl: no condition variable");
}

/* ---- under the lock ---- */

static void free_build(fac_opencl *o, fac_cl_build *b) {
    if (b->program) o->cl.ReleaseProgram(b->program);
    fac_release(b->source);
    fac_release(b->options);
    fac_release(b);
}

static void forget_unused(fac_opencl *o, int most) {
    for (fac_cl_build **at = &o->builds.all; *at && o->builds.count > most;) {
        fac_cl_build *b = *at;
        if (b->users || b->state != FAC_CL_BUILT) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        o->builds.count--;
        free_build(o, b);
    }
}

static void append(fac_cl_builds *q, fac_cl_build *b) {
    if (q->last)
        q->last->next_waiting = b;
    else
        q->first = b;
    q->last = b;
    q->waiting++;
}

static void unqueue(fac_cl_builds *q, fac_cl_build *b) {
    fac_cl_build *before = NULL;
    for (fac_cl_build *x = q->first; x != b; x = x->next_waiting) before = x;
    if (before)
        before->next_waiting = b->next_waiting;
    else
        q->first = b->next_waiting;
    if (q->last == b) q->last = before;
    b->next_waiting = NULL;
    q->waiting--;
}

/* Builds one that waits; the lock is not held meanwhile. */
static void build_now(fac_opencl *o, fac_cl_build *b) {
    fac_cl_builds *q = &o->builds;
    unqueue(q, b);
    b->state = FAC_CL_BUILDING;
    q->busy++;
    pthread_mutex_unlock(&q->lock);
    bool found = false;
    cl_program program = NULL;
    fac_error error = { 0 };
    fac_status status = FAC_OK;
    if (q->texts) status = fac_cl_write_text(q->texts, b->source, b->options, &error);
    if (!status && !q->dry)
        fac_cl_program(o, b->key, b->source, b->options, &program, &found, &error);
    pthread_mutex_lock(&q->lock);
    b->program = program;
    b->error = error;
    b->state = FAC_CL_BUILT;
    if (found)
        q->found++;
    else
        q->compiled++;
    q->busy--;
    fac_release(b->source);
    fac_release(b->options);
    b->source = b->options = NULL;
    pthread_cond_broadcast(&q->changed);
}

static void *work(void *arg) {
    fac_opencl *o = arg;
    fac_cl_builds *q = &o->builds;
    pthread_mutex_lock(&q->lock);
    while (q->first) build_now(o, q->first);
    q->threads--;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* One thread fewer than the device may have: the caller goes on, and helps when it waits. */
static void hire(fac_opencl *o) {
    fac_cl_builds *q = &o->builds;
    pthread_attr_t how;
    pthread_t thread;
    const int may = (o->device.opts.threads > 0 ? o->device.opts.threads : fac_cores()) - 1,
              most = may < THREADS ? may : THREADS;
    if (q->threads >= most || q->threads >= q->waiting || pthread_attr_init(&how)) return;
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    if (!pthread_create(&thread, &how, work, o)) q->threads++;
    pthread_attr_destroy(&how);
}

/* ---- for callers ---- */

void fac_cl_builds_fini(fac_opencl *o) {
    fac_cl_builds *q = &o->builds;
    pthread_mutex_lock(&q->lock);
    while (q->first) unqueue(q, q->first);
    while (q->threads || q->busy) pthread_cond_wait(&q->changed, &q->lock);
    for (fac_cl_build *b = q->all, *next; b; b = next) {
        next = b->next;
        free_build(o, b);
    }
    pthread_mutex_unlock(&q->lock);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    fac_release(q->texts);
}

static fac_cl_build *build_new(fac_opencl *o, fac_hash key, const char *source,
                               const char *options) {
    fac_cl_build *b = fac_alloc(1, sizeof *b);
    if (!b) return NULL;
    b->key = key;
    b->source = fac_copy_text(source);
    b->options = fac_copy_text(options);
    if (!b->source || !b->options) {
        free_build(o, b);
        return NULL;
    }
    return b;
}

fac_status fac_cl_build_get(fac_opencl *o, const char *source, const char *options,
                            fac_cl_build **out, fac_error *err) {
    fac_cl_builds *q = &o->builds;
    const fac_hash key = fac_cl_program_key(o, source, options);
    pthread_mutex_lock(&q->lock);
    fac_cl_build *b = q->all;
    while (b && (!fac_hash_equal(b->key, key) || b->error.status)) b = b->next;
    if (!b && (b = build_new(o, key, source, options))) {
        forget_unused(o, KEPT - 1);
        b->next = q->all;
        q->all = b;
        q->count++;
        append(q, b);
        hire(o);
    }
    if (b) b->users++;
    pthread_mutex_unlock(&q->lock);
    *out = b;
    return b ? FAC_OK : fac_raise(err, FAC_E_NOMEM, "%s: no memory for a kernel", o->device.name);
}

void fac_cl_build_put(fac_opencl *o, fac_cl_build *b) {
    if (!b) return;
    pthread_mutex_lock(&o->builds.lock);
    b->users--;
    pthread_mutex_unlock(&o->builds.lock);
}

fac_status fac_cl_build_wait(fac_opencl *o, fac_cl_build *b, fac_error *err) {
    fac_cl_builds *q = &o->builds;
    pthread_mutex_lock(&q->lock);
    if (b->state == FAC_CL_WAITING) build_now(o, b);
    while (b->state != FAC_CL_BUILT) pthread_cond_wait(&q->changed, &q->lock);
    pthread_mutex_unlock(&q->lock);
    return b->error.status ? fac_raise(err, b->error.status, "%s", b->error.text) : FAC_OK;
}

fac_status fac_cl_builds_settle(fac_opencl *o, fac_error *err) {
    fac_cl_builds *q = &o->builds;
    fac_status status = FAC_OK;
    pthread_mutex_lock(&q->lock);
    while (q->first) build_now(o, q->first);
    while (q->busy) pthread_cond_wait(&q->changed, &q->lock);
    for (fac_cl_build *b = q->all; b && !status; b = b->next) {
        if (!b->error.status || b->told) continue;
        b->told = true;
        status = fac_raise(err, b->error.status, "%s", b->error.text);
    }
    pthread_mutex_unlock(&q->lock);
    return status;
}
