/* What rnn, lstm and gru have in common.  Each file gives its cell, the formula of one step;
 * gates.c checks operands and reads options, recurrent.c unrolls a cell over the steps of a
 * sequence. */
#ifndef FACULA_OPS_RECURRENT_H
#define FACULA_OPS_RECURRENT_H
#include "facula/op.h"
#include "facula/ops.h"

/* The ports of all three; rnn and gru end before c0. */
enum {
    FAC_CELL_X,
    FAC_CELL_W,
    FAC_CELL_R,
    FAC_CELL_B,
    FAC_CELL_LENGTHS,
    FAC_CELL_H0,
    FAC_CELL_C0,
    FAC_CELL_P,
    FAC_CELL_INPUTS
};

/* An activation by its ONNX name, with the numbers that some take. */
enum { FAC_CELL_ACTIVATIONS = 3 };
typedef struct fac_activation {
    int kind;
    double alpha, beta;
} fac_activation;

/* One direction of a layer while it is unrolled.  G gates, H hidden features; weights are split by
 * gate only where a cell multiplies by one of them alone. */
struct fac_cell_kind;
typedef struct fac_cell {
    const fac_recurrent_opts *opts;
    const struct fac_cell_kind *kind;
    const fac_node *node;
    int direction, directions;
    int gates;
    int64_t hidden;
    fac_value *r; /* [G H, H] */
    fac_value
        *r_part[2]; /* of a gru that resets before the product: r of its gates, of its candidate */
    fac_value *recurrent_bias; /* [G H]; NULL when the input's projection has it already, or there
                                  is none */
    fac_value *peephole;       /* [3 H] or NULL */
    fac_activation act[FAC_CELL_ACTIVATIONS];
} fac_cell;

/* What a cell carries from step to step: h and, in an lstm, c, [B, H] each.  NULL: zeros, before
 * the first step. */
typedef struct fac_cell_state {
    fac_value *h, *c;
} fac_cell_state;

/* Makes the new state of the old one; xw [B, G H]: x W^T + b of this step. */
typedef void fac_cell_step(const fac_cell *cell, fac_value *xw, fac_cell_state *s);

/* x times the transposed w or r of the cell's direction. */
typedef fac_value *fac_cell_product(const fac_cell *cell, fac_value *x, fac_value *w,
                                    bool recurrent);

/* What an op file says of its cell. */
typedef struct fac_cell_kind {
    int gates, activations; /* an activation for each direction */
    const char *usual;      /* activations when none are named */
    bool cell_state;        /* c beside h */
    bool candidate; /* the last gate of r may be multiplied by another vector than the others */
    fac_cell_product *product; /* NULL: fac_linear */
} fac_cell_kind;

/* ---- gates.c ---- */
bool fac_cell_infer(fac_node *n, const fac_cell_kind *kind);
void fac_cell_cost(const fac_node *n, fac_cost *to, const fac_cell_kind *kind);
/* The activations of direction d; they were checked by infer. */
void fac_cell_activations(const fac_recurrent_opts *o, const fac_cell_kind *kind, int d,
                          fac_activation to[FAC_CELL_ACTIVATIONS]);
/* Activation k of the cell; that of a gate, after the clip. */
fac_value *fac_cell_activate(const fac_cell *cell, int k, fac_value *x);
fac_value *fac_cell_gate(const fac_cell *cell, int k, fac_value *x);
int fac_cell_directions(const fac_recurrent_opts *o);
/* RNN, GRU, LSTM of opset 7 on. */
void fac_cell_load(const fac_onnx_node *n, fac_graph *g, const fac_op *op, fac_value *const in[],
                   fac_value *out[]);
extern const char *const fac_direction_names[];
/* ONNX's name of an activation, and how many numbers it takes. */
const char *fac_activation_name(int kind, int *numbers);

/* ---- cell_save.c ---- */
bool fac_cell_save(const fac_onnx_writer *w, const fac_node *n, const fac_cell_kind *kind);

/* The attributes of all three, and those of one alone after them. */
#define FAC_CELL_AT(field) offsetof(fac_recurrent_opts, field)
/* clang-format off */
#define FAC_CELL_ATTRS \
    { "direction", FAC_A_ENUM, FAC_CELL_AT(direction), 0, 0, 0, 0, fac_direction_names, \
      "of time" }, \
    { "batch_first", FAC_A_FLAG, FAC_CELL_AT(batch_first), 0, 0, 0, 0, NULL, \
      "the batch is the first dim, not time" }, \
    { "torch_gates", FAC_A_FLAG, FAC_CELL_AT(torch_gates), 0, 0, 0, 0, NULL, \
      "weights hold the gates in PyTorch's order" }, \
    { "clip", FAC_A_REAL, FAC_CELL_AT(clip), 0, 0, 0, 0, NULL, "limit of what enters a gate" }, \
    { "activations", FAC_A_TEXT, FAC_CELL_AT(activations), 0, 0, 0, 0, NULL, \
      "for each direction, \"Tanh LeakyRelu:0.1\"" }
/* clang-format on */

fac_cell_step fac_lstm_step; /* lstm.c */

/* ---- recurrent.c ---- */
void fac_cell_expand(const fac_node *n, const fac_cell_kind *kind, fac_cell_step *step,
                     fac_value *out[]);
fac_value *fac_cell_times(const fac_cell *cell, fac_value *h); /* h r^T */
/* v [..., G H] cut into its gates. */
void fac_cell_split(const fac_cell *cell, fac_value *v, int axis, fac_value *gate[]);
#endif
