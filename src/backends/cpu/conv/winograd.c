/* Tiles and filters of Winograd's convolutions: see winograd.h. */
#include <string.h>
#include "backends/cpu/conv/winograd.h"

const float *fac_tile_window(const fac_plane *p, int64_t y, int64_t x, int64_t m, float *copy,
                             int64_t *row) {
    int64_t lanes = p->lanes, halo = p->halo;
    const float *from = p->x + y * p->row + x * lanes;
    *row = p->row;
    if (y >= -halo && x >= -halo && y + m <= p->height + halo && x + m <= p->width + halo)
        return from;
    memset(copy, 0, (size_t)(m * m * lanes) * sizeof *copy);
    const int64_t first = x < 0 ? -x : 0;
    const int64_t end = p->width - x < m ? p->width - x : m;
    for (int64_t i = 0; i < m && first < end; i++) {
        if (y + i < 0 || y + i >= p->height) continue;
        memcpy(copy + (i * m + first) * lanes, from + i * p->row + first * lanes,
               (size_t)((end - first) * lanes) * sizeof *copy);
    }
    *row = m * lanes;
    return copy;
}

/* Row i is 1, p_i, p_i^2 ... divided by prod over j != i of (p_i - p_j); the last row is 0 ... 0 1.
 * Of stride 2: for two taps. */
void fac_winograd_filters(const fac_winograd *w, fac_winograd_matrix *G) {
    static const double four[] = { 0, 1, -1 }; /* three: without the first */
    static const double five[] = { 0.625, -0.625, 1.375, -1.375 };
    static const double six[] = { 0, 0.70710678118654752, -0.70710678118654752, 1.4142135623730951,
                                  -1.4142135623730951 };
    static const double eight[] = { 0, 0.5, -0.5, 1, -1, 2, -2 };
    const int taps = (w->kernel - 1) / w->stride + 1, n = w->out + taps - 1;
    const double *p = eight;
    if (n <= 4) p = four + n % 2;
    if (n == 5) p = five;
    if (n == 6) p = six;
    for (int i = 0; i < n; i++) {
        double below = 1, power = 1;
        for (int j = 0; j < n - 1 && i < n - 1; j++)
            if (j != i) below *= p[i] - p[j];
        if (n == 4 && i == 0) below = 1;    /* B^T has the sign: its row is d0 - d2 */
        if (n % 2 && i % 2) below = -below; /* likewise of the second of each pair */
        for (int k = 0; k < taps; k++, power *= i < n - 1 ? p[i] : 0)
            G->at[i][k] = i < n - 1 ? power / below : k == taps - 1;
    }
}
