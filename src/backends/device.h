/* What every device has, whatever its backend: the first member of the backend's own struct. */
#ifndef FACULA_BACKENDS_DEVICE_H
#define FACULA_BACKENDS_DEVICE_H
#include <pthread.h>
#include <stdatomic.h>
#include "base/file/file.h"
#include "base/table.h"
#include "facula/backend.h"
#include "facula/stop.h"
#include "tensor/mirror.h"

/* A parameter in the form that a solver wants, shared by all programs of the device that need the
 * same one. */
typedef struct fac_pack {
    fac_hash key;
    uint64_t home; /* picks its list: of the key that it was made under */
    struct fac_pack *next;
    void *memory;
    size_t bytes;
    int refs;
    fac_file *file; /* memory is a part of it: see packed.h; else NULL */
} fac_pack;

/* What memory is held for. */
typedef enum fac_hold {
    FAC_HOLD_TENSORS,
    FAC_HOLD_ARENAS,
    FAC_HOLD_PACKED,
    FAC_HOLD_OPERANDS,
    FAC_HOLDS
} fac_hold;

struct fac_device {
    const fac_memory_ops *memory_ops; /* first: src/tensor reads it */
    const fac_backend *backend;
    char name[32], about[96];
    char model[96]; /* what else its speed depends on, such as the processor's name; may be empty */
    char key[256];  /* of its wisdom: backend, about, model; no line breaks */
    fac_wisdom *wisdom;  /* NULL: none */
    char *packed_folder; /* see packed.h; NULL: none */
    fac_device_opts opts;
    pthread_mutex_t lock; /* of the packs, and of cpu */
    size_t near;          /* bytes that the caches hold; 0: batches are not cut into slices */
    fac_device *cpu;      /* solves what a device out of sight cannot; NULL until it is needed */
    fac_pack **packs;     /* by key: lists of buckets, a power of two of them */
    size_t npacks, nbuckets;
    fac_mirrors mirrors; /* copies of host tensors: parameters, results that nothing has read yet */
    _Atomic size_t held, peak; /* bytes */
    _Atomic size_t held_for[FAC_HOLDS];
    fac_stop_asked stop_asked; /* NULL: never */
    void *stop_self;
};

/* FAC_E_ARGUMENT where the user of the device wants what is at work to end: see facula/stop.h. */
fac_status fac_device_go_on(const fac_device *d, fac_error *err);

/* For backends: sets up the members above. */
fac_status fac_device_init(fac_device *d, const fac_backend *backend, const char *name,
                           const fac_device_opts *opts, fac_error *err);
void fac_device_fini(fac_device *d);

/* The last part of opening, once name, about and model are there: its key, and the wisdom that the
 * options ask for.  Whoever makes a device without fac_device_open calls it. */
fac_status fac_device_settle(fac_device *d, fac_error *err);

/* Memory of the device, counted against its limit; 64-byte aligned.  Where it is short, copies of
 * host tensors that nothing uses go, and the error says what the rest is held for. */
fac_status fac_device_hold(fac_device *d, fac_hold what, size_t bytes, void **out, fac_error *err);
void fac_device_drop(fac_device *d, fac_hold what, void *memory, size_t bytes); /* NULL is fine */
/* The same for tensors. */
fac_status fac_device_alloc(fac_device *d, size_t bytes, void **out, fac_error *err);
void fac_device_release(fac_device *d, void *memory, size_t bytes);

/* The pack of this key with one more reference; *fresh says that it was made now and the caller
 * must fill it, before another thread may ask: hold d->lock around this and the filling. */
fac_status fac_pack_get(fac_device *d, fac_hash key, size_t bytes, fac_pack **out, bool *fresh,
                        fac_error *err);
void fac_pack_put(fac_device *d,
                  fac_pack *pack); /* drops a reference; takes the lock itself; NULL is fine */
#endif
