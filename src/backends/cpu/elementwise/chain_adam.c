/* Recognises the update of Adam (src/optim/adam.c) in a chain, whatever the order of its steps:
 *   m' = m + (g - m) weight   v' = v keep + g g fresh
 *   p' = p - rate (m' / (sqrt(v') inverse + epsilon))
 * each of which may stand in where(go, new, old).  It is the one chain that every training runs
 * over all that it has, three streams read and written, and step by step the first cache would be
 * slower than memory. */
#include <math.h>
#include "backends/cpu/elementwise/chain.h"
#include "facula/op.h"
#include "op_list.h"

enum { ADD, SUB, MUL, DIV, SQRT, WHERE, LOOPS };

typedef struct reader {
    const fac_chain *c;
    fac_loop *loop[LOOPS];
} reader;

/* The step that made a value by this loop, or NULL. */
static const fac_chain_step *made(const reader *r, int slot, int loop) {
    for (int i = 0; i < r->c->steps; i++)
        if (r->c->step[i].out == slot)
            return r->c->step[i].loop == r->loop[loop] && r->loop[loop] ? &r->c->step[i] : NULL;
    return NULL;
}

static bool is_source(const reader *r, int slot) { return slot < r->c->sources; }

/* old (1 - ...): add(m, mul(sub(g, m), weight)) */
static bool is_mean(const reader *r, int slot, fac_chain_adam *a) {
    const fac_chain_step *sum = made(r, slot, ADD), *part = sum ? made(r, sum->in[1], MUL) : NULL;
    const fac_chain_step *step = part ? made(r, part->in[0], SUB) : NULL;
    if (!step || step->in[1] != sum->in[0]) return false;
    a->m = sum->in[0];
    a->g = step->in[0];
    a->weight = part->in[1];
    return true;
}

/* add(mul(v, keep), mul(mul(g, g), fresh)) */
static bool is_square(const reader *r, int slot, fac_chain_adam *a) {
    const fac_chain_step *sum = made(r, slot, ADD), *old = sum ? made(r, sum->in[0], MUL) : NULL;
    const fac_chain_step *part = sum ? made(r, sum->in[1], MUL) : NULL,
                         *square = part ? made(r, part->in[0], MUL) : NULL;
    if (!old || !square || square->in[0] != a->g || square->in[1] != a->g) return false;
    a->v = old->in[0];
    a->keep = old->in[1];
    a->fresh = part->in[1];
    return true;
}

/* sub(p, mul(rate, div(m', add(mul(sqrt(v'), inverse), epsilon)))); *mean and *square are m' and
 * v'. */
static bool is_step(const reader *r, int slot, fac_chain_adam *a, int *mean, int *square) {
    const fac_chain_step *next = made(r, slot, SUB),
                         *change = next ? made(r, next->in[1], MUL) : NULL;
    const fac_chain_step *ratio = change ? made(r, change->in[1], DIV) : NULL,
                         *sum = ratio ? made(r, ratio->in[1], ADD) : NULL;
    const fac_chain_step *scale = sum ? made(r, sum->in[0], MUL) : NULL,
                         *root = scale ? made(r, scale->in[0], SQRT) : NULL;
    if (!root) return false;
    a->p = next->in[0];
    a->rate = change->in[0];
    a->inverse = scale->in[1];
    a->epsilon = sum->in[1];
    *mean = ratio->in[0];
    *square = root->in[0];
    return true;
}

bool fac_chain_is_adam(const fac_chain *c, int isa, fac_chain_adam *a) {
    static const fac_op *const ops[LOOPS] = { &fac_op_add, &fac_op_sub,  &fac_op_mul,
                                              &fac_op_div, &fac_op_sqrt, &fac_op_where };
    reader r = { .c = c };
    int next[3], old[3], go[3], mean = -1, square = -1;
    *a = (fac_chain_adam){ .out = { -1, -1, -1 } };
    if (c->outs != 3) return false;
    for (int k = 0; k < LOOPS; k++) r.loop[k] = ops[k]->map->f32[isa];
    for (int k = 0; k < 3; k++) {
        const fac_chain_step *choice = made(&r, c->out[k].slot, WHERE);
        go[k] = choice ? choice->in[0] : -1;
        old[k] = choice ? choice->in[2] : -1;
        next[k] = choice ? choice->in[1] : c->out[k].slot;
        if (c->out[k].as != FAC_F32 || c->out[k].dtype != FAC_F32 || go[k] != go[0]) return false;
        if (is_step(&r, next[k], a, &mean, &square)) a->out[0] = k;
    }
    if (a->out[0] < 0 || !is_mean(&r, mean, a) || !is_square(&r, square, a)) return false;
    for (int k = 0; k < 3; k++) {
        if (next[k] == mean) a->out[1] = k;
        if (next[k] == square) a->out[2] = k;
    }
    a->go = go[0];
    const int leaves[] = { a->p,    a->g,     a->m,    a->v,       a->weight,
                           a->keep, a->fresh, a->rate, a->inverse, a->epsilon };
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++)
        if (!is_source(&r, leaves[i])) return false;
    if (a->out[1] < 0 || a->out[2] < 0 || (a->go >= 0 && !is_source(&r, a->go))) return false;
    const int stays[] = { a->p, a->m, a->v };
    for (int k = 0; k < 3 && a->go >= 0; k++)
        if (old[a->out[k]] != stays[k]) return false;
    return true;
}
