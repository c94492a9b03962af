/* What pickles of NumPy arrays say, see pickle_numpy.h. */
#include <string.h>
#include "base/error.h"
#include "tensor/pickle/pickle_numpy.h"

typedef fac_pickle_value value;

static fac_status broken(fac_error *err, const char *what) {
    return fac_raise(err, FAC_E_FORMAT, "a broken pickle: %s", what);
}
static bool is(const value *v, fac_pickle_kind kind) { return v && v->kind == kind; }

static value *make(fac_arena *arena, fac_pickle_kind kind) {
    value *v = fac_arena_alloc(arena, 1, sizeof *v);
    if (v) v->kind = (unsigned char)kind;
    return v;
}

bool fac_pickle_dims(const value *t, int64_t d[FAC_DIMS]) {
    for (size_t k = 0; k < t->n; k++) {
        if (!is(t->item[k], FAC_PICKLE_INT) || t->item[k]->i < 0) return false;
        d[k] = t->item[k]->i;
    }
    return true;
}

/* dtype("u1", ...): the name of an element type, a kind and its bytes. */
fac_status fac_pickle_numpy_dtype(fac_arena *arena, const value *a, value **out, fac_error *err) {
    static const struct {
        const char *name;
        fac_dtype dtype;
    } names[] = { { "u1", FAC_U8 },   { "i1", FAC_I8 },  { "u2", FAC_U16 }, { "i2", FAC_I16 },
                  { "u4", FAC_U32 },  { "i4", FAC_I32 }, { "u8", FAC_U64 }, { "i8", FAC_I64 },
                  { "b1", FAC_BOOL }, { "f2", FAC_F16 }, { "f4", FAC_F32 }, { "f8", FAC_F64 } };
    value *v = make(arena, FAC_PICKLE_GLOBAL);
    if (!v) return fac_raise_memory(err, "a pickle");
    for (size_t k = 0; a->n && is(a->item[0], FAC_PICKLE_TEXT) && k < sizeof names / sizeof *names;
         k++)
        if (!strcmp(names[k].name, a->item[0]->text)) v->dtype = (unsigned char)names[k].dtype;
    v->i = FAC_PICKLE_ONE_DTYPE;
    v->text = v->dtype == FAC_NONE ? "an array whose elements are no numbers that we have"
                                   : "numpy.dtype";
    *out = v;
    return FAC_OK;
}

static fac_status pass_over(value *v, const char *what) {
    v->kind = FAC_PICKLE_OTHER;
    v->text = what;
    return FAC_OK;
}

/* (version, sizes, dtype, column-major, bytes) */
fac_status fac_pickle_numpy_array(fac_arena *arena, value *v, const value *state, fac_error *err) {
    bool known = is(state, FAC_PICKLE_TUPLE) && state->n == 5 &&
                 is(state->item[1], FAC_PICKLE_TUPLE) && is(state->item[2], FAC_PICKLE_GLOBAL) &&
                 state->item[2]->i == FAC_PICKLE_ONE_DTYPE && is(state->item[3], FAC_PICKLE_BOOL);
    if (known && state->item[2]->dtype == FAC_NONE) return pass_over(v, state->item[2]->text);
    if (!known || !is(state->item[4], FAC_PICKLE_TEXT))
        return broken(err, "an array without sizes, element type and bytes");
    if (state->item[3]->i) return pass_over(v, "an array that is column-major");
    if (state->item[1]->n > FAC_DIMS) return pass_over(v, "an array of more than 8 dims");
    fac_pickle_tensor *t = fac_arena_alloc(arena, 1, sizeof *t);
    if (!t) return fac_raise_memory(err, "a pickle");
    t->storage = state->item[4];
    t->dims.n = (int)state->item[1]->n;
    v->dtype = state->item[2]->dtype;
    if (!fac_pickle_dims(state->item[1], t->dims.d) ||
        fac_type_bytes(&(fac_type){ (fac_dtype)v->dtype, t->dims }) != t->storage->n)
        return broken(err, "an array that has not as many bytes as its sizes say");
    v->tensor = t;
    return FAC_OK;
}

/* encode(text, "latin1"): a byte for each character. */
fac_status fac_pickle_latin1(fac_arena *arena, const value *a, value **out, fac_error *err) {
    if (a->n != 2 || !is(a->item[0], FAC_PICKLE_TEXT) || !is(a->item[1], FAC_PICKLE_TEXT) ||
        strcmp(a->item[1]->text, "latin1"))
        return broken(err, "bytes that are not said in Latin-1");
    const unsigned char *from = (const unsigned char *)a->item[0]->text,
                        *end = from + a->item[0]->n;
    value *v = make(arena, FAC_PICKLE_TEXT);
    char *to = fac_arena_alloc(arena, a->item[0]->n + 1, 1);
    if (!v || !to) return fac_raise_memory(err, "a pickle");
    for (v->text = to; from < end; v->n++) {
        const bool two = (*from & 0xfe) == 0xc2 && end - from > 1 &&
                         (from[1] & 0xc0) == 0x80; /* U+0080 .. U+00FF */
        if (*from >= 0x80 && !two) return broken(err, "bytes that are not said in Latin-1");
        *to++ = (char)(two ? (*from & 3) << 6 | (from[1] & 0x3f) : *from);
        from += 1 + two;
    }
    *out = v;
    return FAC_OK;
}

/* (version, byte order, ...): ours is little-endian, and bytes have none. */
fac_status fac_pickle_numpy_order(value *v, const value *state, fac_error *err) {
    const bool known =
        is(state, FAC_PICKLE_TUPLE) && state->n > 1 && is(state->item[1], FAC_PICKLE_TEXT);
    const char order = known ? state->item[1]->text[0] : 0;
    if (!order || !strchr("<>|=", order))
        return broken(err, "an element type without a byte order");
    if (order != '>' || v->dtype == FAC_NONE) return FAC_OK;
    v->dtype = FAC_NONE;
    v->text = "an array that is big-endian";
    return FAC_OK;
}
