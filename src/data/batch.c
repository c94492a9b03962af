/* Batches: order, normalization, augmentation, all counter-based. */
#include <string.h>
#include "base/error.h"
#include "base/rng.h"
#include "data/dataset_internal.h"
#include "tensor/tensor_internal.h"

/* Random streams of an epoch. */
enum { ORDER, AUGMENT, STREAMS };
static uint64_t stream_of(int64_t epoch, int what) { return (uint64_t)epoch * STREAMS + (uint64_t)what; }

/* A Feistel network is a permutation of the numbers of 2 `half` bits whatever its round function (Luby & Rackoff 1988); walking
 * on until the number is below n makes it one of 0..n-1 (Black & Rogaway 2002).  So no table is needed. */
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
    return b->shuffle ? fac_permute(b->seed, stream_of(epoch, ORDER), d->count, i) : i;
}

/* A byte has 256 values, so each channel is a table of results. */
static void make_tables(const fac_dataset *d, float table[3][256]) {
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++) table[c][v] = (float)((v / 255.0 - d->mean[c]) / (d->std[c] != 0 ? d->std[c] : 1));
}

/* Pixel (y, x) of the result is pixel (y + down, x + right) of the image, mirrored first or not, black outside. */
typedef struct window { int64_t down, right; bool mirror; } window;

static window draw(const fac_batches *b, int64_t epoch, int64_t sample) {
    uint32_t word[4];
    fac_philox(b->seed, stream_of(epoch, AUGMENT), (uint64_t)sample, word);
    const uint32_t places = 2 * (uint32_t)b->crop + 1;
    return (window){ (int64_t)(word[0] % places) - b->crop, (int64_t)(word[1] % places) - b->crop, b->flip && word[2] & 1 };
}

static void copy_plane(const uint8_t *from, int64_t height, int64_t width, const window *w, const float table[256], float *to) {
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            int64_t i = y + w->down, k = x + w->right;
            bool inside = i >= 0 && i < height && k >= 0 && k < width;
            *to++ = table[inside ? from[i * width + (w->mirror ? width - 1 - k : k)] : 0];
        }
}

static void copy_image(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t sample, float table[3][256],
                       float *to) {
    const int64_t channels = d->item.d[0], height = d->item.d[1], width = d->item.d[2], plane = height * width;
    const uint8_t *from = d->bytes + sample * channels * plane;
    const bool augment = b->crop || b->flip;
    const window w = augment ? draw(b, epoch, sample) : (window){ 0 };
    for (int64_t c = 0; c < channels; c++, from += plane, to += plane) {
        const float *t = table[c < 3 ? c : 0];
        if (augment) copy_plane(from, height, width, &w, t, to);
        else for (int64_t i = 0; i < plane; i++) to[i] = t[from[i]];
    }
}

static void fill(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t first, int64_t n, float *x, int64_t *labels) {
    float table[3][256];
    const int64_t size = fac_dims_count(&d->item);
    if (d->bytes) make_tables(d, table);
    for (int64_t i = 0; i < n; i++, x += size) {
        int64_t k = fac_batches_sample(d, b, epoch, first + i);
        labels[i] = d->labels[k];
        if (d->bytes) copy_image(d, b, epoch, k, table, x);
        else memcpy(x, d->values + k * size, (size_t)size * sizeof *x);
    }
}

/* How long the samples of a batch of texts are. */
static int64_t text_length(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t first, int64_t n) {
    const int64_t length = d->item.d[0];
    int64_t longest = 1;
    if (!b->trim) return length;
    for (int64_t i = 0; i < n; i++) {
        const int32_t *from = d->tokens + fac_batches_sample(d, b, epoch, first + i) * length;
        int64_t used = length;
        while (used > longest && from[used - 1] == FAC_PAD) used--;
        if (used > longest) longest = used;
    }
    longest = (longest + b->trim - 1) / b->trim * b->trim;
    return longest < length ? longest : length;
}

static void fill_texts(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t first, int64_t n, int64_t length,
                       int64_t *x, int64_t *labels) {
    for (int64_t i = 0; i < n; i++) {
        int64_t k = fac_batches_sample(d, b, epoch, first + i);
        const int32_t *from = d->tokens + k * d->item.d[0];
        labels[i] = d->labels[k];
        for (int64_t t = 0; t < length; t++) *x++ = from[t];
    }
}

fac_status fac_batch(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t index, fac_tensor **x,
                     fac_tensor **labels, fac_error *err) {
    if (index < 0 || index >= fac_batches_count(d, b))
        return fac_raise(err, FAC_E_ARGUMENT, "batch %lld of %lld", (long long)index, (long long)fac_batches_count(d, b));
    if (b->crop < 0 || b->crop > 1 << 20 || ((b->crop || b->flip) && !d->bytes))
        return fac_raise(err, FAC_E_ARGUMENT, "augmentation: crop %d of samples that are %simages", b->crop,
                         d->bytes ? "" : "no ");
    if (b->trim < 0 || (b->trim && !d->tokens))
        return fac_raise(err, FAC_E_ARGUMENT, "samples that are %stexts cannot be cut to a multiple of %d",
                         d->tokens ? "" : "no ", b->trim);
    int64_t first = index * b->size, n = d->count - first < b->size ? d->count - first : b->size;
    fac_dims dims = { .n = d->item.n + 1, .d = { n } };
    memcpy(dims.d + 1, d->item.d, (size_t)d->item.n * sizeof *dims.d);
    if (d->tokens) dims.d[1] = text_length(d, b, epoch, first, n);
    fac_tensor *tx = NULL, *tl = NULL;
    void *to = NULL, *to_labels = NULL;
    fac_status status = fac_tensor_new(NULL, d->tokens ? FAC_I64 : FAC_F32, dims, &tx, err);
    if (!status) status = fac_tensor_new(NULL, FAC_I64, fac_shape(n), &tl, err);
    if (!status) status = fac_tensor_begin_write(tx, &to, err);
    if (!status) status = fac_tensor_begin_write(tl, &to_labels, err);
    if (status) {
        fac_tensor_free(tx);
        fac_tensor_free(tl);
        return status;
    }
    if (d->tokens) fill_texts(d, b, epoch, first, n, dims.d[1], to, to_labels);
    else fill(d, b, epoch, first, n, to, to_labels);
    *x = tx;
    *labels = tl;
    return FAC_OK;
}
