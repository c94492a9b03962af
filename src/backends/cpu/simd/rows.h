/* A macro for every number of rows that a register tile may have: 1 to MR. */
#ifndef FACULA_CPU_ROWS_H
#define FACULA_CPU_ROWS_H
#include "backends/cpu/simd/vector.h"

#define UP_TO_6(X, ...)                                                                            \
    X(1, __VA_ARGS__)                                                                              \
    X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)
#define UP_TO_11(X, ...)                                                                           \
    UP_TO_6(X, __VA_ARGS__)                                                                        \
    X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__) X(11, __VA_ARGS__)
#define UP_TO_12(X, ...) UP_TO_11(X, __VA_ARGS__) X(12, __VA_ARGS__)
#define UP_FROM_12(X, ...) X(12, __VA_ARGS__) X(13, __VA_ARGS__) X(14, __VA_ARGS__)
#define UP_TO_14(X, ...) UP_TO_11(X, __VA_ARGS__) UP_FROM_12(X, __VA_ARGS__)
#define ALL_ROWS FAC_JOIN(UP_TO, MR)
#endif
