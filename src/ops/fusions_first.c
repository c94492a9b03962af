/* Operators as opsets 1 to 6 have them, before broadcasting was NumPy's: files of 2017 and 2018. */
#include <string.h>
#include "ops/fusions.h"

const fac_onnx_attr fac_names_first[] = {
    { "axis", NULL }, { "broadcast", NULL }, { "consumed_inputs", NULL }, { 0 }
};

/* b as it broadcasts to a: its dims begin at `axis` of a, or end where a's end. */
static fac_value *aligned(const fac_onnx_node *n, fac_value *a, fac_value *b) {
    const int have = b->type.dims.n, of = a->type.dims.n;
    if (!fac_onnx_has(n, "axis") || !fac_onnx_int(n, "broadcast", 0) || !have) return b;
    const int axis = fac_axis(fac_onnx_int(n, "axis", 0), of);
    if (axis < 0 || axis + have > of)
        return fac_fail_graph(a->graph, FAC_E_FORMAT,
                              "%s: the second operand has %d dim%s, which "
                              "do not fit from axis %lld of the first, of %d",
                              n->type, have, have == 1 ? "" : "s",
                              (long long)fac_onnx_int(n, "axis", 0), of);
    fac_dims trailing = { .n = of - axis - have };
    for (int k = 0; k < trailing.n; k++) trailing.d[k] = have + k;
    return trailing.n ? fac_unsqueeze(b, trailing) : b;
}

/* Add and its like, comparisons and logic. */
void fac_load_first(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    static const struct {
        const char *type;
        fac_value *(*make)(fac_value *, fac_value *);
    } all[] = { { "Add", fac_add },         { "Sub", fac_sub },     { "Mul", fac_mul },
                { "Div", fac_div },         { "Pow", fac_pow },     { "Less", fac_less },
                { "Greater", fac_greater }, { "Equal", fac_equal }, { "And", fac_and },
                { "Or", fac_or },           { "Xor", fac_xor } };
    fac_value *b = aligned(n, x[0], x[1]);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (!strcmp(n->type, all[k].type)) y[0] = all[k].make(x[0], b);
    if (!y[0]) y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "%s: no such operator", n->type);
}

/* One slope, or one for each channel. */
void fac_load_first_prelu(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                          fac_value *y[]) {
    (void)n, (void)g;
    const fac_dims *slope = &x[1]->type.dims;
    fac_dims trailing = { .n = x[0]->type.dims.n - 2 };
    for (int k = 0; k < trailing.n; k++) trailing.d[k] = 1 + k;
    const bool channels = slope->n == 1 && slope->d[0] != 1 && trailing.n > 0;
    y[0] = fac_prelu(x[0], channels ? fac_unsqueeze(x[1], trailing) : x[1]);
}
