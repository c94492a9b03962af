/* What cross entropies of labels have in common: with s = smoothing and p the probabilities of C
 * classes along an axis, a sample whose label counts loses  -(1 - s) log p[label] - s/C sum over c
 * of log p[c]  (Szegedy et al. 2016, as torch does it). The axis is dim 1, or of one sample alone
 * its only one.  A negative label counts from the end, one beyond all classes is none of them. */
#ifndef FACULA_OPS_CLASS_LOSS_H
#define FACULA_OPS_CLASS_LOSS_H
#include "facula/op.h"

/* Of cross_entropy; its gradient has all but the reduction, at the same places.  !ignore: -100 is
 * ignored, as in torch. */
typedef struct fac_class_loss {
    int reduction;
    bool ignore;
    int64_t ignore_index;
    double smoothing;
} fac_class_loss;
enum { FAC_CLASS_MEAN, FAC_CLASS_SUM, FAC_CLASS_EACH };

static inline int fac_class_axis(const fac_value *x) { return x->type.dims.n > 1; }
static inline int64_t fac_class_ignored(const fac_class_loss *a) {
    return a->ignore ? a->ignore_index : -100;
}

/* How many classes x has, an integer that may be known only when the graph runs. */
fac_value *fac_class_count(fac_value *x);
/* One where the class is the label and zero elsewhere, like x. */
fac_value *fac_class_right(fac_value *x, fac_value *labels);
/* Of each label one where it counts, else zero, in x's element type. */
fac_value *fac_class_counts(const fac_value *x, fac_value *labels, const fac_class_loss *a);
/* -(1 - s) sum over c of target[c] log p[c]  -  s/C sum over c of log p[c] */
fac_value *fac_class_crossed(fac_value *log_probs, fac_value *target, double smoothing);
/* The losses of all samples, from log p, and how many of them count in *counts. */
fac_value *fac_class_each(fac_value *log_probs, fac_value *labels, const fac_class_loss *a,
                          fac_value **counts);
/* Checks labels N,... against scores N,C,... */
bool fac_class_fits(fac_node *n);
#endif
