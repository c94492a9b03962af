/* Operands of a run on a device out of sight: see transfer.h.  Nothing here waits for the device
 * but a result that has to be brought to a part of a host tensor. */
#include "base/error.h"
#include "base/memory.h"
#include "run/loan.h"
#include "facula/tensor.h"

static size_t some(size_t bytes) { return bytes ? bytes : 1; }

static bool lives_on(const fac_device *d, const fac_tensor *t) {
    const fac_storage *s = fac_tensor_storage(t);
    return s->ops && s->device == d && s->memory;
}

static bool covers_storage(const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    return fac_tensor_contiguous(t) && !fac_tensor_at(t) &&
           fac_type_bytes(&type) == fac_tensor_storage(t)->bytes;
}

/* Kernels read vectors: what begins anywhere else than they may is lent as a copy. */
static bool begins_well(const fac_tensor *t) {
    enum { ACCESS = 16 };
    return fac_tensor_at(t) % ACCESS == 0;
}

static fac_status copy_new(fac_device *d, const fac_tensor *t, fac_loan *l, fac_error *err) {
    const fac_type type = fac_tensor_type(t);
    l->bytes = some(fac_type_bytes(&type));
    FAC_TRY(fac_device_hold(d, FAC_HOLD_OPERANDS, l->bytes, &l->copy, err));
    l->span = (fac_span){ l->copy, 0 };
    return FAC_OK;
}

static fac_status copy_in(fac_device *d, fac_tensor *t, const fac_span *there, fac_loan *l,
                          fac_error *err) {
    const fac_type type = fac_tensor_type(t);
    const size_t bytes = fac_type_bytes(&type);
    if (there) return d->backend->copy(d, *there, l->span, bytes, err);
    FAC_TRY(fac_storage_home(fac_tensor_storage(t), err));
    const void *data = fac_tensor_contiguous(t) ? fac_tensor_data(t) : NULL;
    if (data) return d->backend->write(d, l->span, data, bytes, err);
    void *host = fac_alloc(some(bytes), 1);
    if (!host) return fac_raise_memory(err, "%zu bytes", bytes);
    fac_status status = fac_tensor_read(t, host, bytes, err);
    if (!status) status = d->backend->write(d, l->span, host, bytes, err);
    fac_release(host);
    return status;
}

static fac_status lend_in(fac_device *d, fac_tensor *t, bool own, fac_loan *l, fac_error *err) {
    fac_span there = { 0 };
    if (fac_tensor_contiguous(t) && lives_on(d, t))
        there.memory = fac_tensor_storage(t)->memory;
    else if (fac_tensor_contiguous(t) && (l->mirror = fac_mirror_current(fac_tensor_storage(t), d)))
        there.memory = l->mirror->memory;
    there.at = fac_tensor_at(t);
    if (there.memory && !own && begins_well(t)) {
        l->span = there;
        return FAC_OK;
    }
    FAC_TRY(copy_new(d, t, l, err));
    return copy_in(d, t, there.memory ? &there : NULL, l, err);
}

fac_status fac_lend_in(fac_device *d, fac_tensor *t, bool own, fac_loan *out, fac_error *err) {
    fac_loan l = { 0 };
    fac_status status = lend_in(d, t, own, &l, err);
    if (status)
        fac_lend_end(d, &l, false, NULL);
    else
        *out = l;
    return status;
}

static fac_status mirror_of(fac_device *d, fac_tensor *t, bool contents, fac_loan *l,
                            fac_error *err) {
    FAC_TRY(fac_mirror_use(fac_tensor_storage(t), &d->mirrors, d, d->memory_ops, contents,
                           &l->mirror, err));
    l->span = (fac_span){ l->mirror->memory, fac_tensor_at(t) };
    return FAC_OK;
}

fac_status fac_lend_out(fac_device *d, fac_tensor *t, fac_loan *out, fac_error *err) {
    fac_loan l = { .to = t };
    if (fac_tensor_contiguous(t) && lives_on(d, t) && begins_well(t))
        l.span = (fac_span){ fac_tensor_storage(t)->memory, fac_tensor_at(t) };
    else if (covers_storage(t) && !fac_tensor_storage(t)->ops)
        FAC_TRY(mirror_of(d, t, false, &l, err));
    else
        FAC_TRY(copy_new(d, t, &l, err));
    *out = l;
    return FAC_OK;
}

fac_status fac_lend_param(fac_device *d, fac_tensor *t, fac_loan *out, fac_error *err) {
    fac_loan l = { .to = t };
    if (!begins_well(t)) {
        FAC_TRY(fac_lend_in(d, t, true, out, err));
        out->to = t;
        return FAC_OK;
    }
    if (lives_on(d, t))
        l.span = (fac_span){ fac_tensor_storage(t)->memory, fac_tensor_at(t) };
    else if (!fac_tensor_storage(t)->ops)
        FAC_TRY(mirror_of(d, t, true, &l, err));
    else
        return fac_lend_in(d, t, false, out, err); /* of another device */
    *out = l;
    return FAC_OK;
}

static fac_status deliver(fac_device *d, const fac_loan *l, fac_error *err) {
    const fac_type type = fac_tensor_type(l->to);
    const size_t bytes = fac_type_bytes(&type);
    void *host = fac_alloc(some(bytes), 1);
    if (!host) return fac_raise_memory(err, "%zu bytes", bytes);
    fac_status status = d->backend->read(d, l->span, host, bytes, err);
    if (!status) status = fac_tensor_write(l->to, host, bytes, err);
    fac_release(host);
    return status;
}

fac_status fac_lend_end(fac_device *d, fac_loan *l, bool done, fac_error *err) {
    fac_status status = FAC_OK;
    if (done && l->to && l->copy)
        status = deliver(d, l, err);
    else if (done && l->to && l->mirror)
        fac_mirror_written(l->mirror);
    else if (done && l->to)
        fac_tensor_begin_write(l->to, NULL, NULL); /* a new version; its own memory needs nothing */
    fac_mirror_done(l->mirror);
    fac_device_drop(d, FAC_HOLD_OPERANDS, l->copy, l->bytes);
    *l = (fac_loan){ 0 };
    return status;
}
