/* Tensors of zeros. */
#include "module.h"

/* zeros(shape, dtype, device or None, requires_grad) */
static PyObject *zeros(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    fac_dims dims;
    fac_dtype dtype;
    fac_tensor *t;
    fac_error err;
    if (n != 4) {
        PyErr_SetString(PyExc_TypeError, "zeros(shape, dtype, device, requires_grad)");
        return NULL;
    }
    const int grad = PyObject_IsTrue(args[3]);
    if (grad < 0 || !py_dims_from(args[0], &dims) || !py_dtype_from(args[1], FAC_F32, &dtype))
        return NULL;
    DeviceObject *device = args[2] == Py_None ? NULL : py_device_from(args[2]);
    if (args[2] != Py_None && !device) return NULL;
    if (fac_tensor_new(NULL, dtype, dims, &t, &err)) return py_raise(&err);
    TensorObject *self = py_tensor(t, device);
    if (self) self->requires_grad = grad;
    return (PyObject *)self;
}
PyMethodDef py_zeros_methods[] = { { "zeros", (PyCFunction)(void (*)(void))zeros, METH_FASTCALL,
                                     "(shape, dtype, device, requires_grad): a tensor of zeros." },
                                   { 0 } };
