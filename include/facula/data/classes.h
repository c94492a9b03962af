/* facula/data/classes.h: what a classifier's scores say: names of classes, and the best of a row.
 *
 * Thread safety: labels are read only once made; any number of threads may read them. */
#ifndef FACULA_CLASSES_H
#define FACULA_CLASSES_H

#include "facula/tensor.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_labels fac_labels;

/* Names of classes: the text's lines, LF or CRLF, UTF-8; class k is line k + 1, and an empty line
 * is a class without a name.  Empty lines at the end are none; control characters become question
 * marks.  `name` is for errors.  FAC_E_FORMAT for a text without a name or with a zero byte,
 * FAC_E_ARGUMENT above 64 MiB, FAC_E_NOMEM; a file, which may be a pipe, also FAC_E_IO. */
fac_status fac_labels_parse(const char *text, size_t bytes, const char *name, fac_labels **out,
                            fac_error *err);
/* The same from a file. */
fac_status fac_labels_load(const char *path, fac_labels **out, fac_error *err);
int fac_labels_count(const fac_labels *l); /* 0 for NULL */
/* NULL outside, and for a class without a name */
const char *fac_labels_get(const fac_labels *l, int64_t index);
/* What is written into a model (FAC_NOTE_LABELS): one name a line.  Valid as long as l. */
const char *fac_labels_text(const fac_labels *l);
void fac_labels_free(fac_labels *l); /* NULL is fine */
/* More bytes than this of names are no metadata: fac_labels_text of them is not written into a
 * model. */
enum { FAC_LABELS_METADATA = 1 << 20 };

/* One of the best classes. */
typedef struct fac_class {
    int64_t index;
    double score;       /* what the model gave: a logit, or a probability already */
    double probability; /* the score where the row is probabilities, else its softmax */
    const char *name;   /* of the labels; else of ImageNet where the row has 1000 or
                           1001 scores; else NULL */
} fac_class;

/* The k best of a row of scores, the best first; equal ones in the order of their index, NaN last.
 * *n is how many there are: k, or all.  scores: a host tensor or a device's, of floats, [classes]
 * or [rows, classes, 1...]; row: which of the rows.  Scores count as probabilities when none is
 * outside 0 .. 1.001 and they add up to 1 within 0.01; only others are put through a softmax.
 * labels may be NULL; names live as long as they do.  FAC_E_ARGUMENT: no such row, or no k;
 * FAC_E_SHAPE: no row of scores; FAC_E_DTYPE; FAC_E_NOMEM; FAC_E_DEVICE. */
fac_status fac_top(const fac_tensor *scores, int64_t row, const fac_labels *labels, int k,
                   fac_class *best, int *n, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
