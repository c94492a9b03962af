/* A comparison from value to value (local.c), and its models cut there (local_cut.c). */
#ifndef FACULA_REPORT_VERIFY_LOCAL_H
#define FACULA_REPORT_VERIFY_LOCAL_H
#include "report/verify/verify.h"

#define FAC_LOCAL_CUT "verify.cut." /* and the number of a pair: the input that stands for it */

/* An output that is no pair ends a segment too, but nothing reads on from it. */
typedef struct fac_local_end {
    fac_pair of;
    bool cut;
    double bytes;
    fac_verify_segment result;
} fac_local_end;

typedef struct fac_local {
    fac_trial *t;
    fac_local_end *ends;
    size_t n, npairs;
    int rounds;
    fac_tensor **given;    /* [rounds][inputs]: of the models */
    fac_tensor **value;    /* [rounds][n]: the first model's numbers of what is cut */
    fac_graph *cut[2];     /* both models, cut at all pairs */
    fac_value **end_of[2]; /* [n], in these */
    const char *unknown;
    size_t wrong, unbounded;
} fac_local;

/* Fills cut and end_of. */
fac_status fac_local_cut(fac_local *l);
/* A copy of what ends first..last need, and of nothing else; NULL: no memory. */
fac_graph *fac_local_part(fac_local *l, size_t first, size_t last, bool second);
#endif
