/* Measuring where the time of a run goes, for `facula profile` and `facula report`. */
#ifndef FACULA_CLI_PROFILE_H
#define FACULA_CLI_PROFILE_H
#include "job.h"

/* One step of a mean run.  limit: seconds that the machine at its best would take for it, by
 * arithmetic or by memory. */
typedef struct profile_row {
    fac_step_stat s;
    double seconds, flops, limit;
    int launches; /* of the device, where it tells */
    bool by_memory;
} profile_row;

typedef struct profile {
    job j;
    fac_peaks peaks;
    fac_plan_stat plan;
    profile_row *rows;
    size_t n;
    double seconds, macs, bytes; /* sums over the rows */
    double median; /* of whole runs, which nobody watched where the device has a clock of its own */
    double peak;   /* operations a second that products of this precision can reach */
    fac_launch_stat *launches; /* of the last run: nlaunches */
    size_t nlaunches;
    int runs;
    fac_analysis *analysis; /* of the model in the sizes of the run; NULL for a training step */
} profile;

/* Runs what for so many seconds (0: one).  An exit code; profile_free in any case. */
int profile_measure(profile *p, const verb *v, const job_options *o, const char *what,
                    double seconds);
void profile_free(profile *p);

/* The rows in the order of the run, or the slowest first: calloc.  NULL: no memory. */
const profile_row **profile_order(const profile *p, bool slowest_first);

/* The rows by op, the slowest first: *n of calloc.  NULL: no memory. */
typedef struct profile_sum {
    const char *op;
    int n;
    double seconds, flops, bytes;
} profile_sum;
profile_sum *profile_sums(const profile *p, size_t *n);

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
