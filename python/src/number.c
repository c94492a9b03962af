/* Operators between tensors.  Two tensors of one dtype, and a tensor of floats with a number, are
 * done here; what needs promotion or explaining goes to functions of Python (facula/promote.py). */
#include <string.h>
#include "module.h"

static PyObject *fallbacks; /* name -> function */

PyObject *py_set_fallbacks(PyObject *module, PyObject *dict) {
    (void)module;
    PyObject *old = fallbacks;
    fallbacks = Py_NewRef(dict);
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

static PyObject *fallback(const char *name, PyObject *a, PyObject *b) {
    PyObject *f = fallbacks ? PyDict_GetItemString(fallbacks, name) : NULL;
    if (!f) Py_RETURN_NOTIMPLEMENTED;
    return b ? PyObject_CallFunctionObjArgs(f, a, b, NULL)
             : PyObject_CallFunctionObjArgs(f, a, NULL);
}

static fac_dtype dtype_of(PyObject *o) { return py_type((TensorObject *)o).dtype; }
static bool is_float(PyObject *o) { return fac_dtype_get(dtype_of(o))->kind == 'f'; }

PyObject *py_scalar(PyObject *o, fac_dtype dtype, DeviceObject *device) {
    if (py_lazy_on()) return (PyObject *)py_lazy_number(o, dtype, device);
    double x = PyFloat_AsDouble(o);
    if (x == -1 && PyErr_Occurred()) return NULL;
    fac_tensor *t, *as;
    fac_error err;
    fac_dims none = { 0 };
    float f = (float)x;
    bool f32 = dtype == FAC_F32;
    if (fac_tensor_new(NULL, f32 ? FAC_F32 : FAC_F64, none, &t, &err)) return py_raise(&err);
    fac_status status =
        f32 ? fac_tensor_write(t, &f, sizeof f, &err) : fac_tensor_write(t, &x, sizeof x, &err);
    if (!status && dtype != FAC_F32 && dtype != FAC_F64) {
        status = fac_tensor_convert(t, dtype, &as, &err);
        fac_tensor_free(t);
        t = as;
    }
    return status ? py_raise(&err) : (PyObject *)py_tensor(t, device);
}

/* A number as a tensor of the dtype of `like`, which is a float. */
static PyObject *scalar(PyObject *o, PyObject *like) {
    return py_scalar(o, dtype_of(like), ((TensorObject *)like)->device);
}

static bool is_number(PyObject *o) {
    return (PyFloat_Check(o) || PyLong_Check(o)) && !PyBool_Check(o);
}

static PyObject *two(const fac_op *op, PyObject *a, PyObject *b) {
    PyObject *in[] = { a, b };
    return py_apply_op(op, NULL, 0, 2, in);
}

static PyObject *binary(const fac_op *op, const char *name, PyObject *a, PyObject *b, bool floats) {
    bool ta = py_is_tensor(a), tb = py_is_tensor(b);
    if (ta && tb && dtype_of(a) == dtype_of(b) && (!floats || is_float(a)) &&
        dtype_of(a) != FAC_BOOL)
        return two(op, a, b);
    if (ta && is_float(a) && is_number(b)) {
        PyObject *s = scalar(b, a), *y = s ? two(op, a, s) : NULL;
        Py_XDECREF(s);
        return y;
    }
    if (tb && is_float(b) && is_number(a)) {
        PyObject *s = scalar(a, b), *y = s ? two(op, s, b) : NULL;
        Py_XDECREF(s);
        return y;
    }
    return fallback(name, a, b);
}

#define BINARY(name, floats)                                                                       \
    static PyObject *n_##name(PyObject *a, PyObject *b) {                                          \
        static const fac_op *op;                                                                   \
        if (!op) op = fac_op_find(#name);                                                          \
        return binary(op, #name, a, b, floats);                                                    \
    }
BINARY(add, false)
BINARY(sub, false)
BINARY(mul, false)
BINARY(div, true)
BINARY(mod, false)
BINARY(matmul, false)

#define OTHER(name)                                                                                \
    static PyObject *n_##name(PyObject *a, PyObject *b) { return fallback(#name, a, b); }
OTHER(floordiv)
OTHER(and)
OTHER(or)
OTHER(xor)
OTHER(lshift)
OTHER(rshift)
OTHER(divmod)

static PyObject *n_pow(PyObject *a, PyObject *b, PyObject *modulo) {
    static const fac_op *op;
    if (modulo != Py_None) Py_RETURN_NOTIMPLEMENTED;
    if (!op) op = fac_op_find("pow");
    return binary(op, "pow", a, b, true);
}

/* x += y: the object gets another value; who shares its memory sees it, too. */
#define INPLACE(name)                                                                              \
    static PyObject *i_##name(PyObject *a, PyObject *b) { return fallback("i" #name, a, b); }
INPLACE(add)
INPLACE(sub)
INPLACE(mul)
INPLACE(div)
INPLACE(mod)
INPLACE(floordiv)
INPLACE(and)
INPLACE(or)
INPLACE(xor)
INPLACE(lshift)
INPLACE(rshift)
INPLACE(matmul)
static PyObject *i_pow(PyObject *a, PyObject *b, PyObject *modulo) {
    (void)modulo;
    return fallback("ipow", a, b);
}

static PyObject *one(const char *name, PyObject *a) {
    const fac_op *op = fac_op_find(name);
    return py_apply_op(op, NULL, 0, 1, &a);
}
static PyObject *n_neg(PyObject *a) {
    return dtype_of(a) == FAC_BOOL ? fallback("neg", a, NULL) : one("neg", a);
}
static PyObject *n_abs(PyObject *a) {
    return dtype_of(a) == FAC_BOOL ? Py_NewRef(a) : one("abs", a);
}
static PyObject *n_positive(PyObject *a) { return Py_NewRef(a); }
static PyObject *n_invert(PyObject *a) {
    return one(dtype_of(a) == FAC_BOOL ? "not" : "bitwise_not", a);
}

static PyObject *item(PyObject *a) { return PyObject_CallMethod(a, "item", NULL); }
static int n_bool(PyObject *a) {
    fac_type type = py_type((TensorObject *)a);
    if (fac_dims_count(&type.dims) != 1) {
        PyErr_SetString(
            PyExc_ValueError,
            "whether a tensor is true is only clear of one element: use .any() or .all()");
        return -1;
    }
    PyObject *x = item(a);
    int is = x ? PyObject_IsTrue(x) : -1;
    Py_XDECREF(x);
    return is;
}
static PyObject *n_float(PyObject *a) {
    PyObject *x = item(a), *f = x ? PyNumber_Float(x) : NULL;
    Py_XDECREF(x);
    return f;
}
static PyObject *n_int(PyObject *a) {
    PyObject *x = item(a), *i = x ? PyNumber_Long(x) : NULL;
    Py_XDECREF(x);
    return i;
}
static PyObject *n_index(PyObject *a) {
    if (is_float(a)) {
        PyErr_SetString(PyExc_TypeError, "a tensor of floats is no index");
        return NULL;
    }
    PyObject *x = item(a); /* whoever tries whether it is an index wants a TypeError where not */
    if (!x && PyErr_ExceptionMatches(PyExc_ValueError))
        PyErr_SetString(PyExc_TypeError, "a tensor is an index only if it has one element");
    PyObject *i = x ? PyNumber_Long(x) : NULL;
    Py_XDECREF(x);
    return i;
}

static PyObject *compare(PyObject *a, PyObject *b, int how) {
    static const char *const names[] = {
        [Py_LT] = "less",      [Py_LE] = "less_or_equal", [Py_EQ] = "equal",
        [Py_NE] = "not_equal", [Py_GT] = "greater",       [Py_GE] = "greater_or_equal"
    };
    if (how == Py_NE) return fallback("not_equal", a, b);
    return binary(fac_op_find(names[how]), names[how], a, b, false);
}

static Py_hash_t hash(PyObject *a) { return (Py_hash_t)((uintptr_t)a >> 4); }

static Py_ssize_t len(PyObject *a) {
    fac_type type = py_type((TensorObject *)a);
    if (type.dims.n) return (Py_ssize_t)type.dims.d[0];
    PyErr_SetString(PyExc_TypeError, "a tensor without dims has no length");
    return -1;
}
static PyObject *get(PyObject *a, PyObject *key) { return fallback("getitem", a, key); }
static int set(PyObject *a, PyObject *key, PyObject *value) {
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted");
        return -1;
    }
    PyObject *pair = PyTuple_Pack(2, key, value),
             *done = pair ? fallback("setitem", a, pair) : NULL;
    Py_XDECREF(pair);
    Py_XDECREF(done);
    return done ? 0 : -1;
}
static PyObject *show(PyObject *a) { return fallback("repr", a, NULL); }

PyType_Slot py_number_slots[] = { { Py_nb_add, n_add },
                                  { Py_nb_subtract, n_sub },
                                  { Py_nb_multiply, n_mul },
                                  { Py_nb_true_divide, n_div },
                                  { Py_nb_remainder, n_mod },
                                  { Py_nb_power, n_pow },
                                  { Py_nb_floor_divide, n_floordiv },
                                  { Py_nb_divmod, n_divmod },
                                  { Py_nb_matrix_multiply, n_matmul },
                                  { Py_nb_and, n_and },
                                  { Py_nb_or, n_or },
                                  { Py_nb_xor, n_xor },
                                  { Py_nb_lshift, n_lshift },
                                  { Py_nb_rshift, n_rshift },
                                  { Py_nb_negative, n_neg },
                                  { Py_nb_positive, n_positive },
                                  { Py_nb_absolute, n_abs },
                                  { Py_nb_invert, n_invert },
                                  { Py_nb_bool, n_bool },
                                  { Py_nb_float, n_float },
                                  { Py_nb_int, n_int },
                                  { Py_nb_index, n_index },
                                  { Py_nb_inplace_add, i_add },
                                  { Py_nb_inplace_subtract, i_sub },
                                  { Py_nb_inplace_multiply, i_mul },
                                  { Py_nb_inplace_true_divide, i_div },
                                  { Py_nb_inplace_remainder, i_mod },
                                  { Py_nb_inplace_power, i_pow },
                                  { Py_nb_inplace_floor_divide, i_floordiv },
                                  { Py_nb_inplace_matrix_multiply, i_matmul },
                                  { Py_nb_inplace_and, i_and },
                                  { Py_nb_inplace_or, i_or },
                                  { Py_nb_inplace_xor, i_xor },
                                  { Py_nb_inplace_lshift, i_lshift },
                                  { Py_nb_inplace_rshift, i_rshift },
                                  { Py_tp_richcompare, compare },
                                  { Py_tp_hash, hash },
                                  { Py_mp_length, len },
                                  { Py_mp_subscript, get },
                                  { Py_mp_ass_subscript, set },
                                  { Py_tp_repr, show },
                                  { 0, NULL } };
