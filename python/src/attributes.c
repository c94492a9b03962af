/* What a Tensor says of itself: shape, type, place, and its part in gradients. */
#include "module.h"

static PyObject *get_shape(PyObject *o, void *none) {
    (void)none;
    fac_type type = py_type((TensorObject *)o);
    return py_dims(&type.dims);
}
static PyObject *get_ndim(PyObject *o, void *none) {
    (void)none;
    return PyLong_FromLong(py_type((TensorObject *)o).dims.n);
}
static PyObject *get_size(PyObject *o, void *none) {
    (void)none;
    fac_type type = py_type((TensorObject *)o);
    return PyLong_FromLongLong(fac_dims_count(&type.dims));
}
static PyObject *get_nbytes(PyObject *o, void *none) {
    (void)none;
    fac_type type = py_type((TensorObject *)o);
    return PyLong_FromSize_t(fac_type_bytes(&type));
}
static PyObject *get_strides(PyObject *o, void *none) {
    (void)none;
    TensorObject *self = (TensorObject *)o;
    if (!py_value(o)) return NULL;
    fac_dims dims = fac_tensor_type(self->t).dims;
    const int64_t *strides = fac_tensor_strides(self->t);
    for (int i = 0; i < dims.n; i++) dims.d[i] = strides[i];
    return py_dims(&dims);
}
static PyObject *get_dtype(PyObject *o, void *none) {
    (void)none;
    return py_dtype(py_type((TensorObject *)o).dtype);
}
static PyObject *get_device(PyObject *o, void *none) {
    (void)none;
    TensorObject *self = (TensorObject *)o;
    DeviceObject *device = self->device ? self->device : py_device_from(NULL);
    return Py_XNewRef((PyObject *)device);
}
static PyObject *get_version(PyObject *o, void *none) {
    (void)none;
    if (!py_value(o)) return NULL;
    return PyLong_FromUnsignedLongLong(fac_tensor_version(((TensorObject *)o)->t));
}
static PyObject *get_is_there(PyObject *o, void *none) {
    (void)none;
    return PyBool_FromLong(((TensorObject *)o)->t != NULL);
}
static PyObject *get_requires_grad(PyObject *o, void *none) {
    (void)none;
    return PyBool_FromLong(((TensorObject *)o)->requires_grad);
}
static int set_requires_grad(PyObject *o, PyObject *value, void *none) {
    (void)none;
    TensorObject *self = (TensorObject *)o;
    int on = value ? PyObject_IsTrue(value) : 0;
    if (on < 0) return -1;
    if (on && fac_dtype_get(py_type(self).dtype)->kind != 'f') {
        PyErr_SetString(PyExc_RuntimeError,
                        "only tensors of a floating-point dtype can require gradients");
        return -1;
    }
    if (self->node && !on) {
        PyErr_SetString(PyExc_RuntimeError,
                        "requires_grad of a result cannot be switched off: use x.detach()");
        return -1;
    }
    self->requires_grad = on;
    return 0;
}
static PyObject *get_is_leaf(PyObject *o, void *none) {
    (void)none;
    return PyBool_FromLong(!((TensorObject *)o)->node);
}
static PyObject *get_object(PyObject *o, void *at) {
    PyObject *it = *(PyObject **)((char *)o + (size_t)at);
    return Py_NewRef(it ? it : Py_None);
}
static int set_object(PyObject *o, PyObject *value, void *at) {
    PyObject **to = (PyObject **)((char *)o + (size_t)at), *old = *to;
    *to = value && value != Py_None ? Py_NewRef(value) : NULL;
    Py_XDECREF(old);
    return 0;
}
/* Backward would add a gradient of another shape to one of this. */
static bool has_shape_of(PyObject *grad, PyObject *x) {
    const fac_type a = py_type((TensorObject *)grad), b = py_type((TensorObject *)x);
    if (fac_dims_equal(&a.dims, &b.dims)) return true;
    PyObject *given = py_dims(&a.dims), *expected = given ? py_dims(&b.dims) : NULL;
    if (expected)
        PyErr_Format(PyExc_RuntimeError, "grad of a tensor of shape %S: it has shape %S", expected,
                     given);
    Py_XDECREF(given);
    Py_XDECREF(expected);
    return false;
}
static int set_grad(PyObject *o, PyObject *value, void *at) {
    if (value && value != Py_None && !py_is_tensor(value)) {
        PyErr_SetString(PyExc_TypeError, "grad is a Tensor or None");
        return -1;
    }
    if (value && value != Py_None && !has_shape_of(value, o)) return -1;
    return set_object(o, value, at);
}

PyGetSetDef py_tensor_getset[] = {
    { "shape", get_shape, NULL, "Sizes of the dims, a tuple.", NULL },
    { "ndim", get_ndim, NULL, "How many dims.", NULL },
    { "nbytes", get_nbytes, NULL, "Bytes of the elements.", NULL },
    { "_count", get_size, NULL, "How many elements.", NULL },
    { "_strides", get_strides, NULL, "In elements.", NULL },
    { "dtype", get_dtype, NULL, "The element type.", NULL },
    { "device", get_device, NULL, "Where what is made of it is computed.", NULL },
    { "_version", get_version, NULL, "Raised by every write.", NULL },
    { "_is_there", get_is_there, NULL, "Has it been computed?", NULL },
    { "requires_grad", get_requires_grad, set_requires_grad, "Is a gradient by it wanted?", NULL },
    { "is_leaf", get_is_leaf, NULL, "True unless a recorded operator made it.", NULL },
    { "grad", get_object, set_grad, "The gradient that backward() has left.",
      (void *)offsetof(TensorObject, grad) },
    { "grad_fn", get_object, set_object, "What made it, for backward().",
      (void *)offsetof(TensorObject, node) },
    { "_hooks", get_object, set_object, "Hooks of its gradient.",
      (void *)offsetof(TensorObject, hooks) },
    { 0 }
};
PyMemberDef py_tensor_members[] = {
    { "__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weak), READONLY, NULL },
    { "_index", T_INT, offsetof(TensorObject, index), 0, "Which result of grad_fn." },
    { "_retains_grad", T_BOOL, offsetof(TensorObject, retains_grad), 0,
      "Keeps its gradient, though no leaf." },
    { "_readonly", T_BOOL, offsetof(TensorObject, readonly), 0, "Its memory is shown read only." },
    { 0 }
};
