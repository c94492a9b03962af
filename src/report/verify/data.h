/* Real numbers: both models in one type of floats, run and compared (data.c), how they change from
 * round to round (data_closer.c), and where rounding decides (noise.c). */
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
    bool *whole;            /* of each output: see whole.c */
    fac_tensor **spread[2]; /* of the results that are judged: see noise.c; or NULL */
    bool unsure;            /* there is no telling rounding from a difference       */
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
/* Whether rounding may decide what differs, and runs with noise are worth their time. */
bool fac_data_may_be_tied(const fac_data_trial *d);
/* The largest finite size of its numbers. */
double fac_data_largest(const fac_tensor *t);

/* ---- noise.c: where rounding decides ---- */

/* Runs first..last, each with noise of its own, on the inputs of a round, which is number `result`
 * of those that ran. */
typedef struct fac_noise_runs {
    int round, result, first, last;
} fac_noise_runs;
enum { FAC_NOISE_RUNS = 8 };
/* How far the results of a model go where noise is added: f64 tensors, one for each output, which
 * are made where e[] is NULL and else grow. */
fac_status fac_noise_spread(fac_data_trial *d, int side, const fac_noise_runs *of, fac_tensor *e[]);
/* Whether something in g may jump. */
bool fac_noise_matters(const fac_graph *g);
#endif
