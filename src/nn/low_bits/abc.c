/* ABC-Net (Lin, Zhao and Pan 2017, arXiv 1711.11294).
 *   weights       B_i = sign(w - mean + u_i std), u_i evenly in [-1,1];  alpha = (B B')^-1 B w, no
 *                 intercept, anew in each step;  dL/dw = dL/dQ, alpha being constant
 *   activations   sum_n scale_n A_n,  A_n = 1 where x + shift_n >= 1/2, else -1;
 *                 dA_n = 1 where 0 <= x + shift_n <= 1 */
#include "nn/low_bits/low_bits.h"

enum { BASES = 8 };
static const double ridge = 1e-3; /* bases coincide where a filter has few elements */

typedef struct small {
    int n;
    fac_value *a[BASES][BASES], *b[BASES];
} small;

/* The solution of a x = b by Cholesky's factors, number by number. */
static void solve(small *s) {
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j <= i; j++) {
            fac_value *x = s->a[i][j];
            for (int k = 0; k < j; k++) x = fac_sub(x, fac_mul(s->a[i][k], s->a[j][k]));
            s->a[i][j] = i == j ? fac_sqrt(x) : fac_div(x, s->a[j][j]);
        }
    for (int i = 0; i < s->n; i++) {
        for (int k = 0; k < i; k++) s->b[i] = fac_sub(s->b[i], fac_mul(s->a[i][k], s->b[k]));
        s->b[i] = fac_div(s->b[i], s->a[i][i]);
    }
    for (int i = s->n - 1; i >= 0; i--) {
        for (int k = i + 1; k < s->n; k++) s->b[i] = fac_sub(s->b[i], fac_mul(s->a[k][i], s->b[k]));
        s->b[i] = fac_div(s->b[i], s->a[i][i]);
    }
}

static fac_value *mean_of(fac_value *v) { return fac_mean(v, (fac_dims){ 0 }, false); }

fac_value *fac_quantize_abc_weight(fac_value *w, int bases) {
    fac_graph *g = w->graph;
    if (g->error.status) return g->poison;
    if (bases < 1 || bases > BASES)
        return fac_fail_graph(g, FAC_E_ARGUMENT, "%d bases of weights, expected 1 to %d", bases,
                              BASES);
    small s = { .n = bases };
    fac_value *plane[BASES], *still = fac_stop(w);
    fac_value *centred = fac_sub(still, mean_of(still));
    fac_value *std = fac_sqrt(mean_of(fac_mul(centred, centred)));
    for (int i = 0; i < bases; i++) {
        const double u = bases > 1 ? -1 + 2.0 * i / (bases - 1) : 0;
        plane[i] = fac_binarize(fac_add(centred, fac_mul(std, fac_q_number(w, u))));
        s.b[i] = mean_of(fac_mul(plane[i], still));
        for (int j = 0; j < i; j++) s.a[i][j] = mean_of(fac_mul(plane[i], plane[j]));
        s.a[i][i] = fac_q_number(w, 1 + ridge);
    }
    solve(&s);
    fac_value *sum = fac_mul(plane[0], s.b[0]);
    for (int i = 1; i < bases; i++) sum = fac_add(sum, fac_mul(plane[i], s.b[i]));
    return fac_surrogate(sum, w);
}

static fac_value *at(fac_value *v, int i) {
    return fac_reshape(fac_slice(v, 0, i, i + 1, 1), (fac_dims){ 0 });
}

fac_value *fac_quantize_abc(fac_value *x, fac_value *shift, fac_value *scale) {
    fac_graph *g = x->graph;
    fac_value *sum = NULL;
    if (g->error.status) return g->poison;
    const fac_dims *n = &shift->type.dims;
    if (n->n != 1 || n->d[0] < 1 || n->d[0] > BASES || !fac_dims_equal(n, &scale->type.dims))
        return fac_fail_graph(g, FAC_E_SHAPE, "shift and scale have 1 to %d numbers each", BASES);
    for (int i = 0; i < n->d[0]; i++) {
        fac_value *moved = fac_add(x, at(shift, i));
        fac_value *sign = fac_binarize(fac_sub(moved, fac_q_number(x, 0.5)));
        fac_value *path = fac_clip(moved, fac_q_number(x, 0), fac_q_number(x, 1));
        fac_value *term = fac_mul(fac_surrogate(sign, path), at(scale, i));
        sum = sum ? fac_add(sum, term) : term;
    }
    return sum;
}
