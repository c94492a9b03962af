/* Recorders: life, lock, what is freed later, counts. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "lazy/lazy_internal.h"

enum { MOST_NODES = 20000 };
#define CACHE_BYTES ((size_t)1 << 30)

fac_status fac_recorder_new(fac_device *device, const fac_recorder_opts *opts, fac_recorder **out,
                            fac_error *err) {
    if (!device || !out)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_recorder_new: %s is NULL",
                         device ? "out" : "the device");
    if (opts && opts->most_nodes < 0)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_recorder_new: most_nodes is %d",
                         opts->most_nodes);
    fac_recorder *r = fac_alloc(1, sizeof *r);
    if (r && pthread_mutex_init(&r->lock, NULL)) {
        fac_release(r);
        r = NULL;
    }
    if (!r) return fac_raise_memory(err, "a recorder");
    r->device = device;
    if (opts) r->opts = *opts;
    if (!r->opts.cache_bytes) r->opts.cache_bytes = CACHE_BYTES;
    if (!r->opts.most_nodes) r->opts.most_nodes = MOST_NODES;
    atomic_init(&r->eager, r->opts.eager);
    atomic_init(&r->dead, NULL);
    r->epoch = 1;
    r->key = fac_hash_start(31);
    *out = r;
    return FAC_OK;
}

void fac_recorder_free(fac_recorder *r) {
    if (!r) return;
    fac_recorder_hold(r);
    fac_segment_close(r, NULL);
    while (r->newest) fac_family_drop(r, r->newest);
    fac_singles_drop(r);
    fac_recorder_let_go(r);
    fac_graph_free(r->spare);
    fac_made_drop_unused(r);
    fac_keys_free(&r->families);
    fac_keys_free(&r->singles);
    fac_keys_clear(&r->saves, fac_release);
    fac_keys_clear(&r->forms, fac_release);
    fac_keys_clear(&r->weights, fac_release);
    fac_release(r->trash);
    fac_release(r->pending);
    fac_release(r->leaves);
    fac_release(r->assigned);
    fac_release(r->by_id);
    fac_release(r->calls);
    fac_release(r->read);
    pthread_mutex_destroy(&r->lock);
    fac_release(r);
}

fac_device *fac_recorder_device(const fac_recorder *r) { return r->device; }
void fac_recorder_set_eager(fac_recorder *r, bool eager) { atomic_store(&r->eager, eager); }
bool fac_recorder_eager(const fac_recorder *r) { return atomic_load(&r->eager); }

/* ---- the lock ---- */

void fac_recorder_hold(fac_recorder *r) {
    pthread_mutex_lock(&r->lock);
    if (atomic_load_explicit(&r->dead, memory_order_relaxed)) fac_made_drain(r);
}

/* What was given up meanwhile is freed without the lock: it may call the binding back. */
void fac_recorder_let_go(fac_recorder *r) {
    if (atomic_load_explicit(&r->dead, memory_order_relaxed)) fac_made_drain(r);
    if (!r->ntrash) {
        pthread_mutex_unlock(&r->lock);
        return;
    }
    fac_trash *trash = r->trash;
    const size_t n = r->ntrash;
    r->trash = NULL;
    r->ntrash = r->room_trash = 0;
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < n; i++) trash[i].drop(trash[i].what);
    fac_release(trash);
}

void fac_recorder_later(fac_recorder *r, void *what, void (*drop)(void *what)) {
    if (!what) return;
    if (fac_reserve(&r->trash, &r->room_trash, r->ntrash + 1, sizeof *r->trash))
        r->trash[r->ntrash++] = (fac_trash){ what, drop };
    else
        drop(what);
}

/* ---- for people ---- */

fac_recorder_stat fac_recorder_stats(fac_recorder *r) {
    fac_recorder_hold(r);
    fac_recorder_stat s = r->stat;
    s.pending = r->g ? (size_t)r->g->nodes : r->call_nodes;
    s.programs = r->families.n + r->singles.n;
    s.bytes = r->bytes;
    fac_recorder_let_go(r);
    return s;
}

void fac_recorder_trim(fac_recorder *r) {
    fac_recorder_hold(r);
    while (r->newest) fac_family_drop(r, r->newest);
    fac_singles_drop(r);
    fac_made_drop_unused(r);
    if (!r->g) {
        fac_graph_free(r->spare);
        r->spare = NULL;
    }
    fac_recorder_let_go(r);
}

fac_status fac_flush(fac_recorder *r, fac_error *err) {
    fac_recorder_hold(r);
    const fac_status status = fac_flush_held(r, err);
    fac_recorder_let_go(r);
    return status;
}
