/* Real numbers: both models in one type of floats, run and compared (data.c), and how they change
 * from round to round (data_closer.c). */
#ifndef FACULA_REPORT_VERIFY_DATA_H
#define FACULA_REPORT_VERIFY_DATA_H
#include "report/verify/verify.h"

enum { FAC_DATA_PIECE = 1024 }; /* numbers that are looked at at a time */

typedef struct fac_data_trial {
    fac_trial *t;
    fac_data *to;
    fac_graph *wide[2];
    fac_reach *reach[2];
    fac_dtype as;
    bool half, brain; /* numbers of 16 bits */
    bool nonzero, varies;
} fac_data_trial;

/* Looks for numbers of 16 bits. */
void fac_data_find_short(fac_data_trial *d);
bool fac_data_can_be_f64(const fac_data_trial *d, double macs);
/* Both models with floats as this type. */
fac_status fac_data_make(fac_data_trial *d, fac_dtype as);
/* Rounds of both, from the first on. */
fac_status fac_data_run(fac_data_trial *d, int first, int rounds);
/* Frees what was made. */
void fac_data_drop(fac_data_trial *d);
/* Output k of round r, of those that ran. */
const fac_tensor *fac_data_result(const fac_verify_side *s, int r, size_t k);
/* The largest finite size of its numbers. */
double fac_data_largest(const fac_tensor *t);
#endif
