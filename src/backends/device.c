/* Devices: opening by name, counted memory, and the store of packed parameters. */
#include "backends/device.h"
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"

fac_status fac_device_open(const char *name, const fac_device_opts *opts, fac_device **out,
                           fac_error *err) {
    fac_device_opts none = { 0 };
    if (!name || !out)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_device_open: %s is NULL", name ? "out" : "name");
    for (const fac_backend *const *b = fac_backends; *b; b++) {
        size_t n = strlen((*b)->name);
        if (strncmp(name, (*b)->name, n) || (name[n] && name[n] != ':')) continue;
        fac_device *d;
        const char *which = name[n] ? name + n + 1 : "";
        FAC_TRY((*b)->open(which, opts ? opts : &none, &d, err));
        fac_status status = fac_device_settle(d, err);
        if (status)
            fac_device_free(d);
        else
            *out = d;
        return status;
    }
    char known[256] = "";
    for (const fac_backend *const *b = fac_backends; *b; b++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", (*b)->name);
    }
    return fac_raise(err, FAC_E_UNSUPPORTED, "no device \"%s\" in this build; it has: %s", name,
                     known);
}

void fac_device_free(fac_device *d) {
    if (d) d->backend->close(d);
}

static const char *const precisions[] = { "default", "highest", "high", "medium" };

const char *fac_precision_name(fac_precision p) { return precisions[p]; }

bool fac_precision_parse(const char *name, fac_precision *out) {
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++)
        if (!strcmp(name, precisions[i])) return *out = (fac_precision)i, true;
    return false;
}

const char *fac_device_name(const fac_device *d) { return d->name; }
const char *fac_device_about(const fac_device *d) { return d->about; }

fac_status fac_device_peaks(fac_device *d, fac_peaks *out, fac_error *err) {
    if (!d || !out)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_device_peaks: %s is NULL",
                         d ? "out" : "the device");
    if (!d->backend->peaks)
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s: its peaks cannot be measured", d->name);
    return d->backend->peaks(d, out, err);
}

fac_status fac_device_sync(fac_device *d, fac_error *err) {
    return d->backend->sync ? d->backend->sync(d, err) : FAC_OK;
}

fac_status fac_device_check(fac_device *d, fac_error *err) {
    return d->backend->check ? d->backend->check(d, err) : FAC_OK;
}

fac_memory_stat fac_device_memory(const fac_device *d) {
    fac_device *m = (fac_device *)(uintptr_t)d; /* atomics have no const load in C11 */
    const size_t mirrors = fac_mirrors_bytes(&m->mirrors), tensors = m->held_for[FAC_HOLD_TENSORS];
    return (fac_memory_stat){ m->held,
                              m->peak,
                              tensors > mirrors ? tensors - mirrors : 0,
                              mirrors,
                              m->held_for[FAC_HOLD_ARENAS],
                              m->held_for[FAC_HOLD_PACKED],
                              m->held_for[FAC_HOLD_OPERANDS],
                              d->backend->reserved ? d->backend->reserved(m) : m->held };
}

void fac_device_facts(fac_device *d, fac_fact *tell, void *self) {
    if (d->backend->facts) d->backend->facts(d, tell, self);
}

void fac_device_paths(fac_device *d, fac_fact *tell, void *self) {
    if (d->backend->paths) d->backend->paths(d, tell, self);
}

size_t fac_device_trim(fac_device *d) { return d->backend->trim ? d->backend->trim(d) : 0; }

fac_status fac_device_init(fac_device *d, const fac_backend *backend, const char *name,
                           const fac_device_opts *opts, fac_error *err) {
    d->opts = *opts;
    snprintf(d->name, sizeof d->name, "%s", name);
    FAC_TRY(fac_mirrors_init(&d->mirrors, err));
    if (pthread_mutex_init(&d->lock, NULL)) {
        pthread_mutex_destroy(&d->mirrors.lock);
        return fac_raise(err, FAC_E_NOMEM, "%s: no mutex", name);
    }
    d->backend = backend;
    return FAC_OK;
}

void fac_device_stop(fac_device *d, fac_stop_asked asked, void *self) {
    d->stop_asked = asked;
    d->stop_self = self;
}

bool fac_device_stopping(const fac_device *d) {
    return d->stop_asked && d->stop_asked(d->stop_self);
}

fac_status fac_device_go_on(const fac_device *d, fac_error *err) {
    return !fac_device_stopping(d) ? FAC_OK : fac_raise(err, FAC_E_ARGUMENT, "stopped");
}

static void free_pack(fac_device *d, fac_pack *p) {
    if (p->file)
        fac_file_free(p->file);
    else
        fac_device_drop(d, FAC_HOLD_PACKED, p->memory, p->bytes);
    fac_release(p);
}

void fac_device_fini(fac_device *d) {
    fac_mirrors_leave(&d->mirrors);
    fac_device_free(d->cpu);
    for (size_t i = 0; i < d->nbuckets; i++)
        for (fac_pack *p = d->packs[i], *next; p; p = next) {
            next = p->next;
            free_pack(d, p);
        }
    fac_release(d->packs);
    fac_wisdom_free(d->wisdom);
    fac_release(d->packed_folder);
    pthread_mutex_destroy(&d->lock);
}

static fac_status take(fac_device *d, size_t bytes, void **out, fac_error *err) {
    size_t held = atomic_fetch_add(&d->held, bytes) + bytes, peak = d->peak,
           limit = d->opts.memory_limit;
    fac_status status = FAC_OK;
    if (limit && held > limit)
        status =
            fac_raise(err, FAC_E_NOMEM, "%s: %zu bytes asked for, %zu of the limit of %zu are held",
                      d->name, bytes, held - bytes, limit);
    else
        status = d->backend->alloc(d, bytes, out, err);
    if (status) {
        atomic_fetch_sub(&d->held, bytes);
        return status;
    }
    while (held > peak && !atomic_compare_exchange_weak(&d->peak, &peak, held)) {}
    return FAC_OK;
}

fac_status fac_device_hold(fac_device *d, fac_hold what, size_t bytes, void **out, fac_error *err) {
    fac_error first = { 0 };
    fac_status status = take(d, bytes, out, &first);
    if (status == FAC_E_NOMEM && fac_mirrors_evict(&d->mirrors))
        status = take(d, bytes, out, &first);
    if (!status) {
        atomic_fetch_add(&d->held_for[what], bytes);
        return FAC_OK;
    }
    if (status != FAC_E_NOMEM) return fac_raise(err, status, "%s", first.text);
    const fac_memory_stat m = fac_device_memory(d);
    return fac_raise(err, status,
                     "%s (held for tensors %zu, parameters and results %zu, values between steps "
                     "%zu, packed weights %zu, "
                     "operands %zu)",
                     first.text, m.tensors, m.mirrors, m.arenas, m.packed, m.operands);
}

void fac_device_drop(fac_device *d, fac_hold what, void *memory, size_t bytes) {
    if (!memory) return;
    d->backend->free(d, memory, bytes);
    atomic_fetch_sub(&d->held_for[what], bytes);
    atomic_fetch_sub(&d->held, bytes);
}

fac_status fac_device_alloc(fac_device *d, size_t bytes, void **out, fac_error *err) {
    return fac_device_hold(d, FAC_HOLD_TENSORS, bytes, out, err);
}

void fac_device_release(fac_device *d, void *memory, size_t bytes) {
    fac_device_drop(d, FAC_HOLD_TENSORS, memory, bytes);
}

/* As many buckets as packs, a power of two; growing them may fail: lists are longer then. */
static void more_buckets(fac_device *d) {
    const size_t want = d->nbuckets ? 2 * d->nbuckets : 64;
    if (d->npacks < d->nbuckets) return;
    fac_pack **packs = fac_alloc(want, sizeof *packs);
    if (!packs) return;
    for (size_t i = 0; i < d->nbuckets; i++)
        for (fac_pack *p = d->packs[i], *next; p; p = next) {
            next = p->next;
            p->next = packs[p->home & (want - 1)];
            packs[p->home & (want - 1)] = p;
        }
    fac_release(d->packs);
    d->packs = packs;
    d->nbuckets = want;
}

fac_status fac_pack_get(fac_device *d, fac_hash key, size_t bytes, fac_pack **out, bool *fresh,
                        fac_error *err) {
    for (fac_pack *p = d->nbuckets ? d->packs[key.a & (d->nbuckets - 1)] : NULL; p; p = p->next) {
        if (!fac_hash_equal(p->key, key) || p->bytes != bytes) continue;
        p->refs++;
        *out = p;
        *fresh = false;
        return FAC_OK;
    }
    fac_pack *p = fac_alloc(1, sizeof *p);
    more_buckets(d);
    if (!p || !d->nbuckets) {
        fac_release(p);
        return fac_raise_memory(err, "a packed parameter of %zu bytes", bytes);
    }
    *p = (fac_pack){ .key = key, .home = key.a, .bytes = bytes, .refs = 1 };
    fac_status status = fac_device_hold(d, FAC_HOLD_PACKED, bytes, &p->memory, err);
    if (status) {
        fac_release(p);
        return status;
    }
    p->next = d->packs[p->home & (d->nbuckets - 1)];
    d->packs[p->home & (d->nbuckets - 1)] = p;
    d->npacks++;
    *out = p;
    *fresh = true;
    return FAC_OK;
}

void fac_pack_put(fac_device *d, fac_pack *pack) {
    if (!pack) return;
    pthread_mutex_lock(&d->lock);
    bool last = --pack->refs == 0;
    if (last) {
        fac_pack **at = &d->packs[pack->home & (d->nbuckets - 1)];
        while (*at != pack) at = &(*at)->next;
        *at = pack->next;
        d->npacks--;
    }
    pthread_mutex_unlock(&d->lock);
    if (last) free_pack(d, pack);
}
