/* Devices: each is opened once and stays open as long as the process, since tensors and programs
 * on it may outlive whatever else. */
#include <string.h>
#include "module.h"

PyTypeObject *py_device_type;
static PyObject *opened; /* name -> Device */

static DeviceObject *open_device(const char *name, const fac_device_opts *opts) {
    fac_device *device;
    fac_error err;
    fac_status status;
    Py_BEGIN_ALLOW_THREADS status = fac_device_open(name, opts, &device, &err);
    Py_END_ALLOW_THREADS if (status) return (DeviceObject *)py_raise(&err);
    allocfunc alloc = (allocfunc)PyType_GetSlot(py_device_type, Py_tp_alloc);
    DeviceObject *self = (DeviceObject *)alloc(py_device_type, 0);
    fac_device_stop(device, py_stop_asked, NULL);
    if (self)
        self->device = device;
    else
        fac_device_free(device);
    return self;
}

/* Number of threads of the cpu: facula's own choice, unless the user says one before the first use.
 */
static int threads;

static DeviceObject *find(const char *name) {
    PyObject *there = PyDict_GetItemString(opened, name);
    if (there) return (DeviceObject *)there;
    DeviceObject *made = open_device(name, &(fac_device_opts){ .threads = threads });
    if (!made) return NULL;
    there = PyDict_GetItemString(opened, name); /* another thread was faster */
    if (!there && PyDict_SetItemString(opened, name, (PyObject *)made) < 0) return NULL;
    if (!there) Py_INCREF((PyObject *)made); /* devices are never closed */
    return there ? (DeviceObject *)there : made;
}

DeviceObject *py_device_from(PyObject *o) {
    static DeviceObject *cpu;
    if (!o || o == Py_None) {
        if (!cpu) cpu = find("cpu");
        return cpu;
    }
    if (Py_TYPE(o) == py_device_type) return (DeviceObject *)o;
    if (!PyUnicode_Check(o)) {
        PyErr_Format(PyExc_TypeError, "no device: %R ('cpu', 'opencl', 'opencl:1' are)", o);
        return NULL;
    }
    const char *name = PyUnicode_AsUTF8AndSize(o, NULL);
    return name ? find(name) : NULL;
}

static PyObject *new_device(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "name", NULL };
    PyObject *name = NULL;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Device", names, &name)) return NULL;
    return Py_XNewRef((PyObject *)py_device_from(name));
}

static PyObject *get_name(PyObject *self, void *none) {
    (void)none;
    return py_text(fac_device_name(((DeviceObject *)self)->device));
}
static PyObject *get_about(PyObject *self, void *none) {
    (void)none;
    return py_text(fac_device_about(((DeviceObject *)self)->device));
}
static PyObject *repr(PyObject *self) {
    fac_device *d = ((DeviceObject *)self)->device;
    return PyUnicode_FromFormat("facula.Device('%s')  # %s", fac_device_name(d),
                                fac_device_about(d));
}

static void tell(void *dict, const char *name, const char *value) {
    if (!PyErr_Occurred()) py_put(dict, name, py_text(value));
}
static PyObject *facts(PyObject *self, PyObject *none) {
    (void)none;
    PyObject *dict = PyDict_New();
    if (!dict) return NULL;
    fac_device_facts(((DeviceObject *)self)->device, tell, dict);
    if (!PyErr_Occurred()) return dict;
    Py_DECREF(dict);
    return NULL;
}

static PyObject *synchronize(PyObject *self, PyObject *none) {
    (void)none;
    fac_error err;
    fac_status status;
    Py_BEGIN_ALLOW_THREADS status = fac_device_sync(((DeviceObject *)self)->device, &err);
    Py_END_ALLOW_THREADS if (status) return py_raise(&err);
    Py_RETURN_NONE;
}

/* For facula.torch's shim: the address of the fac_device. */
static PyObject *address(PyObject *self, PyObject *none) {
    (void)none;
    return PyLong_FromVoidPtr(((DeviceObject *)self)->device);
}

static PyObject *memory(PyObject *self, PyObject *none) {
    (void)none;
    fac_memory_stat m = fac_device_memory(((DeviceObject *)self)->device);
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n}", "now", m.now, "peak", m.peak,
                         "tensors", m.tensors, "mirrors", m.mirrors, "arenas", m.arenas, "packed",
                         m.packed, "operands", m.operands, "reserved", m.reserved);
}
static PyObject *trim(PyObject *self, PyObject *none) {
    (void)none;
    return PyLong_FromSize_t(fac_device_trim(((DeviceObject *)self)->device));
}

static PyMethodDef methods[] = {
    { "facts", facts, METH_NOARGS, "What the device is: platform, driver, memory..." },
    { "synchronize", synchronize, METH_NOARGS, "Waits for all submitted work." },
    { "address", address, METH_NOARGS, "Of the fac_device, for C." },
    { "memory", memory, METH_NOARGS, "Bytes held now, at most, and what for." },
    { "trim", trim, METH_NOARGS, "Gives unused memory back to the driver; how many bytes." },
    { 0 }
};
static PyGetSetDef getset[] = { { "name", get_name, NULL, "\"cpu\", \"opencl:0\"", NULL },
                                { "about", get_about, NULL, "for people: \"avx512, 2 threads\"",
                                  NULL },
                                { 0 } };
static PyType_Slot slots[] = { { Py_tp_doc, "Where work runs.  Device(name) opens it once; 'cpu', "
                                            "'opencl', 'opencl:1', 'opencl:nvidia'." },
                               { Py_tp_new, new_device },
                               { Py_tp_repr, repr },
                               { Py_tp_methods, methods },
                               { Py_tp_getset, getset },
                               { 0 } };
static PyType_Spec spec = { "facula.Device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT, slots };

static PyObject *set_threads(PyObject *module, PyObject *n) {
    (void)module;
    long count = PyLong_AsLong(n);
    if (count == -1 && PyErr_Occurred()) return NULL;
    if (count < 1 || count > 256) {
        PyErr_Format(PyExc_ValueError, "%ld threads, 1 to 256 were expected", count);
        return NULL;
    }
    if (PyDict_GetItemString(opened, "cpu")) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the number of threads is set before the cpu is used first");
        return NULL;
    }
    threads = (int)count;
    Py_RETURN_NONE;
}
static PyMethodDef functions[] = {
    { "set_num_threads", set_threads, METH_O, "Threads of the cpu; before its first use." }, { 0 }
};

int py_device_init(PyObject *module) {
    opened = PyDict_New();
    py_device_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!opened || !py_device_type) return -1;
    if (PyModule_AddFunctions(module, functions) < 0) return -1;
    return PyModule_AddObjectRef(module, "Device", (PyObject *)py_device_type);
}
