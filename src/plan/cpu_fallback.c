/* The last solver of a device that the host cannot look into: the node is solved by the cpu, its
 * operands copied there and back. The cpu's own choice of a solver holds, with the layouts and
 * packed forms that it likes; a plan that has such steps says so by the solver's name. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "backends/transfer.h"
#include "backends/layout_copy.h"
#include "backends/speed.h"
#include "ref/ref.h"
#include "plan/plan.h"

typedef struct plan {
    fac_device *cpu;
    const fac_problem *given; /* as the device has it */
    fac_problem problem;      /* as the cpu has it */
    const fac_solver *solver;
    void *made;
    fac_offer offer;
    fac_operand operands[];
} plan;

/* The device's cpu, opened when it is first needed. */
static fac_device *cpu_of(fac_device *d, fac_error *err) {
    const fac_device_opts opts = { .threads = d->opts.threads,
                                   .pool = d->opts.pool,
                                   .isa = d->opts.isa };
    pthread_mutex_lock(&d->lock);
    if (!d->cpu) fac_device_open("cpu", &opts, &d->cpu, err);
    fac_device *cpu = d->cpu;
    pthread_mutex_unlock(&d->lock);
    return cpu;
}

static void lay_plain(fac_operand *o) {
    if (o->type.dtype != FAC_NONE) o->layout = fac_layout_plain(&o->type.dims);
}

static void take(plan *r, const fac_problem *p) {
    const int n = p->nin + p->nout;
    memcpy(r->operands, p->in, (size_t)p->nin * sizeof *r->operands);
    memcpy(r->operands + p->nin, p->out, (size_t)p->nout * sizeof *r->operands);
    for (int i = 0; i < n; i++) lay_plain(&r->operands[i]);
    r->given = p;
    r->problem = *p;
    r->problem.in = r->operands;
    r->problem.out = r->operands + p->nin;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *o) {
    if (fac_in_sight(d) || !cpu_of(d, NULL)) return false;
    size_t bytes = 0;
    for (int i = 0; i < p->nin + p->nout; i++) {
        fac_operand *x = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        if (x->type.dtype == FAC_TEXT && i >= p->nin)
            return false; /* what inputs point to lies with the host all the while */
        if (x->layout.block) lay_plain(x);
        if (i >= p->nin) x->layout.halo = 0;
        bytes += fac_type_bytes(&x->type);
    }
    o->seconds = fac_last_speeds.fallback_step + (double)bytes / fac_last_speeds.fallback_bytes;
    return true;
}

static void done(fac_device *d, void *arg) {
    (void)d;
    plan *r = arg;
    if (r && r->made && r->solver->done) r->solver->done(r->cpu, r->made);
    fac_release(r);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *r = fac_alloc(1, sizeof *r + (size_t)(p->nin + p->nout) * sizeof *r->operands);
    if (!r) return fac_raise_memory(err, "a plan");
    take(r, p);
    fac_status status = (r->cpu = cpu_of(d, err)) ? FAC_OK : FAC_E_NOMEM;
    const fac_plan one = { .device = r->cpu, .precision = p->precision };
    if (!status &&
        !(r->solver = fac_choose(&one, &r->problem, &(fac_layout_cost){ 0 }, &r->offer, err)))
        status = FAC_E_UNSUPPORTED;
    if (!status) status = fac_solver_make(r->solver, r->cpu, &r->problem, &r->offer, &r->made, err);
    if (status)
        done(d, r);
    else
        *out = r;
    return status;
}

/* ---- running ---- */

typedef struct job {
    const plan *r;
    fac_device *device;
    fac_span *host;
    fac_error *err;
} job;

static fac_status host_memory(fac_span *s, size_t bytes, fac_error *err) {
    s->memory = fac_alloc_aligned(bytes ? bytes : 1);
    return s->memory ? FAC_OK : fac_raise_memory(err, "%zu bytes", bytes);
}

/* Input i in the layout, or the packed form, that the cpu's solver reads. */
static fac_status bring(const job *j, int i, fac_span from) {
    const plan *r = j->r;
    const fac_operand *want = &r->problem.in[i], *have = &r->given->in[i];
    const bool packed = i < FAC_OFFER_PACKED && r->offer.packed[i];
    const fac_layout flat = fac_layout_plain(&want->type.dims);
    fac_span plain = { 0 };
    FAC_TRY(host_memory(&plain, fac_type_bytes(&want->type), j->err));
    fac_status status =
        fac_fetch(j->device, &want->type, from, &have->layout, plain.memory, j->err);
    if (!status && !packed && fac_layout_equal(&want->layout, &flat, &want->type.dims)) {
        j->host[i] = plain;
        return FAC_OK;
    }
    const size_t bytes = packed ? r->offer.packed[i] : fac_layout_bytes(&want->layout, &want->type);
    if (!status) status = host_memory(&j->host[i], bytes, j->err);
    if (!status) memset(j->host[i].memory, 0, bytes);
    if (!status && packed)
        status = r->solver->pack(r->made, r->cpu, i, plain, j->host[i], j->err);
    else if (!status)
        fac_copy_layout(&want->type, plain.memory, &flat, j->host[i].memory, &want->layout);
    fac_release_aligned(plain.memory);
    return status;
}

static fac_status send(const job *j, int k, fac_span to) {
    const plan *r = j->r;
    const fac_operand *have = &r->problem.out[k], *want = &r->given->out[k];
    const fac_layout flat = fac_layout_plain(&have->type.dims);
    const fac_span from = j->host[r->problem.nin + k];
    fac_span plain = { 0 };
    if (fac_layout_equal(&have->layout, &flat, &have->type.dims))
        return fac_store(j->device, &have->type, from.memory, to, &want->layout, j->err);
    FAC_TRY(host_memory(&plain, fac_type_bytes(&have->type), j->err));
    fac_copy_layout(&have->type, from.memory, &have->layout, plain.memory, &flat);
    fac_status status = fac_store(j->device, &have->type, plain.memory, to, &want->layout, j->err);
    fac_release_aligned(plain.memory);
    return status;
}

static fac_status work(const job *j, const fac_span *in, const fac_span *out, fac_span *scratch) {
    const plan *r = j->r;
    const fac_problem *p = &r->problem;
    for (int i = 0; i < p->nin; i++)
        if (in[i].memory) FAC_TRY(bring(j, i, in[i]));
    for (int k = 0; k < p->nout; k++) {
        if (!out[k].memory) continue;
        const size_t bytes = fac_layout_bytes(&p->out[k].layout, &p->out[k].type);
        FAC_TRY(host_memory(&j->host[p->nin + k], bytes, j->err));
        memset(j->host[p->nin + k].memory, 0, bytes); /* a halo holds zeros */
    }
    if (r->offer.work) FAC_TRY(host_memory(scratch, r->offer.work, j->err));
    FAC_TRY(r->solver->run(r->made, r->cpu, j->host, j->host + p->nin, *scratch, j->err));
    for (int k = 0; k < p->nout; k++)
        if (out[k].memory) FAC_TRY(send(j, k, out[k]));
    return FAC_OK;
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span unused, fac_error *err) {
    (void)unused;
    const plan *r = arg;
    const int n = r->problem.nin + r->problem.nout;
    fac_span scratch = { 0 }, *host = fac_alloc((size_t)n + 1, sizeof *host);
    if (!host) return fac_raise_memory(err, "%d operands", n);
    const job j = { r, d, host, err };
    fac_status status = work(&j, in, out, &scratch);
    for (int i = 0; i < n; i++) fac_release_aligned(host[i].memory);
    fac_release_aligned(scratch.memory);
    fac_release(host);
    return status;
}

const fac_solver fac_solver_away = {
    .name = "cpu", .offer = offer, .make = make, .done = done, .run = run
};

const fac_solver *fac_last_solver(const fac_device *d) {
    return fac_in_sight(d) ? &fac_solver_ref : &fac_solver_away;
}
