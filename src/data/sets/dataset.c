/* Data sets: memory, and splitting one in two. */
#include "base/error.h"
#include "base/memory.h"
#include "data/sets/dataset_internal.h"
#include "data/sound/sound_bank.h"
#include <string.h>

fac_status fac_dataset_new(fac_dataset *d, int64_t count, fac_dims item, bool floats,
                           const char *name, fac_error *err) {
    return fac_dataset_new_of(d, count, item, floats ? FAC_F32 : FAC_U8, name, err);
}

fac_status fac_dataset_new_of(fac_dataset *d, int64_t count, fac_dims item, fac_dtype dtype,
                              const char *name, fac_error *err) {
    size_t size = fac_type_bytes(&(fac_type){ dtype, item }), all;
    *d = (fac_dataset){ .count = count, .item = item };
    if (count < 1) return fac_raise(err, FAC_E_FORMAT, "%s: no samples", name);
    bool sized = size != SIZE_MAX && fac_size_mul((size_t)count, size, &all);
    if (!sized || !(d->memory = fac_alloc(1, sizeof *d->memory)) ||
        !(d->memory->samples = fac_alloc(all ? all : 1, 1)) ||
        !(d->memory->labels = fac_alloc((size_t)count, sizeof(int64_t))))
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %lld samples", name,
                         (long long)count);
    if (dtype == FAC_F32)
        d->values = d->memory->samples;
    else if (dtype == FAC_I32)
        d->tokens = d->memory->samples;
    else
        d->bytes = d->memory->samples;
    d->labels = d->memory->labels;
    return FAC_OK;
}

fac_status fac_dataset_new_cuts(fac_dataset *d, int64_t count, fac_dims item, int64_t samples,
                                const char *name, fac_error *err) {
    *d = (fac_dataset){ .count = count, .item = item };
    if (count < 1) return fac_raise(err, FAC_E_FORMAT, "%s: no samples", name);
    if (!(d->memory = fac_alloc(1, sizeof *d->memory)) ||
        !(d->memory->samples = fac_alloc((size_t)samples + 1, sizeof(float))) ||
        !(d->memory->labels = fac_alloc((size_t)count, sizeof(int64_t))) ||
        !(d->memory->cuts = fac_alloc((size_t)count, sizeof(fac_cut))))
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for %lld samples of sound", name,
                         (long long)samples);
    d->values = d->memory->samples;
    d->labels = d->memory->labels;
    d->cuts = d->memory->cuts;
    return FAC_OK;
}

void fac_dataset_free(fac_dataset *d) {
    if (d->memory) {
        fac_arena_free(&d->memory->arena);
        fac_release(d->memory->samples);
        fac_release(d->memory->labels);
        fac_release(d->memory->cuts);
        fac_sound_bank_free(d->memory->bank);
        fac_release(d->memory);
    }
    *d = (fac_dataset){ 0 };
}

fac_status fac_dataset_like(const fac_dataset *d, fac_dataset *out, fac_error *err) {
    out->classes = d->classes;
    memcpy(out->mean, d->mean, sizeof d->mean);
    memcpy(out->std, d->std, sizeof d->std);
    if (!d->class_names) return FAC_OK;
    out->class_names = fac_arena_texts(&out->memory->arena, d->class_names, (size_t)d->classes);
    return out->class_names ? FAC_OK : fac_raise_memory(err, "the names of %d classes", d->classes);
}

/* Samples from..to of the random order. */
static fac_status part_of(const fac_dataset *d, uint64_t seed, int64_t from, int64_t to,
                          fac_dataset *out, fac_error *err) {
    fac_dtype dtype = FAC_U8;
    if (d->tokens) dtype = FAC_I32;
    if (d->values) dtype = FAC_F32;
    FAC_TRY(fac_dataset_new_of(out, to - from, d->item, dtype, "a part of a data set", err));
    FAC_TRY(fac_dataset_like(d, out, err));
    const size_t size = fac_type_bytes(&(fac_type){ dtype, d->item });
    const char *samples = d->values   ? (const char *)d->values
                          : d->tokens ? (const char *)d->tokens
                                      : (const char *)d->bytes;
    for (int64_t i = from; i < to; i++) {
        int64_t k = fac_permute(seed, 0, d->count, i);
        memcpy((char *)out->memory->samples + (size_t)(i - from) * size, samples + (size_t)k * size,
               size);
        out->memory->labels[i - from] = d->labels[k];
    }
    return FAC_OK;
}

fac_status fac_dataset_split(const fac_dataset *d, double part, uint64_t seed, fac_dataset *first,
                             fac_dataset *second, fac_error *err) {
    if (d->sequences)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "texts whose tokens have labels are split before they become a data set");
    if (!(part > 0 && part < 1))
        return fac_raise(err, FAC_E_ARGUMENT,
                         "a data set is split at %g: it must be above 0, below 1", part);
    if (d->cuts)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "windows of recordings are split when they are read, by recording");
    int64_t middle = d->count - (int64_t)((double)d->count * part + 0.5);
    if (middle < 1 || middle >= d->count)
        return fac_raise(err, FAC_E_ARGUMENT, "%lld samples cannot be split at %g",
                         (long long)d->count, part);
    fac_dataset a = { 0 }, b = { 0 };
    fac_status status = part_of(d, seed, 0, middle, &a, err);
    if (!status) status = part_of(d, seed, middle, d->count, &b, err);
    if (status) {
        fac_dataset_free(&a);
        fac_dataset_free(&b);
        return status;
    }
    *first = a;
    *second = b;
    return FAC_OK;
}
