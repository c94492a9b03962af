/* facula/data.h: data sets for classification, in memory, and how they become batches.
 *
 * Everything random (order, crops, flips) is a function of the seed, the epoch and the sample alone: no state, so a training
 * that is resumed at any step sees the same batches, on any number of threads. */
#ifndef FACULA_DATA_H
#define FACULA_DATA_H

#include "facula/tensor.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* Read only.  Samples lie one behind the other, images as planes of channels. */
typedef struct fac_dataset {
    int64_t  count;
    fac_dims item;                  /* of one sample: channels, height, width; or features */
    int      classes;
    const char *const *class_names; /* classes of them; NULL: they are numbers */
    const uint8_t *bytes;           /* images 0..255, else NULL */
    const float   *values;          /* other samples, else NULL */
    const int64_t *labels;          /* 0 .. classes - 1 */
    double   mean[3], std[3];       /* a byte b of channel c becomes (b / 255 - mean[c]) / std[c]; std 0 is 1 */
    struct fac_dataset_memory *memory;
} fac_dataset;

void fac_dataset_free(fac_dataset *d);      /* and clears; an empty one is fine */

/* The four files of MNIST (LeCun et al. 1998) and its likes (Fashion-MNIST) in a folder, as they are or .gz. */
fac_status fac_dataset_mnist(const char *folder, bool train, fac_dataset *out, fac_error *err);
/* The binary version of CIFAR-10 (Krizhevsky 2009): data_batch_1.bin .. 5, test_batch.bin. */
fac_status fac_dataset_cifar10(const char *folder, bool train, fac_dataset *out, fac_error *err);
/* A folder of folders of photos; the names of the folders, sorted, are the classes.  Photos are scaled to height x width. */
fac_status fac_dataset_images(const char *folder, int height, int width, fac_dataset *out, fac_error *err);
/* Points of the unit square in two classes: the sets simple, diag, split, xor, circle and spiral of MiniTorch. */
fac_status fac_dataset_toy(const char *name, int64_t count, uint64_t seed, fac_dataset *out, fac_error *err);

/* Two sets from one, drawn at random; the second gets this part of the samples. */
fac_status fac_dataset_split(const fac_dataset *d, double part, uint64_t seed, fac_dataset *first, fac_dataset *second,
                             fac_error *err);

typedef struct fac_batches {
    int64_t  size;                  /* samples in a batch; the last batch of an epoch holds what is left */
    bool     shuffle;
    uint64_t seed;
    int      crop;                  /* augmentation: so many black pixels around, then a random window of the old size */
    bool     flip;                  /* augmentation: half of the images are mirrored, left to right */
} fac_batches;

int64_t fac_batches_count(const fac_dataset *d, const fac_batches *b);      /* batches in an epoch */
/* Which sample comes at place i of an epoch. */
int64_t fac_batches_sample(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t i);
/* Batch `index` of an epoch: x f32 [n, item...], labels i64 [n], new tensors. */
fac_status fac_batch(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t index, fac_tensor **x,
                     fac_tensor **labels, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
