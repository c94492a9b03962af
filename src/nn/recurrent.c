/* Recurrent layers: stacks of the ops rnn, gru and lstm with PyTorch's parameters. */
#include <math.h>
#include <stdio.h>
#include "nn/nn_internal.h"

typedef enum cell { RNN, GRU, LSTM } cell;
static const int gates_of[] = { [RNN] = 1, [GRU] = 3, [LSTM] = 4 };

typedef struct stack {
    cell cell;
    int hidden, layers, directions;
    const fac_nn_recurrent_opts *o;
} stack;

/* One direction of one layer; its place is counted through all layers, as in h0. */
typedef struct strand {
    int layer, place;
    bool reverse;
} strand;

static fac_value *param(const fac_value *x, const stack *s, const strand *t, const char *what,
                        fac_dims dims) {
    char name[64];
    snprintf(name, sizeof name, "%s_l%d%s", what, t->layer, t->reverse ? "_reverse" : "");
    return fac_nn_param(x, name, dims, NULL, fac_init_within(1 / sqrt((double)s->hidden)));
}

/* Row `place` of h0 or c0, which the op wants as 1,N,H or N,1,H. */
static fac_value *first(const stack *s, fac_value *states, int place) {
    if (!states) return NULL;
    fac_value *one = fac_slice(states, 0, place, place + 1, 1);
    return s->o->batch_first ? fac_transpose(one, fac_shape(1, 0, 2)) : one;
}

/* x T,N,I -> y T,N,H; the last states, 1,N,H, go to h and c. */
static fac_value *run(fac_value *x, const stack *s, const strand *t, fac_value **h, fac_value **c) {
    static const fac_dims front = { .n = 1 };
    const fac_nn_recurrent_opts *o = s->o;
    const int64_t size = (int64_t)gates_of[s->cell] * s->hidden;
    fac_value *w =
        fac_unsqueeze(param(x, s, t, "weight_ih", fac_shape(size, x->type.dims.d[2])), front);
    fac_value *r = fac_unsqueeze(param(x, s, t, "weight_hh", fac_shape(size, s->hidden)), front),
              *b = NULL;
    if (!o->no_bias) {
        fac_value *both[] = { param(x, s, t, "bias_ih", fac_shape(size)),
                              param(x, s, t, "bias_hh", fac_shape(size)) };
        b = fac_unsqueeze(fac_concat(both, 2, 0), front);
    }
    const fac_recurrent_opts how = { .direction = t->reverse ? FAC_REVERSE : FAC_FORWARD,
                                     .batch_first = o->batch_first,
                                     .torch_gates = s->cell != RNN,
                                     .linear_before_reset = s->cell == GRU,
                                     .activations = s->cell == RNN && o->relu ? "Relu" : NULL };
    fac_value *h0 = first(s, o->h0, t->place), *c0 = first(s, o->c0, t->place);
    fac_value *y = s->cell == LSTM  ? fac_lstm(x, w, r, b, o->lengths, h0, c0, NULL, &how)
                   : s->cell == GRU ? fac_gru(x, w, r, b, o->lengths, h0, &how)
                                    : fac_rnn(x, w, r, b, o->lengths, h0, &how);
    const fac_dims back = fac_shape(1, 0, 2);
    *h = fac_value_other(y, 1);
    if (o->batch_first) *h = fac_transpose(*h, back);
    if (s->cell == LSTM)
        *c = o->batch_first ? fac_transpose(fac_value_other(y, 2), back) : fac_value_other(y, 2);
    return fac_squeeze(y, fac_shape(o->batch_first ? 2 : 1));
}

static fac_nn_recurrent all_layers(fac_value *x, const stack *s) {
    enum { MOST = 64 };
    fac_graph *g = x->graph;
    fac_value *h[2 * MOST], *c[2 * MOST], *y[2];
    fac_nn_recurrent bad = { g->poison, g->poison, g->poison };
    if (x->type.dims.n != 3 || x->type.dims.d[2] < 1 || s->hidden < 1 || s->layers < 1 ||
        s->layers > MOST) {
        fac_graph_raise(
            g, FAC_E_SHAPE,
            "%s: %d recurrent layers (at most %d) of %d features: x must have three dims, the "
            "last of known size; it has %d",
            g->scope, s->layers, MOST, s->hidden, x->type.dims.n);
        return bad;
    }
    for (int l = 0; l < s->layers; l++) {
        if (l) x = fac_nn_dropout(x, s->o->dropout);
        for (int d = 0; d < s->directions; d++) {
            const strand t = { l, l * s->directions + d, d == 1 };
            y[d] = run(x, s, &t, &h[t.place], &c[t.place]);
        }
        x = s->directions > 1 ? fac_concat(y, 2, 2) : y[0];
    }
    const int n = s->layers * s->directions;
    if (g->error.status) return bad;
    return (fac_nn_recurrent){ x, fac_concat(h, n, 0),
                               s->cell == LSTM ? fac_concat(c, n, 0) : NULL };
}

static fac_nn_recurrent build(fac_value *x, const char *name, cell kind, int hidden,
                              const fac_nn_recurrent_opts *opts) {
    static const fac_nn_recurrent_opts defaults;
    fac_graph *g = x->graph;
    if (g->error.status) return (fac_nn_recurrent){ g->poison, g->poison, g->poison };
    const fac_nn_recurrent_opts *o = opts ? opts : &defaults;
    const int layers = o->layers ? o->layers : 1;
    const stack s = { kind, hidden, layers, o->bidirectional ? 2 : 1, o };
    fac_graph_push(g, name);
    fac_nn_recurrent r = all_layers(x, &s);
    fac_graph_pop(g);
    return r;
}

fac_nn_recurrent fac_nn_rnn(fac_value *x, const char *name, int hidden,
                            const fac_nn_recurrent_opts *opts) {
    return build(x, name, RNN, hidden, opts);
}
fac_nn_recurrent fac_nn_gru(fac_value *x, const char *name, int hidden,
                            const fac_nn_recurrent_opts *opts) {
    return build(x, name, GRU, hidden, opts);
}
fac_nn_recurrent fac_nn_lstm(fac_value *x, const char *name, int hidden,
                             const fac_nn_recurrent_opts *opts) {
    return build(x, name, LSTM, hidden, opts);
}
