/* The loader: a thread makes the batches to come, in a ring of buffers that are used again and
 * again.
 *
 * Batch k lies in slot k modulo the number of slots.  The maker may be `ahead` batches ahead of the
 * one in use, so there is one slot more than that.  An error waits in its slot for its turn, and
 * nothing is made after it. */
#include <pthread.h>
#include "base/error.h"
#include "base/memory.h"
#include "data/sets/batch.h"

typedef struct slot {
    fac_batch_memory batch;
    fac_status status;
    fac_error err;
} slot;

struct fac_loader {
    const fac_dataset *d;
    fac_batches b;
    int64_t in_epoch, end;
    slot *slots;
    int64_t count; /* of slots */
    int64_t next;  /* the batch to hand out */
    bool threaded;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t moved; /* made, used or stop changed */
    int64_t made, used;   /* batches below made are there; those below used are no more */
    bool stop;
};

static slot *slot_of(fac_loader *l, int64_t k) { return &l->slots[k % l->count]; }

static void make(fac_loader *l, int64_t k) {
    slot *s = slot_of(l, k);
    s->status = fac_batch_into(l->d, &l->b, k / l->in_epoch, k % l->in_epoch, &s->batch, &s->err);
}

static void *work(void *self) {
    fac_loader *l = self;
    for (bool more = true; more;) {
        pthread_mutex_lock(&l->lock);
        while (!l->stop && l->made < l->end && l->made - l->used >= l->count)
            pthread_cond_wait(&l->moved, &l->lock);
        const int64_t k = l->made;
        more = !l->stop && k < l->end;
        pthread_mutex_unlock(&l->lock);
        if (!more) break;
        make(l, k);
        more = !slot_of(l, k)->status;
        pthread_mutex_lock(&l->lock);
        l->made = k + 1;
        pthread_cond_signal(&l->moved);
        pthread_mutex_unlock(&l->lock);
    }
    return NULL;
}

static fac_status start(fac_loader *l, int ahead, fac_error *err) {
    l->count = ahead + 1;
    l->slots = fac_alloc((size_t)l->count, sizeof *l->slots);
    if (!l->slots) return fac_raise_memory(err, "a loader");
    if (!ahead || l->used >= l->end) return FAC_OK;
    if (pthread_mutex_init(&l->lock, NULL))
        return FAC_OK; /* without a thread batches are made when they are asked for */
    if (pthread_cond_init(&l->moved, NULL)) {
        pthread_mutex_destroy(&l->lock);
        return FAC_OK;
    }
    l->threaded = !pthread_create(&l->thread, NULL, work, l);
    if (!l->threaded) {
        pthread_mutex_destroy(&l->lock);
        pthread_cond_destroy(&l->moved);
    }
    return FAC_OK;
}

fac_status fac_loader_new(const fac_dataset *d, const fac_batches *b, int64_t first, int64_t end,
                          int ahead, fac_loader **out, fac_error *err) {
    enum { MOST = 1024 };
    const int64_t in_epoch = fac_batches_count(d, b);
    if (in_epoch < 1 || first < 0 || end < first || ahead < 0 || ahead > MOST)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "a loader of batches %lld to %lld of %lld samples, %d ahead (0 to %d)",
                         (long long)first, (long long)end, (long long)b->size, ahead, MOST);
    FAC_TRY(fac_batches_check(d, b, err));
    fac_loader *l = fac_alloc(1, sizeof *l);
    if (!l) return fac_raise_memory(err, "a loader");
    *l = (fac_loader){ .d = d,
                       .b = *b,
                       .in_epoch = in_epoch,
                       .end = end,
                       .next = first,
                       .made = first,
                       .used = first };
    fac_status status = start(l, ahead, err);
    if (status)
        fac_loader_free(l);
    else
        *out = l;
    return status;
}

/* What was handed out before goes back to the maker; waits until batch k is there. */
static void wait_for(fac_loader *l, int64_t k) {
    pthread_mutex_lock(&l->lock);
    l->used = k;
    pthread_cond_signal(&l->moved);
    while (l->made <= k) pthread_cond_wait(&l->moved, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

fac_status fac_loader_next(fac_loader *l, fac_tensor **x, fac_tensor **labels, fac_error *err) {
    const int64_t k = l->next;
    if (k >= l->end)
        return fac_raise(err, FAC_E_ARGUMENT, "a loader has no batch %lld: it ends there",
                         (long long)k);
    if (l->threaded)
        wait_for(l, k);
    else if (l->made == k)
        make(l, l->made++);
    const slot *s = slot_of(l, k);
    if (s->status) {
        if (err) *err = s->err;
        return s->status;
    }
    l->next++;
    *x = s->batch.x;
    *labels = s->batch.labels;
    return FAC_OK;
}

void fac_loader_free(fac_loader *l) {
    if (!l) return;
    if (l->threaded) {
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        pthread_cond_signal(&l->moved);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
        pthread_mutex_destroy(&l->lock);
        pthread_cond_destroy(&l->moved);
    }
    for (int64_t k = 0; l->slots && k < l->count; k++) fac_batch_memory_free(&l->slots[k].batch);
    fac_release(l->slots);
    fac_release(l);
}
