/* Filters of Winograd convolution, transformed in f64, and the way back of their gradients: see
 * winograd.c, which includes this. */

/* o = G g: rows of a pair +-p have the same even and odd parts, those of 0 and infinity have one
 * number. */
INLINE void filter_column(const int n, const int r, const fac_winograd_matrix *G, const dvec *g,
                          dvec *o) {
    o[0] = G->at[0][0] * g[0];
    UNROLL for (int i = 1; i + 1 < n; i += 2) {
        dvec even = G->at[i][0] * g[0] + G->at[i][2] * g[2], odd = G->at[i][1] * g[1];
        if (r > 3) {
            const int last = r > 3 ? 4 : 0; /* compilers look at what r = 3 would read */
            even += G->at[i][last] * g[last];
            odd += G->at[i][3] * g[r > 3 ? 3 : 0];
        }
        o[i] = even + odd;
        o[i + 1] = even - odd;
    }
    o[n - 1] = g[r - 1];
}

/* u = G g G^T.  Stored by whole vectors: points may lie so far apart that their lines push each
 * other out of the caches, and then all of u is more than a cache holds: the lines need not be read
 * for being written. */
INLINE void filter_tile(const int n, const int r, const fac_winograd_matrix *G, const float *g,
                        float *u, int64_t u_point) {
    dvec columns[2][8][5];
    for (int half = 0; half < 2; half++) UNROLL for (int x = 0; x < r; x++) {
            dvec in[5], out[8];
            UNROLL for (int s = 0; s < r; s++) in[s] = widen_f32(g + (s * r + x) * VL + half * VD);
            filter_column(n, r, G, in, out);
            UNROLL for (int i = 0; i < n; i++) columns[half][i][x] = out[i];
        }
    for (int i = 0; i < n; i++) {
        dvec low[8], high[8];
        filter_column(n, r, G, columns[0][i], low);
        filter_column(n, r, G, columns[1][i], high);
        UNROLL for (int j = 0; j < n; j++, u += u_point) {
            if (u_point < FAR)
                store(u, narrow(low[j], high[j]));
            else
                store_past(u, narrow(low[j], high[j]));
        }
    }
}

/* The same of stride 2.  u: plane after plane of each point. */
INLINE void strided_filter_tile(const int n, const fac_winograd_matrix *G, const float *g, float *u,
                                int64_t u_plane) {
    dvec columns[2][2][5][3]; /* [half][first row][point][column] */
    for (int half = 0; half < 2; half++) UNROLL for (int x = 0; x < 3; x++) {
            dvec in[3];
            UNROLL for (int s = 0; s < 3; s++) in[s] = widen_f32(g + (s * 3 + x) * VL + half * VD);
            UNROLL for (int i = 0; i < n; i++) {
                columns[half][0][i][x] = G->at[i][0] * in[0] + G->at[i][1] * in[2];
                columns[half][1][i][x] = G->at[i][0] * in[1];
            }
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int plane = 0; plane < (1 + (i < n - 1)) * (1 + (j < n - 1));
                 plane++, u += u_plane) {
                const int down = j < n - 1 ? plane / 2 : plane;
                const int across = j < n - 1 ? plane % 2 : 0;
                dvec of[2];
                for (int half = 0; half < 2; half++) {
                    const dvec *c = columns[half][i < n - 1 ? down : 0][i];
                    of[half] =
                        across ? G->at[j][0] * c[1] : G->at[j][0] * c[0] + G->at[j][1] * c[2];
                }
                if (u_plane < FAR)
                    store(u, narrow(of[0], of[1]));
                else
                    store_past(u, narrow(of[0], of[1]));
            }
}

/* o = G^T u, the adjoint of filter_column */
INLINE void filter_grad_column(const int n, const int r, float G[8][5], const vec *u, vec *o) {
    o[0] = G[0][0] * u[0];
    UNROLL for (int s = 1; s < r; s++) o[s] = all(0);
    UNROLL for (int i = 1; i + 1 < n; i += 2) {
        const vec sum = u[i] + u[i + 1], dif = u[i] - u[i + 1];
        UNROLL for (int s = 0; s < r; s++) o[s] += G[i][s] * (s % 2 ? dif : sum);
    }
    o[r - 1] += u[n - 1];
}

/* dg = G^T u G */
INLINE void filter_grad_tile(const int n, const int r, const fac_winograd_matrix *M, const float *u,
                             int64_t u_point, float *dg) {
    vec half[5][8];
    float G[8][5];
    UNROLL for (int i = 0; i + 1 < n; i += i ? 2 : 1) UNROLL for (int s = 0; s < r; s++) G[i][s] =
        (float)M->at[i][s];
    for (int i = 0; i < n; i++) {
        vec row[8], o[5];
        UNROLL for (int j = 0; j < n; j++, u += u_point) row[j] = load(u);
        filter_grad_column(n, r, G, row, o);
        UNROLL for (int s = 0; s < r; s++) half[s][i] = o[s];
    }
    UNROLL for (int s = 0; s < r; s++) {
        vec o[5];
        filter_grad_column(n, r, G, half[s], o);
        UNROLL for (int y = 0; y < r; y++) store(dg + (y * r + s) * VL, o[y]);
    }
}
