/* Values that share contents: without a history, or with a gradient of the binding's own. */
#include "base/error.h"
#include "base/memory.h"
#include "lazy/lazy_internal.h"

/* x has the contents of y, there or recorded. */
static fac_status share(fac_lazy *x, fac_lazy *y, fac_error *err) {
    fac_recorder *r = y->made->r;
    x->type = y->type;
    if (y->made->kind == FAC_MADE_ROOM) FAC_TRY(fac_room_settle(y, err));
    if (y->tensor || !fac_lazy_recorded(y)) {
        fac_tensor *t;
        FAC_TRY(fac_lazy_fetch(y, &t, err));
        x->tensor = fac_tensor_retain(t);
        return FAC_OK;
    }
    FAC_TRY(fac_segment_open(r, err));
    x->value = y->value;
    x->epoch = r->epoch;
    return FAC_OK;
}

/* Listed as pending if one of its cells is. */
static fac_status list_pending(fac_made *m, fac_error *err) {
    bool any = false;
    for (int k = 0; k < m->nout; k++) any |= m->cell[k].value != NULL;
    return any ? fac_made_list(m, err) : FAC_OK;
}

static void drop_new(fac_made *m) {
    for (int k = 0; k < m->nout; k++) fac_tensor_free(m->cell[k].tensor);
    fac_release(m);
}

/* One that y is not computed for: a state's contents change with it. */
static fac_status alias(fac_lazy *y, fac_lazy **out, fac_error *err) {
    fac_made *m = fac_made_new(y->made->r, FAC_MADE_ALIAS, 1);
    if (!m || fac_history_note(m, NULL, NULL, NULL, 1, &y, err)) {
        fac_release(m);
        return fac_raise_memory(err, "a value");
    }
    m->cell[0].type = y->type;
    *out = fac_lazy_use(&m->cell[0]);
    return FAC_OK;
}

static fac_status detach(fac_lazy *y, fac_lazy **out, fac_error *err) {
    while (y->made->kind == FAC_MADE_ALIAS) y = y->made->in[0];
    if (y->made->kind == FAC_MADE_STATE) return alias(y, out, err);
    fac_made *m = fac_made_new(y->made->r, FAC_MADE_OP, 1);
    if (!m) return fac_raise_memory(err, "a value");
    m->serial = ++m->r->serials;
    fac_status status = share(&m->cell[0], y, err);
    if (!status) status = list_pending(m, err);
    if (status)
        drop_new(m);
    else
        *out = fac_lazy_use(&m->cell[0]);
    return status;
}

fac_status fac_lazy_detach(fac_lazy *x, fac_lazy **out, fac_error *err) {
    if (!x || !out)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_lazy_detach: %s is NULL",
                         x ? "out" : "the value");
    fac_recorder *r = x->made->r;
    fac_recorder_hold(r);
    const fac_status status = detach(x, out, err);
    fac_recorder_let_go(r);
    return status;
}

static fac_status record_custom(fac_recorder *r, int n, fac_lazy *const in[], int nout,
                                fac_lazy *const y[], fac_lazy *out[], fac_made **made,
                                fac_error *err) {
    fac_made *m = fac_made_new(r, FAC_MADE_CUSTOM, nout);
    if (!m) return fac_raise_memory(err, "a value");
    m->serial = ++r->serials;
    fac_status status = FAC_OK;
    for (int k = 0; k < nout && !status; k++) status = share(&m->cell[k], y[k], err);
    if (!status && fac_history_wanted(n, in, 0))
        status = fac_history_note(m, NULL, NULL, NULL, n, in, err);
    if (!status) status = list_pending(m, err);
    if (status) {
        fac_made_forget(m);
        drop_new(m);
        return status;
    }
    for (int k = 0; k < nout; k++) {
        m->cell[k].requires = m->nin && fac_dtype_get(y[k]->type.dtype)->kind == 'f';
        out[k] = fac_lazy_use(&m->cell[k]);
    }
    *made = m;
    return FAC_OK;
}

fac_status fac_record_custom(fac_recorder *r, int n, fac_lazy *const in[], int nout,
                             fac_lazy *const y[], fac_lazy_grad *grad, void (*release)(void *self),
                             void *self, fac_lazy *out[], fac_error *err) {
    if (!r || !grad || n < 0 || nout < 1 || (n && !in) || !y || !out)
        return fac_raise(err, FAC_E_ARGUMENT, "fac_record_custom: %d inputs, %d results, %s", n,
                         nout,
                         r && grad ? "or a list is NULL" : "the recorder or the gradient is NULL");
    for (int i = 0; i < n + nout; i++) {
        const fac_lazy *x = i < n ? in[i] : y[i - n];
        if (i >= n && !x)
            return fac_raise(err, FAC_E_ARGUMENT, "fac_record_custom: y[%d] is NULL", i - n);
        if (x && x->made->r != r)
            return fac_raise(err, FAC_E_ARGUMENT,
                             "fac_record_custom: a value belongs to another recorder");
    }
    fac_made *m;
    fac_recorder_hold(r);
    const fac_status status = record_custom(r, n, in, nout, y, out, &m, err);
    if (!status) {
        m->grad = grad;
        m->release = release;
        m->self = self;
    }
    fac_recorder_let_go(r);
    return status;
}
