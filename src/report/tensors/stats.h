/* A tally as stats.c fills it and spread.c reads it. */
#ifndef FACULA_REPORT_STATS_H
#define FACULA_REPORT_STATS_H
#include "facula/report/activations.h"
#include "report/tensors/sketch.h"

struct fac_tally {
    fac_stats s;
    double squares, magnitude; /* sums over the finite numbers: (x - mean)^2, |x| */
    int64_t finite, tensors;
    fac_sketch sketch;
    fac_channel *channel; /* mean: the sum, until somebody asks */
    int64_t *of;          /* finite numbers of each channel */
};
#endif
