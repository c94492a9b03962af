/* What linear, gemm and matmul ask for, in one form:
 *     y[m][n] = alpha sum over k of a[m][k] b[k][n] + beta c[m][n],   in every matrix of a batch.
 */
#ifndef FACULA_CPU_MATMUL_H
#define FACULA_CPU_MATMUL_H
#include "backends/cpu/device/cpu.h"

/* c is absent, one number for each column (or for all), for each row, for each element of y */
typedef enum fac_matmul_c { FAC_C_NONE, FAC_C_COLUMNS, FAC_C_ROWS, FAC_C_WHOLE } fac_matmul_c;

typedef struct fac_matmul_form {
    int64_t M, N, K;
    int64_t a_row, a_column, b_row, b_column; /* element (m, k) of a lies at m a_row + k a_column */
    fac_dims batch;                           /* of y; no dims: one product                       */
    int64_t a_step[FAC_DIMS], b_step[FAC_DIMS]; /* elements; 0 where it is broadcast */
    int64_t b_count; /* matrices that b holds, one after the other       */
    int64_t batches;
    double alpha, beta;
    fac_matmul_c c;
    int64_t c_count;
} fac_matmul_form;

/* false: operands of other types, or nothing to compute.  Where all of a's batch meets one b it is
 * one tall matrix. */
bool fac_matmul_read(const fac_problem *p, fac_dtype type, fac_matmul_form *m);

/* A single matrix a is taken as it lies: transposed, a view of something larger.  Everything else
 * must lie plain. */
bool fac_matmul_takes_a(const fac_problem *p);

/* Where matrix i of the batch begins, in elements. */
typedef struct fac_matmul_place {
    int64_t a, b;
} fac_matmul_place;
fac_matmul_place fac_matmul_at(const fac_matmul_form *m, int64_t i);

/* f32: beta c, for the columns up to a whole number of vectors; how many floats, what else the form
 * depends on, and how. */
int64_t fac_matmul_packed_c(const fac_matmul_form *m, int lanes);
uint64_t fac_matmul_key_c(const fac_matmul_form *m, int lanes);
void fac_matmul_pack_c(const fac_matmul_form *m, int lanes, const float *from, float *to);
#endif
