/* Arrays of element types that NumPy has from other packages (ml_dtypes: bfloat16, float8_e4m3fn,
 * int4 ...).  The buffer protocol has no letters for these: their bytes are shown as integers', and
 * types of fewer than 8 bits as the numbers that they are. */
#include <string.h>
#include "module.h"

/* What a package added to NumPy says of itself. */
enum { ADDED = 2 };

static bool is_added(PyObject *dtype) {
    PyObject *origin = PyObject_GetAttrString(dtype, "isbuiltin");
    const long how = origin ? PyLong_AsLong(origin) : 0;
    Py_XDECREF(origin);
    PyErr_Clear(); /* it is no dtype of NumPy's */
    return how == ADDED;
}

PyObject *py_is_added(PyObject *module, PyObject *array) {
    (void)module;
    PyObject *dtype = PyObject_GetAttrString(array, "dtype");
    if (!dtype) PyErr_Clear();
    const bool is = dtype && is_added(dtype);
    Py_XDECREF(dtype);
    return PyBool_FromLong(is);
}

/* How the elements are shown to the buffer protocol. */
static const char *bytes_of(fac_dtype dtype) { return dtype == FAC_BF16 ? "uint16" : "uint8"; }
static const char *numbers_of(fac_dtype dtype) {
    switch (dtype) {
    case FAC_F4E2M1:
        return "float32";
    case FAC_I4:
    case FAC_I2:
        return "int8";
    case FAC_U4:
    case FAC_U2:
        return "uint8";
    default:
        return NULL;
    }
}

static PyObject *refused(PyObject *dtype) {
    PyErr_Format(PyExc_TypeError, "an array of %S, which is no dtype of facula", dtype);
    return NULL;
}

PyObject *py_shown_as_known(PyObject *array, fac_dtype *is, bool *bytes) {
    *is = FAC_NONE;
    *bytes = false;
    PyObject *dtype = PyObject_GetAttrString(array, "dtype");
    if (!dtype) PyErr_Clear();
    if (!dtype || !is_added(dtype)) {
        Py_XDECREF(dtype);
        return NULL;
    }
    if (!py_dtype_from(dtype, FAC_NONE, is)) {
        PyErr_Clear();
        PyObject *none = refused(dtype);
        Py_DECREF(dtype);
        return none;
    }
    Py_DECREF(dtype);
    const char *numbers = numbers_of(*is);
    *bytes = !numbers;
    return numbers ? PyObject_CallMethod(array, "astype", "s", numbers)
                   : PyObject_CallMethod(array, "view", "s", bytes_of(*is));
}
