/* Solver "elementwise": see elementwise.h. */
#include <stdio.h>
#include <string.h>
#include "backends/opencl/elementwise.h"
#include "backends/opencl/launch.h"
#include "backends/opencl/solvers.h"
#include "base/error.h"
#include "base/memory.h"

enum { WORDS = 96 };            /* of the argument: with the pointers within the 1,024 bytes that every device takes */

typedef struct plan {
    fac_cl_walk walk;
    fac_cl_kernel kernel;
    fac_cl_range range;
    size_t      size[FAC_CL_OPERANDS];      /* bytes of an element */
    int         inputs;
} plan;

/* Merges dim k into k + 1 where every operand steps evenly over both. */
static void merge(fac_cl_walk *w) {
    for (int k = w->dims - 2; k >= 0; k--) {
        bool even = true;
        for (int i = 0; i < w->operands; i++) even &= w->stride[i][k] == w->stride[i][k + 1] * (int64_t)w->size[k + 1];
        if (!even) continue;
        w->size[k] *= w->size[k + 1];
        w->dims--;
        for (int i = 0; i < w->operands; i++) w->stride[i][k] = w->stride[i][k + 1];
        for (int j = k + 1; j < w->dims; j++) {
            w->size[j] = w->size[j + 1];
            for (int i = 0; i < w->operands; i++) w->stride[i][j] = w->stride[i][j + 1];
        }
    }
}

bool fac_cl_walk_of(const fac_problem *p, fac_cl_walk *w) {
    const fac_dims *d = &p->out[0].type.dims;
    memset(w, 0, sizeof *w);
    w->operands = p->nin + p->nout;
    w->count = 1;
    if (p->nout < 1 || w->operands > FAC_CL_OPERANDS) return false;
    for (int k = 0; k < d->n; k++) w->count *= (uint64_t)d->d[k];
    for (int k = 0; k < d->n; k++)              /* dims of one are no dims */
        if (d->d[k] != 1) w->size[w->dims++] = (uint64_t)d->d[k];
    for (int i = 0; i < w->operands; i++) {
        const fac_operand *o = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        const int shift = d->n - o->type.dims.n;
        if (o->layout.block || shift < 0) return false;
        if (i >= p->nin && !fac_dims_equal(&o->type.dims, d)) return false;
        w->offset[i] = o->layout.offset;
        for (int k = 0, at = 0; k < d->n; k++) {
            if (d->d[k] == 1) continue;
            bool there = k >= shift && o->type.dims.d[k - shift] != 1;
            w->stride[i][at++] = there ? o->layout.stride[k - shift] : 0;
        }
    }
    if (!w->dims) w->size[w->dims++] = 1;
    merge(w);
    return fac_cl_walk_words(w) <= WORDS;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const fac_opencl *o = fac_opencl_of(d);
    fac_cl_walk w;
    fac_text text = { 0 };
    bool doubles;
    const fac_op *op = p->node->op;
    if (!op->map && strcmp(op->name, "cast") && strcmp(op->name, "fused")) return false;
    bool good = fac_cl_walk_of(p, &w) && fac_cl_elementwise_text(p, &w, o->limits.fp64, &text, &doubles);
    fac_text_free(&text);
    if (!good) return false;
    double bytes = 0;
    for (int i = 0; i < w.operands; i++) bytes += (double)fac_type_bytes(i < p->nin ? &p->in[i].type : &p->out[i - p->nin].type);
    offer->seconds = 5e-6 + bytes / (o->limits.gpu ? 5e11 : 1e10);
    return true;
}

static void done(fac_device *d, void *arg) {
    plan *r = arg;
    if (r) fac_cl_kernel_free(fac_opencl_of(d), &r->kernel);
    fac_release(r);
}

static fac_status build(fac_opencl *o, const fac_problem *p, plan *r, fac_error *err) {
    fac_text text = { 0 };
    bool doubles = false;
    if (!fac_cl_walk_of(p, &r->walk) || !fac_cl_elementwise_text(p, &r->walk, o->limits.fp64, &text, &doubles)) {
        fac_text_free(&text);
        return fac_raise(err, FAC_E_INTERNAL, "elementwise: %s has no expression any more", p->node->op->name);
    }
    fac_status status = fac_cl_kernel_new(o, text.s, doubles ? "" : "-cl-single-precision-constant", "elementwise", &r->kernel, err);
    fac_text_free(&text);
    FAC_TRY(status);
    r->inputs = p->nin;
    for (int i = 0; i < r->walk.operands; i++) {
        const fac_operand *operand = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        r->size[i] = (size_t)fac_dtype_get(operand->type.dtype)->block_bytes;
    }
    /* enough items to fill the device, each with some elements of work */
    size_t most = (size_t)o->limits.units * 2048, want = (size_t)r->walk.count;
    r->range = (fac_cl_range){ 1, { want < most ? want : most }, { o->limits.group < 256 ? o->limits.group : 256 } };
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *r = fac_alloc(1, sizeof *r);
    if (!r) return fac_raise(err, FAC_E_NOMEM, "elementwise: no memory for a plan");
    fac_status status = build(fac_opencl_of(d), p, r, err);
    if (status) done(d, r);
    else *out = r;
    return status;
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out, fac_span work, fac_error *err) {
    (void)work;
    const plan *r = arg;
    const fac_cl_walk *w = &r->walk;
    uint64_t words[WORDS];
    fac_cl_arg args[1 + FAC_CL_OPERANDS];
    int n = 0;
    if (!w->count) return FAC_OK;
    words[n++] = w->count;
    for (int k = 0; k < w->dims; k++) words[n++] = w->size[k];
    for (int i = 0; i < w->operands; i++)
        for (int k = 0; k < w->dims; k++) words[n++] = (uint64_t)w->stride[i][k];
    for (int i = 0; i < w->operands; i++) {
        fac_span s = i < r->inputs ? in[i] : out[i - r->inputs];
        args[1 + i] = fac_cl_arg_span(s);
        words[n++] = (uint64_t)w->offset[i] + fac_cl_at(s) / r->size[i];
    }
    args[0] = fac_cl_arg_value(words, (size_t)n * sizeof *words);
    return fac_cl_launch(fac_opencl_of(d), &r->kernel, &r->range, 1 + w->operands, args, err);
}

const fac_solver fac_cl_elementwise = {
    .name = "elementwise", .op = NULL, .offer = offer, .make = make, .done = done, .run = run };
