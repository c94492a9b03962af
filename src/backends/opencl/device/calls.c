/* Plans that are some launches, see calls.h. */
#include <string.h>
#include "backends/opencl/device/calls.h"
#include "backends/opencl/device/complaint.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/device/probe.h"
#include "backends/gpu/speed.h"
#include "base/error.h"
#include "base/memory.h"
#include "cl_elements.h"

/* ---- while offering ---- */

const char *fac_cl_tag(fac_dtype t) { return fac_dtype_get(t)->name; }

bool fac_cl_has(const fac_opencl *o, fac_dtype t) {
    return *fac_cl_in_memory(t) && (t != FAC_F64 || o->limits.fp64);
}

bool fac_cl_settle_operands(const fac_opencl *o, fac_problem *p) {
    for (int i = 0; i < p->nin + p->nout; i++) {
        fac_operand *x = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        if (x->type.dtype == FAC_NONE) continue;
        if (!fac_cl_has(o, x->type.dtype)) return false;
        if (x->layout.block) x->layout = fac_layout_plain(&x->type.dims);
        x->layout.halo = 0;
    }
    return true;
}

bool fac_cl_settle(const fac_opencl *o, fac_problem *p) {
    return !p->node->body[0] && fac_cl_settle_operands(o, p);
}

bool fac_cl_settle_operands_plain(const fac_opencl *o, fac_problem *p) {
    if (!fac_cl_settle_operands(o, p)) return false;
    for (int i = 0; i < p->nin + p->nout; i++) {
        fac_operand *x = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        if (x->type.dtype != FAC_NONE && !fac_layout_is_plain(&x->layout, &x->type.dims))
            x->layout = fac_layout_plain(&x->type.dims);
    }
    return true;
}

bool fac_cl_settle_plain(const fac_opencl *o, fac_problem *p) {
    return !p->node->body[0] && fac_cl_settle_operands_plain(o, p);
}

static void lay_last(fac_layout *l, const fac_dims *d) {
    int64_t step = d->d[1];
    l->stride[1] = 1;
    for (int k = d->n - 1; k >= 2; k--) {
        l->stride[k] = step;
        step *= d->d[k];
    }
    l->stride[0] = step;
}

bool fac_cl_channels_last(const fac_operand *x) {
    const fac_dims *d = &x->type.dims;
    fac_layout l = x->layout;
    if (d->n < 3 || x->layout.block || fac_layout_is_plain(&x->layout, d)) return false;
    lay_last(&l, d);
    return fac_layout_equal(&l, &x->layout, d);
}

void fac_cl_lay_alike(const fac_operand *x, fac_operand *y) {
    if (x->type.dims.n == y->type.dims.n && fac_cl_channels_last(x))
        lay_last(&y->layout, &y->type.dims);
}

double fac_cl_price(const fac_opencl *o, const fac_problem *p, int launches) {
    double bytes = 0;
    for (int i = 0; i < p->nin + p->nout; i++) {
        const fac_type *t = i < p->nin ? &p->in[i].type : &p->out[i - p->nin].type;
        if (t->dtype != FAC_NONE) bytes += (double)fac_type_bytes(t);
    }
    return fac_gpu_costs.call * launches + bytes / fac_gpu_speed_of(&o->limits)->calls_bandwidth;
}

/* ---- while making ---- */

/* The arrays of the calls lie after them, in order. */
static fac_cl_plan *plan_of(int calls, size_t buffers, size_t numbers) {
    fac_cl_plan *plan =
        fac_alloc(1, sizeof *plan + (size_t)calls * sizeof *plan->call +
                         buffers * sizeof(fac_cl_operand) + numbers * sizeof(int64_t));
    if (plan) plan->room = calls;
    return plan;
}

fac_cl_plan *fac_cl_plan_open(int calls) {
    const size_t n = (size_t)calls;
    fac_cl_plan *plan = plan_of(calls, n * FAC_CL_BUFFERS, n * FAC_CL_NUMBERS);
    if (!plan) return NULL;
    fac_cl_operand *buffers = (fac_cl_operand *)(plan->call + calls);
    int64_t *numbers = (int64_t *)(buffers + n * FAC_CL_BUFFERS);
    for (size_t i = 0; i < n; i++) {
        plan->call[i].buffer = buffers + i * FAC_CL_BUFFERS;
        plan->call[i].number = numbers + i * FAC_CL_NUMBERS;
    }
    return plan;
}

static fac_cl_plan *cut(const fac_cl_plan *wide) {
    size_t buffers = 0, numbers = 0;
    for (int i = 0; i < wide->calls; i++) {
        buffers += (size_t)wide->call[i].buffers;
        numbers += (size_t)wide->call[i].numbers;
    }
    fac_cl_plan *plan = plan_of(wide->calls, buffers, numbers);
    if (!plan) return NULL;
    char *at = (char *)(plan->call + wide->calls);
    plan->calls = wide->calls;
    plan->table = wide->table;
    plan->table_bytes = wide->table_bytes;
    for (int i = 0; i < wide->calls; i++) {
        fac_cl_call *c = &plan->call[i];
        *c = wide->call[i];
        c->buffer = memcpy(at, c->buffer, (size_t)c->buffers * sizeof *c->buffer);
        at += (size_t)c->buffers * sizeof *c->buffer;
        c->number = memcpy(at, c->number, (size_t)c->numbers * sizeof *c->number);
        at += (size_t)c->numbers * sizeof *c->number;
    }
    return plan;
}

fac_status fac_cl_plan_close(fac_device *d, fac_cl_plan *wide, fac_status added, void **out,
                             fac_error *err) {
    fac_cl_plan *plan = wide && !added ? cut(wide) : NULL;
    if (!plan) {
        fac_cl_plan_done(d, wide);
        return added ? added : fac_raise(err, FAC_E_NOMEM, "%s: no memory for a plan", d->name);
    }
    fac_release(wide);
    *out = plan;
    return FAC_OK;
}

fac_status fac_cl_plan_make(fac_device *d, const fac_problem *p, int calls, fac_cl_adder *add,
                            void **out, fac_error *err) {
    fac_cl_plan *plan = fac_cl_plan_open(calls);
    return fac_cl_plan_close(d, plan, plan ? add(fac_opencl_of(d), p, plan, err) : FAC_OK, out,
                             err);
}

fac_status fac_cl_call_text(fac_opencl *o, fac_cl_plan *plan, const fac_text *text,
                            const char *options, const char *name, fac_cl_call **out,
                            fac_error *err) {
    if (plan->calls == plan->room)
        return fac_raise(err, FAC_E_INTERNAL, "%s: more launches than planned", name);
    if (text->failed) return fac_raise(err, FAC_E_NOMEM, "%s: no memory for a kernel's text", name);
    fac_cl_call *c = &plan->call[plan->calls];
    c->step = -1;
    FAC_TRY(fac_cl_kernel_new(o, text->s, options, name, &c->kernel, err));
    plan->calls++;
    *out = c;
    return FAC_OK;
}

fac_status fac_cl_call_new(fac_opencl *o, fac_cl_plan *plan, const char *source,
                           const fac_text *options, const char *name, fac_cl_call **out,
                           fac_error *err) {
    fac_text text = { 0 }, all = { 0 };
    fac_text_add(&all, options->s ? options->s : "");
    if (strstr(source, "FAC_EXCHANGE")) fac_cl_exchange_text(o, &text, &all);
    if (strstr(source, "FAC_DOT")) fac_cl_dot_text(o, &text, &all);
    fac_text_add(&text, fac_kernel_elements);
    fac_text_add(&text, source);
    text.failed |= options->failed | all.failed;
    fac_status status = fac_cl_call_text(o, plan, &text, all.s ? all.s : "", name, out, err);
    fac_text_free(&all);
    fac_text_free(&text);
    return status;
}

void fac_cl_call_items(fac_cl_call *c, size_t items, size_t group) {
    c->range = (fac_cl_range){ 1, { items }, { group } };
}

static void add_buffer(fac_cl_call *c, fac_cl_origin origin, int index, size_t size,
                       int64_t offset) {
    c->buffer[c->buffers++] = (fac_cl_operand){ origin, index, size, offset };
}

static void add_operand(fac_cl_call *c, fac_cl_origin origin, int index, const fac_operand *x) {
    const bool there = x->type.dtype != FAC_NONE;
    add_buffer(c, origin, index, there ? (size_t)fac_dtype_get(x->type.dtype)->block_bytes : 1,
               there ? x->layout.offset : 0);
}

void fac_cl_call_in(fac_cl_call *c, const fac_problem *p, int i) {
    add_operand(c, FAC_CL_IN, i, &p->in[i]);
}
void fac_cl_call_bytes(fac_cl_call *c, int i) { add_buffer(c, FAC_CL_IN, i, 1, 0); }
void fac_cl_call_out(fac_cl_call *c, const fac_problem *p, int k) {
    add_operand(c, FAC_CL_OUT, k, &p->out[k]);
}
void fac_cl_call_work(fac_cl_call *c, size_t before, size_t size) {
    add_buffer(c, FAC_CL_WORK, 0, size, (int64_t)(before / size));
}
void fac_cl_call_table(fac_cl_call *c, size_t size) { add_buffer(c, FAC_CL_TABLE, 0, size, 0); }

void fac_cl_call_complaint(fac_cl_call *c) {
    add_buffer(c, FAC_CL_COMPLAINT, 0, sizeof(int64_t), 0);
    c->step = c->numbers;
    fac_cl_call_number(c, 0);
}

void fac_cl_call_real(fac_cl_call *c, double x, fac_dtype computing) {
    union {
        double d;
        float f;
        int64_t i;
    } bits = { .i = 0 };
    if (computing == FAC_F64)
        bits.d = x;
    else
        bits.f = (float)x;
    fac_cl_call_number(c, bits.i);
}

fac_status fac_cl_plan_table(fac_opencl *o, fac_cl_plan *plan, const void *data, size_t bytes,
                             fac_error *err) {
    FAC_TRY(fac_device_alloc(&o->device, bytes ? bytes : 1, &plan->table.memory, err));
    plan->table_bytes = bytes ? bytes : 1;
    return o->device.backend->write(&o->device, plan->table, data, bytes, err);
}

fac_status fac_cl_plan_counters(fac_opencl *o, fac_cl_plan *plan, size_t n, fac_error *err) {
    uint32_t *zeros = fac_alloc(n, sizeof *zeros);
    if (!zeros) return fac_raise_memory(err, "%zu counters", n);
    fac_status status = fac_cl_plan_table(o, plan, zeros, n * sizeof *zeros, err);
    fac_release(zeros);
    return status;
}

void fac_cl_option_wide(const fac_problem *p, fac_text *options) {
    bool wide = false;
    for (int i = 0; i < p->nin + p->nout; i++) {
        const fac_operand *x = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        if (x->type.dtype == FAC_NONE) continue;
        wide |= fac_layout_bytes(&x->layout, &x->type) /
                    (size_t)fac_dtype_get(x->type.dtype)->block_bytes >=
                INT32_MAX / 2;
    }
    if (wide) fac_text_add(options, " -DWIDE");
}

int fac_cl_width(const fac_opencl *o, fac_dtype computing) {
    if (o->limits.gpu) return 1;
    return computing == FAC_F32 ? 16 : 8;
}

/* ---- of the solver ---- */

void fac_cl_plan_done(fac_device *d, void *arg) {
    fac_cl_plan *plan = arg;
    if (!plan) return;
    for (int i = 0; i < plan->calls; i++)
        fac_cl_kernel_free(fac_opencl_of(d), &plan->call[i].kernel);
    fac_device_release(d, plan->table.memory, plan->table_bytes);
    fac_release(plan);
}

fac_status fac_cl_plan_run(const void *plan, fac_device *d, const fac_span *in, const fac_span *out,
                           fac_span work, fac_error *err) {
    return fac_cl_plan_run_from(plan, 0, d, in, out, work, err);
}

fac_status fac_cl_plan_run_from(const void *arg, int first, fac_device *d, const fac_span *in,
                                const fac_span *out, fac_span work, fac_error *err) {
    const fac_cl_plan *plan = arg;
    fac_opencl *o = fac_opencl_of(d);
    fac_span complaints = { 0 };
    for (int i = first; i < plan->calls; i++) {
        const fac_cl_call *c = &plan->call[i];
        int64_t words[FAC_CL_BUFFERS + FAC_CL_NUMBERS];
        fac_cl_arg args[1 + FAC_CL_BUFFERS];
        if (c->step >= 0) FAC_TRY(fac_cl_complaints(o, &complaints, err));
        for (int k = 0; k < c->buffers; k++) {
            const fac_cl_operand *b = &c->buffer[k];
            const fac_span s = b->origin == FAC_CL_IN      ? in[b->index]
                               : b->origin == FAC_CL_OUT   ? out[b->index]
                               : b->origin == FAC_CL_WORK  ? work
                               : b->origin == FAC_CL_TABLE ? plan->table
                                                           : complaints;
            args[1 + k] = fac_cl_arg_span(s);
            words[k] = s.memory ? b->offset + (int64_t)(fac_cl_at(s) / b->size) : 0;
        }
        memcpy(words + c->buffers, c->number, (size_t)c->numbers * sizeof *words);
        if (c->step >= 0) words[c->buffers + c->step] = (int64_t)(uintptr_t)o->step;
        args[0] = fac_cl_arg_value(words, (size_t)(c->buffers + c->numbers) * sizeof *words);
        FAC_TRY(fac_cl_launch(o, &c->kernel, &c->range, 1 + c->buffers, args, err));
        if (c->step >= 0) fac_cl_may_complain(o);
    }
    return FAC_OK;
}
