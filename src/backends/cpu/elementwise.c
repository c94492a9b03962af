/* Solver "fused": one elementwise node, or a `fused` node of several, in one pass over memory.
 *
 * All operands are walked in the order of the output's elements.  The innermost dims whose product is worth it are the span,
 * cut into blocks of some thousand elements that stay in L1; an operand that is contiguous along the span is used where it
 * lies, any other is gathered block by block.  What repeats along the outer dims, a scalar or a row, is gathered once for
 * as long as it is the same.
 *
 * Layouts: plain with any strides, or all operands of full shape blocked alike: then the channels of one block are the
 * innermost dim, a per-channel operand repeats every block, and the lanes behind the last channel compute garbage.
 * Exact as the reference but for the order of rounding in f32: the loops compute f32 in f32. */
#include <string.h>
#include "backends/cpu/chain.h"
#include "backends/cpu/copy.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/ranges.h"
#include "backends/cpu/solvers.h"
#include "backends/cpu/streams.h"
#include "base/error.h"
#include "base/memory.h"

enum { WALK_DIMS = FAC_DIMS + 1, L1_BYTES = 24 << 10, MOST_BLOCK = 4096, SPAN = 512,
       SERIAL = 16 << 10, SHARES = 8 };

/* How the elements of one source or output are reached from the common dims. */
typedef struct walk {
    int64_t stride[WALK_DIMS], offset;      /* elements */
    size_t  size;                           /* bytes of an element */
    bool    direct;                         /* contiguous along the span, and of the type that is wanted */
    bool    contiguous;
    bool    held;                           /* repeats along the span: gathered again only when its place changes */
    size_t  work;                           /* from here in the scratch lies a blocked copy instead of the operand */
    int     copy;                           /* which of plan.copies makes it; -1: none */
} walk;

typedef struct plan {
    fac_chain chain;
    int       n, outer;                     /* dims; those before the span */
    int64_t   d[WALK_DIMS], span, block, units;
    walk      source[FAC_CHAIN_SOURCES], out[FAC_CHAIN_OUTS];
    int       copies;
    struct { int input; size_t at; fac_copy copy; } *copy;
    size_t    copied, share;                /* bytes of scratch: of the copies, of one thread */
    const fac_streams *streams;
} plan;

/* ---- layouts ---- */

typedef struct frame { int axis, block; } frame;    /* axis of the output; block 0: plain */

static int64_t bytes_of(const fac_operand *o) {
    return fac_dims_count(&o->type.dims) * fac_dtype_get(o->type.dtype)->block_bytes;
}

/* The axis of the output that a blocked operand is blocked along. */
static int out_axis(const fac_operand *o, const fac_dims *out) { return o->layout.axis + out->n - o->type.dims.n; }

/* Chooses how all operands shall lie; false when that cannot be. */
static bool settle(fac_problem *p, frame *f) {
    const fac_dims *dims = &p->out[0].type.dims;
    int64_t plain = 0, blocked = 0;
    *f = (frame){ 0, 0 };
    bool fixed = false;
    for (int k = 0; k < p->nout && !fixed; k++) {
        const fac_layout *l = &p->out[k].layout;
        fixed = l->block > 0 || !fac_layout_is_plain(l, dims);
        if (fixed && l->block > 0) *f = (frame){ l->axis, l->block };
    }
    for (int i = 0; i < p->nin && !fixed; i++) {
        const fac_operand *o = &p->in[i];
        if (!fac_dims_equal(&o->type.dims, dims)) continue;
        if (o->layout.block == 0) plain += bytes_of(o);
        else {
            blocked += bytes_of(o);
            if (!f->block) *f = (frame){ out_axis(o, dims), o->layout.block };
        }
    }
    if (!fixed && blocked < plain) f->block = 0;
    for (int i = 0; i < p->nin; i++) {
        fac_operand *o = &p->in[i];
        bool full = fac_dims_equal(&o->type.dims, dims);
        bool alike = o->layout.block == f->block && out_axis(o, dims) == f->axis;
        if (o->layout.block > 0 && !alike) o->layout = f->block && full ? fac_layout_blocked(dims, f->axis, f->block, 0)
                                                                        : fac_layout_plain(&o->type.dims);
        if (f->block > 0 && o->layout.block == 0 && full) o->layout = fac_layout_blocked(dims, f->axis, f->block, 0);
    }
    for (int k = 0; k < p->nout; k++) {
        fac_layout *l = &p->out[k].layout;
        if (!fac_dims_equal(&p->out[k].type.dims, dims)) return false;
        if (fixed) {
            if (l->block != f->block || (f->block > 0 && l->axis != f->axis)) return false;
        } else *l = f->block ? fac_layout_blocked(dims, f->axis, f->block, dims->n >= 2 ? l->halo : 0) : fac_layout_plain(dims);
    }
    return true;
}

/* ---- planning ---- */

/* The common dims: those of the output, and the lanes of a block as the innermost one. */
static walk walk_of(const fac_operand *o, const fac_dims *out, frame f, const fac_layout *l) {
    walk w = { .offset = l->offset, .size = (size_t)fac_dtype_get(o->type.dtype)->block_bytes, .copy = -1 };
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

static void join_dims(plan *e) {
    const fac_chain *c = &e->chain;
    int m = 0;
    for (int k = 0; k < e->n; k++) {
        if (e->d[k] == 1) continue;
        bool joins = m > 0;
        for (int i = 0; i < c->sources && joins; i++) joins = e->source[i].stride[m - 1] == e->source[i].stride[k] * e->d[k];
        for (int i = 0; i < c->outs && joins; i++) joins = e->out[i].stride[m - 1] == e->out[i].stride[k] * e->d[k];
        if (!joins) m++;
        e->d[m - 1] = joins ? e->d[m - 1] * e->d[k] : e->d[k];
        for (int i = 0; i < c->sources; i++) e->source[i].stride[m - 1] = e->source[i].stride[k];
        for (int i = 0; i < c->outs; i++) e->out[i].stride[m - 1] = e->out[i].stride[k];
    }
    e->n = m;
}

static bool contiguous(const plan *e, const walk *w) {
    int64_t step = 1;
    for (int k = e->n - 1; k >= e->outer; k--) {
        if (w->stride[k] != step) return false;
        step *= e->d[k];
    }
    return true;
}

/* Every block of the span holds the same: a scalar, or rows of the innermost dim from their beginning. */
static bool repeats(const plan *e, const walk *w) {
    if (e->n == e->outer || e->block == 0) return false;
    for (int k = e->outer; k < e->n - 1; k++)
        if (w->stride[k] != 0) return false;
    return w->stride[e->n - 1] == 0 || (e->outer < e->n - 1 && e->block % e->d[e->n - 1] == 0);
}

static void cut(plan *e) {
    fac_chain *c = &e->chain;
    int64_t inner = e->n ? e->d[e->n - 1] : 1;
    e->span = 1;
    for (e->outer = e->n; e->outer > 0 && e->span < SPAN; e->outer--) e->span *= e->d[e->outer - 1];
    int64_t most = L1_BYTES / (int64_t)c->width / (c->slots + 1);
    most = most > MOST_BLOCK ? MOST_BLOCK : most < 128 ? 128 : most;
    if (inner <= most && e->span > most) most = most / inner * inner;   /* whole rows, so that a held row stays the same */
    e->block = e->span < most ? e->span : most;
    e->units = e->block > 0 ? (e->span + e->block - 1) / e->block : 0;
    for (int k = 0; k < e->outer; k++) e->units *= e->d[k];
    for (int i = 0; i < c->sources; i++) {
        walk *w = &e->source[i];
        w->contiguous = contiguous(e, w);
        w->direct = w->contiguous && c->source[i].dtype == c->source[i].as && !c->source[i].copy;
        w->held = repeats(e, w);
    }
    for (int i = 0; i < c->outs; i++) {
        e->out[i].contiguous = contiguous(e, &e->out[i]);
        e->out[i].direct = e->out[i].contiguous && c->out[i].as == c->out[i].dtype;
    }
}

/* Bytes of one slot; and of a thread: all slots, a raw block for conversions, a gathered block. */
static size_t slot_bytes(const plan *e) { return ((size_t)e->block * e->chain.width + 63) / 64 * 64; }
static size_t share_bytes(const plan *e) { return slot_bytes(e) * (size_t)e->chain.slots + 2 * (((size_t)e->block * 8 + 63) / 64 * 64); }

/* A plain operand along a blocked axis whose last block is not full is blocked first: its lanes are read past the end. */
static bool needs_copy(const fac_operand *o, const fac_dims *out, frame f) {
    int j = f.axis - (out->n - o->type.dims.n);
    return f.block > 0 && o->layout.block == 0 && j >= 0 && o->type.dims.d[j] != 1 && o->type.dims.d[j] % f.block != 0;
}

static bool build(const fac_problem *p, frame f, int isa, plan *e) {
    fac_chain *c = &e->chain;
    const fac_dims *dims = &p->out[0].type.dims;
    fac_layout layout[FAC_CHAIN_SOURCES];
    if (!fac_chain_build(p, isa, c)) return false;
    e->n = dims->n;
    memcpy(e->d, dims->d, sizeof dims->d);
    if (f.block > 0) e->d[f.axis] = (e->d[f.axis] + f.block - 1) / f.block, e->d[e->n++] = f.block;

    for (int i = 0; i < p->nin; i++) {
        layout[i] = p->in[i].layout;
        if (needs_copy(&p->in[i], dims, f)) layout[i] = fac_layout_blocked(&p->in[i].type.dims, f.axis - (dims->n - p->in[i].type.dims.n), f.block, 0);
    }
    for (int i = 0; i < c->sources; i++) {
        int k = c->source[i].input;
        if (k < 0) e->source[i] = (walk){ .size = (size_t)fac_dtype_get(c->source[i].dtype)->block_bytes, .copy = -1 };
        else e->source[i] = walk_of(&p->in[k], dims, f, &layout[k]);
    }
    for (int i = 0; i < c->outs; i++) e->out[i] = walk_of(&p->out[i], dims, f, &p->out[i].layout);

    /* The copies that the scratch holds, shared by all sources of one input. */
    e->copies = 0, e->copied = 0;
    for (int i = 0; i < p->nin; i++) {
        if (!needs_copy(&p->in[i], dims, f)) continue;
        size_t bytes = fac_layout_bytes(&layout[i], &p->in[i].type), size = fac_copy_size(p->in[i].type.dtype);
        for (int s = 0; s < c->sources; s++)
            if (c->source[s].input == i) e->source[s].work = e->copied, e->source[s].copy = e->copies;
        if (e->copy) {
            e->copy[e->copies].input = i, e->copy[e->copies].at = e->copied;
            fac_copy_plan(&e->copy[e->copies].copy, &p->in[i].type.dims, &p->in[i].layout, &layout[i], size);
        }
        e->copies++, e->copied += (bytes + 63) / 64 * 64;
    }
    join_dims(e);
    cut(e);
    e->share = share_bytes(e);
    return true;
}

/* ---- running ---- */

typedef struct job {
    const plan *e;
    const fac_span *in, *out;
    char *work;
} job;

typedef uint16_t u16 __attribute__((may_alias));
typedef uint32_t u32 __attribute__((may_alias));
typedef uint64_t u64 __attribute__((may_alias));

static void copy_run(size_t size, char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n) {
    if (to_step == 1 && from_step == 1) memcpy(to, from, (size_t)n * size);
    else if (size == 1) for (int64_t i = 0; i < n; i++) to[i * to_step] = from[i * from_step];
    else if (size == 2) for (int64_t i = 0; i < n; i++) ((u16 *)to)[i * to_step] = ((const u16 *)from)[i * from_step];
    else if (size == 4) for (int64_t i = 0; i < n; i++) ((u32 *)to)[i * to_step] = ((const u32 *)from)[i * from_step];
    else for (int64_t i = 0; i < n; i++) ((u64 *)to)[i * to_step] = ((const u64 *)from)[i * from_step];
}

/* n elements from number `at` of the span on, between an operand whose span begins at base and a flat buffer. */
static void move(const plan *e, const walk *w, char *base, int64_t at, int64_t n, char *flat, bool store) {
    int64_t i[WALK_DIMS];
    int last = e->n - 1;
    for (int k = last; k >= e->outer; k--) {
        i[k] = at % e->d[k], at /= e->d[k];
        base += i[k] * w->stride[k] * (int64_t)w->size;
    }
    while (n > 0) {
        int64_t run = e->d[last] - i[last] < n ? e->d[last] - i[last] : n;
        if (store) copy_run(w->size, base, w->stride[last], flat, 1, run);
        else copy_run(w->size, flat, 1, base, w->stride[last], run);
        flat += run * (int64_t)w->size, n -= run;
        base -= i[last] * w->stride[last] * (int64_t)w->size, i[last] = 0;
        for (int k = last - 1; k >= e->outer; k--) {
            base += w->stride[k] * (int64_t)w->size;
            if (++i[k] < e->d[k]) break;
            base -= i[k] * w->stride[k] * (int64_t)w->size, i[k] = 0;
        }
    }
}

/* What one thread knows while it walks its blocks. */
typedef struct state {
    char       *slot[FAC_CHAIN_SOURCES + FAC_CHAIN_STEPS], *scratch, *raw, *via;
    const char *held[FAC_CHAIN_SOURCES];    /* the place that a held source was gathered from */
    int64_t     held_n[FAC_CHAIN_SOURCES];
} state;

static void load(const plan *e, state *s, int i, char *base, int64_t at, int64_t n) {
    const fac_chain_source *c = &e->chain.source[i];
    const walk *w = &e->source[i];
    if (w->direct) {
        s->slot[i] = base + at * (int64_t)w->size;
        return;
    }
    if (w->held && s->held[i] == base && s->held_n[i] >= n) return;
    s->held[i] = base, s->held_n[i] = n;
    if (w->contiguous) {
        fac_streams_convert(e->streams, c->as, s->slot[i], c->dtype, base + at * (int64_t)w->size, n);
        return;
    }
    bool same = c->as == c->dtype;
    move(e, w, base, at, n, same ? s->slot[i] : s->raw, false);
    if (!same) fac_streams_convert(e->streams, c->as, s->slot[i], c->dtype, s->raw, n);
}

static void compute(const plan *e, state *s, char *last, int64_t n) {
    for (int i = 0; i < e->chain.steps; i++) {
        const fac_chain_step *t = &e->chain.step[i];
        const void *in[FAC_CHAIN_ARGS];
        for (int k = 0; k < t->nin; k++) in[k] = s->slot[t->in[k]];
        if (last && i == e->chain.steps - 1) s->slot[t->out] = last;
        char *to = s->slot[t->out];
        if (t->loop) {
            t->loop((size_t)n, in, t->params, to);
        } else if (t->via == t->as) {
            fac_streams_convert(e->streams, t->as, to, t->from, in[0], n);
        } else {
            fac_streams_convert(e->streams, t->via, s->via, t->from, in[0], n);
            fac_streams_convert(e->streams, t->as, to, t->via, s->via, n);
        }
    }
}

static void store(const plan *e, state *s, int k, char *base, int64_t at, int64_t n) {
    const fac_chain *c = &e->chain;
    const walk *w = &e->out[k];
    const char *from = s->slot[c->out[k].slot];
    if (w->contiguous) {
        char *to = base + at * (int64_t)w->size;
        if (to != from) fac_streams_convert(e->streams, c->out[k].dtype, to, c->out[k].as, from, n);
        return;
    }
    fac_streams_convert(e->streams, c->out[k].dtype, s->raw, c->out[k].as, from, n);
    move(e, w, base, at, n, s->raw, true);
}

/* The output that the last step may write itself; its inputs may lie there too, and nothing reads them later. */
static int direct_out(const plan *e) {
    const fac_chain *c = &e->chain;
    for (int k = 0; k < c->outs && c->steps; k++)
        if (e->out[k].direct && c->out[k].slot == c->step[c->steps - 1].out) return k;
    return -1;
}

static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    const plan *e = j->e;
    const fac_chain *c = &e->chain;
    state s = { .scratch = j->work + e->copied + (size_t)thread * e->share };
    size_t slot = slot_bytes(e);
    s.raw = s.scratch + slot * (size_t)c->slots;
    s.via = s.raw + ((size_t)e->block * 8 + 63) / 64 * 64;
    int direct = direct_out(e);
    int64_t cuts = (e->span + e->block - 1) / e->block;
    for (int i = 0; i < c->slots; i++) s.slot[i] = s.scratch + slot * (size_t)i;

    char *source[FAC_CHAIN_SOURCES], *out[FAC_CHAIN_OUTS];
    for (int i = 0; i < c->sources; i++) {
        int k = c->source[i].input;
        const walk *w = &e->source[i];
        source[i] = k < 0 ? (char *)(uintptr_t)&c->source[i].constant : w->copy >= 0 ? j->work + w->work : (char *)j->in[k].memory + j->in[k].at;
        source[i] += w->offset * (int64_t)w->size;
    }
    for (int k = 0; k < c->outs; k++) out[k] = (char *)j->out[k].memory + j->out[k].at + e->out[k].offset * (int64_t)e->out[k].size;

    for (int64_t u = first; u < last; u++) {
        int64_t at = u % cuts * e->block, rest = u / cuts, n = e->span - at < e->block ? e->span - at : e->block, index[WALK_DIMS];
        for (int k = e->outer - 1; k >= 0; k--) index[k] = rest % e->d[k], rest /= e->d[k];
        for (int i = 0; i < c->sources; i++) {
            char *base = source[i];
            for (int k = 0; k < e->outer; k++) base += index[k] * e->source[i].stride[k] * (int64_t)e->source[i].size;
            load(e, &s, i, base, at, n);
        }
        char *base[FAC_CHAIN_OUTS] = { NULL };
        for (int i = 0; i < c->outs; i++) {
            base[i] = out[i];
            for (int k = 0; k < e->outer; k++) base[i] += index[k] * e->out[i].stride[k] * (int64_t)e->out[i].size;
        }
        compute(e, &s, direct < 0 ? NULL : base[direct] + at * (int64_t)e->out[direct].size, n);
        for (int i = 0; i < c->outs; i++) store(e, &s, i, base[i], at, n);
        if (direct >= 0) s.slot[c->out[direct].slot] = s.scratch + slot * (size_t)c->out[direct].slot;
    }
}

/* ---- the solver ---- */

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *cpu = fac_cpu_of(d);
    frame f;
    plan e = { .copies = 0 };
    for (int i = 0; i < p->nin; i++)
        if (fac_copy_size(p->in[i].type.dtype) == 0) return false;
    for (int k = 0; k < p->nout; k++)
        if (fac_copy_size(p->out[k].type.dtype) == 0) return false;
    if (p->nout < 1 || (p->node->nports != p->nin && !p->node->body[0]) || !settle(p, &f) || !build(p, f, cpu->simd->isa, &e)) return false;
    double bytes = 0, count = (double)fac_dims_count(&p->out[0].type.dims);
    for (int i = 0; i < p->nin; i++) bytes += (double)bytes_of(&p->in[i]);
    for (int k = 0; k < p->nout; k++) bytes += (double)bytes_of(&p->out[k]);
    o->work = e.copied + e.share * (size_t)cpu->pool.threads;
    o->seconds = 1e-6 + bytes / cpu->bandwidth + count * e.chain.steps * (double)e.chain.width / (32e9 * cpu->pool.threads);
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    const fac_cpu *cpu = fac_cpu_of(d);
    plan *e = fac_alloc(1, sizeof *e);
    frame f = { p->out[0].layout.axis, p->out[0].layout.block };
    if (!e) return fac_raise(err, FAC_E_NOMEM, "elementwise: no memory for a plan");
    e->copy = fac_alloc((size_t)p->nin + 1, sizeof *e->copy);
    if (!e->copy || !build(p, f, cpu->simd->isa, e)) {
        fac_status status = e->copy ? fac_raise(err, FAC_E_INTERNAL, "elementwise: %s is no chain any more", p->node->op->name)
                                    : fac_raise(err, FAC_E_NOMEM, "elementwise: no memory for a plan");
        fac_release(e->copy);
        fac_release(e);
        return status;
    }
    e->streams = cpu->simd->streams;
    *out = e;
    return FAC_OK;
}

static void done(fac_device *d, void *arg) {
    (void)d;
    plan *e = arg;
    if (e) fac_release(e->copy);
    fac_release(e);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out, fac_span work, fac_error *err) {
    (void)err;
    const plan *e = arg;
    const fac_pool *pool = &fac_cpu_of(d)->pool;
    if (e->units == 0) return FAC_OK;
    job j = { e, in, out, (char *)work.memory + work.at };
    for (int k = 0; k < e->copies; k++) {
        const fac_span *from = &in[e->copy[k].input];
        fac_copy_run(&e->copy[k].copy, pool, (char *)from->memory + from->at, j.work + e->copy[k].at);
    }
    fac_parallel_ranges(pool, e->units, e->units * e->block > SERIAL ? SHARES * pool->threads : 1, run_units, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_fused = { .name = "fused", .offer = offer, .make = make, .done = done, .run = run };
