/* What other runtimes in this process build on (facula.torch): tensors over memory of theirs, by
 * address, and the library's functions as pointers, for code that was compiled by itself. */
#include "module.h"

static void release(void *owner) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)owner);
    PyGILState_Release(state);
}

/* lend(address, dtype, shape, strides or None, writable, owner or None): a Tensor over it. */
static PyObject *lend(PyObject *module, PyObject *args) {
    (void)module;
    unsigned long long address;
    PyObject *as, *sizes, *steps, *owner;
    int writable;
    fac_dtype dtype;
    fac_dims dims, strides;
    if (!PyArg_ParseTuple(args, "KOOOpO:lend", &address, &as, &sizes, &steps, &writable, &owner))
        return NULL;
    if (!py_dtype_from(as, FAC_F32, &dtype) || !py_dims_from(sizes, &dims)) return NULL;
    if (steps != Py_None && !py_dims_from(steps, &strides)) return NULL;
    const int64_t *by = steps == Py_None ? NULL : strides.d;
    void *data = (void *)(uintptr_t)address;
    void (*done)(void *) = owner == Py_None ? NULL : release;
    fac_tensor *t;
    fac_error err;
    fac_status status = writable ? fac_tensor_lend(dtype, dims, by, data, done, owner, &t, &err)
                                 : fac_tensor_borrow(dtype, dims, by, data, done, owner, &t, &err);
    if (status) return py_raise(&err);
    if (done) Py_INCREF(owner);
    return (PyObject *)py_tensor(t, NULL);
}

static PyObject *touch(PyObject *module, PyObject *x) {
    (void)module;
    if (!py_is_tensor(x)) {
        PyErr_SetString(PyExc_TypeError, "a Tensor was expected");
        return NULL;
    }
    fac_tensor *t = py_value(x);
    if (!t) return NULL;
    fac_tensor_touch(t);
    Py_RETURN_NONE;
}

/* A Tensor over what the shim holds, by address. */
static PyObject *wrap(PyObject *module, PyObject *address) {
    (void)module;
    fac_tensor *t = PyLong_AsVoidPtr(address);
    if (!t) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    return (PyObject *)py_tensor(fac_tensor_retain(t), NULL);
}

/* The order is that of struct Api in python/facula/torch/shim/lazy.h. */
static void (*const functions[])(void) = {
    (void (*)(void))fac_tensor_lend,    (void (*)(void))fac_tensor_view,
    (void (*)(void))fac_tensor_free,    (void (*)(void))fac_tensor_data,
    (void (*)(void))fac_tensor_touch,   (void (*)(void))fac_program_run,
    (void (*)(void))fac_tensor_discard, (void (*)(void))fac_device_check,
    (void (*)(void))fac_tensor_version,
};

static PyObject *c_api(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return PyLong_FromVoidPtr((void *)functions);
}

PyMethodDef py_lend_methods[] = {
    { "lend", lend, METH_VARARGS, "(address, dtype, shape, strides, writable, owner): a Tensor." },
    { "wrap", wrap, METH_O, "A Tensor over the fac_tensor at an address." },
    { "touch", touch, METH_O, "Its memory was written by somebody else." },
    { "c_api", c_api, METH_NOARGS, "Where pointers to the library's functions lie." },
    { 0 }
};
