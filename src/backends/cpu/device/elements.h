/* What gather_elements and scatter_elements have in common: indices, one for each element, which
 * may be fewer along any dim than what they pick from.  Index number e stands for the element of x
 * at  place(e) stride + sum over loops of coordinate step. */
#ifndef FACULA_CPU_ELEMENTS_H
#define FACULA_CPU_ELEMENTS_H
#include "graph/attr.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/picks.h"

/* counted: the dim that indices count, along which x does not move on; each: indices from one
 * coordinate to the next. */
typedef struct fac_element_loop {
    int64_t count, step, each;
    bool counted;
} fac_element_loop;
typedef struct fac_elements {
    int n; /* at least 1, the last one is the row */
    fac_element_loop loop[FAC_DIMS];
    int64_t size, stride; /* of the dim of x that is counted     */
    int64_t count;        /* indices */
    int64_t at, bytes;    /* where they begin, how large one is  */
    fac_dtype dtype;
} fac_elements;

/* Asks for plain operands; false where one has another kind of element than a few bytes. */
static inline bool fac_elements_fit(fac_problem *p) {
    if (p->node->body[0] || !fac_layout_is_plain(&p->out[0].layout, &p->out[0].type.dims))
        return false;
    for (int i = 0; i < p->nin; i++) {
        if (!fac_copy_size(p->in[i].type.dtype)) return false;
        if (!fac_layout_is_plain(&p->in[i].layout, &p->in[i].type.dims))
            p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
    }
    return true;
}

/* Of the problem's x (input 0) and indices (input 1); dims that are walked as one are one loop. */
static inline bool fac_elements_of(const fac_problem *p, fac_elements *to) {
    const fac_dims *x = &p->in[0].type.dims, *d = &p->in[1].type.dims;
    int64_t axis, step = 1, each = 1;
    const int at = fac_attr_get_int(p->node, "axis", &axis) ? fac_axis(axis, x->n) : -1;
    if (at < 0 || fac_dims_count(x) < 0 || fac_dims_count(d) < 0) return false;
    *to = (fac_elements){ .size = x->d[at],
                          .count = fac_dims_count(d),
                          .dtype = p->in[1].type.dtype };
    to->bytes = (int64_t)fac_copy_size(to->dtype);
    to->at = p->in[1].layout.offset * to->bytes;
    fac_element_loop loops[FAC_DIMS];
    int n = 0; /* from the last one to the first */
    for (int k = x->n - 1; k >= 0; step *= x->d[k], each *= d->d[k], k--) {
        const bool counted = k == at;
        if (counted) to->stride = step;
        if (d->d[k] == 1) continue;
        if (n && !counted && !loops[n - 1].counted &&
            step == loops[n - 1].step * loops[n - 1].count)
            loops[n - 1].count *= d->d[k];
        else
            loops[n++] = (fac_element_loop){ d->d[k], counted ? 0 : step, each, counted };
    }
    if (!n) loops[n++] = (fac_element_loop){ 1, 0, 1, false };
    to->n = n;
    for (int k = 0; k < n; k++) to->loop[k] = loops[n - 1 - k];
    return true;
}

/* The loop to share out among so many: the first that is long enough, else the longest; -1: none
 * has two turns.  That of the counted dim counts too where `any`. */
static inline int fac_elements_split(const fac_elements *e, int64_t shares, bool any) {
    int best = -1;
    for (int k = 0; k < e->n; k++) {
        if (e->loop[k].count < 2 || (e->loop[k].counted && !any)) continue;
        if (e->loop[k].count >= shares) return k;
        if (best < 0 || e->loop[k].count > e->loop[best].count) best = k;
    }
    return best;
}

/* A row of n indices from number `first` on; x: where it begins, `step` from each to the next. */
typedef void fac_element_row(void *arg, int64_t first, int64_t x, int64_t n, int64_t step);

/* All rows in the order of the indices, of loop `split` the turns first .. last - 1 alone (-1: of
 * all loops all). */
static inline void fac_elements_walk(const fac_elements *e, int split, int64_t first, int64_t last,
                                     fac_element_row *row, void *arg) {
    int64_t turn[FAC_DIMS], from[FAC_DIMS], to[FAC_DIMS], index = 0, x = 0;
    const int inner = e->n - 1;
    for (int k = 0; k < e->n; k++) {
        turn[k] = from[k] = k == split ? first : 0;
        to[k] = k == split ? last : e->loop[k].count;
        index += from[k] * e->loop[k].each;
        x += from[k] * e->loop[k].step;
        if (from[k] >= to[k]) return;
    }
    for (;;) {
        row(arg, index, x, to[inner] - from[inner], e->loop[inner].step);
        int k = inner - 1;
        for (; k >= 0; k--) {
            index += e->loop[k].each;
            x += e->loop[k].step;
            if (++turn[k] < to[k]) break;
            index -= (to[k] - from[k]) * e->loop[k].each;
            x -= (to[k] - from[k]) * e->loop[k].step;
            turn[k] = from[k];
        }
        if (k < 0) return;
    }
}
#endif
