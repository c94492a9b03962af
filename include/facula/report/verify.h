/* facula/report/verify.h: whether two models are the same function.
 *
 * FULL    DATA first, then EXACT.  SAME: both structures and all functions are equal, and real
 *         numbers agree.
 * EXACT   Both models are written in the smallest ops and run on whole numbers modulo a prime.  A
 *         float is m 2^e with whole m, so it has a remainder, and sums and products of remainders
 *         are exact in any order: what differs but for the order of sums differs there.  A
 *         function that is not made of sums and products (exp, sigmoid...) becomes a table of
 *         random remainders that depends on the op and all of its attributes.  Equal remainders:
 *         the same function, but for chance: 1 in 61 for a number that should differ, in each of
 *         three rounds (one, of large models).  Unequal ones are no proof, for two
 *         forms of one function may have two tables: then real numbers are asked, as in DATA.
 * BOUND   Real weights and inputs.  Beside each model runs a second one that bounds its rounding
 *         errors, element by element: gamma_K sum |a||b| for a sum of K products (Higham 2002,
 *         section 3.1).  Values that both models have, whatever lies between them and whatever
 *         they are called, are found by running both; the second model's part after such a value
 *         is fed with the first one's numbers, so that only the rounding of the layers up to the
 *         next one counts.  Two correct models differ by no more than both bounds.  Weights of 16
 *         bits in one model only count as rounded.
 * DATA    Real weights, inputs of several sizes that reach corners and jumps of the functions.
 *         Small models run in f64; where f32 numbers of larger ones differ, f64 tells rounding
 *         from a difference.  What follows from a number that is within rounding of a tie or a
 *         threshold, where it jumps, says nothing: there neither model is sure of its own. */
#ifndef FACULA_VERIFY_H
#define FACULA_VERIFY_H

#include "facula/device.h"
#include "facula/graph.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef enum fac_verify_mode {
    FAC_VERIFY_FULL,
    FAC_VERIFY_EXACT,
    FAC_VERIFY_BOUND,
    FAC_VERIFY_DATA
} fac_verify_mode;
/* DIFFERENT: real inputs are known on which the outputs differ by more than rounding explains.
 * NO_DIFFERENCE: none was found, but nothing proves that there is none.  CANNOT_TELL: what was
 * compared says nothing. */
typedef enum fac_sameness {
    FAC_SAME,
    FAC_DIFFERENT,
    FAC_CANNOT_TELL,
    FAC_NO_DIFFERENCE
} fac_sameness;
/* "same", "different", "cannot tell", "no difference found". */
const char *fac_sameness_word(fac_sameness same);

/* BOUND: from the values before it to one that both models have. */
typedef struct fac_verify_segment {
    const char *a, *b;             /* what it is called in both */
    double worst, ratio, elements; /* the largest |a - b|, of the bound; compared */
} fac_verify_segment;

typedef struct fac_verify_opts {
    fac_verify_mode mode;
    uint64_t seed;
    int rounds;    /* of fresh random inputs; 0: 8, of large models 3 */
    int64_t batch; /* for open first dims; 0: 1                       */
    /* FULL, DATA; both 0: 1e-4, and 1e-5 of an output's largest number, but none for integers that
     * no float leads to; negative: none */
    double rtol, atol;
    int n; /* inputs that are given instead of random ones: all, in the order of a's inputs, or 0 */
    fac_tensor *const *inputs; /* they say the open sizes */
    bool whole; /* BOUND: errors run through whole networks; bounds of deep ones are astronomical */
    bool brief; /* the verdict alone: the first value that differs, which
                   takes more runs of both, is not looked for */
    void (*segment)(
        void *self,
        const fac_verify_segment *s); /* BOUND: called for each in the end; may be NULL */
    void *self;
} fac_verify_opts;

typedef struct fac_verdict {
    fac_sameness same;
    char why[400];  /* in words: what differs, where, by how much; or what could not be judged */
    char note[400]; /* what inputs did not reach, or "" */
    char outgrown[300]; /* which inputs say nothing, since numbers overflow, or "" */
    char first[200]; /* the first value in b's order that both have and that differs; "" if none was
                        found */
    char last[200];  /* where first is "": the last value that both have with equal contents, if one
                        was found */
    double first_differing, first_elements; /* how many of first's elements differ, of how many */
    double worst;                           /* largest |a - b|, of the outputs                 */
    double ratio;               /* BOUND: largest |a - b| / bound; DATA: of the tolerance */
    double elements, differing; /* compared; of these                              */
    double tied;  /* FULL, DATA: not judged, for rounding decides there (a code between two) */
    int round;    /* DIFFERENT: of which round the inputs were, from 0 */
    int segments; /* BOUND: values at which both were cut; 0: errors ran through the whole networks
                   */
} fac_verdict;

/* The inputs and outputs of both must have the same names or order, types and sizes: where not,
 * they are different and `why` says so.  A model that cannot run at all is an error. */
fac_status fac_verify(const fac_graph *a, const fac_graph *b, fac_device *device,
                      const fac_verify_opts *opts, fac_verdict *out, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
