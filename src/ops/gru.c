/* The gated recurrent unit (Cho et al. 2014, https://arxiv.org/abs/1406.1078). */
#include "ops/recurrent.h"

#if FAC_INTERFACE
/* With gates z, r and candidate n of x w^T + h r^T + b, f: Sigmoid, g: Tanh:
 *   z = f(..), r = f(..), n = g(x w_n^T + (r h) r_n^T + b_n),  h_t = (1 - z) n + z h
 *   opts->linear_before_reset:  n = g(x w_n^T + bw_n + r (h r_n^T + br_n))
 * Order of the gates in weights: z r n, torch_gates: r z n.  Operands and outputs as in
 * fac_recurrent_opts: y, and as fac_value_other(y, 1) h. */
fac_value *fac_gru(fac_value *x, fac_value *w, fac_value *r, fac_value *b, fac_value *lengths,
                   fac_value *h0, const fac_recurrent_opts *opts);
#endif

static const fac_cell_kind kind = {
    .gates = 3, .activations = 2, .usual = "Sigmoid Tanh", .candidate = true
};
static const fac_attr table[] = { FAC_CELL_ATTRS,
                                  { "linear_before_reset", FAC_A_FLAG,
                                    FAC_CELL_AT(linear_before_reset), 0, 0, 0, 0, NULL,
                                    "the reset gate acts after the product" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "w", FAC_FLOATS, 0 },
                               { "r", FAC_FLOATS, 0 },
                               { "b", FAC_FLOATS, FAC_OPTIONAL },
                               { "lengths", FAC_INTS, FAC_OPTIONAL },
                               { "h0", FAC_FLOATS, FAC_OPTIONAL },
                               { 0 } };
static const fac_port out[] = { { "y", FAC_FLOATS, 0 }, { "h", FAC_FLOATS, FAC_OPTIONAL }, { 0 } };

enum { GATES = 2, NEW = 2 }; /* the candidate is the last part in both orders */

/* (1 - z) n + z h */
static fac_value *blend(fac_value *z, fac_value *n, fac_value *h) {
    fac_value *kept = fac_mul(fac_sub(fac_number(z->graph, z->type.dtype, 1), z), n);
    return h ? fac_add(kept, fac_mul(z, h)) : kept;
}

/* Reset in front of the product: r_zr and r_n are multiplied by different vectors. */
static fac_value *candidate_of_reset(const fac_cell *cell, fac_value *xw[], fac_value *h,
                                     fac_value **z) {
    const int at_z = cell->opts->torch_gates, at_r = 1 - at_z;
    fac_value *part[GATES];
    if (h) fac_split(fac_linear(h, cell->r_part[0], NULL), 1, GATES, part);
    *z = fac_cell_gate(cell, 0, h ? fac_add(xw[at_z], part[at_z]) : xw[at_z]);
    if (!h) return fac_cell_gate(cell, 1, xw[NEW]);
    fac_value *reset = fac_cell_gate(cell, 0, fac_add(xw[at_r], part[at_r]));
    return fac_cell_gate(cell, 1,
                         fac_add(xw[NEW], fac_linear(fac_mul(reset, h), cell->r_part[1], NULL)));
}

/* Reset after the product: one product for all. */
static fac_value *candidate_of_product(const fac_cell *cell, fac_value *xw[], fac_value *h,
                                       fac_value **z) {
    const int at_z = cell->opts->torch_gates, at_r = 1 - at_z;
    fac_value *all = h ? fac_linear(h, cell->r, cell->recurrent_bias) : cell->recurrent_bias,
              *hr[3];
    if (!all) {
        *z = fac_cell_gate(cell, 0, xw[at_z]);
        return fac_cell_gate(cell, 1, xw[NEW]);
    }
    fac_cell_split(cell, all, h ? 1 : 0, hr);
    *z = fac_cell_gate(cell, 0, fac_add(xw[at_z], hr[at_z]));
    fac_value *reset = fac_cell_gate(cell, 0, fac_add(xw[at_r], hr[at_r]));
    return fac_cell_gate(cell, 1, fac_add(xw[NEW], fac_mul(reset, hr[NEW])));
}

static void step(const fac_cell *cell, fac_value *xw, fac_cell_state *s) {
    fac_value *part[3], *z;
    fac_cell_split(cell, xw, 1, part);
    fac_value *n = (cell->opts->linear_before_reset ? candidate_of_product
                                                    : candidate_of_reset)(cell, part, s->h, &z);
    s->h = blend(z, n, s->h);
}

static bool infer(fac_node *n) { return fac_cell_infer(n, &kind); }
static void expand(const fac_node *n, fac_value *y[]) { fac_cell_expand(n, &kind, step, y); }
static void cost(const fac_node *n, fac_cost *to) { fac_cell_cost(n, to, &kind); }

extern const fac_op fac_op_gru;
static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    fac_cell_load(n, g, &fac_op_gru, x, y);
}
static bool save(const fac_onnx_writer *w, const fac_node *n) { return fac_cell_save(w, n, &kind); }
static const fac_onnx onnx[] = { { "", "GRU", 7, 0, NULL, load, 0 }, { 0 } };
static const fac_case cases[] = {
    { "gru(f32[3,2,4], f32[1,15,4], f32[1,15,5])", -1, 1, 1e-5 },
    { "gru(f32[3,2,4], f32[1,6,4], f32[1,6,2], f32[1,12], -, f32[1,2,2]) torch_gates "
      "linear_before_reset",
      -1, 1, 1e-5 },
    { "gru(f32[2,2,3], f32[1,6,3], f32[1,6,2], f32[1,12]) linear_before_reset clip=0.7", -1, 1,
      1e-5 },
    { "gru(f32[3,4,2], f32[2,6,2], f32[2,6,2], f32[2,12], i64[3], f32[3,2,2]) "
      "direction=bidirectional batch_first",
      -1, 4, 1e-5 },
    { "gru(f32[3,2,2], f32[1,6,2], f32[1,6,2]) direction=reverse activations=\"HardSigmoid:0.3:0.4 "
      "Softsign\"",
      -1, 1, 1e-5 },
    { "gru(f32[0,2,4], f32[1,6,4], f32[1,6,2])", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_gru = {
    .name = "gru",
    .doc = "recurrent layer of gated units",
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
    .torch = "GRU",
    .mixed = FAC_MIXED_PRODUCT,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_gru(fac_value *x, fac_value *w, fac_value *r, fac_value *b, fac_value *lengths,
                   fac_value *h0, const fac_recurrent_opts *opts) {
    return fac_emit(&fac_op_gru, opts, 6, (fac_value *[]){ x, w, r, b, lengths, h0 });
}
