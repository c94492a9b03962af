/* Plain or channels last: a decision for the whole graph, where the device has a choice.
 *
 * A solver knows what it costs with the layouts that are there, not what its own layout costs the
 * next ones: a chain of pools and elementwise nodes that could lie either way takes what comes, and
 * a fast convolution after it pays for it.  So before any solver is chosen each node n gets two
 * variables, the form x of the images that it reads and y of the one that it makes, and
 *
 *     cost = sum over nodes of c(n, x, y)  +  a reorder for each value that is read in a form which
 *         it is not made in
 *
 * is made as small as it can be, exactly, by a minimum cut (min_cut.h); c is the least estimate of
 * all solvers for these forms. The answer is a wish for each value, and the price that its maker
 * has to beat to lay it otherwise. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "graph/attr.h"
#include "plan/schedule.h"
#include "backends/transfer.h"
#include "plan/min_cut.h"

enum { OPERANDS = 64, VIEWS = 64 };
static const double NEVER = 1e3; /* more than all else costs together */

typedef struct forms {
    fac_scheduler *s;
    fac_sides *sides;
    int *thing; /* by value id: y of the node that makes it; x of that node is the one before */
} forms;

static bool is_image(const fac_value *v) {
    const fac_dims *d = &v->type.dims;
    int64_t pixels = 1;
    for (int k = 2; k < d->n; k++) pixels *= d->d[k];
    return v->time == FAC_RUN && (d->n == 4 || d->n == 5) && d->d[1] > 1 && pixels > 1 &&
           d->d[0] > 0;
}

/* It may lie either way: made by a step. */
static bool has_choice(const fac_value *v) {
    return is_image(v) && v->leaf == FAC_NOT_LEAF && v->node;
}

static fac_layout layout_of(const fac_value *v, int form) {
    return form && has_choice(v) ? fac_layout_channels_last(&v->type.dims)
                                 : fac_layout_plain(&v->type.dims);
}

/* No data moves: what comes out lies in one of the two forms, or as a slice of it. */
static bool as_view(const fac_node *n, int x, double c[2]) {
    fac_layout in = layout_of(n->in[0], x), out[VIEWS];
    if (!n->op->view || n->body[0] || !n->nin || !n->in[0] || n->nout > VIEWS) return false;
    for (int k = 0; k < n->nout; k++) out[k] = fac_layout_plain(&n->out[k]->type.dims);
    if (!n->op->view(n, &in, out)) return false;
    const fac_dims *d = &n->out[0]->type.dims;
    if (fac_layout_is_plain(&out[0], d)) {
        c[0] = 0;
    } else if (is_image(n->out[0])) { /* a transpose may make the last dim channels */
        const fac_layout last = fac_layout_channels_last(d);
        c[fac_layout_equal(&out[0], &last, d) ? 1 : x] = 0;
    } else {
        c[x] = 0;
    }
    return true;
}

/* What node n costs when all images that it reads have form x, by the form of what it makes. */
static void costs(const forms *f, const fac_node *n, int x, double c[2]) {
    fac_operand o[OPERANDS];
    c[0] = c[1] = INFINITY;
    if (n->nin + n->nout > OPERANDS) {
        c[0] = x ? INFINITY : 0;
        return;
    }
    if (!f->s->plan->observed && as_view(n, x, c)) return;
    if (x && fac_joins_last(f->s, n)) {
        c[1] = 0;
        return;
    }
    fac_problem p = { .node = n,
                      .precision = f->s->plan->precision,
                      .nin = n->nin,
                      .nout = n->nout,
                      .in = o,
                      .out = o + n->nin };
    memset(o, 0, sizeof o);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i])
            o[i] = (fac_operand){ n->in[i]->type, layout_of(n->in[i], x), n->in[i]->time,
                                  n->in[i]->known };
    for (int k = 0; k < n->nout; k++)
        if (k == 0 || fac_reads_of(n->out[k]))
            p.out[k] = (fac_operand){ n->out[k]->type, layout_of(n->out[k], 0), FAC_RUN, NULL };
    fac_choose_forms(f->s->plan, &p, c);
}

/* A way that no solver goes is gone with a reorder on one side of another. */
static void complete(const fac_device *d, const fac_node *n, double c[2][2]) {
    double in = 0;
    const double out = has_choice(n->out[0]) ? fac_reorder_seconds(d, &n->out[0]->type) : NEVER;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && has_choice(n->in[i])) in += fac_reorder_seconds(d, &n->in[i]->type);
    for (int x = 0; x < 2; x++)
        for (int y = 0; y < 2; y++) c[x][y] = fmin(c[x][y], c[x][!y] + out);
    for (int y = 0; y < 2; y++) {
        const double plain = c[0][y], last = c[1][y];
        c[0][y] = fmin(fmin(plain, last + in), NEVER);
        c[1][y] = fmin(fmin(last, plain + in), NEVER);
    }
}

/* c(x, y) = c00 + (c10 - c00) x + (c11 - c10) y + (c01 + c10 - c00 - c11) (1 - x) y; a last factor
 * below zero, which a cut cannot say, counts as none. */
static void tell(const forms *f, int x, int y, double c[2][2]) {
    const double first = c[1][0] - c[0][0], second = c[1][1] - c[1][0],
                 apart = c[0][1] + c[1][0] - c[0][0] - c[1][1];
    fac_sides_alone(f->sides, x, fmax(0, -first), fmax(0, first));
    fac_sides_alone(f->sides, y, fmax(0, -second), fmax(0, second));
    fac_sides_apart(f->sides, x, y, fmax(0, apart), 0);
}

static void tell_node(const forms *f, const fac_node *n) {
    const int y = f->thing[n->out[0]->id], x = y - 1;
    double c[2][2];
    bool reads = false;
    for (int i = 0; i < n->nin; i++) reads |= n->in[i] && has_choice(n->in[i]);
    costs(f, n, 0, c[0]);
    if (reads)
        costs(f, n, 1, c[1]);
    else
        c[1][0] = c[1][1] = NEVER;
    complete(f->s->plan->device, n, c);
    tell(f, x, y, c);
    if (!reads) fac_sides_alone(f->sides, x, 0, NEVER);
    if (!has_choice(n->out[0])) fac_sides_alone(f->sides, y, 0, NEVER);
}

/* A value is brought to its other form once, however many read it so: thing `last` is on side 1
 * when one of its readers is, thing `plain` on side 0 when one is there. */
static void tell_readers(const forms *f, const fac_value *v, int last, int plain) {
    const int y = f->thing[v->id];
    const double seconds = fac_reorder_seconds(f->s->plan->device, &v->type);
    fac_sides_apart(f->sides, y, last, seconds, 0);
    fac_sides_apart(f->sides, plain, y, seconds, 0);
    for (const fac_use *u = v->uses; u; u = u->next) {
        const int to = u->node->out[0]->time == FAC_RUN ? f->thing[u->node->out[0]->id] : -1;
        if (to < 0) continue;
        fac_sides_apart(f->sides, last, to - 1, NEVER, 0);
        fac_sides_apart(f->sides, to - 1, plain, NEVER, 0);
    }
    if (v->roots) fac_sides_alone(f->sides, plain, 0, NEVER); /* results leave the plan plain */
}

static bool concerned(const fac_node *n) {
    bool images = false;
    for (int i = 0; i < n->nin; i++) images |= n->in[i] && has_choice(n->in[i]);
    return n->out[0]->time == FAC_RUN && (images || has_choice(n->out[0]));
}

static fac_status choose(forms *f, int things, fac_error *err) {
    const fac_graph *g = f->s->plan->graph;
    bool *side = fac_alloc((size_t)things + 1, sizeof *side);
    fac_status status =
        side ? fac_sides_choose(f->sides, side, err) : fac_raise_memory(err, "a plan");
    for (const fac_node *n = g->first; n && !status; n = n->next) {
        if (!concerned(n)) continue;
        const fac_value *v = n->out[0];
        if (has_choice(v))
            f->s->form[v->id] = side[f->thing[v->id]] ? FAC_FORM_LAST : FAC_FORM_PLAIN;
    }
    fac_release(side);
    return status;
}

fac_status fac_forms(fac_scheduler *s) {
    const fac_graph *g = s->plan->graph;
    fac_device *d = s->plan->device;
    if (!fac_chooses_forms(d)) return FAC_OK;
    int things = 0, images = 0;
    forms f = { .s = s, .thing = fac_alloc((size_t)g->ids + 1, sizeof *f.thing) };
    s->form = fac_alloc((size_t)g->ids + 1, sizeof *s->form);
    for (uint32_t i = 0; f.thing && i < g->ids; i++) f.thing[i] = -1;
    for (const fac_node *n = g->first; f.thing && n; n = n->next) {
        if (!concerned(n)) continue;
        f.thing[n->out[0]->id] = things + 1;
        things += 2;
        images += has_choice(n->out[0]);
    }
    f.sides = fac_sides_new(things + 2 * images);
    fac_status status = f.thing && s->form && f.sides ? FAC_OK : fac_raise_memory(s->err, "a plan");
    int next = things;
    for (const fac_node *n = g->first; n && !status && images; n = n->next) {
        if (!concerned(n)) continue;
        tell_node(&f, n);
        if (!has_choice(n->out[0])) continue;
        tell_readers(&f, n->out[0], next, next + 1);
        next += 2;
    }
    if (!status && images) status = choose(&f, things + 2 * images, s->err);
    fac_sides_free(f.sides);
    fac_release(f.thing);
    return status;
}
