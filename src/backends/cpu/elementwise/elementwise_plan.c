/* How the operands of an elementwise node lie, and the walk over them: see elementwise.h. */
#include <string.h>
#include "base/clamp.h"
#include "backends/cpu/elementwise/elementwise.h"

enum { L1_BYTES = 24 << 10, LEAST_BLOCK = 128, MOST_BLOCK = 16384, SPAN = 512 };

/* ---- layouts ---- */

static int64_t bytes_of(const fac_operand *o) {
    return fac_dims_count(&o->type.dims) * fac_dtype_get(o->type.dtype)->block_bytes;
}

/* The axis of the output that a blocked operand is blocked along. */
static int out_axis(const fac_operand *o, const fac_dims *out) {
    return o->layout.axis + out->n - o->type.dims.n;
}

/* Lanes of a block lie next to each other in a plain operand of full shape, as where channels are
 * last: blocks are read where they lie. */
static bool has_blocks(const fac_operand *o, const fac_dims *out, fac_frame f) {
    return f.block > 0 && o->layout.block == 0 && fac_dims_equal(&o->type.dims, out) &&
           o->layout.stride[f.axis] == 1 && out->d[f.axis] % f.block == 0;
}

/* The same, of images, and there is nothing else in it that lies next to each other. */
static bool channels_last(const fac_operand *o, const fac_dims *out, int lanes) {
    enum { CHANNELS = 1 };
    return lanes && out->n > 2 && o->type.dtype == FAC_F32 &&
           has_blocks(o, out, (fac_frame){ CHANNELS, lanes }) &&
           !fac_layout_is_plain(&o->layout, out);
}

bool fac_elementwise_settle(fac_problem *p, int lanes, fac_frame *f) {
    const fac_dims *dims = &p->out[0].type.dims;
    int64_t plain = 0, blocked = 0;
    *f = (fac_frame){ 0, 0 };
    bool fixed = false;
    for (int k = 0; k < p->nout && !fixed; k++) {
        const fac_layout *l = &p->out[k].layout;
        fixed = l->block > 0 || !fac_layout_is_plain(l, dims);
        if (fixed && l->block > 0) *f = (fac_frame){ l->axis, l->block };
    }
    for (int i = 0; i < p->nin && !fixed; i++) {
        const fac_operand *o = &p->in[i];
        if (!fac_dims_equal(&o->type.dims, dims)) continue;
        if (channels_last(o, dims, lanes)) {
            blocked += bytes_of(o);
            if (!f->block) *f = (fac_frame){ 1, lanes };
        } else if (o->layout.block == 0)
            plain += bytes_of(o);
        else {
            blocked += bytes_of(o);
            if (!f->block) *f = (fac_frame){ out_axis(o, dims), o->layout.block };
        }
    }
    if (!fixed && blocked < plain) f->block = 0;
    for (int i = 0; i < p->nin; i++) {
        fac_operand *o = &p->in[i];
        bool full = fac_dims_equal(&o->type.dims, dims);
        bool alike = o->layout.block == f->block && out_axis(o, dims) == f->axis;
        if (o->layout.block > 0 && !alike)
            o->layout = f->block && full ? fac_layout_blocked(dims, f->axis, f->block, 0)
                                         : fac_layout_plain(&o->type.dims);
        if (f->block > 0 && o->layout.block == 0 && full && !has_blocks(o, dims, *f))
            o->layout = fac_layout_blocked(dims, f->axis, f->block, 0);
    }
    for (int k = 0; k < p->nout; k++) {
        fac_layout *l = &p->out[k].layout;
        if (!fac_dims_equal(&p->out[k].type.dims, dims)) return false;
        if (fixed) {
            if (l->block != f->block || (f->block > 0 && l->axis != f->axis)) return false;
        } else if (f->block) {
            *l = fac_layout_blocked(dims, f->axis, f->block, dims->n >= 2 ? l->halo : 0);
        } else {
            *l = fac_layout_plain(dims);
        }
    }
    return true;
}

/* ---- planning ---- */

/* The common dims: those of the output, and the lanes of a block as the innermost one. */
static fac_walk walk_of(const fac_operand *o, const fac_dims *out, fac_frame f,
                        const fac_layout *l) {
    fac_walk w = { .offset = l->offset,
                   .size = (size_t)fac_dtype_get(o->type.dtype)->block_bytes,
                   .copy = -1 };
    for (int k = 0; k < out->n; k++) {
        int j = k - (out->n - o->type.dims.n);
        w.stride[k] = j >= 0 && o->type.dims.d[j] != 1 ? l->stride[j] : 0;
    }
    if (f.block > 0) {
        int64_t s = w.stride[f.axis];
        w.stride[out->n] = l->block > 0 ? (s != 0 || out->d[f.axis] == 1) : s;
        if (l->block == 0) w.stride[f.axis] = s * f.block;
    }
    return w;
}

static void join_dims(fac_elementwise *e) {
    const fac_chain *c = &e->chain;
    int m = 0;
    for (int k = 0; k < e->n; k++) {
        if (e->d[k] == 1) continue;
        bool joins = m > 0;
        for (int i = 0; i < c->sources && joins; i++)
            joins = e->source[i].stride[m - 1] == e->source[i].stride[k] * e->d[k];
        for (int i = 0; i < c->outs && joins; i++)
            joins = e->out[i].stride[m - 1] == e->out[i].stride[k] * e->d[k];
        if (!joins) m++;
        e->d[m - 1] = joins ? e->d[m - 1] * e->d[k] : e->d[k];
        for (int i = 0; i < c->sources; i++) e->source[i].stride[m - 1] = e->source[i].stride[k];
        for (int i = 0; i < c->outs; i++) e->out[i].stride[m - 1] = e->out[i].stride[k];
    }
    e->n = m;
}

static bool contiguous(const fac_elementwise *e, const fac_walk *w) {
    int64_t step = 1;
    for (int k = e->n - 1; k >= e->outer; k--) {
        if (w->stride[k] != step) return false;
        step *= e->d[k];
    }
    return true;
}

/* Every block of the span holds the same: a scalar, or rows of the innermost dim from their
 * beginning. */
static bool repeats(const fac_elementwise *e, const fac_walk *w) {
    if (e->n == e->outer || e->block == 0) return false;
    for (int k = e->outer; k < e->n - 1; k++)
        if (w->stride[k] != 0) return false;
    return w->stride[e->n - 1] == 0 || (e->outer < e->n - 1 && e->block % e->d[e->n - 1] == 0);
}

/* The row of a walk: as many dims as lie next to each other, or the innermost one. */
static void set_row(const fac_elementwise *e, fac_walk *w) {
    w->dims = e->n;
    w->run = 1;
    w->step = 1;
    while (w->dims > e->outer && w->stride[w->dims - 1] == w->run) w->run *= e->d[--w->dims];
    if (w->dims < e->n || e->n == e->outer) return;
    w->dims--;
    w->run = e->d[w->dims];
    w->step = w->stride[w->dims];
}

static void cut(fac_elementwise *e) {
    fac_chain *c = &e->chain;
    int64_t inner = e->n ? e->d[e->n - 1] : 1;
    e->span = 1;
    for (e->outer = e->n; e->outer > 0 && e->span < SPAN; e->outer--) e->span *= e->d[e->outer - 1];
    int64_t most = L1_BYTES / (int64_t)c->width / (c->slots + 1);
    most = fac_clamp(most, LEAST_BLOCK, MOST_BLOCK);
    if (inner <= most && e->span > most)
        most = most / inner * inner; /* whole rows, so that a held row stays the same */
    e->block = e->span < most ? e->span : most;
    e->units = e->block > 0 ? (e->span + e->block - 1) / e->block : 0;
    for (int k = 0; k < e->outer; k++) e->units *= e->d[k];
    for (int i = 0; i < c->sources; i++) {
        fac_walk *w = &e->source[i];
        set_row(e, w);
        w->contiguous = contiguous(e, w);
        w->direct = w->contiguous && c->source[i].dtype == c->source[i].as && !c->source[i].copy;
        w->held = repeats(e, w);
    }
    for (int i = 0; i < c->outs; i++) {
        set_row(e, &e->out[i]);
        e->out[i].contiguous = contiguous(e, &e->out[i]);
        e->out[i].direct = e->out[i].contiguous && c->out[i].as == c->out[i].dtype;
    }
}

/* The operands of Adam lie where its kernel can take them, and its numbers are numbers. */
static bool adam_fits(const fac_elementwise *e) {
    const fac_chain_adam *a = &e->chain.adam;
    const int streams[] = { a->p, a->g, a->m, a->v };
    const int numbers[] = { a->weight, a->keep, a->fresh, a->rate, a->inverse, a->epsilon, a->go };
    bool fits = e->chain.is_adam;
    for (int i = 0; i < 4 && fits; i++) fits = e->source[streams[i]].direct;
    for (int k = 0; k < 3 && fits; k++) fits = e->out[k].direct;
    for (int i = 0; i < (a->go < 0 ? 6 : 7) && fits; i++) {
        fits = e->chain.source[numbers[i]].as == FAC_F32;
        for (int k = 0; k < e->n; k++) fits &= e->source[numbers[i]].stride[k] == 0;
    }
    return fits;
}

/* A plain operand along a blocked axis whose last block is not full is blocked first: its lanes are
 * read past the end. */
static bool needs_copy(const fac_operand *o, const fac_dims *out, fac_frame f) {
    int j = f.axis - (out->n - o->type.dims.n);
    return f.block > 0 && o->layout.block == 0 && j >= 0 && o->type.dims.d[j] != 1 &&
           o->type.dims.d[j] % f.block != 0;
}

/* How input i lies when the walk reads it. */
static fac_layout layout_of(const fac_problem *p, int i, fac_frame f) {
    const fac_dims *out = &p->out[0].type.dims, *d = &p->in[i].type.dims;
    if (!needs_copy(&p->in[i], out, f)) return p->in[i].layout;
    return fac_layout_blocked(d, f.axis - (out->n - d->n), f.block, 0);
}

/* Bytes of scratch for the copy of input i. */
static size_t copy_bytes(const fac_problem *p, int i, fac_frame f) {
    const fac_layout layout = layout_of(p, i, f);
    return (fac_layout_bytes(&layout, &p->in[i].type) + 63) / 64 * 64;
}

bool fac_elementwise_build(const fac_problem *p, fac_frame f, const fac_simd *simd,
                           fac_elementwise *e) {
    fac_chain *c = &e->chain;
    const fac_dims *dims = &p->out[0].type.dims;
    if (!fac_chain_build(p, simd, c)) return false;
    e->n = dims->n;
    memcpy(e->d, dims->d, sizeof dims->d);
    if (f.block > 0) {
        e->d[f.axis] = (e->d[f.axis] + f.block - 1) / f.block;
        e->d[e->n++] = f.block;
    }

    for (int i = 0; i < c->sources; i++) {
        const int k = c->source[i].input;
        if (k < 0) {
            e->source[i] =
                (fac_walk){ .size = (size_t)fac_dtype_get(c->source[i].dtype)->block_bytes,
                            .copy = -1 };
        } else {
            const fac_layout layout = layout_of(p, k, f);
            e->source[i] = walk_of(&p->in[k], dims, f, &layout);
        }
    }
    for (int i = 0; i < c->outs; i++) e->out[i] = walk_of(&p->out[i], dims, f, &p->out[i].layout);

    /* The copies that the scratch holds, shared by all sources of one input. */
    e->copies = 0;
    e->copied = 0;
    for (int i = 0; i < p->nin; i++) {
        if (!needs_copy(&p->in[i], dims, f)) continue;
        for (int s = 0; s < c->sources; s++) {
            if (c->source[s].input != i) continue;
            e->source[s].work = e->copied;
            e->source[s].copy = e->copies;
        }
        e->copied += copy_bytes(p, i, f);
        e->copies++;
    }
    join_dims(e);
    cut(e);
    e->adam = adam_fits(e);
    /* two for what is gathered and what is on the way of a conversion */
    e->share = fac_elementwise_slot(e) * (size_t)c->slots + 2 * fac_elementwise_raw(e);
    return true;
}

void fac_elementwise_copies(const fac_problem *p, fac_frame f, fac_elementwise *e) {
    size_t at = 0;
    int n = 0;
    for (int i = 0; i < p->nin; i++) {
        if (!needs_copy(&p->in[i], &p->out[0].type.dims, f)) continue;
        const fac_layout layout = layout_of(p, i, f);
        e->copy[n].input = i;
        e->copy[n].at = at;
        fac_copy_plan(&e->copy[n].copy, &p->in[i].type.dims, &p->in[i].layout, &layout,
                      fac_copy_size(p->in[i].type.dtype));
        at += copy_bytes(p, i, f);
        n++;
    }
}
