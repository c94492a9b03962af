/* Batches: which samples, in tensors of their own or in those of a batch before. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/image/augment.h"
#include "data/sets/batch.h"
#include "data/sets/dataset_internal.h"
#include "tensor/tensor_internal.h"

/* A Feistel network is a permutation of the numbers of 2 `half` bits whatever its round function
 * (Luby & Rackoff 1988); walking on until the number is below n makes it one of 0..n-1 (Black &
 * Rogaway 2002).  So no table is needed. */
int64_t fac_permute(uint64_t seed, uint64_t stream, int64_t n, int64_t i) {
    enum { ROUNDS = 6 };
    int half = 1;
    while (half < 31 && (int64_t)1 << (2 * half) < n) half++;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t x = (uint64_t)i;
    do {
        uint64_t left = x >> half, right = x & mask;
        for (unsigned r = 0; r < ROUNDS; r++) {
            uint32_t word[4];
            fac_philox(seed, stream, (uint64_t)r << 32 | right, word);
            uint64_t next = left ^ (word[0] & mask);
            left = right;
            right = next;
        }
        x = left << half | right;
    } while (x >= (uint64_t)n);
    return (int64_t)x;
}

int64_t fac_batches_count(const fac_dataset *d, const fac_batches *b) {
    return b->size > 0 ? (d->count + b->size - 1) / b->size : 0;
}

int64_t fac_batches_sample(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t i) {
    return b->shuffle ? fac_permute(b->seed, fac_stream(epoch, FAC_STREAM_ORDER), d->count, i) : i;
}

/* Where a window of a stream begins: anywhere, or, in order, so that all together lie evenly over
 * the text. */
static int64_t window_at(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t i) {
    const int64_t places = d->stream - d->item.d[0];
    const uint64_t stream = fac_stream(epoch, FAC_STREAM_ORDER);
    if (b->shuffle)
        return (int64_t)(fac_random_uniform(b->seed, stream, (uint64_t)i) * (double)places);
    return d->count > 1 ? (int64_t)((double)(places - 1) * (double)i / (double)(d->count - 1)) : 0;
}

/* How long a row is: up to its last token, or to the last one that has a label. */
static int64_t used_length(const fac_dataset *d, int64_t sample) {
    int64_t used = d->item.d[0];
    const int32_t *tokens = d->tokens + sample * used;
    const int64_t *labels = d->sequences ? d->labels + sample * used : NULL;
    while (used > 0 && (labels ? labels[used - 1] == FAC_NO_LABEL : tokens[used - 1] == FAC_PAD))
        used--;
    return used;
}

/* How long the samples of a batch of texts are. */
static int64_t text_length(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t first,
                           int64_t n) {
    const int64_t length = d->item.d[0];
    int64_t longest = 1;
    if (!b->trim) return length;
    for (int64_t i = 0; i < n; i++) {
        const int64_t used = used_length(d, fac_batches_sample(d, b, epoch, first + i));
        if (used > longest) longest = used;
    }
    longest = (longest + b->trim - 1) / b->trim * b->trim;
    return longest < length ? longest : length;
}

/* One batch in the making. */
typedef struct job {
    const fac_dataset *d;
    const fac_batches *b;
    int64_t epoch, first, n; /* places of the epoch */
    fac_error *err;
} job;

static fac_drawn sample_at(const job *j, int64_t i) {
    return (fac_drawn){ j->b->seed, j->epoch,
                        fac_batches_sample(j->d, j->b, j->epoch, j->first + i) };
}

static fac_status check_label(const job *j, int64_t sample) {
    const int64_t label = j->d->labels[sample];
    if (label >= 0 && label < j->d->classes) return FAC_OK;
    return fac_raise(j->err, FAC_E_FORMAT,
                     "sample %lld has label %lld, the data set has %d classes", (long long)sample,
                     (long long)label, j->d->classes);
}

static fac_status copy_wave(const job *j, const fac_drawn *s, int64_t size, float *to) {
    fac_wave w;
    FAC_TRY(fac_wave_begin(j->d, s, size, &w, j->err));
    fac_augment_sound(&j->b->augment, s, size, &w, to);
    fac_wave_end(j->d, s);
    return FAC_OK;
}

static fac_status copy_sample(const job *j, const fac_byte_tables *t, const fac_drawn *s,
                              int64_t size, float *to) {
    if (j->d->bytes && j->d->item.n == 3)
        fac_augment_image(j->d, t, &j->b->augment, s, to);
    else if (j->d->bytes)
        for (int64_t i = 0; i < size; i++) to[i] = t->value[0][j->d->bytes[s->sample * size + i]];
    else if (j->d->item.n == 1)
        return copy_wave(j, s, size, to);
    else
        memcpy(to, j->d->values + s->sample * size, (size_t)size * sizeof *to);
    return FAC_OK;
}

static fac_status fill(const job *j, float *x, int64_t *labels) {
    const int64_t size = fac_dims_count(&j->d->item);
    fac_byte_tables t;
    if (j->d->bytes) fac_augment_tables(j->d, &t);
    for (int64_t i = 0; i < j->n; i++, x += size) {
        const fac_drawn s = sample_at(j, i);
        FAC_TRY(check_label(j, s.sample));
        labels[i] = j->d->labels[s.sample];
        FAC_TRY(copy_sample(j, &t, &s, size, x));
    }
    return FAC_OK;
}

/* Labels are rows of probabilities. */
static fac_status fill_mixed(const job *j, float *x, float *labels, float *other) {
    const int64_t size = fac_dims_count(&j->d->item), classes = j->d->classes;
    fac_byte_tables t;
    if (j->d->bytes) fac_augment_tables(j->d, &t);
    for (int64_t i = 0; i < j->n; i++, x += size, labels += classes) {
        const fac_drawn s = sample_at(j, i),
                        with = { s.seed, s.epoch, fac_mixup_partner(j->d, &s) };
        const float share = (float)fac_mixup_share(j->b->augment.mixup, &s);
        FAC_TRY(check_label(j, s.sample));
        FAC_TRY(check_label(j, with.sample));
        FAC_TRY(copy_sample(j, &t, &s, size, x));
        FAC_TRY(copy_sample(j, &t, &with, size, other));
        for (int64_t k = 0; k < size; k++) x[k] = share * x[k] + (1 - share) * other[k];
        memset(labels, 0, (size_t)classes * sizeof *labels);
        labels[j->d->labels[s.sample]] += share;
        labels[j->d->labels[with.sample]] += 1 - share;
    }
    return FAC_OK;
}

static fac_status fill_texts(const job *j, int64_t length, int64_t *x, int64_t *labels) {
    for (int64_t i = 0; i < j->n; i++) {
        const int64_t k = sample_at(j, i).sample;
        const int32_t *from = j->d->tokens + k * j->d->item.d[0];
        FAC_TRY(check_label(j, k));
        labels[i] = j->d->labels[k];
        for (int64_t t = 0; t < length; t++) *x++ = from[t];
    }
    return FAC_OK;
}

static void fill_windows(const job *j, int64_t length, int64_t *x, int64_t *labels) {
    for (int64_t i = 0; i < j->n; i++) {
        const int32_t *from = j->d->tokens + window_at(j->d, j->b, j->epoch, j->first + i);
        for (int64_t t = 0; t < length; t++) {
            *x++ = from[t];
            *labels++ = from[t + 1];
        }
    }
}

static void fill_rows(const job *j, int64_t length, int64_t *x, int64_t *labels) {
    for (int64_t i = 0; i < j->n; i++) {
        const int64_t at = sample_at(j, i).sample * j->d->item.d[0];
        for (int64_t t = 0; t < length; t++) {
            *x++ = j->d->tokens[at + t];
            *labels++ = j->d->labels[at + t];
        }
    }
}

/* Labels of whole texts, or of their tokens. */
static fac_status fill_tokens(const job *j, int64_t length, int64_t *x, int64_t *labels) {
    if (!j->d->sequences) return fill_texts(j, length, x, labels);
    if (j->d->stream)
        fill_windows(j, length, x, labels);
    else
        fill_rows(j, length, x, labels);
    return FAC_OK;
}

/* ---- tensors ---- */

/* The tensor of a batch before takes this type if nothing else holds it and there is room; else a
 * new one with room for `most` samples takes its place.  *data: where to write. */
static fac_status reuse(fac_tensor **t, fac_type type, int64_t most, void **data, fac_error *err) {
    const size_t need = fac_type_bytes(&type);
    fac_tensor *old = *t;
    const bool ours = old && atomic_load(&old->refs) == 1 && atomic_load(&old->storage->refs) == 1;
    if (!ours || old->type.dtype != type.dtype || old->storage->bytes < need) {
        fac_tensor *fresh;
        fac_dims full = type.dims;
        full.d[0] = most;
        FAC_TRY(fac_tensor_new(NULL, type.dtype, full, &fresh, err));
        fac_tensor_free(old);
        *t = old = fresh;
    }
    old->type = type;
    fac_dims_strides(&type.dims, type.dtype, old->stride);
    return fac_tensor_begin_write(old, data, err);
}

static fac_status scratch(fac_batch_memory *m, int64_t floats, fac_error *err) {
    if (m->other) return FAC_OK;
    m->other = fac_alloc((size_t)floats + 1, sizeof *m->other);
    return m->other ? FAC_OK : fac_raise_memory(err, "a sample of %lld numbers", (long long)floats);
}

fac_status fac_batches_check(const fac_dataset *d, const fac_batches *b, fac_error *err) {
    FAC_TRY(fac_augment_check(&b->augment, d, err));
    if (b->trim < 0 || (b->trim && (!d->tokens || d->stream)))
        return fac_raise(err, FAC_E_ARGUMENT,
                         "samples that are %stexts cannot be cut to a multiple of %d",
                         d->tokens && !d->stream ? "" : "no ", b->trim);
    if (d->sequences && b->augment.mixup > 0)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "mixup is not for tokens that have labels of their own");
    return FAC_OK;
}

fac_status fac_batch_into(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t index,
                          fac_batch_memory *m, fac_error *err) {
    if (index < 0 || index >= fac_batches_count(d, b))
        return fac_raise(err, FAC_E_ARGUMENT, "batch %lld of %lld", (long long)index,
                         (long long)fac_batches_count(d, b));
    FAC_TRY(fac_batches_check(d, b, err));
    const int64_t first = index * b->size,
                  n = d->count - first < b->size ? d->count - first : b->size;
    const int64_t most = d->count < b->size ? d->count : b->size;
    const job j = { d, b, epoch, first, n, err };
    const bool mixed = b->augment.mixup > 0;
    fac_type x = { d->tokens ? FAC_I64 : FAC_F32, { .n = d->item.n + 1, .d = { n } } };
    memcpy(x.dims.d + 1, d->item.d, (size_t)d->item.n * sizeof *x.dims.d);
    if (d->tokens) x.dims.d[1] = text_length(d, b, epoch, first, n);
    fac_type labels = { FAC_I64, fac_shape(n) };
    if (mixed) labels = (fac_type){ FAC_F32, fac_shape(n, d->classes) };
    if (d->sequences) labels = x;
    void *to, *to_labels;
    FAC_TRY(reuse(&m->x, x, most, &to, err));
    FAC_TRY(reuse(&m->labels, labels, most, &to_labels, err));
    if (d->tokens) return fill_tokens(&j, x.dims.d[1], to, to_labels);
    if (!mixed) return fill(&j, to, to_labels);
    FAC_TRY(scratch(m, fac_dims_count(&d->item), err));
    return fill_mixed(&j, to, to_labels, m->other);
}

void fac_batch_memory_free(fac_batch_memory *m) {
    fac_tensor_free(m->x);
    fac_tensor_free(m->labels);
    fac_release(m->other);
    *m = (fac_batch_memory){ 0 };
}

fac_status fac_batch(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t index,
                     fac_tensor **x, fac_tensor **labels, fac_error *err) {
    fac_batch_memory m = { 0 };
    fac_status status = fac_batch_into(d, b, epoch, index, &m, err);
    if (!status) {
        *x = m.x;
        *labels = m.labels;
        m.x = m.labels = NULL;
    }
    fac_batch_memory_free(&m);
    return status;
}
