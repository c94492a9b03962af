/* The simple recurrent layer (Elman 1990, "Finding structure in time"). */
#include "ops/recurrent.h"

#if FAC_INTERFACE
/* h_t = f(x_t w^T + h_(t-1) r^T + b);  f: Tanh unless opts->activations says otherwise.  Operands
 * and outputs as in fac_recurrent_opts: y, and as fac_value_other(y, 1) h. */
fac_value *fac_rnn(fac_value *x, fac_value *w, fac_value *r, fac_value *b, fac_value *lengths,
                   fac_value *h0, const fac_recurrent_opts *opts);
#endif

static const fac_cell_kind kind = { .gates = 1, .activations = 1, .usual = "Tanh" };
static const fac_attr table[] = { FAC_CELL_ATTRS, { 0 } };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "w", FAC_FLOATS, 0 },
                               { "r", FAC_FLOATS, 0 },
                               { "b", FAC_FLOATS, FAC_OPTIONAL },
                               { "lengths", FAC_INTS, FAC_OPTIONAL },
                               { "h0", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 }, { "h", FAC_FLOATS, FAC_OPTIONAL }, { 0 } };

static void step(const fac_cell *cell, fac_value *xw, fac_cell_state *s) {
    s->h = fac_cell_gate(cell, 0, s->h ? fac_add(xw, fac_linear(s->h, cell->r, NULL)) : xw);
}

static bool infer(fac_node *n) { return fac_cell_infer(n, &kind); }
static void expand(const fac_node *n, fac_value *y[]) { fac_cell_expand(n, &kind, step, y); }
static void cost(const fac_node *n, fac_cost *to) { fac_cell_cost(n, to, &kind); }

extern const fac_op fac_op_rnn;
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    fac_cell_load(n, g, &fac_op_rnn, x, y);
}
static bool save(const fac_onnx_writer *w, const fac_node *n) { return fac_cell_save(w, n, &kind); }
static const fac_onnx onnx[] = { { "", "RNN", 7, 0, NULL, load, 0 }, { 0 } };
static const fac_case cases[] = { { "rnn(f32[3,2,4], f32[1,5,4], f32[1,5,5])", -1, 1, 1e-5 },
                                  { "rnn(f32[4,3,2], f32[2,3,2], f32[2,3,3], f32[2,6], i32[3], "
                                    "f32[2,3,3]) direction=bidirectional",
                                    -1, 3, 1e-5 },
                                  { "rnn(f32[2,3,2], f32[1,3,2], f32[1,3,3], f32[1,6], -, "
                                    "f32[2,1,3]) direction=reverse batch_first clip=0.5 "
                                    "activations=\"Affine:0.5:0.1\"",
                                    -1, 1, 1e-5 },
                                  { "rnn(f32[300,1,2], f32[1,2,2], f32[1,2,2])", -0.5, 0.5, 1e-5 },
                                  { "rnn(f32[0,2,4], f32[1,5,4], f32[1,5,5])", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_rnn = {
    .name = "rnn",
    .doc = "recurrent layer",
    .in = in,
    .out = out,
    .attrs = table,
    .attrs_size = sizeof(fac_recurrent_opts),
    .infer = infer,
    .expand = expand,
    .save = save,
    .cost = cost,
    .onnx = onnx,
    .cases = cases,
    .layer = FAC_CLASS_RECURRENT,
    .torch = "RNN",
    .mixed = FAC_MIXED_PRODUCT,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_rnn(fac_value *x, fac_value *w, fac_value *r, fac_value *b, fac_value *lengths,
                   fac_value *h0, const fac_recurrent_opts *opts) {
    return fac_emit(&fac_op_rnn, opts, 6, (fac_value *[]){ x, w, r, b, lengths, h0 });
}
