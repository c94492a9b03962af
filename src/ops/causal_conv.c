/* ONNX's CausalConvWithState: a convolution of each channel that sees what came before, call after
 * call. */
#include <string.h>
#include "ops/constant.h"
#include "ops/cost.h"
#include "ops/onnx_in.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* y[b,c,t] = bias[c] + sum over i < k of w[c,0,i] p[b,c,t+i],  p: past, then x;  with silu: y
 * sigmoid(y).
 *   x B,C,L   w C,1,k   bias C or NULL   past B,C,k-1 or NULL (zeros)   y B,C,L
 * fac_value_other(y, 1): the last k - 1 of p, which is past of the next call.  Floats. */
fac_value *fac_causal_conv(fac_value *x, fac_value *w, fac_value *bias, fac_value *past, bool silu);
#endif

typedef struct attrs {
    bool silu;
} attrs;
static const fac_attr table[] = {
    { "silu", FAC_A_FLAG, offsetof(attrs, silu), 0, 0, 0, 0, NULL, "y sigmoid(y)" }, { 0 }
};
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "w", FAC_FLOATS, 0 },
                               { "bias", FAC_FLOATS, FAC_OPTIONAL },
                               { "past", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 }, { "state", FAC_FLOATS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims, *w = &n->in[1]->type.dims;
    if (x->n != 3 || w->n != 3) return fac_fail(n, FAC_E_SHAPE, "x must be B,C,L and w C,1,k");
    if (fac_differ(w->d[1], 1) || w->d[2] == 0 || fac_differ(x->d[1], w->d[0]))
        return fac_fail(n, FAC_E_SHAPE, "w must be C,1,k with the channels of x");
    for (int k = 1; k < 4; k++)
        if (n->in[k] && n->in[k]->type.dtype != n->in[0]->type.dtype)
            return fac_fail(n, FAC_E_DTYPE, "all operands must have one dtype");
    const int64_t C = w->d[0] < 0 ? x->d[1] : w->d[0];
    const fac_dims state = fac_shape(x->d[0], C, fac_size_difference(n->graph, w->d[2], 1));
    for (int port = 2; port < 4; port++) {
        const fac_dims want = port == 2 ? fac_shape(C) : state;
        bool same = !n->in[port] || n->in[port]->type.dims.n == want.n;
        for (int k = 0; same && n->in[port] && k < want.n; k++)
            same = !fac_differ(n->in[port]->type.dims.d[k], want.d[k]);
        if (!same) return fac_fail(n, FAC_E_SHAPE, "%s does not fit x and w", in[port].name);
    }
    n->out[0]->type = (fac_type){ n->in[0]->type.dtype, fac_shape(x->d[0], C, x->d[2]) };
    n->out[1]->type = (fac_type){ n->in[0]->type.dtype, state };
    return true;
}

static int64_t expands(const fac_node *n) {
    return fac_dims_known(&n->in[1]->type.dims, 0) ? 6 : 0;
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_dims *w = &n->in[1]->type.dims;
    fac_value *x = n->in[0], *more = fac_ints(n->graph, fac_shape(w->d[2] - 1, 0));
    fac_value *axis = fac_ints(n->graph, fac_shape(2));
    fac_value *p = n->in[3] ? fac_concat((fac_value *[]){ n->in[3], x }, 2, 2)
                            : fac_pad(x, more, NULL, axis, FAC_PAD_CONSTANT);
    if (!w->d[0] || !x->type.dims.d[2])
        y[0] = x;
    else
        y[0] = fac_conv1d(p, n->in[1], n->in[2], &(fac_conv1d_opts){ .groups = w->d[0] });
    if (((const attrs *)n->attrs)->silu) y[0] = fac_silu(y[0]);
    y[1] = w->d[2] > 1 ? fac_slice(p, 2, -(w->d[2] - 1), INT64_MAX, 1) : fac_slice(p, 2, 0, 0, 1);
}

static void cost(const fac_node *n, fac_cost *c) {
    fac_cost_bytes(n, c);
    const int64_t taps = n->in[1]->type.dims.d[2];
    c->macs = fac_cost_count(n->out[0]) * (taps > 0 ? (double)taps : 0);
    c->other = 0;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const char *activation = fac_onnx_text(n, "activation", "none");
    const bool silu = !strcmp(activation, "silu") || !strcmp(activation, "swish");
    if (!silu && strcmp(activation, "none"))
        y[0] = fac_fail_graph(g, FAC_E_FORMAT, "CausalConvWithState: activation is \"%s\"",
                              activation);
    else
        y[0] = fac_causal_conv(x[0], x[1], fac_onnx_in(n, x, 2), fac_onnx_in(n, x, 3), silu);
    if (n->nout > 1) y[1] = fac_value_other(y[0], 1);
}
static const fac_onnx_attr names[] = { { "activation", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "CausalConvWithState", 27, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *ins[4], *state = fac_onnx_name(w, n->out[1]);
    if (w->opset < 27) return false;
    for (int k = 0; k < 4; k++) ins[k] = fac_onnx_name(w, n->in[k]);
    fac_onnx_put(w, "CausalConvWithState", 4, ins, fac_onnx_name(w, n->out[0]));
    if (state) fac_onnx_put_out(w, state);
    fac_onnx_put_text(w, "activation", ((const attrs *)n->attrs)->silu ? "silu" : "none");
    return true;
}

static const fac_case cases[] = {
    { "causal_conv(f32[2,3,7], f32[3,1,4], f32[3], -) silu", -1, 1, 1e-5 },
    { "causal_conv(f32[1,2,2], f32[2,1,4], -, f32[1,2,3])", -1, 1, 1e-5 },
    { "causal_conv(f32[1,2,3], f32[2,1,1], -, -)", -1, 1, 1e-5 },
    { "causal_conv(f16[1,2,5], f16[2,1,3], f16[2], -)", -1, 1, 8e-3 },
    { "causal_conv(f32[0,2,5], f32[2,1,3], -, -)", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_causal_conv = {
    .name = "causal_conv",
    .doc = "a convolution of each channel with what came before",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .expand = expand,
    .expands = expands,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_causal_conv(fac_value *x, fac_value *w, fac_value *bias, fac_value *past,
                           bool silu) {
    return fac_emit(&fac_op_causal_conv, &(attrs){ silu }, 4, (fac_value *[]){ x, w, bias, past });
}
