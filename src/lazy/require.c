/* Which cells gradients are asked for. */
#include "base/error.h"
#include "lazy/lazy_internal.h"

fac_status fac_lazy_require(fac_lazy *x, bool requires, fac_error *err) {
    if (!x) return fac_raise(err, FAC_E_ARGUMENT, "fac_lazy_require: the value is NULL");
    if (!fac_lazy_is_leaf(x))
        return fac_raise(err, FAC_E_ARGUMENT,
                         "fac_lazy_require: this value is the result of an op: detach it first");
    if (requires && fac_dtype_get(x->type.dtype)->kind != 'f')
        return fac_raise(err, FAC_E_DTYPE, "fac_lazy_require: %s has no gradients",
                         fac_dtype_get(x->type.dtype)->name);
    x->requires = requires;
    return FAC_OK;
}

bool fac_lazy_requires(const fac_lazy *x) { return x->requires; }
bool fac_lazy_is_leaf(const fac_lazy *x) {
    return !fac_made_has_history(x->made) && !x->made->used_up;
}

const char *fac_lazy_made_by(const fac_lazy *x) {
    if (x->made->kind == FAC_MADE_CUSTOM) return "custom";
    return x->made->kind == FAC_MADE_OP && x->made->op ? x->made->op->name : NULL;
}
