/* Allocations that fail on command: src/base/memory.c asks fac_test_allows() when the program has
 * one.  Included once a program. */
#ifndef FACULA_TESTS_ALLOCATIONS_H
#define FACULA_TESTS_ALLOCATIONS_H
#include "base/memory.h"

static long allocations_left =
    -1; /* counts down; 0: every further allocation fails; below: none does */
bool fac_test_allows(size_t bytes) {
    (void)bytes;
    if (allocations_left < 0) return true;
    if (!allocations_left) return false;
    allocations_left--;
    return true;
}
#endif
