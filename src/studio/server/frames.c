/* Slots of frames between a session and the page that reads it. */
#include "studio/server/frames.h"
#include <pthread.h>
#include "base/clock.h"
#include "base/memory.h"

enum { MARK_EVERY = 2 }; /* seconds without a reader after which no frames are made */

typedef struct slot {
    fac_text bytes;
    bool fresh;
} slot;

struct frames {
    pthread_mutex_t lock;
    pthread_cond_t more;
    slot of[FRAME_KINDS];
    int ticket;   /* ticket of the newest reader */
    int64_t seen; /* when it last read */
    bool over;
};

static void init_cond(pthread_cond_t *c) {
    pthread_condattr_t how;
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(c, &how);
    pthread_condattr_destroy(&how);
}

frames *fac_frames_new(void) {
    frames *f = fac_alloc(1, sizeof *f);
    if (!f) return NULL;
    pthread_mutex_init(&f->lock, NULL);
    init_cond(&f->more);
    f->seen = fac_now_ns();
    return f;
}

void fac_frames_free(frames *f) {
    if (!f) return;
    for (int k = 0; k < FRAME_KINDS; k++) fac_text_free(&f->of[k].bytes);
    pthread_cond_destroy(&f->more);
    pthread_mutex_destroy(&f->lock);
    fac_release(f);
}

void fac_frames_put(frames *f, frame_kind kind, fac_text *t) {
    if (!t->failed) {
        pthread_mutex_lock(&f->lock);
        fac_text_free(&f->of[kind].bytes);
        f->of[kind] = (slot){ *t, true };
        pthread_cond_broadcast(&f->more);
        pthread_mutex_unlock(&f->lock);
        *t = (fac_text){ 0 };
    }
    fac_text_free(t);
}

static bool any(const frames *f) {
    bool found = false;
    for (int k = 0; k < FRAME_KINDS; k++) found |= f->of[k].fresh;
    return found;
}

bool fac_frames_taken(frames *f) {
    pthread_mutex_lock(&f->lock);
    const bool taken = f->ticket > 0 && !any(f);
    pthread_mutex_unlock(&f->lock);
    return taken;
}

bool fac_frames_read(frames *f) {
    pthread_mutex_lock(&f->lock);
    const bool read = fac_now_ns() - f->seen < MARK_EVERY * INT64_C(1000000000);
    pthread_mutex_unlock(&f->lock);
    return read;
}

void fac_frames_end(frames *f) {
    pthread_mutex_lock(&f->lock);
    f->over = true;
    pthread_cond_broadcast(&f->more);
    pthread_mutex_unlock(&f->lock);
}

/* A new reader gets all frames, also those that another reader took. */
int fac_frames_ticket(frames *f) {
    pthread_mutex_lock(&f->lock);
    const int mine = ++f->ticket;
    f->seen = fac_now_ns();
    for (int k = 0; k < FRAME_KINDS; k++) f->of[k].fresh = f->of[k].bytes.n > 0;
    pthread_cond_broadcast(&f->more);
    pthread_mutex_unlock(&f->lock);
    return mine;
}

static void add(fac_text *to, int kind, const fac_text *t) {
    unsigned char head[5];
    for (int k = 0; k < 4; k++) head[k] = (unsigned char)(t->n >> (8 * k));
    head[4] = (unsigned char)kind;
    fac_text_add_bytes(to, (const char *)head, sizeof head);
    fac_text_add_bytes(to, t->s, t->n);
}

bool fac_frames_take(frames *f, int ticket, int64_t wait_ns, fac_text *out) {
    const int64_t until = fac_now_ns() + wait_ns;
    const struct timespec end = { until / 1000000000, until % 1000000000 };
    pthread_mutex_lock(&f->lock);
    while (!f->over && f->ticket == ticket && !any(f) && fac_now_ns() < until)
        pthread_cond_timedwait(&f->more, &f->lock, &end);
    const bool mine = !f->over && f->ticket == ticket;
    if (mine) f->seen = fac_now_ns();
    for (int k = 0; mine && k < FRAME_KINDS; k++) {
        if (f->of[k].fresh) add(out, k, &f->of[k].bytes);
        f->of[k].fresh = false;
    }
    pthread_mutex_unlock(&f->lock);
    return mine;
}
