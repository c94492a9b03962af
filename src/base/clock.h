/* The clock of what waits: nanoseconds, which only grow. */
#ifndef FACULA_BASE_CLOCK_H
#define FACULA_BASE_CLOCK_H
#include <stdint.h>
#include <time.h>

static inline int64_t fac_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Seconds of the same clock.  Steps and loops are timed by fac_now, which tests may replace by a
 * clock of their own; measurements of a machine take fac_seconds. */
static inline double fac_seconds(void) { return 1e-9 * (double)fac_now_ns(); }
double fac_now(void);
#endif
