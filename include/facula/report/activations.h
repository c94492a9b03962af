/* facula/report/activations.h: what the numbers inside of a model look like: statistics of tensors,
 * and of every intermediate tensor of a model while it runs.
 *
 * A tally takes tensors in, one after the other, and keeps none of them: moments, counts, and how
 * the numbers are spread, by sign, exponent and the first six bits of the mantissa.  So quantiles
 * are within 1/128 of their value, whatever the range, and tallies of many inputs need no more
 * memory than those of one.  NaN and infinities are counted and otherwise left out. */
#ifndef FACULA_ACTIVATIONS_H
#define FACULA_ACTIVATIONS_H

#include "facula/device.h"
#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- statistics of tensors ---- */

typedef struct fac_tally fac_tally;

typedef struct fac_stats {
    int64_t count, zeros, negative, nan, infinite;
    int64_t denormals; /* not 0, and smaller than the smallest normal number of the tensor's type */
    double min, max, mean, abs_mean; /* of the finite numbers; 0 where there are none */
    double std; /* of the numbers as the whole population, as numpy.std has it */
    int64_t channels,
        dead; /* dead: channels that were nothing but zeros; 0 channels where none are told apart */
} fac_stats;

typedef struct fac_channel {
    double min, max, mean;
    int64_t zeros;
} fac_channel; /* of its finite numbers */

/* An empty tally, which fac_tally_free ends.  FAC_E_NOMEM. */
fac_status fac_tally_new(fac_tally **out, fac_error *err);
void fac_tally_free(fac_tally *t); /* NULL is fine */

/* Takes in all numbers of x, of any type but text.  axis: of its channels, -1 for none; channels
 * are told apart as long as all tensors have as many, and at most 65,536. */
fac_status fac_tally_add(fac_tally *t, const fac_tensor *x, int axis, fac_error *err);

/* Of all numbers so far; count 0 before the first. */
fac_stats fac_tally_stats(const fac_tally *t);
bool fac_tally_channel(const fac_tally *t, int64_t c, fac_channel *out); /* false after the last */

double fac_tally_quantile(const fac_tally *t,
                          double q); /* of x; 0 and 1 give min and max exactly */
double fac_tally_magnitude(const fac_tally *t, double q); /* of |x| */
/* How many numbers lie in each of n equal parts of lo..hi; those of a cell of the tally that a
 * border cuts are shared out. */
void fac_tally_histogram(const fac_tally *t, double lo, double hi, int n, double *counts);

/* Integers of so many bits (2..16), x = scale * q and 0 = 0: q in 0..2^bits - 1 when nothing is
 * negative, else in
 * -(2^(bits-1) - 1)..2^(bits-1) - 1.  What is beyond clip becomes clip. */
typedef struct fac_quantization {
    bool is_signed;
    double clip, scale, sqnr;
} fac_quantization; /* sqnr: signal to error, dB */
/* clip 0: the one with the least mean squared error. */
fac_quantization fac_tally_quantize(const fac_tally *t, int bits, double clip);

/* ---- every tensor of a model ---- */

typedef struct fac_activations fac_activations;

/* One tensor: an input of the model, or a result of a node.  name: of the node as fac_analyze has
 * it (".1" after the second result, " (2)" after a name that was there already).  Inside of a loop
 * or branch: "loop_3.mul_7", and all iterations are one; path tells opts.see which one it sees:
 * "loop_3.0.mul_7". */
typedef struct fac_activation {
    const char *name, *op; /* op "input" for inputs of the model */
    const char *path;
    fac_type type; /* in the last run */
    int channels;  /* the axis that counts them; -1: none */
    const fac_tally *tally;
} fac_activation;

typedef enum fac_channels {
    FAC_CHANNELS_FOUND,
    FAC_CHANNELS_FIRST,
    FAC_CHANNELS_LAST
} fac_channels;

typedef struct fac_activations_opts {
    int n;
    const char *const *at; /* only these: globs ('*', '?', '[...]') of the name, the module or the
                              file's name of the tensor; n 0: all.  A glob that only the path fits
                              ("loop_3.0.*") takes one iteration apart from the others */
    fac_status (*see)(void *self, const fac_activation *a, const fac_tensor *t,
                      fac_error *err); /* also gets each tensor */
    void *see_self;
    fac_channels
        channels; /* axis 1 or the last one of three dims or more; else what the ops around say */
} fac_activations_opts;

/* The model as for inference; ops without kernels of their own are shown as what they are made of.
 */
fac_status fac_activations_new(const fac_graph *g, fac_device *device,
                               const fac_activations_opts *opts, fac_activations **out,
                               fac_error *err);
void fac_activations_free(fac_activations *a); /* NULL is fine */

/* Runs the model once more and takes everything in.  FAC_E_ARGUMENT when nothing is called like one
 * of opts.at. */
fac_status fac_activations_add(fac_activations *a, fac_tensor *const in[], fac_error *err);

/* Inputs first, then in the order of execution; NULL after the last. */
const fac_activation *fac_activations_get(const fac_activations *a, int i);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
