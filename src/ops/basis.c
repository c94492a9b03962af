/* See basis.h. */
#include "ops/basis.h"

#if FAC_INTERFACE
/* Of a basis, see fac_quantize_basis. */
typedef struct fac_basis_opts {
    int64_t axis;  /* of the channels, where each has a basis of its own */
    bool positive; /* digits are 0 and 1 (after a relu), not -1 and 1    */
} fac_basis_opts;
#endif

const fac_attr fac_basis_table[] = { { "axis", FAC_A_INT, offsetof(fac_basis_opts, axis), 0, 0,
                                       -FAC_DIMS, FAC_DIMS - 1, NULL, "the axis of channels" },
                                     { "positive", FAC_A_FLAG, offsetof(fac_basis_opts, positive),
                                       0, 0, 0, 0, NULL, "digits are 0 and 1, not -1 and 1" },
                                     { 0 } };
const fac_port fac_basis_in[] = { { "x", FAC_FLOATS, 0 }, { "basis", FAC_FLOATS, 0 }, { 0 } };

static double rounded(double x, bool single) { return single ? (double)(float)x : x; }

static void sort(fac_basis *b) {
    for (int i = 1; i < b->levels; i++) {
        const double level = b->level[i];
        const unsigned code = b->code[i];
        int k = i;
        for (; k > 0 && b->level[k - 1] > level; k--) {
            b->level[k] = b->level[k - 1];
            b->code[k] = b->code[k - 1];
        }
        b->level[k] = level;
        b->code[k] = code;
    }
}

/* Digits are added one after the other, the first one first, as the expansion of quantize_basis
 * adds. */
void fac_basis_of(const double *v, int64_t stride, int bits, bool positive, bool single,
                  fac_basis *to) {
    to->bits = bits;
    to->levels = 1 << bits;
    to->positive = positive;
    for (int j = 0; j < bits; j++) to->v[j] = v[j * stride];
    for (int e = 0; e < to->levels; e++) {
        double sum = 0;
        for (int j = 0; j < bits; j++)
            sum = rounded(sum + fac_basis_digit(to, (unsigned)e, j) * to->v[j], single);
        to->level[e] = sum;
        to->code[e] = (unsigned)e;
    }
    sort(to);
    for (int i = 0; i + 1 < to->levels; i++)
        to->threshold[i] = rounded(rounded(to->level[i] + to->level[i + 1], single) * 0.5, single);
}

fac_basis_grid fac_basis_grid_of(const fac_dims *x, const fac_dims *basis, int64_t axis) {
    fac_basis_grid g = { 1, 1, 1, (int)basis->d[0] };
    if (basis->n == 1) {
        g.inner = fac_dims_count(x);
        return g;
    }
    const int a = fac_axis(axis, x->n);
    for (int k = 0; k < x->n; k++) {
        if (k < a)
            g.outer *= x->d[k];
        else if (k > a)
            g.inner *= x->d[k];
        else
            g.channels = x->d[k];
    }
    return g;
}

bool fac_basis_fits(fac_node *n, const fac_value *x, const fac_value *basis, int64_t axis) {
    const fac_dims *b = &basis->type.dims, *d = &x->type.dims;
    if (basis->type.dtype != x->type.dtype)
        return fac_fail(n, FAC_E_DTYPE, "x and basis differ in dtype");
    if (b->n < 1 || b->n > 2) return fac_fail(n, FAC_E_SHAPE, "basis must have 1 or 2 dims");
    if (b->d[0] < 1 || b->d[0] > FAC_BASIS_BITS)
        return fac_fail(n, FAC_E_SHAPE, "a basis has 1 to %d numbers, not %lld", FAC_BASIS_BITS,
                        (long long)b->d[0]);
    if (b->n == 1) return true;
    const int a = d->n ? fac_axis(axis, d->n) : -1;
    if (a < 0) return fac_fail(n, FAC_E_SHAPE, "axis %lld of %d dims", (long long)axis, d->n);
    if (b->d[1] >= 0 && d->d[a] >= 0 && b->d[1] != d->d[a])
        return fac_fail(n, FAC_E_SHAPE, "basis has %lld channels, axis %d of x has %lld",
                        (long long)b->d[1], a, (long long)d->d[a]);
    return true;
}

bool fac_basis_multiples(const float *v, int bits, int times[FAC_BASIS_BITS], int *unit) {
    int sum = 0;
    *unit = 0;
    for (int j = 1; j < bits; j++)
        if (v[j] < v[*unit]) *unit = j;
    if (!(v[*unit] > 0)) return false;
    for (int j = 0; j < bits; j++) {
        const double parts = (double)v[j] / (double)v[*unit];
        if (!(parts <= 15) || parts != (double)(int)parts) return false;
        times[j] = (int)parts;
        sum += times[j];
    }
    return sum <= 15;
}
