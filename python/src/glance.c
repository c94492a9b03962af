/* What every call of a module or a loss looks at, where Python would take longer than the call. */
#include "module.h"

/* likes((tensors...)): for each its shape, or the tensor where its dtype counts; None where there
 * is something else among them, or nothing. */
static PyObject *likes(PyObject *module, PyObject *args) {
    (void)module;
    const Py_ssize_t n = PyTuple_Check(args) ? PyTuple_Size(args) : 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!py_is_tensor(PyTuple_GetItem(args, i))) Py_RETURN_NONE;
    if (!n) Py_RETURN_NONE;
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple && i < n; i++) {
        TensorObject *x = (TensorObject *)PyTuple_GetItem(args, i);
        const fac_type type = py_type(x);
        PyObject *like = type.dtype == FAC_F32 ? py_dims(&type.dims) : (PyObject *)py_alias(x);
        if (like)
            PyTuple_SetItem(tuple, i, like);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

static int64_t integer_at(const void *data, fac_dtype dtype, int64_t i) {
    switch (dtype) {
    case FAC_I8:
        return ((const int8_t *)data)[i];
    case FAC_U8:
        return ((const uint8_t *)data)[i];
    case FAC_I16:
        return ((const int16_t *)data)[i];
    case FAC_I32:
        return ((const int32_t *)data)[i];
    default:
        return ((const int64_t *)data)[i];
    }
}

/* outside(labels, classes, but): the first label below 0 or not below classes, and not `but`. */
static PyObject *outside(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    if (n != 3 || !py_is_tensor(args[0])) {
        PyErr_SetString(PyExc_TypeError, "outside(labels, classes, but)");
        return NULL;
    }
    const long long classes = PyLong_AsLongLong(args[1]), but = PyLong_AsLongLong(args[2]);
    if (PyErr_Occurred()) return NULL;
    fac_tensor *t = py_value(args[0]), *flat;
    fac_error err;
    if (!t) return NULL;
    const fac_dtype dtype = fac_tensor_type(t).dtype;
    const bool narrow = dtype == FAC_I8 || dtype == FAC_U8 || dtype == FAC_I16 || dtype == FAC_I32;
    /* contiguous, and in host memory */
    if (fac_tensor_convert(t, narrow ? dtype : FAC_I64, &flat, &err)) return py_raise(&err);
    const fac_type type = fac_tensor_type(flat);
    const void *data = fac_tensor_data(flat);
    PyObject *found = NULL;
    const int64_t count = fac_dims_count(&type.dims);
    for (int64_t i = 0; i < count && !found; i++) {
        const int64_t label = integer_at(data, type.dtype, i);
        if ((label < 0 || label >= classes) && label != but) {
            found = PyLong_FromLongLong(label);
            if (!found) break;
        }
    }
    fac_tensor_free(flat);
    if (found || PyErr_Occurred()) return found;
    Py_RETURN_NONE;
}

PyMethodDef py_glance_methods[] = {
    { "likes", likes, METH_O, "((tensors...)): shapes, or tensors where dtypes count, or None." },
    { "outside", (PyCFunction)(void (*)(void))outside, METH_FASTCALL,
      "(labels, classes, but): the first label that is no class, or None." },
    { 0 }
};
