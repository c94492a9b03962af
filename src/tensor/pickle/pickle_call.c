/* What the calls of a pickle mean: storages, tensors, parameters, dicts, and what is passed over.
 */
#include <string.h>
#include "base/error.h"
#include "tensor/pickle/pickle_global.h"
#include "tensor/pickle/pickle_machine.h"
#include "tensor/pickle/pickle_numpy.h"

typedef fac_pickle_value value;
typedef fac_pickle_machine machine;

/* ("storage", class, key, location, elements) and, in files before 1.6, a view into it, which is
 * None. */
fac_status fac_pickle_persistent(machine *m) {
    value *t = fac_pickle_top(m, 0), *v;
    bool known =
        fac_pickle_is(t, FAC_PICKLE_TUPLE) &&
        (t->n == 5 || (t->n == 6 && fac_pickle_is(t->item[5], FAC_PICKLE_NONE))) &&
        fac_pickle_is(t->item[0], FAC_PICKLE_TEXT) && !strcmp(t->item[0]->text, "storage") &&
        fac_pickle_is(t->item[1], FAC_PICKLE_GLOBAL) && t->item[1]->i == FAC_PICKLE_STORAGE_CLASS &&
        fac_pickle_is(t->item[2], FAC_PICKLE_TEXT) && fac_pickle_is(t->item[4], FAC_PICKLE_INT) &&
        t->item[4]->i >= 0;
    if (!known) return fac_pickle_broken(m, "a reference that is no storage");
    if (!(v = fac_pickle_make(m, FAC_PICKLE_STORAGE))) return fac_pickle_no_memory(m);
    v->dtype = t->item[1]->dtype;
    v->row = t->item[1]->row;
    v->text = t->item[2]->text;
    v->n = t->item[2]->n;
    v->i = t->item[4]->i;
    v->next = m->storages;
    m->storages = v;
    m->n--;
    return fac_pickle_push(m, v);
}

/* What is passed over; `tensor`: it would be one, but for what it says. */
static fac_status other(machine *m, const char *what, bool tensor, value **out) {
    value *v = fac_pickle_make(m, FAC_PICKLE_OTHER);
    if (!v) return fac_pickle_no_memory(m);
    v->text = what;
    v->i = tensor;
    *out = v;
    return FAC_OK;
}

/* (storage, offset, size, stride, ...); typed: (storage of bytes, offset, size, stride, grad,
 * hooks, dtype, ...) */
static fac_status rebuild_tensor(machine *m, const value *a, bool typed, value **out) {
    bool known = a->n >= 4 && fac_pickle_is(a->item[0], FAC_PICKLE_STORAGE) &&
                 fac_pickle_is(a->item[1], FAC_PICKLE_INT) && a->item[1]->i >= 0 &&
                 fac_pickle_is(a->item[2], FAC_PICKLE_TUPLE) &&
                 fac_pickle_is(a->item[3], FAC_PICKLE_TUPLE) && a->item[2]->n == a->item[3]->n;
    const value *type = typed && a->n > 6 ? a->item[6] : NULL;
    if (typed)
        known &= fac_pickle_is(type, FAC_PICKLE_GLOBAL) && type->i == FAC_PICKLE_TYPE &&
                 a->item[0]->dtype == FAC_U8;
    if (known && a->item[2]->n > FAC_DIMS) return other(m, "more than 8 dims", true, out);
    const value *element = known ? a->item[0] : NULL;
    if (typed) element = type;
    if (known && element->dtype == FAC_NONE)
        return other(m, fac_pickle_name_at(element->row)->what, true, out);
    value *v = fac_pickle_make(m, FAC_PICKLE_TENSOR);
    fac_pickle_tensor *t = fac_arena_alloc(m->arena, 1, sizeof *t);
    if (!v || !t) return fac_pickle_no_memory(m);
    if (!known || !fac_pickle_dims(a->item[2], t->dims.d) ||
        !fac_pickle_dims(a->item[3], t->stride))
        return fac_pickle_broken(m, "a tensor without storage, offset, sizes and strides");
    t->storage = a->item[0];
    t->offset = a->item[1]->i;
    t->dims.n = (int)a->item[2]->n;
    v->dtype = typed ? type->dtype : FAC_NONE;
    v->tensor = t;
    *out = v;
    return FAC_OK;
}

/* () or, from Python 2, ([[key, value], ...],) */
static fac_status ordered_dict(machine *m, const value *a, value **out) {
    value *v = fac_pickle_make(m, FAC_PICKLE_DICT);
    if (!v) return fac_pickle_no_memory(m);
    if (a->n > 1 || (a->n && !fac_pickle_is(a->item[0], FAC_PICKLE_LIST)))
        return fac_pickle_broken(m, "an OrderedDict of what is no list");
    /* one list in a call after the other would make much of little: a list has fewer pairs than it
     * has bytes */
    m->pairs += a->n ? a->item[0]->n : 0;
    if (m->pairs > (size_t)(m->end - m->start))
        return fac_pickle_broken(m, "OrderedDicts of more pairs than there are");
    for (size_t i = 0; a->n && i < a->item[0]->n; i++) {
        const value *pair = a->item[0]->item[i];
        if ((!fac_pickle_is(pair, FAC_PICKLE_LIST) && !fac_pickle_is(pair, FAC_PICKLE_TUPLE)) ||
            pair->n != 2)
            return fac_pickle_broken(m, "an OrderedDict of what are no pairs");
        FAC_TRY(fac_pickle_append(m, v, pair->item, 2));
    }
    *out = v;
    return FAC_OK;
}

/* A parameter is the tensor that it is made of. */
static fac_status parameter(machine *m, const value *a, value **out) {
    const bool tensor = a->n && (fac_pickle_is(a->item[0], FAC_PICKLE_TENSOR) ||
                                 (fac_pickle_is(a->item[0], FAC_PICKLE_OTHER) && a->item[0]->i));
    if (!tensor) return fac_pickle_broken(m, "a parameter that is no tensor");
    *out = a->item[0];
    return FAC_OK;
}

static fac_status call(machine *m, const value *f, const value *a, value **out) {
    const fac_pickle_name *row = fac_pickle_name_at(f->row);
    if (f->i == FAC_PICKLE_ONE_DTYPE)
        return fac_raise(m->err, FAC_E_UNSUPPORTED, "a pickle that calls %s", f->text);
    switch (row->is) {
    case FAC_PICKLE_ORDERED_DICT:
        return ordered_dict(m, a, out);
    case FAC_PICKLE_DEFAULT_DICT:
        return (*out = fac_pickle_make(m, FAC_PICKLE_DICT)) ? FAC_OK : fac_pickle_no_memory(m);
    case FAC_PICKLE_REBUILD:
        return rebuild_tensor(m, a, false, out);
    case FAC_PICKLE_REBUILD_TYPED:
        return rebuild_tensor(m, a, true, out);
    case FAC_PICKLE_PARAMETER:
        return parameter(m, a, out);
    case FAC_PICKLE_RECONSTRUCT:
        return (*out = fac_pickle_make(m, FAC_PICKLE_ARRAY)) ? FAC_OK : fac_pickle_no_memory(m);
    case FAC_PICKLE_NUMPY_DTYPE:
        return fac_pickle_numpy_dtype(m->arena, a, out, m->err);
    case FAC_PICKLE_ENCODE:
        return fac_pickle_latin1(m->arena, a, out, m->err);
    case FAC_PICKLE_STRANGE:
        return other(m, row->what, true, out);
    case FAC_PICKLE_PLAIN:
        return other(m, row->what, false, out);
    case FAC_PICKLE_STORAGE_CLASS:
    case FAC_PICKLE_TYPE:
        break;
    }
    return fac_raise(m->err, FAC_E_UNSUPPORTED, "a pickle that calls %s", f->text);
}

fac_status fac_pickle_reduce(machine *m) {
    value *a = fac_pickle_top(m, 0), *f = fac_pickle_top(m, 1), *v = NULL;
    if (!fac_pickle_is(a, FAC_PICKLE_TUPLE) || !fac_pickle_is(f, FAC_PICKLE_GLOBAL))
        return fac_pickle_broken(m, "a call of what cannot be called");
    FAC_TRY(call(m, f, a, &v));
    m->n -= 2;
    return fac_pickle_push(m, v);
}

/* cls.__new__(cls, ...): only of classes whose values are passed over. */
fac_status fac_pickle_new_object(machine *m) {
    const value *f = fac_pickle_top(m, 1);
    if (fac_pickle_is(f, FAC_PICKLE_GLOBAL) && f->i == FAC_PICKLE_PLAIN)
        return fac_pickle_reduce(m);
    return fac_pickle_broken(m, "a new object of what is no class");
}

/* The attributes of an OrderedDict, such as a state dict's _metadata, and of what is passed over:
 * of no use here. */
fac_status fac_pickle_build(machine *m) {
    value *v = fac_pickle_top(m, 1);
    if (fac_pickle_is(v, FAC_PICKLE_ARRAY))
        FAC_TRY(fac_pickle_numpy_array(m->arena, v, fac_pickle_top(m, 0), m->err));
    else if (fac_pickle_is(v, FAC_PICKLE_GLOBAL) && v->i == FAC_PICKLE_ONE_DTYPE)
        FAC_TRY(fac_pickle_numpy_order(v, fac_pickle_top(m, 0), m->err));
    else if ((!fac_pickle_is(v, FAC_PICKLE_DICT) && !fac_pickle_is(v, FAC_PICKLE_OTHER)) ||
             fac_pickle_is(fac_pickle_top(m, 0), FAC_PICKLE_MARK))
        return fac_pickle_broken(m, "attributes of what is no OrderedDict");
    m->n--;
    return FAC_OK;
}
