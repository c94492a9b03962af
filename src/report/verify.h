/* What the files of fac_verify share. */
#ifndef FACULA_REPORT_VERIFY_H
#define FACULA_REPORT_VERIFY_H
#include "facula/verify.h"
#include "graph/graph_internal.h"

/* abstract.c: g with integers for weights and ops that keep integers.  *largest: a bound of every sum that occurs in it; above
 * 2^22 sums may not be exact.  *real: an op that was left although it does not keep integers, or NULL. */
fac_graph *fac_abstract(const fac_graph *g, double *largest, const char **real);

/* bound.c: g with a second output "<name>.error" behind each output: a bound of its rounding error.  *unknown: an op whose error
 * is not known, or NULL. */
fac_graph *fac_error_bounds(const fac_graph *g, const char **unknown);
#endif
