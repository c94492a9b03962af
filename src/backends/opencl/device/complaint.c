/* See complaint.h.  The step's name is passed as the number that its pointer is: it lives until the
 * next wait (fac_backend.step), so the words are made then, whether anybody asks for them or not.
 */
#include <stdio.h>
#include "backends/opencl/device/complaint.h"
#include "base/error.h"
#include "base/optional.h"
#include "ops/index.h"

typedef struct complaint {
    cl_long told, step, index, size;
} complaint; /* of told, 32 bits are used */

static fac_status clear(fac_opencl *o, fac_cl_block *block, fac_error *err) {
    return o->device.backend->zero(&o->device, (fac_span){ block, 0 }, sizeof(complaint), err);
}

static fac_cl_block *present(fac_opencl *o) {
    pthread_mutex_lock(&o->fault);
    fac_cl_block *block = o->complaint;
    pthread_mutex_unlock(&o->fault);
    return block;
}

/* Cleared before any kernel of any thread may write there. */
static fac_status make(fac_opencl *o, fac_error *err) {
    fac_cl_block *block;
    FAC_TRY(fac_cl_take(o, sizeof(complaint), &block, err));
    const fac_status status = clear(o, block, err);
    pthread_mutex_lock(&o->fault);
    const bool mine = !status && !o->complaint;
    if (mine) o->complaint = block;
    pthread_mutex_unlock(&o->fault);
    if (!mine) fac_cl_give(o, block);
    return status;
}

fac_status fac_cl_complaints(fac_opencl *o, fac_span *out, fac_error *err) {
    if (!present(o)) FAC_TRY(make(o, err));
    *out = (fac_span){ present(o), 0 };
    return FAC_OK;
}

void fac_cl_may_complain(fac_opencl *o) { o->complaining = true; }

/* Notes in o->complained what a kernel complained of since the last time. */
static fac_status listen(fac_opencl *o, fac_error *err) {
    complaint c = { 0 };
    const fac_span at = { o->complaint, 0 };
    if (!atomic_exchange(&o->complaining, false)) return FAC_OK;
    const cl_int code = o->cl.EnqueueReadBuffer(o->queue, fac_cl_buffer(at), CL_TRUE, fac_cl_at(at),
                                                sizeof c, &c, 0, NULL, NULL);
    if (code) return fac_cl_blame(o, code, "reading what kernels complain of", err);
    if (!(cl_int)c.told) return FAC_OK;
    FAC_TRY(clear(o, o->complaint, err));
    const char *step = (const char *)(uintptr_t)c.step;
    fac_error own = { 0 };
    const fac_status status = fac_raise_index(c.index, c.size, &own);
    fac_raise_in(&own, status, "%s%s%s", o->device.name, fac_text_if(step, ": "),
                 fac_text_or(step, ""));
    pthread_mutex_lock(&o->fault);
    if (!o->complained.status) o->complained = own;
    pthread_mutex_unlock(&o->fault);
    return FAC_OK;
}

fac_status fac_cl_hear(fac_opencl *o, fac_error *err) {
    FAC_TRY(listen(o, err));
    pthread_mutex_lock(&o->fault);
    const fac_error told = o->complained;
    if (err) o->complained.status = FAC_OK;
    pthread_mutex_unlock(&o->fault);
    return told.status ? fac_raise(err, told.status, "%s", told.text) : FAC_OK;
}
