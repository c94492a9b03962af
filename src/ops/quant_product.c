/* See quant_product.h. */
#include "ops/quant_product.h"
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/cost.h"
#include "ops/product.h"
#include "ops/quant.h"

static int64_t rows_of(const fac_dims *d) { return d->n > 1 ? d->d[d->n - 2] : 1; }
static int64_t last_of(const fac_dims *d) { return d->n > 1 ? d->d[d->n - 1] : 1; }
static fac_dims batch_of(const fac_dims *d) {
    fac_dims b = *d;
    b.n = d->n > 2 ? d->n - 2 : 0;
    return b;
}

bool fac_quant_product_infer(fac_node *n, fac_dtype c) {
    const fac_dims *a = &n->in[0]->type.dims, *b = &n->in[1]->type.dims;
    if (!fac_quant_bytes(n, 0, "a") || !fac_quant_bytes(n, 1, "b")) return false;
    if (a->n < 1 || b->n < 1) return fac_fail(n, FAC_E_SHAPE, "a and b must have at least one dim");
    const int64_t columns = a->d[a->n - 1], rows = b->n > 1 ? rows_of(b) : b->d[0];
    if (columns >= 0 && rows >= 0 && columns != rows)
        return fac_fail(n, FAC_E_SHAPE, "a has %lld columns, b %lld rows", (long long)columns,
                        (long long)rows);
    const fac_dims l = batch_of(a), r = batch_of(b);
    fac_type y = { c, { 0 } };
    if (!fac_broadcast(n, &l, &r, &y.dims)) return false;
    if (a->n > 1) y.dims.d[y.dims.n++] = rows_of(a);
    if (b->n > 1) y.dims.d[y.dims.n++] = last_of(b);
    n->out[0]->type = y;
    return true;
}

bool fac_quant_product_each(fac_node *n, int port, int side, const char *name) {
    const fac_value *v = n->in[port];
    if (!v || v->type.dims.n == 0 || fac_dims_count(&v->type.dims) == 1) return true;
    const fac_dims *d = &v->type.dims, *of = &n->in[side]->type.dims;
    const int64_t want = side ? last_of(of) : rows_of(of);
    int64_t have = -1;
    if (d->n == 1)
        have = d->d[0];
    else if (d->n == of->n)
        have = d->d[d->n - 2 + side];
    bool fits = d->n == 1 || (d->n == of->n && d->n > 1 && d->d[d->n - 1 - side] == 1);
    for (int k = 0; fits && d->n > 1 && k < d->n - 2; k++)
        fits = d->d[k] == 1 || d->d[k] == of->d[k];
    fits &= have < 0 || want < 0 || have == want;
    return fits || fac_fail(n, FAC_E_SHAPE, "%s must be one number, or one for each of the %lld %s",
                            name, (long long)want, side ? "columns of b" : "rows of a");
}

fac_value *fac_quant_product_spread(fac_value *v, const fac_value *operand, int side) {
    const fac_dims *d = &v->type.dims;
    if (d->n != 1) return v;
    if (d->d[0] == 1) return fac_reshape(v, (fac_dims){ 0 });
    if (operand->type.dims.n < 2) return v;
    return side ? v : fac_unsqueeze(v, fac_shape(1));
}

int64_t fac_quant_product_at(const fac_dims *v, const fac_dims *of, int side, int64_t e) {
    const int64_t rows = rows_of(of), columns = of->n ? of->d[of->n - 1] : 1;
    if (fac_dims_count(v) == 1) return 0;
    const int64_t within = side ? e % columns : e / columns % rows;
    if (v->n == 1) return within;
    int64_t at = 0, step = side ? columns : rows, batch = e / (rows * columns);
    for (int k = v->n - 3; k >= 0; k--) {
        if (v->d[k] != 1) at += batch % of->d[k] * step;
        step *= v->d[k];
        batch /= of->d[k];
    }
    return at + within;
}

static void less_zero(const fac_array *x, const fac_array *zero, int side, int64_t *to) {
    const int64_t n = fac_dims_count(&x->type.dims);
    for (int64_t e = 0; e < n; e++) {
        const int64_t at =
            zero->i ? fac_quant_product_at(&zero->type.dims, &x->type.dims, side, e) : 0;
        to[e] = x->i[e] - (zero->i ? zero->i[at] : 0);
    }
}

fac_status fac_quant_product_sums(const fac_ref *r, int a_zero, int b_zero, int64_t *c,
                                  fac_error *err) {
    const fac_array *a = &r->in[0], *b = &r->in[1];
    const fac_dims *ad = &a->type.dims, *bd = &b->type.dims;
    const int64_t na = fac_dims_count(ad), nb = fac_dims_count(bd);
    int64_t *x = fac_alloc((size_t)(na + nb) + 1, sizeof *x);
    if (!x) return fac_raise_memory(err, "a product of integers");
    less_zero(a, &r->in[a_zero], 0, x);
    less_zero(b, &r->in[b_zero], 1, x + na);
    fac_dims batch = r->out[0].type.dims;
    batch.n -= (ad->n > 1) + (bd->n > 1);
    const fac_dims l = batch_of(ad), s = batch_of(bd);
    const int64_t m = rows_of(ad), n = last_of(bd), k = ad->d[ad->n - 1];
    const int64_t count = m > 0 && n > 0 ? fac_dims_count(&batch) : 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t *to = c + i * m * n;
        memset(to, 0, (size_t)(m * n) * sizeof *to);
        fac_product_int(m, n, k, x + fac_product_matrix(i, &batch, &l) * m * k, k, 1,
                        x + na + fac_product_matrix(i, &batch, &s) * k * n, n, 1, to);
    }
    fac_release(x);
    return FAC_OK;
}

void fac_quant_product_cost(const fac_node *n, fac_cost *to) {
    const fac_dims *a = &n->in[0]->type.dims;
    const int64_t k = a->n ? a->d[a->n - 1] : 0;
    fac_cost_bytes(n, to);
    to->macs = fac_cost_count(n->out[0]) * (k > 0 ? (double)k : 0);
    to->other = 0;
}
