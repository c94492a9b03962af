/* Measuring where the time of a run goes, for `facula profile` and `facula report`. */
#ifndef FACULA_CLI_PROFILE_H
#define FACULA_CLI_PROFILE_H
#include "job.h"

typedef struct profile {
    job j;
    fac_timing t; /* t.median: nobody watched those runs where the device has a clock of its own */
    fac_plan_stat plan;
    int *launched;             /* launches of each step, where the device tells */
    fac_launch_stat *launches; /* of the last run: nlaunches */
    size_t nlaunches;
    fac_analysis *analysis; /* of the model in the sizes of the run; NULL for a training step */
} profile;

/* Runs what for so many seconds (0: one).  An exit code; profile_free in any case. */
int profile_measure(profile *p, const verb *v, const job_options *o, const char *what,
                    double seconds);
void profile_free(profile *p);

/* profile_counts.c: static counts beside executed ones, by op: layers of the model as it is, and
 * ops that the steps do, each with its multiply-adds and the elements of its result.  *n of calloc;
 * NULL: no memory. */
typedef struct profile_count {
    const char *op;
    int layers, done;
    double macs, macs_done, elements, elements_done;
} profile_count;
profile_count *profile_counts(const profile *p, int *n);
const char *profile_why(const profile_count *c); /* why they differ; "" where they do not */

/* profile_launches.c: what a device of its own clock did: launches, kernels by name, and the time
 * in which it did nothing. */
void profile_print_launches(const profile *p);
struct cJSON *profile_launches_json(const profile *p);
void profile_trace_launches(const profile *p, struct cJSON *events);

static inline double ratio(double a, double b) { return b > 0 ? a / b : 0; }
#endif
