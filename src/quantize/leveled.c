/* See leveled.h. */
#include <math.h>
#include <string.h>
#include "base/memory.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/single.h"
#include "quantize/leveled.h"

/* Through what only gradients see. */
static const fac_value *seen_through(const fac_value *v) {
    while (v->node &&
           (FAC_IS(v->node, surrogate) || FAC_IS(v->node, identity) || FAC_IS(v->node, stop)))
        v = v->node->in[0];
    return v;
}

/* ---- steps: round(clip(x / s, lowest, highest)) s ---- */

static int bits_of(double levels) {
    int bits = 1;
    while (bits <= FAC_BASIS_BITS && ldexp(1, bits) < levels) bits++;
    return bits;
}

static bool is_steps(const fac_node *n, fac_leveled *to) {
    double low, high;
    const fac_node *round = seen_through(n->in[0])->node;
    if (!round || !FAC_IS(round, round)) return false;
    const fac_node *clip = seen_through(round->in[0])->node;
    if (!clip || !FAC_IS(clip, clip) || !clip->in[1] || !clip->in[2]) return false;
    if (!fac_const_number(clip->in[1], &low) || !fac_const_number(clip->in[2], &high)) return false;
    const fac_node *parts = clip->in[0]->node;
    if (!parts || !FAC_IS(parts, div) || parts->in[1] != n->in[1]) return false;
    const double levels = high - low + 1;
    const fac_value *step = seen_through(n->in[1]);
    if (fac_dims_count(&step->type.dims) != 1 || levels < 2 || levels != floor(levels))
        return false;
    const int bits = bits_of(levels);
    if (bits > FAC_BASIS_BITS || ldexp(1, bits) != levels) return false;
    *to = (fac_leveled){ .kind = FAC_LEVELED_STEPS,
                         .x = parts->in[0],
                         .by = step,
                         .bits = bits,
                         .positive = low == 0,
                         .lowest = (int)low };
    return true;
}

/* ---- all of them ---- */

static bool is_basis(const fac_node *n, fac_leveled *to) {
    const bool packed = FAC_IS(n, unpack_basis);
    const fac_dims *basis = &n->in[1]->type.dims;
    *to = (fac_leveled){ .kind = packed ? FAC_LEVELED_PLANES : FAC_LEVELED_BASIS,
                         .x = n->in[0],
                         .by = n->in[1],
                         .bits = (int)basis->d[0],
                         .filters = basis->n > 1 ? basis->d[1] : 0 };
    if (packed) return true;
    to->axis = fac_attr_int(n, "axis", 0);
    to->positive = fac_attr_flag(n, "positive");
    return true;
}

bool fac_leveled_of(const fac_node *n, fac_leveled *to) {
    if (FAC_IS(n, quantize_basis) || FAC_IS(n, unpack_basis)) return is_basis(n, to);
    if (FAC_IS(n, mul)) return is_steps(n, to);
    if (!FAC_IS(n, binarize)) return false;
    *to = (fac_leveled){ .kind = FAC_LEVELED_SIGNS, .x = n->in[0], .bits = 1 };
    return true;
}

static void even_levels(const fac_leveled *l, double step, fac_basis *to) {
    *to = (fac_basis){ .bits = l->bits, .levels = 1 << l->bits, .positive = l->positive };
    for (int k = 0; k < to->levels; k++) to->level[k] = (l->lowest + k) * step;
    for (int k = 0; k + 1 < to->levels; k++) to->threshold[k] = (l->lowest + k + 0.5) * step;
}

void fac_leveled_levels(const fac_leveled *l, const double *by, int64_t c, bool single,
                        fac_basis *to) {
    const double one = 1;
    if (l->kind == FAC_LEVELED_STEPS)
        even_levels(l, by[0], to);
    else if (l->kind == FAC_LEVELED_SIGNS) {
        fac_basis_of(&one, 1, 1, false, single, to);
        to->threshold[0] = -ldexp(1, -1074); /* 0 is not below it: the sign of 0 is 1 */
    } else
        fac_basis_of(by + c, l->filters ? l->filters : 1, l->bits, l->positive, single, to);
}

bool *fac_leveled_live(const fac_graph *g) {
    bool *live = fac_alloc((size_t)g->ids + 1, sizeof *live);
    for (size_t i = 0; live && i < g->noutputs; i++) live[g->outputs[i].value->id] = true;
    for (const fac_node *n = live ? g->last : NULL; n; n = n->prev) {
        bool any = false;
        for (int k = 0; k < n->nout; k++) any |= live[n->out[k]->id];
        for (int i = 0; i < n->nin && any; i++)
            if (n->in[i] && !(i && FAC_IS(n, surrogate))) live[n->in[i]->id] = true;
    }
    return live;
}
