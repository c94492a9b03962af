/* Long short-term memory with weights of bytes. */
#include <string.h>
#include "ops/fusions_quant.h"
#include "ops/recurrent.h"

#if FAC_INTERFACE
/* fac_lstm with w D,4H,I and r D,4H,H of bytes, w = (w - w_zero) w_scale: x of all steps, and h of
 * each sequence in each step, are made u8 with the range that they have before the product. Scales
 * f32, zero points of w's and r's dtypes, D or D,4H each; zero points may be NULL. */
typedef struct fac_lstm_bytes {
    fac_value *w_scale, *w_zero, *r_scale, *r_zero;
} fac_lstm_bytes;
fac_value *fac_quantized_lstm(fac_value *x, fac_value *w, fac_value *r, fac_value *b,
                              const fac_lstm_bytes *bytes, const fac_recurrent_opts *opts);
#endif

enum { W_SCALE = FAC_CELL_INPUTS, W_ZERO, R_SCALE, R_ZERO, PORTS };
static const fac_attr table[] = { FAC_CELL_ATTRS,
                                  { "input_forget", FAC_A_FLAG, FAC_CELL_AT(input_forget), 0, 0, 0,
                                    0, NULL, "forget gate = 1 - input gate" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "w", FAC_INTS, 0 },
                               { "r", FAC_INTS, 0 },
                               { "b", FAC_FLOATS, FAC_OPTIONAL },
                               { "lengths", FAC_INTS, FAC_OPTIONAL },
                               { "h0", FAC_FLOATS, FAC_OPTIONAL },
                               { "c0", FAC_FLOATS, FAC_OPTIONAL },
                               { "p", FAC_FLOATS, FAC_OPTIONAL },
                               { "w_scale", FAC_FLOATS, FAC_OPTIONAL },
                               { "w_zero", FAC_INTS, FAC_OPTIONAL },
                               { "r_scale", FAC_FLOATS, FAC_OPTIONAL },
                               { "r_zero", FAC_INTS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 },
                                { "h", FAC_FLOATS, FAC_OPTIONAL },
                                { "c", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

/* Of the cell's direction: a scalar, or one for each gate and feature. */
static fac_value *part(const fac_cell *cell, int port) {
    fac_value *v = cell->node->in[port], *of[2];
    if (!v) return NULL;
    if (cell->directions == 1)
        of[0] = v;
    else
        fac_split(v, 0, cell->directions, of);
    v = of[cell->direction];
    return v->type.dims.n == 2 ? fac_squeeze(v, fac_shape(0)) : fac_reshape(v, (fac_dims){ 0 });
}

/* Each sequence has a range of its own, as in ONNX Runtime when threads share out the batch: what
 * others hold changes nothing. */
static fac_value *product_by_rows(const fac_cell *cell, fac_value *h, fac_value *w) {
    fac_graph *g = h->graph;
    fac_value *zero = fac_number(g, FAC_F32, 0), *top = fac_number(g, FAC_F32, 255);
    fac_value *least = fac_min(fac_reduce_min(h, fac_shape(1), false), zero);
    fac_value *most = fac_max(fac_reduce_max(h, fac_shape(1), false), zero);
    fac_value *s = fac_div(fac_sub(most, least), top);
    s = fac_where(fac_equal(s, zero), fac_number(g, FAC_F32, 1), s);
    fac_value *z = fac_clip(fac_round(fac_div(fac_neg(least), s)), zero, top);
    z = fac_cast(z, FAC_U8);
    fac_value *q = fac_quantize_linear(h, s, z, NULL);
    fac_value *acc =
        fac_matmul_integer(q, fac_transpose(w, fac_shape(1, 0)), z, part(cell, R_ZERO));
    fac_value *scale = fac_mul(fac_unsqueeze(s, fac_shape(1)), part(cell, R_SCALE));
    return fac_mul(fac_cast(acc, FAC_F32), scale);
}

static fac_value *product(const fac_cell *cell, fac_value *x, fac_value *w, bool recurrent) {
    const int at = W_SCALE;
    if (recurrent) return product_by_rows(cell, x, w);
    fac_value *q = fac_dynamic_quantize_linear(x);
    fac_value *acc = fac_matmul_integer(q, fac_transpose(w, fac_shape(1, 0)), fac_value_other(q, 2),
                                        part(cell, at + 1));
    return fac_mul(fac_cast(acc, FAC_F32), fac_mul(fac_value_other(q, 1), part(cell, at)));
}

static const fac_cell_kind kind = { .gates = 4,
                                    .activations = 3,
                                    .usual = "Sigmoid Tanh Tanh",
                                    .cell_state = true,
                                    .product = product };

static bool infer(fac_node *n) {
    const int D = fac_cell_directions(n->attrs);
    if (n->in[0]->type.dtype != FAC_F32) return fac_fail(n, FAC_E_DTYPE, "x must be f32");
    if (!fac_quant_bytes(n, FAC_CELL_W, "w") || !fac_quant_bytes(n, FAC_CELL_R, "r")) return false;
    if (!n->in[W_SCALE] || !n->in[R_SCALE])
        return fac_fail(n, FAC_E_ARGUMENT, "w_scale and r_scale are missing");
    for (int k = W_SCALE; k < PORTS; k++) {
        const fac_dims *d = n->in[k] ? &n->in[k]->type.dims : NULL;
        if (d && (d->n < 1 || d->n > 2 || (d->d[0] != D && d->d[0] >= 0)))
            return fac_fail(n, FAC_E_SHAPE, "%s must have a row for each of %d directions",
                            in[k].name, D);
    }
    return fac_cell_infer(n, &kind);
}
static void expand(const fac_node *n, fac_value *y[]) {
    fac_cell_expand(n, &kind, fac_lstm_step, y);
}
static void cost(const fac_node *n, fac_cost *to) { fac_cell_cost(n, to, &kind); }

extern const fac_op fac_op_quantized_lstm;
/* There w and r are D,I,4H and D,H,4H. */
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    fac_value *ins[PORTS] = { NULL };
    fac_onnx_node as = *n;
    for (int k = 0; k < PORTS; k++) ins[k] = fac_onnx_in(n, x, k);
    ins[FAC_CELL_W] = fac_transpose(x[FAC_CELL_W], fac_shape(0, 2, 1));
    ins[FAC_CELL_R] = fac_transpose(x[FAC_CELL_R], fac_shape(0, 2, 1));
    as.type = "LSTM";
    as.nin = PORTS;
    fac_cell_load(&as, g, &fac_op_quantized_lstm, ins, y);
}
static const fac_onnx onnx[] = {
    { "com.microsoft", "DynamicQuantizeLSTM", 1, 0, fac_names_lstm, load, 3 }, { 0 }
};
static const fac_case cases[] = {
    { "quantized_lstm(f32[3,2,4], i8[1,20,4], i8[1,20,5], f32[1,40], -, -, -, -, f32{0.02}, "
      "i8{0}, f32{0.03}, i8{1})",
      -1, 1, 2e-2 },
    { "quantized_lstm(f32[2,1,3], u8[2,8,3], u8[2,8,2], -, -, -, -, -, f32{0.02, 0.1}, "
      "u8{5, 6}, f32{0.03, 0.2}, u8{1, 2}) direction=bidirectional",
      0, 2, 2e-2 },
    { 0 }
};

const fac_op fac_op_quantized_lstm = {
    .name = "quantized_lstm",
    .doc = "long short-term memory with weights of bytes",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(fac_recurrent_opts),
    .infer = infer,
    .expand = expand,
    .cost = cost,
    .onnx = onnx,
    .cases = cases,
    .is = FAC_OP_NO_GRAD | FAC_OP_TYPED,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_quantized_lstm(fac_value *x, fac_value *w, fac_value *r, fac_value *b,
                              const fac_lstm_bytes *s, const fac_recurrent_opts *opts) {
    return fac_emit(&fac_op_quantized_lstm, opts, PORTS,
                    (fac_value *[]){ x, w, r, b, NULL, NULL, NULL, NULL, s->w_scale, s->w_zero,
                                     s->r_scale, s->r_zero });
}
