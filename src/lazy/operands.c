/* What an op is recorded with: what steers shapes is looked at first. */
#include "base/error.h"
#include "base/memory.h"
#include "lazy/lazy_internal.h"

fac_status fac_operands_check(const fac_recorder *r, const char *who, int n, fac_lazy *const in[],
                              int nout, fac_lazy *out[], fac_error *err) {
    if (!r) return fac_raise(err, FAC_E_ARGUMENT, "%s: the recorder is NULL", who);
    if (n < 0 || nout < 0 || (n && !in) || (nout && !out))
        return fac_raise(err, FAC_E_ARGUMENT, "%s: %d inputs, %d results", who, n, nout);
    for (int i = 0; i < n; i++)
        if (in[i] && in[i]->made->r != r)
            return fac_raise(err, FAC_E_ARGUMENT, "%s: input %d belongs to another recorder", who,
                             i);
    return FAC_OK;
}

static bool steers(const fac_op *op, int i) {
    int k = 0;
    if (!op->in) return false;
    while (k < i && op->in[k + 1].name) k++;
    return op->in[k].is & FAC_HOST;
}

/* What is known is known to nodes: calls are written out. */
static bool is_known(fac_lazy *x) {
    fac_contents c;
    if (x->made->kind == FAC_MADE_INTS) return true;
    if (!fac_lazy_recorded(x)) return false;
    return (x->value || !fac_segment_open(x->made->r, NULL)) && fac_known(x->value, &c);
}

/* Contents that steer shapes are looked at now; *out is a constant of them. */
static fac_status settle(fac_lazy *x, fac_lazy **out, fac_error *err) {
    fac_tensor *t, *copy;
    FAC_TRY(fac_lazy_fetch(x, &t, err));
    FAC_TRY(fac_tensor_copy_contiguous(t, &copy, err));
    const fac_status status = fac_lazy_of(x->made->r, copy, out, err);
    if (!status) (*out)->made->kind = FAC_MADE_INTS;
    fac_tensor_free(copy);
    return status;
}

void fac_operands_end(fac_operands *o) {
    for (int i = 0; i < o->n && o->own; i++) fac_lazy_unuse(o->own[i]);
    fac_release(o->many);
}

fac_status fac_operands_begin(fac_operands *o, const fac_op *op, int n, fac_lazy *const in[],
                              fac_error *err) {
    o->n = n;
    o->many = NULL;
    o->cell = o->few;
    o->own = o->own_few;
    o->value = o->few_values;
    if (n > FAC_FEW_OPERANDS) {
        if (!(o->many = fac_alloc((size_t)n, 3 * sizeof(void *)))) {
            o->own = NULL;
            return fac_raise_memory(err, "%d operands", n);
        }
        o->cell = o->many;
        o->own = o->cell + n;
        o->value = (fac_value **)(o->own + n);
    }
    for (int i = 0; i < n; i++) o->own[i] = NULL;
    for (int i = 0; i < n; i++) {
        o->cell[i] = in[i];
        if (!op || !in[i] || !steers(op, i) || is_known(in[i])) continue;
        FAC_TRY(settle(in[i], &o->own[i], err));
        o->cell[i] = o->own[i];
    }
    return FAC_OK;
}

fac_status fac_operands_values(fac_operands *o, fac_error *err) {
    for (int i = 0; i < o->n; i++) {
        o->value[i] = NULL;
        if (o->cell[i]) FAC_TRY(fac_segment_value(o->cell[i], &o->value[i], err));
    }
    return FAC_OK;
}
