/* Transposes of f32, of one instruction set: to[j][i] = from[i][j].  Squares of one vector are
 * transposed in registers, by swapping ever larger blocks (Eklundh, "A fast computer method for
 * matrix transposing", 1972). */
#include "backends/cpu/simd/vector.h"

/* Both rows of blocks of d lanes: a keeps its even blocks and gets the even ones of b after them;
 * b its odd ones. */
#if defined(__AVX512F__)
INLINE void swap_blocks(const int d, vec *a, vec *b) {
    const ivec lane = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
               odd = -((lane & d) != 0);
    const ivec even_from = lane + odd * (16 - d), odd_from = lane + d + odd * (16 - d);
    const vec x = *a, y = *b;
    *a = (vec)_mm512_permutex2var_ps((__m512)x, (__m512i)even_from, (__m512)y);
    *b = (vec)_mm512_permutex2var_ps((__m512)x, (__m512i)odd_from, (__m512)y);
}
#elif VL == 8
INLINE void swap_blocks(const int d, vec *a, vec *b) {
    const vec x = *a, y = *b;
    if (d == 1) {
        *a = __builtin_shufflevector(x, y, 0, 8, 2, 10, 4, 12, 6, 14);
        *b = __builtin_shufflevector(x, y, 1, 9, 3, 11, 5, 13, 7, 15);
    } else if (d == 2) {
        *a = __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);
        *b = __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15);
    } else {
        *a = __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11);
        *b = __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
#else
INLINE void swap_blocks(const int d, vec *a, vec *b) {
    const vec x = *a, y = *b;
    *a = d == 1 ? __builtin_shufflevector(x, y, 0, 4, 2, 6)
                : __builtin_shufflevector(x, y, 0, 1, 4, 5);
    *b = d == 1 ? __builtin_shufflevector(x, y, 1, 5, 3, 7)
                : __builtin_shufflevector(x, y, 2, 3, 6, 7);
}
#endif

INLINE void stage(const int d, vec r[VL]) {
    UNROLL for (int k = 0; k < VL / 2; k++)
        swap_blocks(d, &r[k / d * 2 * d + k % d], &r[k / d * 2 * d + k % d + d]);
}

INLINE void transpose_square(vec r[VL]) {
    stage(1, r);
    stage(2, r);
    if (VL > 4) stage(VL > 4 ? 4 : 1, r);
    if (VL > 8) stage(VL > 8 ? 8 : 1, r);
}

INLINE void square(const int past, const float *from, int64_t from_row, float *to, int64_t to_row) {
    vec r[VL];
    UNROLL for (int i = 0; i < VL; i++) r[i] = load(from + i * from_row);
    transpose_square(r);
    UNROLL for (int i = 0; i < VL; i++) {
        if (past)
            stream(to + i * to_row, r[i]);
        else
            store(to + i * to_row, r[i]);
    }
}

/* At the edges: some rows, of which some columns are there.  The number of a register is known when
 * compiled. */
static void part(const float *from, int64_t from_row, float *to, int64_t to_row, int rows,
                 int columns) {
    vec r[VL];
    UNROLL for (int i = 0; i < VL; i++) r[i] =
        i < rows ? load_some(from + i * from_row, columns) : all(0);
    transpose_square(r);
    UNROLL for (int j = 0; j < VL; j++) if (j < columns) store_some(to + j * to_row, r[j], rows);
}

INLINE void transpose(const int past, const float *from, int64_t from_row, float *to,
                      int64_t to_row, int64_t rows, int64_t columns) {
    const int64_t whole_rows = rows / VL * VL, whole_columns = columns / VL * VL;
    for (int64_t j = 0; j < columns; j += VL)
        for (int64_t i = 0; i < rows; i += VL) {
            const float *x = from + i * from_row + j;
            float *y = to + j * to_row + i;
            if (past && i < whole_rows &&
                j + 2 * VL < columns) /* more rows than the hardware follows */
                UNROLL for (int k = 0; k < VL; k++)
                    __builtin_prefetch(x + k * from_row + 2 * VL, 0, 3);
            if (i < whole_rows && j < whole_columns)
                square(past, x, from_row, y, to_row);
            else
                part(x, from_row, y, to_row, i < whole_rows ? VL : (int)(rows - i),
                     j < whole_columns ? VL : (int)(columns - j));
        }
}

extern fac_transpose_kernel FAC_SIMD(fac_transpose_f32);
void FAC_SIMD(fac_transpose_f32)(const float *from, int64_t from_row, float *to, int64_t to_row,
                                 int64_t rows, int64_t columns) {
    transpose(0, from, from_row, to, to_row, rows, columns);
}

/* Rows that begin inside a line cannot go past the caches. */
extern fac_transpose_kernel FAC_SIMD(fac_transpose_past);
void FAC_SIMD(fac_transpose_past)(const float *from, int64_t from_row, float *to, int64_t to_row,
                                  int64_t rows, int64_t columns) {
    if ((uintptr_t)to % (VL * sizeof *to) || to_row % VL)
        transpose(0, from, from_row, to, to_row, rows, columns);
    else
        transpose(1, from, from_row, to, to_row, rows, columns);
}
