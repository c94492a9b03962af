/* What operators on matrices in the last two dims share. */
#ifndef FACULA_OPS_MATRIX_H
#define FACULA_OPS_MATRIX_H
#include "facula/op.h"

/* So many matrices of an operand whose dims are known. */
typedef struct fac_matrices {
    int64_t count, rows, columns;
} fac_matrices;
fac_matrices fac_matrices_of(const fac_dims *d);

/* Whether input k has two dims or more; false after fac_fail. */
bool fac_has_matrices(fac_node *n, int k);
/* ... and its matrices are square, as far as is known. */
bool fac_has_square_matrices(fac_node *n, int k);

/* m: rows of a square matrix and, beside it, of others, `width` numbers in all.  By elimination
 * with the largest pivots the matrix becomes the identity and what stands beside it is multiplied
 * by its inverse.  false: a pivot was 0; then numbers are infinite or NaN. */
bool fac_matrix_eliminate(double *m, int64_t size, int64_t width);

/* Two rows change places. */
void fac_matrix_swap(double *a, double *b, int64_t n);
double fac_matrix_dot(const double *a, const double *b, int64_t n);
/* Two rows of n numbers become c a + s b and c b - s a. */
void fac_matrix_rotate(double *a, double *b, int64_t n, double c, double s);
/* Whether all n numbers are finite. */
bool fac_matrix_is_finite(const double *x, int64_t n);

/* Values: the diagonal of matrices, zeros elsewhere; everything else, zeros on it; numbers as a
 * diagonal of matrices shaped as `like`. */
fac_value *fac_matrix_diagonal(fac_value *m);
fac_value *fac_matrix_rest(fac_value *m);
fac_value *fac_matrix_of_diagonal(fac_value *v, fac_value *like);
/* v as rows of one element, as one row. */
fac_value *fac_matrix_column(fac_value *v);
fac_value *fac_matrix_row(fac_value *v);
#endif
