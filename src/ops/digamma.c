#include "ops/map.h"
#include "ops/map_grad.h"

#if FAC_INTERFACE
/* slope of ln |gamma(x)|; NaN for -1, -2..., infinite for 0 */
fac_value *fac_digamma(fac_value *x);
#endif

MAP1(DIGAMMA(x))

/* 1 / x^2 + 1 / (x + 1)^2 + ... of x >= 0.5: eight terms, then
 * 1/x + 1/(2 x^2) + 1/(6 x^3) - 1/(30 x^5) + 1/(42 x^7). */
static fac_value *trigamma(fac_value *x) {
    enum { TERMS = 8 };
    static const double series[] = { 1.0 / 42, -1.0 / 30, 1.0 / 6 };
    fac_value *sum = NULL;
    for (int k = 0; k < TERMS; k++) {
        fac_value *at = k ? fac_grad_shifted(x, k) : x, *term = fac_reciprocal(fac_mul(at, at));
        sum = sum ? fac_add(sum, term) : term;
    }
    fac_value *r = fac_reciprocal(fac_grad_shifted(x, TERMS)), *square = fac_mul(r, r);
    fac_value *tail = fac_mul(fac_grad_shifted(fac_grad_times(r, 0.5), 1), r);
    fac_value *odd = fac_grad_number(x, series[0]);
    for (int k = 1; k < 3; k++) odd = fac_grad_shifted(fac_mul(odd, square), series[k]);
    return fac_add(sum, fac_add(tail, fac_mul(fac_mul(odd, square), r)));
}

/* Below 0.5 by reflection: pi^2 / sin^2(pi x) - trigamma(1 - x). */
static void grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    const double pi = 3.14159265358979323846;
    fac_value *x = n->in[0], *low = fac_grad_below(x, 0.5);
    fac_value *there = trigamma(fac_where(low, fac_grad_rest(x), x));
    fac_value *sine = fac_sin(fac_grad_times(x, pi)), *one = fac_grad_number(x, 1);
    fac_value *square = fac_where(low, fac_mul(sine, sine), one);
    fac_value *mirrored = fac_sub(fac_div(fac_grad_number(x, pi * pi), square), there);
    dx[0] = fac_mul(dy[0], fac_where(low, mirrored, there));
}

static const fac_onnx onnx[] = { { 0 } };
static const fac_case cases[] = {
    { "digamma(f32[2,37])", 0.3, 9, 4e-6 },   { "digamma(f64[5])", 0.3, 9, 1e-11 },
    { "digamma(f64[40])", -3.9, -3.1, 1e-9 }, { "digamma(f16[9])", 0.3, 9, 8e-3 },
    { "digamma(bf16[9])", 0.3, 9, 4e-2 },     { "digamma(f32[0,3])", 0, 0, 0 },
    { "digamma(f32[])", 0.3, 9, 4e-6 },       { 0 }
};

const fac_op fac_op_digamma = {
    MAP1_OP("digamma", "slope of the logarithm of the gamma function"),
    .grad = grad,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_digamma(fac_value *x) { return fac_emit(&fac_op_digamma, NULL, 1, &x); }
