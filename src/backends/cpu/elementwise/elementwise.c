/* Solver "fused": one elementwise node, or a `fused` node of several, in one pass over memory.
 *
 * Block by block each step of the chain runs over arrays in L1: see chain.h for the program,
 * elementwise.h for the walk. Layouts: plain with any strides, or all operands of full shape
 * blocked alike: then the channels of one block are the innermost dim, a per-channel operand
 * repeats every block, and the lanes after the last channel compute garbage. Exact as the
 * reference but for the order of rounding in f32: the loops compute f32 in f32. */
#include <string.h>
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "base/error.h"
#include "base/memory.h"

enum { SERIAL = 16 << 10, SHARES = 8 };

/* ---- running ---- */

typedef struct job {
    const fac_elementwise *e;
    const fac_span *in, *out;
    char *work;
} job;

typedef uint16_t u16 __attribute__((may_alias));
typedef uint32_t u32 __attribute__((may_alias));
typedef uint64_t u64 __attribute__((may_alias));

static void copy_run(const fac_streams *s, size_t size, char *to, int64_t to_step, const char *from,
                     int64_t from_step, int64_t n) {
    if (to_step == 1 && from_step == 1)
        memcpy(to, from, (size_t)n * size);
    else if (to_step == 1 && from_step == 0)
        s->integers->fill(size, to, from, n);
    else if (size == 1)
        for (int64_t i = 0; i < n; i++) to[i * to_step] = from[i * from_step];
    else if (size == 2)
        for (int64_t i = 0; i < n; i++)
            ((u16 *)to)[i * to_step] = ((const u16 *)from)[i * from_step];
    else if (size == 4)
        for (int64_t i = 0; i < n; i++)
            ((u32 *)to)[i * to_step] = ((const u32 *)from)[i * from_step];
    else
        for (int64_t i = 0; i < n; i++)
            ((u64 *)to)[i * to_step] = ((const u64 *)from)[i * from_step];
}

/* Rows of so many bytes that lie whole on both sides; the usual sizes are known when compiled. */
static void copy_rows(size_t bytes, char *to, int64_t to_step, const char *from, int64_t from_step,
                      int64_t rows) {
    if (bytes == 64)
        for (int64_t i = 0; i < rows; i++) memcpy(to + i * to_step, from + i * from_step, 64);
    else if (bytes == 32)
        for (int64_t i = 0; i < rows; i++) memcpy(to + i * to_step, from + i * from_step, 32);
    else
        for (int64_t i = 0; i < rows; i++) memcpy(to + i * to_step, from + i * from_step, bytes);
}

/* n elements from number `at` of the span on, between an operand whose span begins at base and a
 * flat buffer. */
static void move(const fac_elementwise *e, const fac_walk *w, char *base, int64_t at, int64_t n,
                 char *flat, bool store) {
    const int64_t size = (int64_t)w->size;
    const int last = w->dims - 1;
    int64_t i[FAC_WALK_DIMS], first = at % w->run;
    at /= w->run;
    for (int k = last; k >= e->outer; k--) {
        i[k] = at % e->d[k];
        at /= e->d[k];
        base += i[k] * w->stride[k] * size;
    }
    while (n > 0) {
        int64_t rows = 1, count = w->run - first < n ? w->run - first : n;
        if (w->step == 1 && count == w->run && last >= e->outer) {
            const int64_t step = w->stride[last] * size, row = count * size;
            rows = e->d[last] - i[last] < n / count ? e->d[last] - i[last] : n / count;
            if (store)
                copy_rows((size_t)row, base, step, flat, row, rows);
            else
                copy_rows((size_t)row, flat, row, base, step, rows);
        } else if (store)
            copy_run(e->streams, w->size, base + first * w->step * size, w->step, flat, 1, count);
        else
            copy_run(e->streams, w->size, flat, 1, base + first * w->step * size, w->step, count);
        flat += rows * count * size;
        n -= rows * count;
        first = 0;
        for (int k = last; k >= e->outer; k--, rows = 1) {
            base += rows * w->stride[k] * size;
            i[k] += rows;
            if (i[k] < e->d[k]) break;
            base -= e->d[k] * w->stride[k] * size;
            i[k] = 0;
        }
    }
}

/* What one thread knows while it walks its blocks. */
typedef struct state {
    char *slot[FAC_CHAIN_SOURCES + FAC_CHAIN_STEPS], *scratch, *raw, *via;
    const char *held[FAC_CHAIN_SOURCES]; /* the place that a held source was gathered from */
    int64_t held_n[FAC_CHAIN_SOURCES];
} state;

static void load(const fac_elementwise *e, state *s, int i, char *base, int64_t at, int64_t n) {
    const fac_chain_source *c = &e->chain.source[i];
    const fac_walk *w = &e->source[i];
    if (w->direct) {
        s->slot[i] = base + at * (int64_t)w->size;
        return;
    }
    if (w->held && s->held[i] == base && s->held_n[i] >= n) return;
    s->held[i] = base;
    s->held_n[i] = n;
    if (w->contiguous) {
        fac_streams_convert(e->streams, c->as, s->slot[i], c->dtype, base + at * (int64_t)w->size,
                            n);
        return;
    }
    bool same = c->as == c->dtype;
    move(e, w, base, at, n, same ? s->slot[i] : s->raw, false);
    if (!same) fac_streams_convert(e->streams, c->as, s->slot[i], c->dtype, s->raw, n);
}

static void compute(const fac_elementwise *e, state *s, char *last, int64_t n) {
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

/* n elements whose sources are loaded; out: where those of each output go. */
static void adam(const fac_elementwise *e, const state *s, char *const out[], int64_t n) {
    const fac_chain_adam *a = &e->chain.adam;
    const float *const in[3] = { (const float *)s->slot[a->p], (const float *)s->slot[a->m],
                                 (const float *)s->slot[a->v] };
    float *const to[3] = { (float *)out[a->out[0]], (float *)out[a->out[1]],
                           (float *)out[a->out[2]] };
    const fac_adam_numbers t = { .weight = *(const float *)s->slot[a->weight],
                                 .keep = *(const float *)s->slot[a->keep],
                                 .fresh = *(const float *)s->slot[a->fresh],
                                 .rate = *(const float *)s->slot[a->rate],
                                 .inverse = *(const float *)s->slot[a->inverse],
                                 .epsilon = *(const float *)s->slot[a->epsilon] };
    if (a->go < 0 || *(const float *)s->slot[a->go] != 0)
        e->streams->adam(&t, (const float *)s->slot[a->g], in, to, n);
    else
        for (int k = 0; k < 3; k++) memmove(to[k], in[k], (size_t)n * sizeof *to[k]);
}

static void store(const fac_elementwise *e, state *s, int k, bool past, char *base, int64_t at,
                  int64_t n) {
    const fac_chain *c = &e->chain;
    const fac_walk *w = &e->out[k];
    const char *from = s->slot[c->out[k].slot];
    if (past) {
        e->streams->put(base + at * (int64_t)w->size, from, (size_t)n * w->size);
        return;
    }
    if (w->contiguous) {
        char *to = base + at * (int64_t)w->size;
        if (to != from) fac_streams_convert(e->streams, c->out[k].dtype, to, c->out[k].as, from, n);
        return;
    }
    fac_streams_convert(e->streams, c->out[k].dtype, s->raw, c->out[k].as, from, n);
    move(e, w, base, at, n, s->raw, true);
}

/* The output that the last step may write itself; its inputs may lie there too, and nothing reads
 * them later. */
static int direct_out(const fac_elementwise *e, const bool *past) {
    const fac_chain *c = &e->chain;
    for (int k = 0; k < c->outs && c->steps; k++)
        if (e->out[k].direct && !past[k] && c->out[k].slot == c->step[c->steps - 1].out) return k;
    return -1;
}

/* Lines that an input brings into the caches are written there. */
static bool goes_past(const fac_elementwise *e, int k, const fac_span *in, const fac_span *out) {
    bool past = e->out[k].past;
    for (int i = 0; i < e->chain.sources && past; i++) {
        const int at = e->chain.source[i].input;
        past = at < 0 || in[at].memory != out[k].memory || in[at].at != out[k].at;
    }
    return past;
}

void fac_elementwise_run(const fac_elementwise *e, const fac_span *in, const fac_span *outs,
                         char *copied, char *scratch, int64_t first, int64_t last) {
    const fac_chain *c = &e->chain;
    state s = { .scratch = scratch };
    size_t slot = fac_elementwise_slot(e);
    s.raw = s.scratch + slot * (size_t)c->slots;
    s.via = s.raw + fac_elementwise_raw(e);
    bool past[FAC_CHAIN_OUTS], any = false;
    for (int k = 0; k < c->outs; k++) {
        past[k] = goes_past(e, k, in, outs);
        any |= past[k];
    }
    const int direct = direct_out(e, past);
    int64_t cuts = (e->span + e->block - 1) / e->block;
    for (int i = 0; i < c->slots; i++) s.slot[i] = s.scratch + slot * (size_t)i;

    char *source[FAC_CHAIN_SOURCES], *out[FAC_CHAIN_OUTS];
    for (int i = 0; i < c->sources; i++) {
        int k = c->source[i].input;
        const fac_walk *w = &e->source[i];
        if (k < 0)
            source[i] = (char *)(uintptr_t)&c->source[i].constant;
        else
            source[i] = w->copy >= 0 ? copied + w->work : fac_span_bytes(in[k]);
        source[i] += w->offset * (int64_t)w->size;
    }
    for (int k = 0; k < c->outs; k++)
        out[k] = fac_span_bytes(outs[k]) + e->out[k].offset * (int64_t)e->out[k].size;

    for (int64_t u = first; u < last; u++) {
        int64_t at = u % cuts * e->block, n = e->span - at < e->block ? e->span - at : e->block;
        int64_t rest = u / cuts, index[FAC_WALK_DIMS];
        for (int k = e->outer - 1; k >= 0; k--) {
            index[k] = rest % e->d[k];
            rest /= e->d[k];
        }
        for (int i = 0; i < c->sources; i++) {
            char *base = source[i];
            for (int k = 0; k < e->outer; k++)
                base += index[k] * e->source[i].stride[k] * (int64_t)e->source[i].size;
            load(e, &s, i, base, at,
                 e->adam && e->source[i].held ? 1 : n); /* one of each number will do */
        }
        char *base[FAC_CHAIN_OUTS] = { NULL };
        for (int i = 0; i < c->outs; i++) {
            base[i] = out[i];
            for (int k = 0; k < e->outer; k++)
                base[i] += index[k] * e->out[i].stride[k] * (int64_t)e->out[i].size;
        }
        if (e->adam) {
            for (int i = 0; i < c->outs; i++) base[i] += at * (int64_t)e->out[i].size;
            adam(e, &s, base, n);
            continue;
        }
        compute(e, &s, direct < 0 ? NULL : base[direct] + at * (int64_t)e->out[direct].size, n);
        for (int i = 0; i < c->outs; i++) store(e, &s, i, past[i], base[i], at, n);
        if (direct >= 0)
            s.slot[c->out[direct].slot] = s.scratch + slot * (size_t)c->out[direct].slot;
    }
    if (any) fac_streams_end();
}

static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    const job *j = arg;
    fac_elementwise_run(j->e, j->in, j->out, j->work,
                        j->work + j->e->copied + (size_t)thread * j->e->share, first, last);
}

/* ---- the solver ---- */

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_cpu *cpu = fac_cpu_of(d);
    fac_frame f;
    for (int i = 0; i < p->nin; i++)
        if (fac_copy_size(p->in[i].type.dtype) == 0) return false;
    for (int k = 0; k < p->nout; k++)
        if (fac_copy_size(p->out[k].type.dtype) == 0) return false;
    if (p->nout < 1 || !fac_elementwise_settle(p, cpu->simd->lanes, &f)) return false;
    fac_elementwise *e = fac_offer_keep(o, sizeof *e, NULL);
    if (!e || !fac_elementwise_build(p, f, cpu->simd, e)) return false;
    double bytes = 0, count = (double)fac_dims_count(&p->out[0].type.dims);
    for (int i = 0; i < p->nin; i++) bytes += (double)fac_type_bytes(&p->in[i].type);
    for (int k = 0; k < p->nout; k++) bytes += (double)fac_type_bytes(&p->out[k].type);
    o->work = e->copied + e->share * (size_t)cpu->pool.threads;
    o->seconds = fac_cpu_speeds.step + bytes / cpu->bandwidth +
                 count * e->chain.steps * (double)e->chain.width /
                     (fac_cpu_speeds.chain_bytes * cpu->pool.threads);
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    const fac_cpu *cpu = fac_cpu_of(d);
    fac_elementwise *e = fac_draft_take(p);
    if (e->copies) {
        e->copy = fac_alloc((size_t)e->copies, sizeof *e->copy);
        if (!e->copy) {
            fac_release(e);
            return fac_raise(err, FAC_E_NOMEM, "elementwise: no memory for a plan");
        }
        fac_elementwise_copies(p, (fac_frame){ p->out[0].layout.axis, p->out[0].layout.block }, e);
    }
    e->streams = cpu->simd->streams;
    for (int k = 0; k < e->chain.outs; k++)
        e->out[k].past = e->out[k].direct && !e->adam &&
                         fac_streams_past(cpu, (size_t)fac_type_bytes(&p->out[k].type));
    *out = e;
    return FAC_OK;
}

static void done(fac_device *d, void *arg) {
    (void)d;
    fac_elementwise *e = arg;
    if (e) fac_release(e->copy);
    fac_release(e);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    (void)err;
    const fac_elementwise *e = arg;
    const fac_cpu *cpu = fac_cpu_of(d);
    if (e->units == 0) return FAC_OK;
    job j = { e, in, out, (char *)work.memory + work.at };
    for (int k = 0; k < e->copies; k++)
        fac_copy_run(&e->copy[k].copy, cpu, fac_span_bytes(in[e->copy[k].input]),
                     j.work + e->copy[k].at);
    fac_parallel_ranges(&cpu->pool, e->units,
                        e->units * e->block > SERIAL ? SHARES * cpu->pool.threads : 1, run_units,
                        &j);
    return FAC_OK;
}

const fac_solver fac_cpu_fused = {
    .name = "fused", .rank = 720, .offer = offer, .make = make, .done = done, .run = run
};
