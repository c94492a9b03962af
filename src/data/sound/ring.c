/* The last samples of a stream.  One thread writes, one reads: each has a counter that the other
 * only looks at. */
#include <stdatomic.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "data/sound/sound_internal.h"

struct fac_ring {
    int64_t length, hop, room; /* room: samples that are kept */
    float *samples;
    _Atomic int64_t put;     /* how many the writer has begun to write */
    _Atomic int64_t done;    /* ... and has written */
    _Atomic int64_t dropped; /* windows that were late */
    int64_t next;            /* the reader's: first sample of the next window */
};

fac_status fac_ring_new(int64_t length, int64_t hop, fac_ring **out, fac_error *err) {
    enum { MOST = 1 << 28, CHUNK = 8192 }; /* what devices give at once is less than that */
    if (length < 1 || hop < 1 || length > MOST || hop > MOST)
        return fac_raise(err, FAC_E_ARGUMENT, "windows of %lld samples every %lld",
                         (long long)length, (long long)hop);
    fac_ring *r = fac_alloc(1, sizeof *r);
    const int64_t spare = length > CHUNK ? length : CHUNK, room = length + hop + spare;
    float *samples = r ? fac_alloc((size_t)room, sizeof *samples) : NULL;
    if (!samples) {
        fac_release(r);
        return fac_raise_memory(err, "%lld samples of a stream", (long long)room);
    }
    r->length = length;
    r->hop = hop;
    r->room = room;
    r->samples = samples;
    *out = r;
    return FAC_OK;
}

/* Into the ring from sample `at` of the stream on: at most two pieces. */
static void copy_in(fac_ring *r, int64_t at, const float *from, int64_t n) {
    const int64_t place = at % r->room, first = n < r->room - place ? n : r->room - place;
    memcpy(r->samples + place, from, (size_t)first * sizeof *from);
    memcpy(r->samples, from + first, (size_t)(n - first) * sizeof *from);
}

void fac_ring_put(fac_ring *r, const float *samples, int64_t n) {
    while (n > 0) {
        const int64_t part = n < r->length ? n : r->length,
                      at = atomic_load_explicit(&r->done, memory_order_relaxed);
        atomic_store(&r->put, at + part);
        copy_in(r, at, samples, part);
        atomic_store(&r->done, at + part);
        samples += part;
        n -= part;
    }
}

static void copy_out(const fac_ring *r, int64_t at, float *to) {
    const int64_t place = at % r->room,
                  first = r->length < r->room - place ? r->length : r->room - place;
    memcpy(to, r->samples + place, (size_t)first * sizeof *to);
    memcpy(to + first, r->samples, (size_t)(r->length - first) * sizeof *to);
}

/* Windows that the writer has begun to write over are lost. */
static void skip_late(fac_ring *r) {
    const int64_t kept = atomic_load(&r->put) - r->room;
    while (r->next < kept) {
        r->next += r->hop;
        atomic_fetch_add(&r->dropped, 1);
    }
}

bool fac_ring_get(fac_ring *r, float *to, int64_t *first) {
    for (;;) {
        skip_late(r);
        if (atomic_load(&r->done) < r->next + r->length) return false;
        copy_out(r, r->next, to);
        if (atomic_load(&r->put) - r->room > r->next) continue; /* written over meanwhile */
        *first = r->next;
        r->next += r->hop;
        return true;
    }
}

int64_t fac_ring_dropped(const fac_ring *r) {
    return atomic_load(&((fac_ring *)(uintptr_t)r)->dropped);
}

void fac_ring_free(fac_ring *r) {
    if (r) fac_release(r->samples);
    fac_release(r);
}
