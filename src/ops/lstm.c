/* Long short-term memory (Hochreiter and Schmidhuber 1997; forget gate of Gers et al. 2000,
 * peepholes of Gers et al. 2002). */
#include "ops/recurrent.h"

#if FAC_INTERFACE
/* With gates i, o, f and candidate c~ of x w^T + h r^T + b, f: Sigmoid, g and k: Tanh, and p = NULL
 * or D,3H:
 *   i = f(.. + p_i c), f = f(.. + p_f c), c~ = g(..),  c_t = f c + i c~,  o = f(.. + p_o c_t),  h_t
 *       = o k(c_t)
 * Order of the gates in weights: i o f c, torch_gates: i f c o; in p: i o f.  Operands and outputs
 * as in fac_recurrent_opts: y, as fac_value_other(y, 1) h, as fac_value_other(y, 2) c. */
fac_value *fac_lstm(fac_value *x, fac_value *w, fac_value *r, fac_value *b, fac_value *lengths,
                    fac_value *h0, fac_value *c0, fac_value *p, const fac_recurrent_opts *opts);
#endif

static const fac_cell_kind kind = {
    .gates = 4, .activations = 3, .usual = "Sigmoid Tanh Tanh", .cell_state = true
};
static const fac_attr table[] = { FAC_CELL_ATTRS,
                                  { "input_forget", FAC_A_FLAG, FAC_CELL_AT(input_forget), 0, 0, 0,
                                    0, NULL, "forget gate = 1 - input gate" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "w", FAC_FLOATS, 0 },
                               { "r", FAC_FLOATS, 0 },
                               { "b", FAC_FLOATS, FAC_OPTIONAL },
                               { "lengths", FAC_INTS, FAC_OPTIONAL },
                               { "h0", FAC_FLOATS, FAC_OPTIONAL },
                               { "c0", FAC_FLOATS, FAC_OPTIONAL },
                               { "p", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 },
                                { "h", FAC_FLOATS, FAC_OPTIONAL },
                                { "c", FAC_FLOATS, FAC_OPTIONAL },
                                { 0 } };

enum { IN, OUT, FORGET, CELL, GATES, PEEPHOLES = 3 };
static const int places[2][GATES] = { { 0, 1, 2, 3 }, { 0, 3, 1, 2 } }; /* ONNX, PyTorch */

/* z + p c, where there are a peephole and a cell. */
static fac_value *peep(fac_value *z, fac_value *p, fac_value *c) {
    return p && c ? fac_add(z, fac_mul(p, c)) : z;
}

void fac_lstm_step(const fac_cell *cell, fac_value *xw, fac_cell_state *s) {
    const int *at = places[cell->opts->torch_gates];
    fac_value *z[GATES], *p[PEEPHOLES] = { NULL }, *c = s->c;
    fac_cell_split(cell, s->h ? fac_add(xw, fac_cell_times(cell, s->h)) : xw, 1, z);
    if (cell->peephole) fac_split(cell->peephole, 0, PEEPHOLES, p);

    fac_value *i = fac_cell_gate(cell, 0, peep(z[at[IN]], p[IN], c));
    fac_value *forget = !c ? NULL
                        : cell->opts->input_forget
                            ? fac_sub(fac_number(i->graph, i->type.dtype, 1), i)
                            : fac_cell_gate(cell, 0, peep(z[at[FORGET]], p[FORGET], c));
    s->c = fac_mul(i, fac_cell_gate(cell, 1, z[at[CELL]]));
    if (c) s->c = fac_add(fac_mul(forget, c), s->c);
    fac_value *o = fac_cell_gate(cell, 0, peep(z[at[OUT]], p[OUT], s->c));
    s->h = fac_mul(o, fac_cell_activate(cell, 2, s->c));
}

static bool infer(fac_node *n) { return fac_cell_infer(n, &kind); }
static void expand(const fac_node *n, fac_value *y[]) {
    fac_cell_expand(n, &kind, fac_lstm_step, y);
}
static void cost(const fac_node *n, fac_cost *to) { fac_cell_cost(n, to, &kind); }

extern const fac_op fac_op_lstm;
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    fac_cell_load(n, g, &fac_op_lstm, x, y);
}
static bool save(const fac_onnx_writer *w, const fac_node *n) { return fac_cell_save(w, n, &kind); }
static const fac_onnx onnx[] = { { "", "LSTM", 7, 0, NULL, load, 0 }, { 0 } };
static const fac_case cases[] = {
    { "lstm(f32[3,2,4], f32[1,20,4], f32[1,20,5])", -1, 1, 1e-5 },
    { "lstm(f32[3,2,4], f32[1,8,4], f32[1,8,2], f32[1,16], -, f32[1,2,2], f32[1,2,2]) torch_gates",
      -1, 1, 1e-5 },
    { "lstm(f32[3,2,2], f32[1,8,2], f32[1,8,2], f32[1,16], -, -, f32[1,2,2], f32[1,6]) clip=0.8 "
      "input_forget",
      -1, 1, 1e-5 },
    { "lstm(f32[3,4,2], f32[2,8,2], f32[2,8,2], f32[2,16], i32[3], f32[3,2,2], f32[3,2,2], "
      "f32[2,6]) direction=bidirectional "
      "batch_first",
      -1, 4, 1e-5 },
    { "lstm(f32[4,2,2], f32[1,8,2], f32[1,8,2], -, i32[2]) direction=reverse "
      "activations=\"HardSigmoid ScaledTanh:0.8:1.2 Softsign\"",
      -1, 4, 1e-5 },
    { "lstm(f32[0,2,4], f32[1,8,4], f32[1,8,2])", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_lstm = {
    .name = "lstm",
    .doc = "recurrent layer of long short-term memory",
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
    .torch = "LSTM",
    .mixed = FAC_MIXED_PRODUCT,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_lstm(fac_value *x, fac_value *w, fac_value *r, fac_value *b, fac_value *lengths,
                    fac_value *h0, fac_value *c0, fac_value *p, const fac_recurrent_opts *opts) {
    return fac_emit(&fac_op_lstm, opts, 8, (fac_value *[]){ x, w, r, b, lengths, h0, c0, p });
}
