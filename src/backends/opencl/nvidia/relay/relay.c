/* fac_relay of the opencl backend: see relay.h.
 *
 * The table of legs lies in the device's memory and is written again only when operands have moved;
 * all that a launch has is its place there and the buffers that the legs' operands lie in.  Where
 * these are more than a launch may have, the legs are done in parts. */
#include <pthread.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/gpu/nvidia/divide.h"
#include "backends/opencl/nvidia/relay/relay.h"
#include "backends/gpu/nvidia/speed.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/memory.h"

enum {
    BASES = 32,
    OTHERS = 8,
    LEGS_STEP = 24,
    MEET_BYTES = 256
}; /* BASES: of a launch; each costs the driver 0.4 us */

static const fac_solver *const taken[] = { &fac_cl_conv_relay, &fac_cl_product_relay,
                                           &fac_cl_depthwise_relay, &fac_cl_pool_relay,
                                           &fac_cl_mean_relay };

static bool takes(const fac_solver *s) {
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (taken[i] == s) return true;
    return false;
}

bool fac_nv_relays(fac_opencl *o) {
    return o->limits.gpu && !o->borrowed && fac_cl_has_path(o, FAC_CL_MMA) &&
           fac_cl_has_path(o, FAC_CL_LOCAL_99) && fac_cl_has_path(o, FAC_CL_RELAY);
}

void fac_nv_leg_windows(fac_nv_leg *l, const fac_window *h, const fac_window *w) {
    const fac_window *const windows[] = { h, w };
    for (int d = 0; d < 2; d++) {
        const fac_window *v = windows[d];
        const fac_nv_divisor by = fac_nv_divide_wide((uint32_t)v->out);
        l->in[d] = (int32_t)v->in;
        l->out[d] = (int32_t)v->out;
        l->origin[d] = (int32_t)-v->pad;
        l->stride[d] = (int32_t)v->stride;
        l->far[d] = (int32_t)v->dilation;
        l->taps[d] = (int32_t)v->kernel;
        l->multiplier[d] = by.multiplier;
        l->shifts[d] = by.shift;
    }
}

double fac_nv_leg_seconds(const fac_opencl *o, double bytes) {
    return fac_nv_relay_speeds.leg + bytes / (fac_nv_relay_speeds.unit_bytes * o->limits.units);
}

/* ---- the plan ---- */

/* Legs that have a launch of their own, and its buffers. */
typedef struct part {
    int first, n, bases, base[BASES];
} part; /* base: number of an operand that lies there */

/* Where an operand was when the table was written. */
typedef struct seen {
    cl_mem memory;
    size_t at;
} seen;

typedef struct relay {
    int n, groups;
    const fac_relay_job *jobs;
    const fac_nv_leg_plan **legs;
    fac_nv_leg *rows; /* as they were written last */
    seen *last;       /* operands then */
    part *parts;
    int nparts; /* 0: nothing is written yet */
    fac_cl_kernel kernel;
    fac_span table, meet; /* meet: the number that groups count up, and what is zero */
    pthread_mutex_t
        lock; /* of all that changes: rows, last, parts, and launches that rely on them */
    bool locks;
} relay;

static size_t table_bytes(const relay *r) { return (size_t)r->n * sizeof *r->rows; }

static void done(fac_device *d, void *plan) {
    relay *r = plan;
    if (!r) return;
    fac_cl_kernel_free(fac_opencl_of(d), &r->kernel);
    fac_device_release(d, r->table.memory, table_bytes(r));
    fac_device_release(d, r->meet.memory, MEET_BYTES);
    if (r->locks) pthread_mutex_destroy(&r->lock);
    fac_release(r->legs);
    fac_release(r->rows);
    fac_release(r->last);
    fac_release(r->parts);
    fac_release(r);
}

/* Which of the codes and finishes so far it is; one more where it is none of them. */
static int code_of(const fac_nv_code *c, fac_nv_code *all, int *n) {
    int i = 0;
    while (i < *n && memcmp(c, &all[i], sizeof *c)) i++;
    if (i == *n) all[(*n)++] = *c;
    return i;
}

static bool same_finish(const fac_nv_finish *a, const fac_nv_finish *b, bool fp64) {
    fac_text one = { 0 }, other = { 0 };
    const bool same = fac_nv_finish_text(a, "f", fp64, &one) &&
                      fac_nv_finish_text(b, "f", fp64, &other) && !one.failed && !other.failed &&
                      !strcmp(one.s, other.s);
    fac_text_free(&one);
    fac_text_free(&other);
    return same;
}

static int finish_of(const fac_nv_finish *f, fac_nv_finish *all, int *n, bool fp64) {
    int i = 0;
    while (i < *n && !same_finish(f, &all[i], fp64)) i++;
    if (i == *n) all[(*n)++] = *f;
    return i;
}

/* A leg of a level begins with the group after the last one that the legs before it have given a
 * tile. */
static void share_out(relay *r) {
    int shift = 0;
    for (int i = 0; i < r->n; i++) {
        fac_nv_leg *l = &r->rows[i];
        const bool items = r->legs[i]->code.kind != FAC_NV_LEG_CONV;
        const int tiles =
            items ? (l->tiles + 32 * FAC_NV_RELAY_WARPS - 1) / (32 * FAC_NV_RELAY_WARPS) : l->tiles;
        l->fresh = i > 0 && r->jobs[i].level != r->jobs[i - 1].level;
        if (l->fresh) shift = 0;
        l->shift = shift;
        shift = (shift + tiles % r->groups) % r->groups;
    }
}

static fac_status make_text(fac_opencl *o, relay *r, fac_nv_code *codes, fac_nv_finish *finishes,
                            fac_text *to, fac_error *err) {
    int ncodes = 0, nfinishes = 0;
    for (int i = 0; i < r->n; i++) {
        r->rows[i] = r->legs[i]->leg;
        r->rows[i].code = code_of(&r->legs[i]->code, codes, &ncodes);
        r->rows[i].finish = finish_of(&r->legs[i]->finish, finishes, &nfinishes, o->limits.fp64);
    }
    const int legs = (r->n + LEGS_STEP - 1) / LEGS_STEP * LEGS_STEP; /* few different texts */
    const bool good =
        fac_nv_relay_text(codes, ncodes, finishes, nfinishes, o->limits.fp64, legs, BASES, to);
    return good ? FAC_OK : fac_raise_memory(err, "the text of a kernel");
}

static fac_status make_kernel(fac_opencl *o, relay *r, fac_error *err) {
    fac_nv_code *codes = fac_alloc((size_t)r->n, sizeof *codes);
    fac_nv_finish *finishes = fac_alloc((size_t)r->n, sizeof *finishes);
    char options[64];
    fac_text text = { 0 };
    snprintf(options, sizeof options, "-cl-single-precision-constant -cl-nv-maxrregcount=%d",
             65536 / (32 * (FAC_NV_RELAY_WARPS + 1)) / 8 * 8);
    fac_status status = codes && finishes ? make_text(o, r, codes, finishes, &text, err)
                                          : fac_raise_memory(err, "a relay of %d steps", r->n);
    if (!status) status = fac_cl_kernel_new(o, text.s, options, "relay", &r->kernel, err);
    fac_text_free(&text);
    fac_release(codes);
    fac_release(finishes);
    return status;
}

static fac_status make_memory(fac_device *d, relay *r, fac_error *err) {
    static const char zeros[MEET_BYTES];
    FAC_TRY(fac_device_alloc(d, table_bytes(r), &r->table.memory, err));
    FAC_TRY(fac_device_alloc(d, sizeof zeros, &r->meet.memory, err));
    return d->backend->write(d, r->meet, zeros, sizeof zeros, err);
}

static fac_status fill(fac_device *d, relay *r, const fac_relay_job *jobs, int n, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    const fac_relay_job *last = &jobs[n - 1];
    r->n = n;
    r->jobs = jobs;
    r->groups = (int)o->limits.units;
    r->legs = fac_alloc((size_t)n, sizeof *r->legs);
    r->rows = fac_alloc((size_t)n, sizeof *r->rows);
    r->last = fac_alloc((size_t)(last->at + last->nin + last->nout + 1), sizeof *r->last);
    r->parts = fac_alloc((size_t)n, sizeof *r->parts);
    r->locks = !pthread_mutex_init(&r->lock, NULL);
    if (!r->legs || !r->rows || !r->last || !r->parts || !r->locks)
        return fac_raise_memory(err, "a relay of %d steps", n);
    for (int i = 0; i < n; i++) r->legs[i] = jobs[i].plan;
    FAC_TRY(make_kernel(o, r, err));
    share_out(r);
    return make_memory(d, r, err);
}

static fac_status make(fac_device *d, const fac_relay_job *jobs, int n, void **plan,
                       fac_error *err) {
    relay *r = fac_alloc(1, sizeof *r);
    if (!r) return fac_raise_memory(err, "a relay of %d steps", n);
    const fac_status status = fill(d, r, jobs, n, err);
    return fac_solver_made(status, d, r, done, plan);
}

/* ---- a run ---- */

/* The number of the operand's buffer in this part, which gets one more where it has room for that;
 * -1: it has none. */
static int base_of(const relay *r, part *p, int operand) {
    int i = 0;
    while (i < p->bases && r->last[p->base[i]].memory != r->last[operand].memory) i++;
    if (i == BASES) return -1;
    if (i == p->bases) p->base[p->bases++] = operand;
    return i;
}

static bool place_leg(relay *r, part *p, int i) {
    const fac_nv_leg_plan *from = r->legs[i];
    fac_nv_leg *to = &r->rows[i];
    for (int k = 0; k < FAC_NV_LEG_OPERANDS; k++) {
        const int operand = r->jobs[i].at + from->operand[k];
        to->base[k] = -1;
        if (from->operand[k] < 0) continue;
        to->base[k] = base_of(r, p, operand);
        to->at[k] = from->leg.at[k] + (int64_t)r->last[operand].at;
        if (to->base[k] < 0) return false;
    }
    return true;
}

/* Has any operand moved?  A span may be the same and lie elsewhere. */
static bool look(relay *r, const fac_span *operands) {
    bool moved = !r->nparts;
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < FAC_NV_LEG_OPERANDS; k++) {
            const int operand = r->jobs[i].at + r->legs[i]->operand[k];
            if (r->legs[i]->operand[k] < 0) continue;
            const seen now = { fac_cl_buffer(operands[operand]), fac_cl_at(operands[operand]) },
                       *was = &r->last[operand];
            moved |= now.memory != was->memory || now.at != was->at;
            r->last[operand] = now;
        }
    return moved;
}

static fac_status place(fac_device *d, relay *r, fac_error *err) {
    part *p = r->parts;
    r->nparts = 0;
    *p = (part){ 0 };
    for (int i = 0; i < r->n; i++) {
        if (place_leg(r, p, i)) {
            p->n++;
            continue;
        }
        if (!p->n)
            return fac_raise(err, FAC_E_INTERNAL, "a step of a relay has more than %d buffers",
                             BASES);
        p++;
        *p = (part){ .first = i-- };
    }
    FAC_TRY(d->backend->write(d, r->table, r->rows, table_bytes(r), err));
    r->nparts = (int)(p - r->parts) + 1;
    return FAC_OK;
}

static fac_status launch(fac_opencl *o, const relay *r, const part *p, const fac_span *operands,
                         int first, int n, fac_error *err) {
    fac_cl_arg args[OTHERS + BASES];
    const uint64_t meet_at = fac_cl_at(r->meet), table_at = fac_cl_at(r->table);
    const int32_t from = first, count = n;
    const size_t items = 32 * (FAC_NV_RELAY_WARPS + 1);
    int k = 0;
    args[k++] = fac_cl_arg_span(r->meet);
    args[k++] = fac_cl_arg_value(&meet_at, sizeof meet_at);
    args[k++] = fac_cl_arg_span(r->table);
    args[k++] = fac_cl_arg_value(&table_at, sizeof table_at);
    args[k++] = fac_cl_arg_value(&from, sizeof from);
    args[k++] = fac_cl_arg_value(&count, sizeof count);
    for (int i = 0; i < BASES; i++)
        args[k++] = fac_cl_arg_span(operands[p->base[i < p->bases ? i : 0]]);
    const fac_cl_range range = { 1, { items * (size_t)r->groups, 1, 1 }, { items, 1, 1 } };
    return fac_cl_launch(o, &r->kernel, &range, k, args, err);
}

static fac_status run_locked(fac_device *d, relay *r, const fac_span *operands, int first, int n,
                             fac_error *err) {
    if (look(r, operands)) FAC_TRY(place(d, r, err));
    for (int i = 0; i < r->nparts; i++) {
        const part *p = &r->parts[i];
        const int from = first > p->first ? first : p->first,
                  end = first + n < p->first + p->n ? first + n : p->first + p->n;
        if (from < end) FAC_TRY(launch(fac_opencl_of(d), r, p, operands, from, end - from, err));
    }
    return FAC_OK;
}

static fac_status run(const void *plan, fac_device *d, const fac_span *operands, int first, int n,
                      fac_error *err) {
    relay *r = (relay *)(uintptr_t)plan; /* what changes is under its lock */
    pthread_mutex_lock(&r->lock);
    const fac_status status = run_locked(d, r, operands, first, n, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

/* A launch of these needs more than others: its table, its code; between two other kernels nothing
 * runs for 2 to 4 us (an H100). */
const fac_relay fac_nv_relay = { .takes = takes,
                                 .most = FAC_NV_RELAY_MOST,
                                 .start = 10e-6,
                                 .gap = 2e-6,
                                 .make = make,
                                 .done = done,
                                 .run = run };
