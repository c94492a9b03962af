/* Between the layers: how a parameter comes into being, how a graph and a file of weights are
 * compared. */
#ifndef FACULA_NN_INTERNAL_H
#define FACULA_NN_INTERNAL_H
#include "facula/nn.h"
#include "graph/graph_internal.h"

/* ---- source.c ---- */

/* The parameter (or state) "<scope>.<name>" of the graph at hand, from its source or drawn from its
 * seed. */
fac_value *fac_nn_leaf(fac_graph *g, fac_leaf kind, const char *name, fac_dtype dtype,
                       fac_dims dims, fac_init init);
/* A parameter with x's dtype; `chosen` unless it is FAC_INIT_DEFAULT, else `usual`. */
fac_value *fac_nn_param(const fac_value *x, const char *name, fac_dims dims, const fac_init *chosen,
                        fac_init usual);

/* ---- options ---- */

static inline int64_t fac_nn_or_one(int x) { return x ? x : 1; }
/* One number for each side of each dim. */
static inline void fac_nn_fill(int64_t *to, int n, int64_t x) {
    for (int k = 0; k < n; k++) to[k] = x;
}

/* ---- init.c ---- */

static inline fac_init fac_init_constant(double x) {
    return (fac_init){ FAC_INIT_CONSTANT, .mean = x };
}
static inline fac_init fac_init_within(double bound) {
    return (fac_init){ FAC_INIT_UNIFORM, .low = -bound, .high = bound };
}

/* A new tensor of this type, from the random stream that belongs to the name: drawn on the first
 * read. */
fac_status fac_init_tensor(const fac_init *init, uint64_t seed, const char *name, fac_type type,
                           fac_tensor **out, fac_error *err);

/* ---- state_dict.c ---- */

/* A few names and how many there are in all. */
typedef struct fac_nn_list {
    int n;
    fac_text names;
} fac_nn_list;
/* What a graph and a file of weights say of each other; all that is wrong is collected, to be told
 * at once. */
typedef struct fac_nn_match {
    const fac_graph *g;
    const fac_weights *w;
    fac_nn_list missing, different, unknown;
} fac_nn_match;

/* The tensor of this name if it fits, borrowed from w; else NULL, and it is listed. */
fac_tensor *fac_nn_match_find(fac_nn_match *m, const char *name, const fac_type *want);
/* Names of the file that the graph has no parameter for, but for those that begin with `unused`
 * (may be NULL). */
void fac_nn_match_unknown(fac_nn_match *m, const char *unused);
/* FAC_E_ARGUMENT led by `who` when something was listed; loose: when something different was. */
fac_status fac_nn_match_report(const fac_nn_match *m, const char *who, bool loose, fac_error *err);
void fac_nn_match_free(fac_nn_match *m);
#endif
