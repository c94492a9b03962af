/* The matrix product of reference kernels, for both element types: c[i][j] += sum over k of a[i][k]
 * b[k][j].  a and b by the strides of their rows and columns, so a transposed operand is only
 * another pair of strides; c is row-major, m x n. */
#ifndef FACULA_OPS_PRODUCT_H
#define FACULA_OPS_PRODUCT_H
#include <stdint.h>
#include "facula/tensor.h"

/* Rows of b are the inner loop where they are contiguous, dot products elsewhere: either way memory
 * is read in order. */
static inline void fac_product_real(int64_t m, int64_t n, int64_t k, const double *a, int64_t a_row,
                                    int64_t a_column, const double *b, int64_t b_row,
                                    int64_t b_column, double *c) {
    for (int64_t i = 0; i < m; i++, c += n)
        if (b_column == 1)
            for (int64_t l = 0; l < k; l++) {
                double f = a[i * a_row + l * a_column];
                for (int64_t j = 0; j < n; j++) c[j] += f * b[l * b_row + j];
            }
        else
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t l = 0; l < k; l++)
                    sum += a[i * a_row + l * a_column] * b[l * b_row + j * b_column];
                c[j] += sum;
            }
}

/* Integers wrap: products and sums of bit patterns are the same for signed and unsigned. */
static inline void fac_product_int(int64_t m, int64_t n, int64_t k, const int64_t *a, int64_t a_row,
                                   int64_t a_column, const int64_t *b, int64_t b_row,
                                   int64_t b_column, int64_t *c) {
    for (int64_t i = 0; i < m; i++, c += n)
        for (int64_t j = 0; j < n; j++) {
            uint64_t sum = (uint64_t)c[j];
            for (int64_t l = 0; l < k; l++)
                sum +=
                    (uint64_t)a[i * a_row + l * a_column] * (uint64_t)b[l * b_row + j * b_column];
            c[j] = (int64_t)sum;
        }
}

/* Which matrix of an operand belongs to matrix `at` of the result. */
static inline int64_t fac_product_matrix(int64_t at, const fac_dims *result,
                                         const fac_dims *batch) {
    int64_t offset = 0, step = 1;
    for (int k = result->n - 1, o = batch->n - 1; o >= 0; k--, o--) {
        if (batch->d[o] != 1) offset += at % result->d[k] * step;
        at /= result->d[k];
        step *= batch->d[o];
    }
    return offset;
}
#endif
