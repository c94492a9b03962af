/* facula/data/data.h: data sets for classification, in memory, and how they become batches.
 *
 * Everything random (order, crops, flips) is a function of the seed, the epoch and the sample
 * alone: no state, so a training that is resumed at any step sees the same batches, on any number
 * of threads. */
#ifndef FACULA_DATA_H
#define FACULA_DATA_H

#include "facula/data/image.h"
#include "facula/tensor.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* A sample that is a window of a recording. */
typedef struct fac_cut {
    int64_t begin, size; /* the recording: its first sample in `values`, and how many it has; where
                            `values` is NULL, in its file */
    int64_t from;        /* where in the recording the window begins */
    int64_t source;      /* which recording: windows of one have one number, from 0 */
} fac_cut;

/* Read only.  Samples lie one after the other, images as planes of channels. */
typedef struct fac_dataset {
    int64_t count;
    fac_dims item; /* of one sample: channels, height, width; or features */
    int classes;
    const char *const *class_names; /* classes of them; NULL: they are numbers */
    const uint8_t *bytes;           /* images 0..255, else NULL */
    const float *values;            /* other samples, else NULL */
    const int32_t *tokens; /* texts: item is { length }, after the end FAC_PAD; else NULL */
    const int64_t *labels; /* 0 .. classes - 1 */
    bool sequences;        /* a label for each token: labels are count x length, of which
                              FAC_NO_LABEL do not count; batches give labels [n, length] */
    int64_t stream;        /* sequences from one text of so many tokens: a sample is a
                              window of it, its labels the tokens one further; labels is NULL */
    const fac_cut *cuts;   /* of sounds: `values` holds whole recordings, samples are
                              windows of them; else NULL.  values NULL: the recordings
                              are read from their files when they are needed */
    bool anew;             /* cuts of recordings longer than a window begin anywhere, drawn
                              by (seed, epoch, sample) */
    bool zeros;            /* cuts of shorter ones are filled up with zeros; else the
                              recording is repeated */
    double mean[3],
        std[3]; /* a byte b of channel c becomes (b / 255 - mean[c]) / std[c]; std 0 is 1 */
    struct fac_dataset_memory *memory;
} fac_dataset;

void fac_dataset_free(fac_dataset *d); /* and clears; an empty one is fine */

/* The four files of MNIST (LeCun et al. 1998) and its likes (Fashion-MNIST) in a folder, as they
 * are or .gz. */
fac_status fac_dataset_mnist(const char *folder, bool train, fac_dataset *out, fac_error *err);
/* CIFAR-10 (Krizhevsky 2009): data_batch_1.bin .. 5 and test_batch.bin of the binary version, or
 * the same without .bin of the python version. */
fac_status fac_dataset_cifar10(const char *folder, bool train, fac_dataset *out, fac_error *err);
/* CIFAR-100, its hundred classes: train and test, with or without .bin likewise. */
fac_status fac_dataset_cifar100(const char *folder, bool train, fac_dataset *out, fac_error *err);
/* A folder of folders of photos; the names of the folders, sorted, are the classes.  Photos are
 * scaled to height x width. */
fac_status fac_dataset_images(const char *folder, int height, int width, fac_dataset *out,
                              fac_error *err);
/* Points of the unit square in two classes: the sets simple, diag, split, xor, circle and spiral of
 * MiniTorch. */
fac_status fac_dataset_toy(const char *name, int64_t count, uint64_t seed, fac_dataset *out,
                           fac_error *err);

/* Two sets from one, drawn at random; the second gets this part of the samples. */
fac_status fac_dataset_split(const fac_dataset *d, double part, uint64_t seed, fac_dataset *first,
                             fac_dataset *second, fac_error *err);

/* A sample that is an image, grey or in colour. */
fac_status fac_dataset_image(const fac_dataset *d, int64_t sample, fac_image *out, fac_error *err);
/* Images scaled to height x width, bilinear; grey ones may become those of 3 equal channels.  A new
 * data set with the same labels, classes, mean and std. */
fac_status fac_dataset_resize(const fac_dataset *d, int channels, int height, int width,
                              fac_dataset *out, fac_error *err);

/* What images become is what a preset makes of pixels: scale, mean, std and the order of channels.
 * Their size and whether they are grey stay.  FAC_E_ARGUMENT where the samples are no images. */
fac_status fac_dataset_prepare(fac_dataset *d, const fac_preprocess *how, fac_error *err);

/* ---- augmentation ---- */

/* Random changes of training images, done in this order; 0 is none of it.  Each choice is drawn
 * from numbers of its own, so leaving one kind out changes no other. */
typedef struct fac_augment {
    double scale, ratio; /* a window of scale .. 1 of the area, of shape 1/ratio .. ratio (0: 4/3),
                            becomes the image (Szegedy et al. 2015) */
    double rotate;       /* by up to so many degrees to either side */
    bool flip;           /* half of the images are mirrored, left to right */
    int crop;            /* so many black pixels around, then a random window of the old size */
    double brightness, contrast,
        saturation; /* a factor within 1 - this .. 1 + this, as torchvision's ColorJitter */
    double hue;     /* up to this part of a turn to either side, at most 0.5 */
    int cutout;   /* a square of this side becomes 0, after normalization (DeVries & Taylor 2017) */
    double erase; /* in this part of the images a rectangle becomes 0 (Zhong et al. 2017) */
    double mixup; /* alpha: each sample is mixed with another one (Zhang et al. 2018); labels become
                     probabilities, f32 [n, classes].  Also of samples that are no images */
    double shift; /* waveforms: rotated in time by up to this part of their length to either side */
    double gain;  /* waveforms: louder or softer by up to so many dB */
    double noise; /* waveforms: white noise of up to this part of their own loudness (rms) */
} fac_augment;

/* Reads a list of changes: "none", or some of crop, flip, resize, rotate, colour, brightness,
 * contrast, saturation, hue, cutout, erase, mixup, shift, gain and noise, with commas between.
 * Each may have a number of its own: "crop=4,flip,mixup=0.2".  item: the shape of a sample,
 * for sizes in pixels. */
fac_status fac_augment_parse(const char *list, const fac_dims *item, fac_augment *out,
                             fac_error *err);

/* ---- batches ---- */

typedef struct fac_batches {
    int64_t size; /* samples in a batch; the last batch of an epoch holds what is left */
    bool shuffle;
    uint64_t seed;
    fac_augment augment;
    int trim; /* texts: a batch is as long as its longest, rounded
                 up to a multiple of this; 0: item.  Not of a stream */
} fac_batches;

int64_t fac_batches_count(const fac_dataset *d, const fac_batches *b); /* batches in an epoch */
/* Which sample comes at place i of an epoch. */
int64_t fac_batches_sample(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t i);
/* Batch `index` of an epoch: x f32 [n, item...], of texts i64 [n, length]; labels i64 [n], with
 * mixup f32 [n, classes]; new tensors. */
fac_status fac_batch(const fac_dataset *d, const fac_batches *b, int64_t epoch, int64_t index,
                     fac_tensor **x, fac_tensor **labels, fac_error *err);

/* A thread that makes batches first .. end - 1, counted over all epochs, before they are asked for,
 * up to `ahead` of them; 0: no thread.  Buffers are used again: in a steady state nothing is
 * allocated.  d must stay as it is until the loader is freed, which may be at any time. */
typedef struct fac_loader fac_loader;
fac_status fac_loader_new(const fac_dataset *d, const fac_batches *b, int64_t first, int64_t end,
                          int ahead, fac_loader **out, fac_error *err);
/* The next batch, the same as fac_batch gives.  Both tensors are the loader's, and valid until the
 * next call; whoever retains one keeps it.  The error of a batch that cannot be made comes when it
 * is its turn, and then again. */
fac_status fac_loader_next(fac_loader *l, fac_tensor **x, fac_tensor **labels, fac_error *err);
void fac_loader_free(fac_loader *l); /* waits for its thread; NULL is fine */

/* ---- texts ---- */

/* Labelled lines of text, UTF-8, each ending in a NUL.  Read only. */
typedef struct fac_texts {
    int64_t count;
    const char *const *text;
    const int64_t *labels; /* 0 .. classes - 1 */
    int classes;
    const char *const
        *class_names; /* NULL: the labels of the file are the numbers of the classes */
    struct fac_texts_memory *memory;
} fac_texts;

typedef struct fac_texts_opts {
    char separator; /* 0: a comma in files *.csv, else a tab */
    bool header;    /* the first record names the columns */
    const char *text,
        *label; /* columns: a name of the header, or a number from 0; NULL: "0" and "1" */
    const fac_texts *like; /* labels mean the classes of this one (a training set), others are
                              refused; may be NULL */
} fac_texts_opts;

/* A table with a record a line.  A comma-separated one has quotes as RFC 4180 says; LF or CRLF; the
 * last line may lack its end. Bytes that are no UTF-8 become U+FFFD.  An error names the file and
 * the line.  opts may be NULL. */
fac_status fac_texts_load(const char *path, const fac_texts_opts *opts, fac_texts *out,
                          fac_error *err);
/* The Stanford Sentiment Treebank in two classes (Socher et al. 2013): `part`.tsv ("train", "dev",
 * "test") in a folder, a sentence and 0 or 1, without header or with that of GLUE. */
fac_status fac_texts_sst2(const char *folder, const char *part, fac_texts *out, fac_error *err);
void fac_texts_free(fac_texts *t); /* and clears; an empty one is fine */

/* A vocabulary cuts a text into tokens and knows their numbers.  Immutable. */
typedef struct fac_vocab fac_vocab;
enum {
    FAC_PAD = 0,
    FAC_UNK = 1
}; /* <pad>, after the end of a text; <unk>, any token that is not known */

typedef enum fac_token_kind {
    FAC_TOKENS_WORD,  /* runs of letters and digits ('it' and ''s' of "it's"), each other mark alone
                       */
    FAC_TOKENS_SPACE, /* whatever stands between spaces: for texts that were cut into tokens before
                       */
    FAC_TOKENS_CHAR   /* each character, spaces too */
} fac_token_kind;

typedef struct fac_vocab_opts {
    fac_token_kind kind;
    bool keep_case;          /* else letters become small ones */
    int64_t min_count, size; /* of words: seen so often at least (0: once); so many at most, the
                                commonest (0: any) */
} fac_vocab_opts;

/* The words of these texts, the commonest first, then by bytes.  opts may be NULL. */
fac_status fac_vocab_new(const fac_texts *t, const fac_vocab_opts *opts, fac_vocab **out,
                         fac_error *err);
void fac_vocab_free(fac_vocab *v); /* NULL is fine */
/* A text file: a line that says how texts are cut, then a line for each word. */
fac_status fac_vocab_save(const fac_vocab *v, const char *path, fac_error *err);
/* What fac_vocab_save wrote; FAC_E_FORMAT names the line at fault. */
fac_status fac_vocab_load(const char *path, fac_vocab **out, fac_error *err);
int64_t fac_vocab_count(const fac_vocab *v);                  /* <pad> and <unk> included */
const char *fac_vocab_word(const fac_vocab *v, int64_t id);   /* NULL outside 0 .. count - 1 */
int32_t fac_vocab_find(const fac_vocab *v, const char *word); /* FAC_UNK when it is not there */
/* The number of tokens of a text; the first `room` of them go to ids. */
int64_t fac_vocab_encode(const fac_vocab *v, const char *text, int32_t *ids, int64_t room);
/* A vector for each word from a file as GloVe's (a word and its numbers a line): f32 [count, dim].
 * Words that the file lacks get numbers from +-0.25 by the seed, <pad> zeros.  found: of how many
 * words there was one; may be NULL. */
fac_status fac_vocab_vectors(const fac_vocab *v, const char *path, uint64_t seed, fac_tensor **out,
                             int64_t *found, fac_error *err);

/* Token ids; longer texts are cut to this length, 0 is that of the longest. */
fac_status fac_dataset_texts(const fac_texts *t, const fac_vocab *v, int64_t length,
                             fac_dataset *out, fac_error *err);
/* For language models, whose classes are the tokens 0 .. classes - 1.  A stream: `count` windows of
 * `length` tokens from a text of n.  Shuffled batches draw where they begin, anew by seed, epoch
 * and place (with replacement, as nanoGPT does), others lie evenly over the text.  The ids are
 * copied. FAC_E_ARGUMENT: fewer than length + 1 tokens, an id that is no class. */
fac_status fac_dataset_stream(const int32_t *ids, int64_t n, int64_t length, int64_t count,
                              int classes, fac_dataset *out, fac_error *err);
enum { FAC_NO_LABEL = -100 }; /* torch's ignore_index */
/* Rows of `length` tokens with what is to follow each, FAC_NO_LABEL where that is not to be
 * learned; after the end of a row tokens are FAC_PAD.  A copy is made. */
fac_status fac_dataset_sequences(const int32_t *tokens, const int64_t *labels, int64_t count,
                                 int64_t length, int classes, fac_dataset *out, fac_error *err);
/* Samples and labels as NumPy saves them: x f32 or f64 [N,...] are values, u8 [N,C,H,W] images, i32
 * or i64 [N,L] tokens; y integers [N]. */
fac_status fac_dataset_npy(const char *x, const char *y, fac_dataset *out, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
