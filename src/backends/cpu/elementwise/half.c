/* Solver "half": a node of f16 or bf16 by another solver of f32.
 *
 * Inputs are widened into scratch, the other solver runs on them, results are rounded once on their
 * way back: what the reference means by these types.  Storages are converted as a whole, gaps and
 * halos included, so every layout is the other solver's own.  It is the first of the list that
 * takes the f32 problem. Elementwise ops and copies know halves themselves; nodes with a body are
 * left alone, for its values have types too. */
#include <string.h>
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "backends/cpu/device/ranges.h"
#include "cpu_solvers.h"
#include "backends/cpu/device/streams.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/table.h"
#include "tensor/dtype.h"

enum { INPUTS = 16, OUTPUTS = 4, CHUNK = 8 << 10, SHARES = 8 };

/* The f32 problem and where its operands lie in the scratch. */
typedef struct shadow {
    fac_problem p;
    fac_operand in[INPUTS], out[OUTPUTS];
    fac_offer offer;
    const fac_solver *solver;
    size_t in_at[INPUTS], out_at[OUTPUTS], work_at, bytes;
} shadow;
typedef struct plan {
    shadow s;
    const fac_problem *problem;
    void *plan;
} plan;

static size_t round_up(size_t n) { return (n + 63) & ~(size_t)63; }
static bool is_taken(const shadow *s, int i) { return i < FAC_OFFER_PACKED && s->offer.packed[i]; }

static void look(const fac_problem *p, shadow *s) {
    memcpy(s->in, p->in, (size_t)p->nin * sizeof *s->in);
    memcpy(s->out, p->out, (size_t)p->nout * sizeof *s->out);
    s->p = (fac_problem){ .node = p->node,
                          .precision = p->precision,
                          .nin = p->nin,
                          .nout = p->nout,
                          .in = s->in,
                          .out = s->out };
    for (int i = 0; i < p->nin; i++)
        if (fac_dtype_is_half(s->in[i].type.dtype)) s->in[i].type.dtype = FAC_F32;
    for (int k = 0; k < p->nout; k++)
        if (fac_dtype_is_half(s->out[k].type.dtype)) s->out[k].type.dtype = FAC_F32;
}

static bool find(fac_device *d, const fac_problem *p, bool *lost, shadow *s) {
    bool any = false;
    if (p->nin > INPUTS || p->nout > OUTPUTS || p->node->body[0] || p->node->op->map) return false;
    for (int i = 0; i < p->nin; i++) any |= fac_dtype_is_half(p->in[i].type.dtype);
    for (int k = 0; k < p->nout; k++) {
        any |= fac_dtype_is_half(p->out[k].type.dtype);
        if (p->out[k].layout.block == 0 &&
            !fac_layout_is_plain(&p->out[k].layout, &p->out[k].type.dims))
            return false;
    }
    for (const fac_solver *const *all = d->backend->solvers; any && *all; all++) {
        if (*all == &fac_cpu_half || ((*all)->op && (*all)->op != p->node->op)) continue;
        look(p, s);
        s->solver = *all;
        if (fac_solver_offer(*all, d, &s->p, &s->offer)) return true;
        *lost |= s->offer.lost;
    }
    return false;
}

static void place(const fac_problem *p, shadow *s) {
    s->bytes = 0;
    for (int i = 0; i < p->nin; i++) {
        s->in_at[i] = s->bytes;
        if (!fac_dtype_is_half(p->in[i].type.dtype) || is_taken(s, i)) continue;
        s->bytes += round_up(fac_layout_bytes(&s->in[i].layout, &s->in[i].type));
    }
    for (int k = 0; k < p->nout; k++) {
        s->out_at[k] = s->bytes;
        if (fac_dtype_is_half(p->out[k].type.dtype))
            s->bytes += round_up(fac_layout_bytes(&s->out[k].layout, &s->out[k].type));
    }
    s->work_at = s->bytes;
    s->bytes += s->offer.work;
}

/* What a plan owns as long as it is a draft. */
static void drop(void *arg) {
    plan *h = arg;
    fac_offer_drop(&h->s.offer);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    plan *h = fac_offer_keep(o, sizeof *h, drop);
    if (!h || !find(d, p, &o->lost, &h->s)) return false;
    shadow *s = &h->s;
    for (int i = 0; i < p->nin; i++) p->in[i].layout = s->in[i].layout;
    for (int k = 0; k < p->nout; k++) {
        if (s->out[k].layout.block == 0) s->out[k].layout.halo = 0; /* a wish of its readers */
        p->out[k].layout = s->out[k].layout;
    }
    place(p, s);
    const fac_offer *other = &s->offer;
    memcpy(o->packed, other->packed, sizeof o->packed);
    o->own = other->own;
    o->variants = other->variants;
    o->version = other->version;
    o->work = s->bytes;
    o->seconds = other->seconds + 1.5 * (double)s->work_at / fac_cpu_of(d)->bandwidth;
    return true;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *h = fac_draft_take(p);
    h->problem = p;
    const fac_status status = fac_solver_make(h->s.solver, d, &h->s.p, &h->s.offer, &h->plan, err);
    if (status)
        fac_release(h);
    else
        *out = h;
    return status;
}

static void done(fac_device *d, void *arg) {
    plan *h = arg;
    if (!h) return;
    if (h->s.solver->done) h->s.solver->done(d, h->plan);
    fac_release(h);
}

/* ---- running ---- */

typedef struct job {
    const fac_streams *s;
    fac_dtype from, to;
    const char *x;
    char *y;
    int64_t n;
} job;

static void run_chunks(void *arg, int64_t first, int64_t last, int thread) {
    (void)thread;
    const job *j = arg;
    int64_t size = fac_dtype_is_half(j->from) ? 2 : 4, other = 6 - size;
    int64_t at = first * CHUNK, end = last * CHUNK < j->n ? last * CHUNK : j->n;
    fac_streams_convert(j->s, j->to, j->y + at * other, j->from, j->x + at * size, end - at);
}

static void convert(fac_device *d, fac_dtype to, void *y, fac_dtype from, const void *x, size_t n) {
    const fac_cpu *c = fac_cpu_of(d);
    job j = { c->simd->streams, from, to, x, y, (int64_t)n };
    fac_parallel_ranges(&c->pool, (j.n + CHUNK - 1) / CHUNK, SHARES * c->pool.threads, run_chunks,
                        &j);
}

static uint64_t pack_key(const void *arg, int input) {
    const plan *h = arg;
    fac_hash k = fac_hash_text(fac_hash_start((uint64_t)h->problem->in[input].type.dtype),
                               h->s.solver->name);
    return fac_hash_int(k, h->s.solver->pack_key(h->plan, input)).a;
}

static fac_status pack(const void *arg, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *h = arg;
    fac_dtype type = h->problem->in[input].type.dtype;
    if (!fac_dtype_is_half(type)) return h->s.solver->pack(h->plan, d, input, from, to, err);
    size_t n = (size_t)fac_dims_count(&h->problem->in[input].type.dims);
    float *wide = fac_alloc_aligned(n * sizeof *wide + 1);
    if (!wide) return fac_raise(err, FAC_E_NOMEM, "half: no memory for %zu numbers", n);
    convert(d, FAC_F32, wide, type, fac_span_bytes(from), n);
    fac_status status = h->s.solver->pack(h->plan, d, input, (fac_span){ wide, 0 }, to, err);
    fac_release_aligned(wide);
    return status;
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *h = arg;
    const shadow *s = &h->s;
    const fac_problem *p = h->problem;
    fac_span x[INPUTS], y[OUTPUTS];
    for (int i = 0; i < p->nin; i++) {
        x[i] = in[i];
        if (!fac_dtype_is_half(p->in[i].type.dtype) || is_taken(s, i) || !in[i].memory) continue;
        x[i] = (fac_span){ work.memory, work.at + s->in_at[i] };
        convert(d, FAC_F32, fac_span_bytes(x[i]), p->in[i].type.dtype, fac_span_bytes(in[i]),
                fac_layout_bytes(&p->in[i].layout, &p->in[i].type) / 2);
    }
    for (int k = 0; k < p->nout; k++) {
        y[k] = out[k];
        if (!fac_dtype_is_half(p->out[k].type.dtype) || !out[k].memory) continue;
        y[k] = (fac_span){ work.memory, work.at + s->out_at[k] };
        fac_halo_zero(&s->out[k].layout, &s->out[k].type.dims, sizeof(float), &fac_cpu_of(d)->pool,
                      fac_span_bytes(y[k]));
    }
    FAC_TRY(s->solver->run(h->plan, d, x, y, (fac_span){ work.memory, work.at + s->work_at }, err));
    for (int k = 0; k < p->nout; k++)
        if (fac_dtype_is_half(p->out[k].type.dtype) && out[k].memory)
            convert(d, p->out[k].type.dtype, fac_span_bytes(out[k]), FAC_F32, fac_span_bytes(y[k]),
                    fac_layout_bytes(&p->out[k].layout, &p->out[k].type) / 2);
    return FAC_OK;
}

const fac_solver fac_cpu_half = { .name = "half",
                                  .rank = 950,
                                  .offer = offer,
                                  .make = make,
                                  .done = done,
                                  .pack_key = pack_key,
                                  .pack = pack,
                                  .run = run };
