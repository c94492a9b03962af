/* Paddings that repeat elements of x (reflect, edge, wrap), line by line: what the solvers of pad
 * and of its gradient have in common.  A line runs along the last padded axis; its elements are
 * what later axes hold.  Where each piece of a line of y comes from is computed piece by piece. */
#ifndef FACULA_CPU_PAD_LINES_H
#define FACULA_CPU_PAD_LINES_H
#include "graph/attr.h"
#include "ops/pad.h"
#include "backends/problem.h"
#include "facula/ops.h"

typedef struct fac_pad_lines {
    int mode, axis;                                     /* of a line: the last padded one */
    int64_t x[FAC_DIMS], y[FAC_DIMS], before[FAC_DIMS]; /* of the axes up to it           */
    int64_t unit;  /* elements that stand together: of the later axes */
    int64_t whole; /* turns of the axes before the first padded one   */
    int64_t lines; /* of y in such a turn                             */
} fac_pad_lines;

/* Elements of y beside each other that come from `from`, `from + step`, ... of the line of x. */
typedef struct fac_pad_piece {
    int64_t from, step, n;
} fac_pad_piece;

static inline int64_t fac_pad_turn(int64_t i, int64_t period) {
    const int64_t rest = i % period;
    return rest < 0 ? rest + period : rest;
}

/* The longest piece that begins at place i of y, counted from where x begins; there are `left`. */
static inline fac_pad_piece fac_pad_piece_at(int mode, int64_t i, int64_t left, int64_t size) {
    fac_pad_piece p = { 0, 0, left };
    if (i >= 0 && i < size) {
        p = (fac_pad_piece){ i, 1, size - i };
    } else if (mode == FAC_PAD_EDGE || size == 1) {
        if (i < 0)
            p.n = -i;
        else
            p.from = size - 1;
    } else if (mode == FAC_PAD_WRAP) {
        const int64_t at = fac_pad_turn(i, size);
        p = (fac_pad_piece){ at, 1, size - at };
    } else {
        const int64_t at = fac_pad_turn(i, 2 * size - 2);
        p = at < size - 1 ? (fac_pad_piece){ at, 1, size - 1 - at }
                          : (fac_pad_piece){ 2 * size - 2 - at, -1, 2 * size - 2 - at };
    }
    if (p.n > left) p.n = left;
    return p;
}

/* Of a problem with input `pads` and, where it has one, `axes`; x, y: dims without and with what is
 * added.  false: these are not known, or a constant is added. */
static inline bool fac_pad_lines_of(const fac_problem *p, int pads, int axes, const fac_dims *x,
                                    const fac_dims *y, fac_pad_lines *to) {
    const char *mode = fac_attr_choice(p->node, "mode");
    if (!mode || !strcmp(mode, "constant")) return false;
    *to =
        (fac_pad_lines){ .mode = *(const int *)p->node->attrs, .unit = 1, .whole = 1, .lines = 1 };
    if (!fac_known_pads(p, pads, axes, to->before)) return false;
    int first = 0;
    for (to->axis = x->n - 1; to->axis > 0; to->axis--) {
        if (to->before[to->axis] || x->d[to->axis] != y->d[to->axis]) break;
        to->unit *= x->d[to->axis];
    }
    while (first < to->axis && !to->before[first] && x->d[first] == y->d[first])
        to->whole *= x->d[first++];
    for (int k = 0; k <= to->axis; k++) {
        to->x[k] = x->d[k];
        to->y[k] = y->d[k];
    }
    for (int k = first; k < to->axis; k++) to->lines *= to->y[k];
    return x->n > 0;
}

/* The line of x that number `line` of y repeats. */
static inline int64_t fac_pad_line(const fac_pad_lines *p, int64_t line) {
    int64_t at = 0, step = 1;
    for (int k = p->axis - 1; k >= 0; step *= p->x[k], line /= p->y[k], k--) {
        const int64_t i = line % p->y[k] - p->before[k];
        at += step * (i >= 0 && i < p->x[k] ? i : fac_pad_from(p->mode, i, p->x[k]));
    }
    return at;
}
#endif
