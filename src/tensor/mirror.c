/* See mirror.h. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "tensor/mirror.h"

fac_status fac_mirrors_init(fac_mirrors *all, fac_error *err) {
    all->first = NULL;
    return pthread_mutex_init(&all->lock, NULL) ? fac_raise(err, FAC_E_NOMEM, "no mutex") : FAC_OK;
}

/* A device has no memory of no bytes. */
static size_t room(const fac_storage *s) { return s->bytes ? s->bytes : 1; }

/* ---- lists ---- */

static void enlist(fac_mirror *m, fac_storage *s) {
    m->next = s->mirrors;
    s->mirrors = m;
    pthread_mutex_lock(&m->all->lock);
    m->older = m->all->first;
    if (m->older) m->older->newer = m;
    m->all->first = m;
    pthread_mutex_unlock(&m->all->lock);
}

/* Under both locks. */
static void unlist(fac_mirror *m) {
    fac_mirror **at = &m->storage->mirrors;
    while (*at != m) at = &(*at)->next;
    *at = m->next;
    if (m->newer)
        m->newer->older = m->older;
    else
        m->all->first = m->older;
    if (m->older) m->older->newer = m->newer;
}

static void release(fac_mirror *m) {
    m->ops->free(m->device, m->memory, room(m->storage));
    fac_release(m);
}

static void drop(fac_mirror *m) {
    fac_mirrors *all = m->all;
    pthread_mutex_lock(&all->lock);
    unlist(m);
    pthread_mutex_unlock(&all->lock);
    release(m);
}

void fac_storage_drop_mirrors(fac_storage *s) {
    pthread_mutex_lock(&s->lock); /* a device may be dropping one just now */
    while (s->mirrors) drop(s->mirrors);
    pthread_mutex_unlock(&s->lock);
}

/* ---- where the contents are; under the storage's lock ---- */

static uint64_t version_of(fac_storage *s) { return atomic_load(&s->version); }

static fac_mirror *current(fac_storage *s) {
    fac_mirror *m = s->mirrors;
    while (m && m->version != version_of(s)) m = m->next;
    return m;
}

/* Memory of somebody else is never written. */
static fac_status own_memory(fac_storage *s, fac_error *err) {
    if (s->host && (!s->borrowed || s->lent)) return FAC_OK;
    void *host = fac_alloc_aligned(room(s));
    if (!host)
        return fac_raise_memory(err, "%zu bytes of %s", s->bytes, fac_dtype_get(s->dtype)->name);
    if (s->borrowed && s->release) s->release(s->owner);
    s->borrowed = false;
    s->host = s->memory = host;
    return FAC_OK;
}

static fac_status home(fac_storage *s, fac_error *err) {
    if (!atomic_load(&s->away)) return FAC_OK;
    fac_mirror *m = current(s);
    FAC_TRY(own_memory(s, err));
    if (m && s->bytes)
        FAC_TRY(m->ops->read(m->device, m->memory, 0, s->host, s->bytes, err));
    else if (s->late.make)
        FAC_TRY(s->late.make(s->late.self, s->host, s->bytes, err));
    fac_storage_drop_late(s);
    atomic_store(&s->away, false);
    return FAC_OK;
}

fac_status fac_storage_home(fac_storage *s, fac_error *err) {
    if (!atomic_load(&s->away)) return FAC_OK;
    pthread_mutex_lock(&s->lock);
    fac_status status = home(s, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

bool fac_storage_undrawn(fac_storage *s) {
    if (!atomic_load(&s->away)) return false;
    pthread_mutex_lock(&s->lock);
    const bool undrawn = s->late.drawn;
    pthread_mutex_unlock(&s->lock);
    return undrawn;
}

void fac_storage_overwrite(fac_storage *s) {
    if (!atomic_load(&s->away)) return;
    pthread_mutex_lock(&s->lock);
    if (atomic_load(&s->away) && s->late.make && !current(s) && !own_memory(s, NULL)) {
        fac_storage_drop_late(s);
        atomic_store(&s->away, false);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- using one ---- */

static fac_status made(fac_storage *s, fac_mirrors *all, fac_device *device,
                       const fac_memory_ops *ops, fac_mirror **out, fac_error *err) {
    fac_mirror *m = s->mirrors;
    while (m && m->device != device) m = m->next;
    if (!m) {
        m = fac_alloc(1, sizeof *m);
        if (!m) return fac_raise_memory(err, "a tensor on a device");
        *m = (fac_mirror){ .all = all, .storage = s, .device = device, .ops = ops };
        fac_status status = ops->alloc(device, room(s), &m->memory, err);
        if (status) {
            fac_release(m);
            return status;
        }
        enlist(m, s);
    }
    *out = m;
    return FAC_OK;
}

static fac_status use(fac_storage *s, fac_mirrors *all, fac_device *device,
                      const fac_memory_ops *ops, bool contents, fac_mirror **out, fac_error *err) {
    fac_mirror *m;
    FAC_TRY(made(s, all, device, ops, &m, err));
    m->users++;
    fac_status status = FAC_OK;
    if (contents && m->version != version_of(s)) {
        status = home(s, err);
        if (!status && s->bytes) status = ops->write(device, m->memory, 0, s->host, s->bytes, err);
        if (!status) m->version = version_of(s);
    }
    if (status)
        m->users--;
    else
        *out = m;
    return status;
}

fac_status fac_mirror_use(fac_storage *s, fac_mirrors *all, fac_device *device,
                          const fac_memory_ops *ops, bool contents, fac_mirror **out,
                          fac_error *err) {
    pthread_mutex_lock(&s->lock);
    fac_status status = use(s, all, device, ops, contents, out, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

fac_mirror *fac_mirror_current(fac_storage *s, const fac_device *device) {
    pthread_mutex_lock(&s->lock);
    fac_mirror *m = s->mirrors;
    while (m && (m->device != device || m->version != version_of(s))) m = m->next;
    if (m) m->users++;
    pthread_mutex_unlock(&s->lock);
    return m;
}

void fac_mirror_written(fac_mirror *m) {
    fac_storage *s = m->storage;
    pthread_mutex_lock(&s->lock);
    m->version = atomic_fetch_add(&s->version, 1) + 1;
    atomic_store(&s->away, true);
    pthread_mutex_unlock(&s->lock);
}

void fac_mirror_done(fac_mirror *m) {
    if (!m) return;
    fac_storage *s = m->storage;
    pthread_mutex_lock(&s->lock);
    m->users--;
    pthread_mutex_unlock(&s->lock);
}

/* ---- all of a device ---- */

void fac_mirrors_leave(fac_mirrors *all) {
    for (fac_mirror *m; (m = all->first);) {
        fac_storage *s = m->storage;
        pthread_mutex_lock(&s->lock);
        if (current(s) == m && home(s, NULL) && !own_memory(s, NULL)) atomic_store(&s->away, false);
        drop(m);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_destroy(&all->lock);
}

static bool spare(fac_storage *s, const fac_mirror *m) {
    return !m->users && (m->version != version_of(s) || !atomic_load(&s->away));
}

size_t fac_mirrors_evict(fac_mirrors *all) {
    size_t bytes = 0;
    pthread_mutex_lock(&all->lock); /* a storage that is going away waits for it, so those that are
                                       listed are there */
    for (fac_mirror *m = all->first, *older; m; m = older) {
        fac_storage *s = m->storage;
        older = m->older;
        if (pthread_mutex_trylock(&s->lock)) continue;
        if (spare(s, m)) {
            bytes += room(s);
            unlist(m);
            release(m);
        }
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&all->lock);
    return bytes;
}

size_t fac_mirrors_bytes(fac_mirrors *all) {
    size_t bytes = 0;
    pthread_mutex_lock(&all->lock);
    for (const fac_mirror *m = all->first; m; m = m->older) bytes += room(m->storage);
    pthread_mutex_unlock(&all->lock);
    return bytes;
}
