/* One solver of the OpenCL device on one node, with random contents, against the reference driver.
 */
#ifndef OPENCL_SOLVER_CHECK_H
#define OPENCL_SOLVER_CHECK_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "fresh_seed.h"
#include "spoil.h"
#include "backends/opencl/device/opencl.h"
#include "base/rng.h"
#include "graph/graph_internal.h"
#include "plan/plan.h"
#include "ref/ref.h"
#include "tensor/tensor_internal.h"
#include "backends/layout_copy.h"
#include "opencl_check.h"

enum { OPERANDS = 32 };

static fac_error err;
static fac_device *device;
static uint64_t seed, stream;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

static inline int open_device(void **state) {
    (void)state;
    seed = fresh_seed();
    return opencl_open(&device, &err);
}

static inline int close_device(void **state) {
    (void)state;
    fac_device_free(device);
    return 0;
}

/* Contiguous random contents of a type. */
static inline void *contents(fac_type type, double lo, double hi) {
    int64_t n = fac_dims_count(&type.dims);
    double *x = calloc((size_t)n + 1, sizeof *x);
    void *as = calloc(1, fac_type_bytes(&type) + 1);
    char kind = fac_dtype_get(type.dtype)->kind;
    stream++;
    for (int64_t i = 0; i < n; i++) {
        double u = fac_random_uniform(seed, stream, (uint64_t)i);
        x[i] = kind == 'f'   ? lo + (hi - lo) * u
               : kind == 'b' ? u < 0.5
                             : floor(lo + (hi - lo + 1) * u);
        if (kind == 'u') x[i] = fabs(x[i]);
    }
    fac_convert(type.dtype, as, FAC_F64, x, (size_t)n);
    free(x);
    return as;
}

static bool exact = true;       /* what the problems ask for */
static fac_precision precision; /* the same where it is not the default: before `exact` */
static int variant;             /* of the solver, 0: its own choice */
static bool first_only;         /* nothing reads the outputs after the first */
static bool channels_last;      /* where there are pixels, all channels of one lie side by side */
static bool slices;             /* with channels_last: as a slice of more channels */

/* Changes random contents of inputs, which lie plainly, where rounding would decide what comes out.
 */
static void (*decide)(const fac_node *, const fac_host *);

/* Sometimes with gaps: each stride up to two elements longer than it need be. */
static inline fac_layout place(const fac_dims *d, bool gaps) {
    fac_layout l = fac_layout_plain(d);
    int64_t step = 1;
    for (int k = d->n - 1; gaps && k >= 0; k--) {
        step += (int64_t)(fac_random_bits(seed, ++stream, 0) % 3);
        l.stride[k] = step;
        if (d->d[k] > 0) step *= d->d[k]; /* a size that contents decide is negative */
    }
    if (channels_last && d->n >= 3) {
        step = l.stride[1] = 1;
        step *= d->d[1] + (slices ? 8 * (int64_t)(fac_random_bits(seed, ++stream, 0) % 3) : 0);
        for (int k = d->n - 1; k >= 0; k--) {
            if (k == 1) continue;
            l.stride[k] = step;
            if (d->d[k] >= 0) step *= d->d[k];
        }
    }
    if (slices) l.offset = d->n < 3 ? 3 : 8;
    if (gaps) l.offset = 5;
    return l;
}

/* What nothing wrote holds this in each byte: NaN as a floating point number of any size, an index
 * far outside. */
enum { POISON = 0xff };

typedef struct side {
    fac_span span;
    char *host;
    size_t bytes;
} side;

/* A simulator that watches for values that nothing wrote must not see that we write these. */
static inline bool watched(void) { return getenv("OCLGRIND_UNINITIALIZED") != NULL; }

/* Memory of the device with contents that lie as o says; flat: NULL: poisoned. */
static inline side room_for(size_t bytes, const fac_operand *o, const void *flat) {
    side s = { .host = malloc(bytes + 1), .bytes = bytes };
    memset(s.host, POISON, bytes);
    if (flat) {
        const fac_layout plain = fac_layout_plain(&o->type.dims);
        fac_copy_layout(&o->type, flat, &plain, s.host, &o->layout);
    }
    OK(fac_device_alloc(device, bytes, &s.span.memory, &err));
    if (flat || !watched()) OK(device->backend->write(device, s.span, s.host, bytes, &err));
    return s;
}

static inline side put(const fac_operand *o, const void *flat) {
    return room_for(fac_layout_bytes(&o->layout, &o->type) + 8, o, flat);
}

static inline void drop(side *s) {
    fac_device_release(device, s->span.memory, s->bytes);
    free(s->host);
}

/* Between the elements of a result, which may be others' of a larger tensor, all is as it was. */
static inline void expect_nothing_between(const char *text, const fac_operand *o, const side *s) {
    const fac_layout plain = fac_layout_plain(&o->type.dims);
    const size_t bytes = fac_type_bytes(&o->type);
    char *flat = malloc(bytes + 1);
    if (!watched() && !o->layout.block && !o->layout.halo) {
        memset(flat, POISON, bytes);
        fac_copy_layout(&o->type, flat, &plain, s->host, &o->layout);
        for (size_t i = 0; i < s->bytes; i++)
            if ((unsigned char)s->host[i] != POISON)
                fail_msg("%s: byte %zu of the result, no element's, is written", text, i);
    }
    free(flat);
}

/* A body that cuts off sums of so many products above three of their deviations: what their
 * rounding may add up to grows like that, too, and is held against the largest result. */
static inline void write_clip(int terms, char *to, size_t size) {
    snprintf(to, size, " {add(_, x1) clip(_, -1, %d)}", (int)ceil(sqrt(terms)));
}

static bool of_largest; /* differences are held against the largest element of the reference, not
                           each against its own */
static double worst;    /* the largest difference of the last comparison, of the largest element */

static inline void compare(const char *text, const fac_operand *o, const side *s, const void *want,
                           double tolerance) {
    size_t n = (size_t)fac_dims_count(&o->type.dims);
    double *a = calloc(n + 1, sizeof *a), *b = calloc(n + 1, sizeof *b);
    void *flat = calloc(1, fac_type_bytes(&o->type) + 1);
    fac_layout plain = fac_layout_plain(&o->type.dims);
    OK(device->backend->read(device, s->span, s->host, s->bytes, &err));
    fac_copy_layout(&o->type, s->host, &o->layout, flat, &plain);
    fac_convert(FAC_F64, a, o->type.dtype, flat, n);
    fac_convert(FAC_F64, b, o->type.dtype, want, n);
    double top = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        top = fmax(top, fabs(b[i]));
        most = fmax(most, fabs(a[i] - b[i]));
    }
    worst = top > 0 ? most / top : most;
    for (size_t i = 0; i < n; i++)
        if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])) ||
              fabs(a[i] - b[i]) <= tolerance * (of_largest ? top : 1 + fabs(b[i]))))
            fail_msg("%s: element %zu is %.9g, the reference says %.9g", text, i, a[i], b[i]);
    free(a), free(b), free(flat);
    expect_nothing_between(text, o, s);
}

/* What an operator means that only expands: the reference kernels on what it expands to.  The
 * inputs of the node's graph are those of the node that have data. */
static inline void expanded_reference(const fac_node *n, const fac_host *in, fac_host *out) {
    fac_device *cpu = NULL;
    fac_program *p = NULL;
    fac_tensor *x[OPERANDS] = { NULL }, *y[OPERANDS] = { NULL };
    const fac_program_opts opts = { .solver = "ref", .no_fuse = true };
    int inputs = 0, outputs = 0;
    for (int i = 0; i < n->nin; i++) {
        if (!in[i].data) continue;
        OK(fac_tensor_new(NULL, in[i].type.dtype, in[i].type.dims, &x[inputs], &err));
        OK(fac_tensor_write(x[inputs++], in[i].data, fac_type_bytes(&in[i].type), &err));
    }
    OK(fac_device_open("cpu", NULL, &cpu, &err));
    OK(fac_program_new(n->graph, cpu, &opts, &p, &err));
    OK(fac_program_run(p, x, y, &err));
    for (int k = 0; k < n->nout; k++)
        if (out[k].data)
            OK(fac_tensor_read(y[outputs++], out[k].data, fac_type_bytes(&out[k].type), &err));
    for (int i = 0; i < OPERANDS; i++) fac_tensor_free(x[i]), fac_tensor_free(y[i]);
    fac_program_free(p);
    fac_device_free(cpu);
}

/* A solver without a run of its own is for relays: it is one of a single job then. */
static inline fac_status run_alone(const fac_solver *s, void *plan, const fac_span *spans, int nin,
                                   int nout, fac_span work) {
    const fac_relay *r = device->backend->relay;
    const fac_relay_job job = { s, plan, 0, 0, nin, nout };
    fac_span all[OPERANDS + 1];
    void *relay = NULL;
    if (s->run) return s->run(plan, device, spans, spans + nin, work, &err);
    for (int i = 0; i < nin + nout; i++) all[i] = spans[i];
    all[nin + nout] = work;
    fac_status status = r->make(device, &job, 1, &relay, &err);
    if (!status) status = r->run(relay, device, all, 0, 1, &err);
    if (!status) status = fac_device_sync(device, &err);
    r->done(device, relay);
    return status;
}

static inline bool steers(const fac_node *n, int i) { return fac_port_flags(n, i) & FAC_HOST; }

/* What a case writes out is what its operator is for (a matrix that is not singular): it stays. */
static inline void take_written(const fac_value *v, const fac_operand *o, void *to) {
    if (o->known)
        fac_convert(o->type.dtype, to, FAC_I64, o->known->v, (size_t)o->known->n);
    else if (v && v->leaf == FAC_CONST && v->tensor)
        OK(fac_tensor_read(v->tensor, to, fac_type_bytes(&o->type), &err));
}

/* Runs one solver on one problem; false: it made no offer. */
static inline bool solve(const fac_solver *s, const fac_node *n, const fac_case *c, bool gaps) {
    fac_operand o[OPERANDS] = { 0 };
    fac_problem p = { .node = n,
                      .precision = precision ? precision
                                   : exact   ? FAC_PRECISION_HIGHEST
                                             : FAC_PRECISION_DEFAULT,
                      .nin = n->nin,
                      .nout = n->nout,
                      .in = o,
                      .out = o + n->nin,
                      .variant = variant };
    void *flat[OPERANDS] = { NULL }, *plan = NULL;
    fac_host host[OPERANDS] = { 0 };
    side sides[OPERANDS] = { 0 }, work = { 0 };
    fac_span spans[OPERANDS] = { 0 };
    fac_offer offer = { 0 };
    if (n->nin + n->nout > OPERANDS) return false;
    for (int i = 0; i < n->nin + n->nout; i++) {
        const fac_value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
        if (v && !(first_only && i > n->nin))
            o[i] = (fac_operand){ v->type, place(&v->type.dims, gaps), FAC_RUN, v->known };
    }
    if (!fac_solver_offer(s, device, &p, &offer)) return false;
    for (int i = 0; i < FAC_OFFER_PACKED && i < n->nin; i++)
        if (offer.packed[i])
            o[i].layout = fac_layout_plain(&o[i].type.dims); /* what pack() reads is plain */
    double tolerance = c->tolerance;
    if (!of_largest) tolerance = tolerance > 2e-6 ? 2 * tolerance : 2e-6;
    for (int i = 0; i < n->nin + n->nout; i++) {
        if (o[i].type.dtype == FAC_NONE) continue;
        bool in = i < n->nin;
        if (in && o[i].known && steers(n, i)) { /* no solver reads it: it is part of the plan */
            host[i] = (fac_host){ o[i].type, NULL, o[i].known };
            continue;
        }
        flat[i] =
            in ? contents(o[i].type, c->lo, c->hi) : calloc(1, fac_type_bytes(&o[i].type) + 1);
        if (in) take_written(n->in[i], &o[i], flat[i]);
        host[i] = (fac_host){ o[i].type, flat[i], o[i].known };
    }
    if (decide) decide(n, host);
    for (int i = 0; i < n->nin + n->nout; i++) {
        if (!flat[i]) continue;
        sides[i] = put(&o[i], i < n->nin ? flat[i] : NULL);
        spans[i] = sides[i].span;
    }
    if (fac_solver_make(s, device, &p, &offer, &plan, &err))
        fail_msg("%s: %s", c->problem, err.text);
    side packed[FAC_OFFER_PACKED] = { 0 };
    for (int i = 0; i < FAC_OFFER_PACKED; i++) {
        if (!offer.packed[i]) continue;
        packed[i] = room_for(offer.packed[i], NULL, NULL);
        if (s->pack(plan, device, i, spans[i], packed[i].span, &err))
            fail_msg("%s: %s", c->problem, err.text);
        spans[i] = packed[i].span;
    }
    if (offer.work) work = room_for(offer.work, NULL, NULL);
    if (run_alone(s, plan, spans, n->nin, n->nout, work.span))
        fail_msg("%s: %s", c->problem, err.text);
    if (n->op->expand && !n->op->ref && !n->op->map && !n->op->move)
        expanded_reference(n, host, host + n->nin);
    else
        OK(fac_ref_node(n, host, host + n->nin, NULL, &err));
    for (int k = n->nin; k < n->nin + n->nout; k++)
        if (flat[k]) compare(c->problem, &o[k], &sides[k], flat[k], tolerance);
    if (s->done) s->done(device, plan);
    for (int i = 0; i < FAC_OFFER_PACKED; i++)
        if (packed[i].bytes) drop(&packed[i]);
    if (offer.work) drop(&work);
    for (int i = 0; i < n->nin + n->nout; i++)
        if (sides[i].host) drop(&sides[i]), free(flat[i]);
    return true;
}

#endif
