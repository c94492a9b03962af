/* Options, operands and activations of recurrent layers, see recurrent.h.  It has this name because
 * headers are gathered in the order of file names and the ops after it need the options. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "graph/graph_internal.h"
#include "ops/cost.h"
#include "ops/recurrent.h"
#include "ops/shape.h"

#if FAC_INTERFACE
typedef enum fac_direction { FAC_FORWARD, FAC_REVERSE, FAC_BIDIRECTIONAL } fac_direction;

/* Of fac_rnn, fac_gru, fac_lstm.  T steps, B sequences, I features, H hidden ones, G gates, D
 * directions (1, or 2):
 *   x T,B,I   w D,GH,I   r D,GH,H   b D,2GH or NULL: of w, of r   lengths B or NULL: steps of each
 *             sequence, any integers
 *   h0, c0 D,B,H or NULL: zeros   y T,D,B,H, zeros after a sequence's length   h, c D,B,H: after
 *       the last step
 * One dtype for all but lengths: f32 f64 f16 bf16.  T must be a number when the graph is run or
 * differentiated. */
typedef struct fac_recurrent_opts {
    int direction; /* fac_direction: REVERSE reads a sequence from its end; y stays in the order of
                      x */
    bool batch_first;         /* x B,T,I   h0, c0, h, c B,D,H   y B,T,D,H */
    bool torch_gates;         /* the gates in w, r and b are in PyTorch's order instead of ONNX's */
    bool input_forget;        /* lstm: forget gate = 1 - input gate */
    bool linear_before_reset; /* gru: the reset gate scales h R^T + b instead of h, as in PyTorch */
    double clip; /* > 0: sums of x w^T + h r^T + b and peepholes are limited to -clip..clip; as in
                    ONNX Runtime, the c that enters the last activation of an lstm is not */
    const char *activations; /* ONNX's names for each direction in turn, with numbers after colons:
                                "Sigmoid HardSigmoid:0.2:0.5"; NULL: the usual ones */
} fac_recurrent_opts;
#endif

const char *const fac_direction_names[] = { "forward", "reverse", "bidirectional", NULL };

int fac_cell_directions(const fac_recurrent_opts *o) {
    return o->direction == FAC_BIDIRECTIONAL ? 2 : 1;
}

/* ---- activations ---- */

enum {
    AFFINE,
    ELU,
    HARD_SIGMOID,
    LEAKY_RELU,
    RELU,
    SCALED_TANH,
    SIGMOID,
    SOFTPLUS,
    SOFTSIGN,
    TANH,
    THRESHOLDED_RELU
};
static const struct {
    const char *name;
    int numbers;
    double alpha, beta;
} activations[] = { [AFFINE] = { "Affine", 2, 1, 0 },
                    [ELU] = { "Elu", 1, 1, 0 },
                    [HARD_SIGMOID] = { "HardSigmoid", 2, 0.2, 0.5 },
                    [LEAKY_RELU] = { "LeakyRelu", 1, 0.01, 0 },
                    [RELU] = { "Relu", 0, 0, 0 },
                    [SCALED_TANH] = { "ScaledTanh", 2, 1, 1 },
                    [SIGMOID] = { "Sigmoid", 0, 0, 0 },
                    [SOFTPLUS] = { "Softplus", 0, 0, 0 },
                    [SOFTSIGN] = { "Softsign", 0, 0, 0 },
                    [TANH] = { "Tanh", 0, 0, 0 },
                    [THRESHOLDED_RELU] = { "ThresholdedRelu", 1, 1, 0 } };
enum { KINDS = sizeof activations / sizeof *activations };

const char *fac_activation_name(int kind, int *numbers) {
    *numbers = activations[kind].numbers;
    return activations[kind].name;
}

/* Names are compared without regard to case, as ONNX says. */
static int kind_of(const char *name, size_t length) {
    for (int k = 0; k < KINDS; k++)
        if (strlen(activations[k].name) == length &&
            !strncasecmp(activations[k].name, name, length))
            return k;
    return -1;
}

/* The word at *s, which moves after it.  false: it is no activation. */
static bool read_activation(const char **s, fac_activation *to) {
    const char *word = *s + strspn(*s, " "), *end = word + strcspn(word, " :");
    int kind = kind_of(word, (size_t)(end - word));
    if (kind < 0) return false;
    *to = (fac_activation){ kind, activations[kind].alpha, activations[kind].beta };
    for (int k = 0; *end == ':'; k++) {
        char *after;
        const double x = strtod(end + 1, &after);
        if (after == end + 1 || k >= activations[kind].numbers) return false;
        *(k ? &to->beta : &to->alpha) = x;
        end = after;
    }
    *s = end;
    return *end == ' ' || !*end;
}

/* All of a layer; how many there are, or -1. */
static int read_activations(const char *text, fac_activation *to, int max) {
    int n = 0;
    while (n < max && text[strspn(text, " ")])
        if (!read_activation(&text, &to[n++])) return -1;
    return text[strspn(text, " ")] ? max + 1 : n;
}

void fac_cell_activations(const fac_recurrent_opts *o, const fac_cell_kind *kind, int d,
                          fac_activation to[FAC_CELL_ACTIVATIONS]) {
    fac_activation all[2 * FAC_CELL_ACTIVATIONS] = { 0 };
    const bool given = o->activations && *o->activations;
    read_activations(given ? o->activations : kind->usual, all, 2 * FAC_CELL_ACTIVATIONS);
    for (int k = 0; k < kind->activations; k++)
        to[k] = all[(given ? d * kind->activations : 0) + k];
}

fac_value *fac_cell_activate(const fac_cell *cell, int k, fac_value *x) {
    const fac_activation *a = &cell->act[k];
    switch (a->kind) {
    case AFFINE:
        return fac_add(fac_mul(x, fac_number_as(x, a->alpha)), fac_number_as(x, a->beta));
    case ELU:
        return fac_elu(x, a->alpha);
    case HARD_SIGMOID:
        return fac_hard_sigmoid(x, a->alpha, a->beta);
    case LEAKY_RELU:
        return fac_leaky_relu(x, a->alpha);
    case RELU:
        return fac_relu(x);
    case SCALED_TANH:
        return fac_mul(fac_tanh(fac_mul(x, fac_number_as(x, a->beta))), fac_number_as(x, a->alpha));
    case SIGMOID:
        return fac_sigmoid(x);
    case SOFTPLUS:
        return fac_softplus(x);
    case SOFTSIGN:
        return fac_softsign(x);
    case THRESHOLDED_RELU:
        return fac_thresholded_relu(x, a->alpha);
    default:
        return fac_tanh(x);
    }
}

fac_value *fac_cell_gate(const fac_cell *cell, int k, fac_value *x) {
    const double limit = cell->opts->clip;
    return fac_cell_activate(
        cell, k, limit > 0 ? fac_clip(x, fac_number_as(x, -limit), fac_number_as(x, limit)) : x);
}

/* ---- operands ---- */

/* Operand k has these dims, or is absent. */
static bool has_dims(fac_node *n, int k, fac_dims want) {
    if (k >= n->nin || !n->in[k]) return true;
    const fac_dims *have = &n->in[k]->type.dims;
    bool good = have->n == want.n;
    for (int i = 0; good && i < want.n; i++) good = !fac_differ(have->d[i], want.d[i]);
    if (good) return true;
    fac_text text = { 0 };
    fac_type_print(n->graph, &(fac_type){ n->in[0]->type.dtype, want }, &text);
    fac_fail(n, FAC_E_SHAPE, "%s must be %s", n->op->in[k].name,
             text.failed || !text.s ? "of another shape" : text.s);
    fac_text_free(&text);
    return false;
}

static bool check_activations(fac_node *n, const fac_recurrent_opts *o, const fac_cell_kind *kind) {
    fac_activation all[2 * FAC_CELL_ACTIVATIONS + 1];
    const int want = kind->activations * fac_cell_directions(o);
    if (!o->activations || !*o->activations) return true;
    const int have = read_activations(o->activations, all, 2 * FAC_CELL_ACTIVATIONS);
    if (have == want) return true;
    if (have >= 0)
        return fac_fail(n, FAC_E_ARGUMENT, "\"%s\" names %d activations, not %d", o->activations,
                        have, want);
    return fac_fail(
        n, FAC_E_UNSUPPORTED,
        "activations \"%s\": there are Affine, Elu, HardSigmoid, LeakyRelu, Relu, ScaledTanh, "
        "Sigmoid, Softplus, Softsign, Tanh, ThresholdedRelu, with at most two numbers each",
        o->activations);
}

bool fac_cell_infer(fac_node *n, const fac_cell_kind *kind) {
    const fac_recurrent_opts *o = n->attrs;
    const fac_dims *x = &n->in[0]->type.dims, *w = &n->in[FAC_CELL_W]->type.dims,
                   *r = &n->in[FAC_CELL_R]->type.dims;
    if (x->n != 3 || w->n != 3 || r->n != 3)
        return fac_fail(n, FAC_E_SHAPE, "x, w and r must have three dims");
    for (int k = 1; k < n->nin && k < FAC_CELL_INPUTS; k++)
        if (n->in[k] && k != FAC_CELL_LENGTHS &&
            !(kind->product && (k == FAC_CELL_W || k == FAC_CELL_R)) &&
            n->in[k]->type.dtype != n->in[0]->type.dtype)
            return fac_fail(n, FAC_E_DTYPE, "all but lengths must have one dtype");
    const int directions = fac_cell_directions(o);
    const int64_t hidden = r->d[2];
    const int64_t gates =
        hidden < 0 || hidden > INT64_MAX / 8 ? fac_symbol(n->graph, NULL) : kind->gates * hidden;
    const int64_t steps = x->d[o->batch_first], batch = x->d[!o->batch_first];
    const fac_dims state = o->batch_first ? fac_shape(batch, directions, hidden)
                                          : fac_shape(directions, batch, hidden);
    if (!check_activations(n, o, kind) ||
        !has_dims(n, FAC_CELL_W, fac_shape(directions, gates, x->d[2])) ||
        !has_dims(n, FAC_CELL_R, fac_shape(directions, gates, hidden)) ||
        !has_dims(n, FAC_CELL_B, fac_shape(directions, gates < 0 ? gates : 2 * gates)) ||
        !has_dims(n, FAC_CELL_LENGTHS, fac_shape(batch)) || !has_dims(n, FAC_CELL_H0, state) ||
        !has_dims(n, FAC_CELL_C0, state) ||
        !has_dims(n, FAC_CELL_P, fac_shape(directions, hidden < 0 ? hidden : 3 * hidden)))
        return false;
    const fac_dtype dtype = n->in[0]->type.dtype;
    n->out[0]->type =
        (fac_type){ dtype, o->batch_first ? fac_shape(batch, steps, directions, hidden)
                                          : fac_shape(steps, directions, batch, hidden) };
    for (int k = 1; k < n->nout; k++) n->out[k]->type = (fac_type){ dtype, state };
    return true;
}

/* A product with w and one with r for each step and direction. */
void fac_cell_cost(const fac_node *n, fac_cost *to, const fac_cell_kind *kind) {
    const fac_dims *x = &n->in[0]->type.dims, *r = &n->in[FAC_CELL_R]->type.dims;
    fac_cost_bytes(n, to);
    const double elements = fac_cost_count(n->out[0]);
    to->macs = elements * kind->gates * (fac_cost_size(x->d[2]) + fac_cost_size(r->d[2]));
    to->other = elements * 6 * kind->gates;
}

/* ---- ONNX ---- */

/* ONNX lists names, and alphas and betas of those that take them, in the same order: one text of
 * them all. */
static bool activations_text(const fac_onnx_node *n, fac_graph *g, fac_text *to) {
    enum { MOST = 2 * FAC_CELL_ACTIVATIONS };
    const char *names[MOST];
    double alphas[MOST], betas[MOST];
    const int count = fac_onnx_texts(n, "activations", names, MOST);
    const int nalpha = fac_onnx_reals(n, "activation_alpha", alphas, MOST);
    const int nbeta = fac_onnx_reals(n, "activation_beta", betas, MOST);
    int alpha = 0, beta = 0;
    for (int k = 0; k < count; k++) {
        const int kind = kind_of(names[k], strlen(names[k])),
                  numbers = kind < 0 ? 0 : activations[kind].numbers;
        fac_text_print(to, "%s%s", k ? " " : "", names[k]);
        if (numbers > 0 && alpha < nalpha)
            fac_text_print(to, ":%.9g", alphas[alpha++]);
        else if (numbers > 1 && beta < nbeta)
            fac_text_print(to, ":%.9g", activations[kind].alpha);
        if (numbers > 1 && beta < nbeta) fac_text_print(to, ":%.9g", betas[beta++]);
    }
    if (to->failed) fac_fail_graph(g, FAC_E_NOMEM, "no memory for the activations of %s", n->type);
    return !g->error.status;
}

static bool choose_direction(const fac_onnx_node *n, fac_graph *g, int *to) {
    const char *text = fac_onnx_text(n, "direction", "forward");
    for (int k = 0; fac_direction_names[k]; k++)
        if (!strcasecmp(text, fac_direction_names[k])) {
            *to = k;
            return true;
        }
    fac_fail_graph(g, FAC_E_FORMAT,
                   "direction = \"%s\"; there are forward, reverse and bidirectional", text);
    return false;
}

void fac_cell_load(const fac_onnx_node *n, fac_graph *g, const fac_op *op, fac_value *const in[],
                   fac_value *out[]) {
    fac_text text = { 0 };
    fac_recurrent_opts o = { .clip = fac_onnx_real(n, "clip", 0),
                             .batch_first = fac_onnx_int(n, "layout", 0) != 0 };
    if (strcmp(n->type, "GRU") == 0)
        o.linear_before_reset = fac_onnx_int(n, "linear_before_reset", 0) != 0;
    if (strcmp(n->type, "LSTM") == 0) o.input_forget = fac_onnx_int(n, "input_forget", 0) != 0;
    const int64_t hidden = fac_onnx_int(n, "hidden_size", 0);
    out[0] = g->poison;
    if (choose_direction(n, g, &o.direction) && activations_text(n, g, &text)) {
        o.activations = text.n ? text.s : NULL;
        out[0] = fac_emit(op, &o, n->nin, in);
    }
    fac_text_free(&text);
    if (g->error.status) return;
    const fac_value *r = in[2];
    const int64_t have = r->guess == FAC_RANKLESS ? hidden : r->type.dims.d[r->type.dims.n - 1];
    if (hidden && fac_differ(hidden, have))
        fac_fail_graph(g, FAC_E_SHAPE, "%s: hidden_size is %lld, R has %lld", n->type,
                       (long long)hidden, (long long)have);
    for (int k = 1; k < n->nout; k++) out[k] = fac_value_other(out[0], k);
}
