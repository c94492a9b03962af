/* How readers make data sets. */
#ifndef FACULA_DATA_DATASET_INTERNAL_H
#define FACULA_DATA_DATASET_INTERNAL_H
#include "base/arena.h"
#include "facula/data/data.h"

struct fac_dataset_memory {
    fac_arena arena; /* names of classes */
    void *samples;   /* bytes, values or tokens */
    int64_t *labels;
    fac_cut *cuts;               /* of sounds */
    struct fac_sound_bank *bank; /* of sounds that do not stay in memory */
};

/* Room for samples (floats, or bytes) and labels, zeroed.  d is empty; what is in it after an error
 * the caller frees. */
fac_status fac_dataset_new(fac_dataset *d, int64_t count, fac_dims item, bool floats,
                           const char *name, fac_error *err);
/* The same for any element type: f32 values, u8 bytes, i32 tokens. */
fac_status fac_dataset_new_of(fac_dataset *d, int64_t count, fac_dims item, fac_dtype dtype,
                              const char *name, fac_error *err);
/* The same for `count` windows of recordings, which have so many samples together. */
fac_status fac_dataset_new_cuts(fac_dataset *d, int64_t count, fac_dims item, int64_t samples,
                                const char *name, fac_error *err);
/* Gives a new data set what d knows of its classes and of its bytes. */
fac_status fac_dataset_like(const fac_dataset *d, fac_dataset *out, fac_error *err);
static inline uint8_t *fac_dataset_bytes(fac_dataset *d) { return d->memory->samples; }
static inline float *fac_dataset_values(fac_dataset *d) { return d->memory->samples; }
static inline int32_t *fac_dataset_tokens(fac_dataset *d) { return d->memory->samples; }
static inline int64_t *fac_dataset_labels(fac_dataset *d) { return d->memory->labels; }

/* A whole file, unpacked if it is a gzip file (RFC 1952).  *out is freed with fac_release. */
fac_status fac_gzip_read(const char *path, unsigned char **out, size_t *bytes, fac_error *err);

/* Place i of a random order of 0 .. n-1. */
int64_t fac_permute(uint64_t seed, uint64_t stream, int64_t n, int64_t i);
#endif
