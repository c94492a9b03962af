/* Copies of host storages in the memory of devices that the host cannot look into.
 *
 * A storage has a version, and so has the copy of its contents in host memory and each mirror of
 * it: those of the storage's version are current, and one at least is.  A program writes a
 * parameter or a result in its device's mirror; the host's copy is made current on use
 * (fac_tensor_data, a read, another device), and not before.
 *
 * Locks: a storage's own guards its mirrors and where its contents are; a device's guards its list
 * of them.  The second is taken inside the first; whoever goes through a device's list only tries
 * the first. */
#ifndef FACULA_TENSOR_MIRROR_H
#define FACULA_TENSOR_MIRROR_H
#include "tensor/tensor_internal.h"

/* All mirrors on one device. */
typedef struct fac_mirrors {
    pthread_mutex_t lock;
    struct fac_mirror *first;
} fac_mirrors;

typedef struct fac_mirror {
    struct fac_mirror *next;          /* of the same storage */
    struct fac_mirror *newer, *older; /* of the same device  */
    fac_mirrors *all;
    fac_storage *storage;
    fac_device *device;
    const fac_memory_ops *ops;
    void *memory;
    uint64_t version; /* of its contents; 0: none */
    int users;        /* it stays while there are any */
} fac_mirror;

fac_status fac_mirrors_init(fac_mirrors *all, fac_error *err);
/* Before the device's queue closes: what only a mirror has is brought home, and all are dropped.  A
 * storage whose contents cannot be read any more keeps the older ones that the host has. */
void fac_mirrors_leave(fac_mirrors *all);
/* Drops mirrors that nothing uses and that are not the only current copy; how many bytes. */
size_t fac_mirrors_evict(fac_mirrors *all);
/* Bytes of all of them. */
size_t fac_mirrors_bytes(fac_mirrors *all);

/* The mirror of s on a device, to be used until fac_mirror_done.  contents: brought there unless it
 * is current already; else the caller is about to write all of it. */
fac_status fac_mirror_use(fac_storage *s, fac_mirrors *all, fac_device *device,
                          const fac_memory_ops *ops, bool contents, fac_mirror **out,
                          fac_error *err);
/* The mirror there, when it is current; else NULL. */
fac_mirror *fac_mirror_current(fac_storage *s, const fac_device *device);
/* What was submitted to the device writes it: a new version of the storage, which only this mirror
 * has. */
void fac_mirror_written(fac_mirror *m);
void fac_mirror_done(fac_mirror *m);

/* A contiguous host tensor whose memory does not exist before the first read: for results that are
 * made in a mirror. */
fac_status fac_tensor_new_aside(fac_type type, fac_tensor **out, fac_error *err);

/* Host memory has the contents afterwards.  Cheap when it has. */
fac_status fac_storage_home(fac_storage *s, fac_error *err);
/* Contents that are drawn at random, and were not drawn yet. */
bool fac_storage_undrawn(fac_storage *s);
/* All of it is about to be written: late contents are never made. */
void fac_storage_overwrite(fac_storage *s);
#endif
