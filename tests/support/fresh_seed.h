/* Where the random numbers of a test begin: at FACULA_SEED, which CI and `make check` set, else
 * elsewhere each time.  It is printed, so that FACULA_SEED=N repeats a run. */
#ifndef FACULA_TESTS_FRESH_SEED_H
#define FACULA_TESTS_FRESH_SEED_H
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t fresh_seed(void) {
    const char *again = getenv("FACULA_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t seed =
        again ? strtoull(again, NULL, 10) : (uint64_t)now.tv_sec ^ (uint64_t)now.tv_nsec << 12;
    printf("FACULA_SEED=%" PRIu64 "\n", seed);
    return seed;
}
#endif
