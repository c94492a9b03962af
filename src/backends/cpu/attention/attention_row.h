/* Attention of a query or a few with the keys that all of them see, for each instruction set
 * (simd/lines/attention_row.c). */
#ifndef FACULA_CPU_ATTENTION_ROW_H
#define FACULA_CPU_ATTENTION_ROW_H
#include <stdint.h>

/* y[r] = sum over keys of p[r][key] v[key],  p = softmax(scale q k^T), with softcap > 0 of softcap
 * tanh(scale q k^T / softcap).  D and E are whole vectors; keys >= 1. */
typedef struct fac_attention_row {
    const float *q, *k, *v;
    float *y;
    int64_t rows, keys, D, E;
    int64_t q_row, k_row, v_row, y_row; /* floats from row to row */
    double scale, softcap;
    float *s; /* scratch, fac_attention_row_floats() */
} fac_attention_row;

enum { FAC_ATTENTION_ROWS_AT_ONCE = 4 }; /* that share what is read of k and v */
static inline int64_t fac_attention_row_floats(int64_t keys) {
    return FAC_ATTENTION_ROWS_AT_ONCE * ((keys + 15) / 16 * 16);
}
#endif
