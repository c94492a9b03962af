/* Exceptions: one class for each fac_status, below facula.Error and the class of Python's that
 * users would catch. */
#include "module.h"

PyObject *py_error;
static PyObject *classes[FAC_E_INTERNAL + 1];

typedef struct Row {
    fac_status status;
    const char *name, *doc;
    PyObject **base;
} Row;
static const Row rows[] = {
    { FAC_E_ARGUMENT, "ArgumentError", "A documented precondition was broken.", &PyExc_ValueError },
    { FAC_E_SHAPE, "ShapeError", "Shapes do not fit together.", &PyExc_ValueError },
    { FAC_E_DTYPE, "DtypeError", "The operator does not take this element type.",
      &PyExc_TypeError },
    { FAC_E_FORMAT, "FormatError", "A file is malformed.", &PyExc_ValueError },
    { FAC_E_UNSUPPORTED, "UnsupportedError", "Valid, but not supported by facula.",
      &PyExc_NotImplementedError },
    { FAC_E_NOMEM, "OutOfMemoryError", "Host or device memory is used up.", &PyExc_MemoryError },
    { FAC_E_IO, "FileError", "A file cannot be read or written.", &PyExc_OSError },
    { FAC_E_DEVICE, "DeviceError", "A driver refused, or a device was lost.", &PyExc_RuntimeError },
    { FAC_E_INTERNAL, "InternalError", "A bug of facula.", &PyExc_RuntimeError },
};

static PyObject *new_class(const Row *row) {
    char name[64];
    PyOS_snprintf(name, sizeof name, "facula.%s", row->name);
    PyObject *bases = PyTuple_Pack(2, py_error, *row->base);
    if (!bases) return NULL;
    PyObject *class = PyErr_NewExceptionWithDoc(name, row->doc, bases, NULL);
    Py_DECREF(bases);
    return class;
}

int py_errors_init(PyObject *module) {
    py_error = PyErr_NewExceptionWithDoc("facula.Error", "What facula refuses to do, and why.",
                                         NULL, NULL);
    if (!py_error || PyModule_AddObjectRef(module, "Error", py_error) < 0) return -1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        PyObject *class = new_class(&rows[i]);
        if (!class || PyModule_AddObjectRef(module, rows[i].name, class) < 0) return -1;
        classes[rows[i].status] = class;
    }
    return 0;
}

PyObject *py_raise(const fac_error *err) {
    if (PyErr_Occurred()) return NULL; /* Ctrl-C, or what a callback raised: the cause */
    PyObject *class = py_error;
    if (err->status > FAC_OK && err->status <= FAC_E_INTERNAL) class = classes[err->status];
    PyErr_SetString(class, err->text);
    return NULL;
}
