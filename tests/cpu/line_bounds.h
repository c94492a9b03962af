/* How far sums of f32 may be from the truth: bounds that follow from how kernels add, not from what
 * was seen once. */
#ifndef FACULA_TESTS_LINE_BOUNDS_H
#define FACULA_TESTS_LINE_BOUNDS_H
#include <math.h>
#include <stdint.h>

static const double U = 0x1p-24; /* of a number: what rounding it to f32 loses at most */

/* The error of a sum of n products of random numbers between -most and most, which are added in f32
 * by eights (FEW_TERMS of simd/widen.h), four of those by pairs, and then in f64.  A partial sum of
 * j terms is about p sqrt(j), where p = most^2 / 3 is the root mean square of a term, and loses u
 * of that.  Of each term that is (1 + .. + 8) / 8 = 4.5 times u^2 p^2 in the chain, 2 for the pairs
 * and 1 for the product, were it rounded.  The roundings are independent, and that each loses all
 * it can is 1.7 times too much: three times the root of their sum is five standard deviations. */
static inline double dot_error(int64_t n, double most) {
    const double p = most * most / 3;
    return 3 * U * p * sqrt(7.5 * (double)n);
}
#endif
