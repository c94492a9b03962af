/* Rows of a matrix as a register tile wants them: see fac_pack_rows in simd.h. */
#include "backends/cpu/simd/vector.h"

extern fac_pack_kernel FAC_SIMD(fac_pack_rows);
void FAC_SIMD(fac_pack_rows)(const float *from, int64_t from_row, int rows, int64_t n, float *to) {
    int64_t k = 0;
    for (; k + 2 * VL <= n;
         k += 2 * VL, to += 2 * rows * VL) /* two vectors are a line or more of every row */
        for (int m = 0; m < rows; m++) {
            const float *x = from + m * from_row + k;
            store(to + m * VL, load(x));
            store(to + (rows + m) * VL, load(x + VL));
        }
    for (; k < n; k += VL, to += rows * VL)
        for (int m = 0; m < rows; m++)
            store(to + m * VL, k + VL <= n ? load(from + m * from_row + k)
                                           : load_some(from + m * from_row + k, (int)(n - k)));
}
