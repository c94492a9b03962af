/* A recurrent layer unrolled: the input of all steps is projected by one product, the rest is a
 * chain of cells. */
#include "base/memory.h"
#include "ops/grad.h"
#include "ops/recurrent.h"

/* Gradients follow at most 256 operands, so long lists are cut and joined in two steps. */
enum { FEW = 128, MOST_STEPS = FEW * FEW };

/* By splits only: their gradient is one concatenation, that of a slice is a tensor of zeros as
 * large as x. */
static void cut(fac_value *x, int axis, int n, fac_value *out[]) {
    if (n <= FEW) {
        fac_split(x, axis, n, out);
        return;
    }
    fac_value *part[FEW];
    const int parts = (n + FEW - 1) / FEW, each = (n + parts - 1) / parts;
    fac_split(x, axis, parts, part);
    for (int k = 0; k < parts; k++)
        fac_split(part[k], axis, k < parts - 1 ? each : n - k * each, out + k * each);
}

static fac_value *join(fac_value *const x[], int n, int axis) {
    if (n == 1) return x[0];
    if (n <= FEW) return fac_concat(x, n, axis);
    fac_value *part[FEW];
    const int parts = (n + FEW - 1) / FEW;
    for (int k = 0; k < parts; k++)
        part[k] = fac_concat(x + k * FEW, n - k * FEW < FEW ? n - k * FEW : FEW, axis);
    return fac_concat(part, parts, axis);
}

void fac_cell_split(const fac_cell *cell, fac_value *v, int axis, fac_value *gate[]) {
    fac_split(v, axis, cell->gates, gate);
}

static fac_value *product(const fac_cell *cell, fac_value *x, fac_value *w, bool recurrent) {
    if (cell->kind->product) return cell->kind->product(cell, x, w, recurrent);
    return fac_linear(x, w, NULL);
}

fac_value *fac_cell_times(const fac_cell *cell, fac_value *h) {
    return product(cell, h, cell->r, true);
}

/* Part d of an operand with a dim for the directions; NULL stays. */
static fac_value *of_direction(fac_value *v, int axis, int d, int directions) {
    fac_value *part[2] = { v, NULL };
    if (!v) return NULL;
    if (directions > 1) fac_split(v, axis, directions, part);
    return fac_squeeze(part[d], fac_shape(axis));
}

/* The sequences that are still running at step t, [B, 1]. */
static fac_value *running(fac_value *lengths, int64_t t) {
    fac_value *now = fac_number(lengths->graph, lengths->type.dtype, (double)t);
    return fac_unsqueeze(fac_less(now, lengths), fac_shape(1));
}

static fac_value *or_zero(fac_value *v, const fac_value *like) {
    return v ? v : fac_number(like->graph, like->type.dtype, 0);
}

/* One direction.  y[t] [B, H] for each step; returns the last state. */
static fac_cell_state unroll(const fac_cell *cell, fac_cell_step *step, fac_value *const xw[],
                             int steps, bool backward, fac_value *lengths, fac_cell_state s,
                             fac_value *y[]) {
    for (int k = 0; k < steps; k++) {
        const int t = backward ? steps - 1 - k : k;
        const fac_cell_state old = s;
        step(cell, fac_squeeze(xw[t], fac_shape(0)), &s);
        y[t] = s.h;
        if (!lengths) continue;
        fac_value *on = running(lengths, t);
        y[t] = fac_where(on, s.h, or_zero(NULL, s.h));
        s.h = old.h ? fac_where(on, s.h, old.h) : y[t];
        if (s.c) s.c = fac_where(on, s.c, or_zero(old.c, s.c));
    }
    return s;
}

/* b is that of w and that of r, one after the other.  A gru that resets after the product scales
 * the second with it, so there it must stay apart. */
static fac_value *input_bias(fac_value *b, bool apart, fac_value **recurrent) {
    *recurrent = NULL;
    if (!b) return NULL;
    fac_value *of[2];
    fac_split(b, 0, 2, of);
    if (!apart) return fac_add(of[0], of[1]);
    *recurrent = of[1];
    return of[0];
}

typedef struct layer {
    const fac_node *n;
    const fac_recurrent_opts *o;
    const fac_cell_kind *kind;
    fac_cell_step *step;
    int steps, directions;
    fac_value *x; /* T,B,I */
} layer;

/* Direction d of the layer; its outputs have the dims of the op's with a 1 for the direction. */
static void run(const layer *l, int d, fac_value *y[], fac_cell_state *last) {
    const fac_recurrent_opts *o = l->o;
    fac_value *in[FAC_CELL_INPUTS] = { NULL };
    for (int k = 0; k < l->n->nin && k < FAC_CELL_INPUTS; k++) in[k] = l->n->in[k];
    for (int k = FAC_CELL_W; k < FAC_CELL_INPUTS; k++)
        if (k != FAC_CELL_LENGTHS)
            in[k] = of_direction(in[k], o->batch_first && (k == FAC_CELL_H0 || k == FAC_CELL_C0), d,
                                 l->directions);

    fac_cell cell = { .opts = o,
                      .kind = l->kind,
                      .node = l->n,
                      .direction = d,
                      .directions = l->directions,
                      .gates = l->kind->gates,
                      .hidden = l->n->out[0]->type.dims.d[3],
                      .r = in[FAC_CELL_R],
                      .peephole = in[FAC_CELL_P] };
    fac_cell_activations(o, l->kind, d, cell.act);
    const bool reset_last = l->kind->candidate && o->linear_before_reset;
    if (l->kind->candidate && !reset_last)
        fac_split_sizes(
            cell.r, 0,
            fac_ints(l->n->graph, fac_shape((cell.gates - 1) * cell.hidden, cell.hidden)),
            cell.r_part);
    fac_value *b = input_bias(in[FAC_CELL_B], reset_last, &cell.recurrent_bias);
    fac_value *xw = l->kind->product ? fac_grad_plus(product(&cell, l->x, in[FAC_CELL_W], false), b)
                                     : fac_linear(l->x, in[FAC_CELL_W], b);
    cut(xw, 0, l->steps, y); /* y[t] is xw of step t until the step is made */

    const bool backward = o->direction == FAC_REVERSE || d == 1;
    *last = unroll(&cell, l->step, y, l->steps, backward, in[FAC_CELL_LENGTHS],
                   (fac_cell_state){ in[FAC_CELL_H0], in[FAC_CELL_C0] }, y);
}

/* No steps: y is empty, and the state is what it was. */
static void nothing(const layer *l, fac_value *out[]) {
    const fac_node *n = l->n;
    for (int k = 0; k < n->nout; k++) {
        fac_value *first = k && n->nin > FAC_CELL_LENGTHS + k ? n->in[FAC_CELL_LENGTHS + k] : NULL;
        const fac_type *type = &n->out[k]->type;
        out[k] = first ? first : fac_full(fac_ints(n->graph, type->dims), type->dtype, 0);
    }
}

/* The outputs of both directions side by side: y, h, and c of an lstm. */
static void assemble(const layer *l, fac_value **y, const fac_cell_state last[2],
                     fac_value *out[]) {
    const bool first = l->o->batch_first;
    const fac_dims step = first ? fac_shape(1, 2) : fac_shape(0, 1), state = fac_shape(first);
    fac_value *ys[2], *h[2], *c[2];
    for (int d = 0; d < l->directions; d++) {
        fac_value **of = y + d * l->steps;
        for (int t = 0; t < l->steps; t++) of[t] = fac_unsqueeze(of[t], step);
        ys[d] = join(of, l->steps, first);
        h[d] = fac_unsqueeze(last[d].h, state);
        if (l->kind->cell_state) c[d] = fac_unsqueeze(last[d].c, state);
    }
    out[0] = join(ys, l->directions, first ? 2 : 1);
    out[1] = join(h, l->directions, first);
    if (l->kind->cell_state) out[2] = join(c, l->directions, first);
}

void fac_cell_expand(const fac_node *n, const fac_cell_kind *kind, fac_cell_step *step,
                     fac_value *out[]) {
    const fac_recurrent_opts *o = n->attrs;
    const int64_t steps = n->in[0]->type.dims.d[o->batch_first];
    layer l = { .n = n, .o = o, .kind = kind, .step = step, .directions = fac_cell_directions(o) };
    if (steps < 0 || steps > MOST_STEPS || n->out[0]->type.dims.d[3] < 0) {
        fac_value *bad = fac_fail_graph(n->graph, FAC_E_UNSUPPORTED,
                                        "%s is computed step by step: it needs a known number of "
                                        "steps, at most %d, and of features",
                                        n->op->name, MOST_STEPS);
        for (int k = 0; k < n->nout; k++) out[k] = bad;
        return;
    }
    if (!steps) {
        nothing(&l, out);
        return;
    }
    l.steps = (int)steps;
    l.x = o->batch_first ? fac_transpose(n->in[0], fac_shape(1, 0, 2)) : n->in[0];
    fac_value **y = fac_alloc((size_t)(l.directions * l.steps), sizeof *y);
    if (!y) {
        out[0] = fac_fail_graph(n->graph, FAC_E_NOMEM, "%s: no memory for %d steps", n->op->name,
                                l.steps);
        return;
    }
    fac_cell_state last[2] = { { NULL, NULL }, { NULL, NULL } };
    for (int d = 0; d < l.directions; d++) run(&l, d, y + d * l.steps, &last[d]);
    assemble(&l, y, last, out);
    fac_release(y);
}
