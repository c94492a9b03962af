/* Tensor: a fac_tensor with what autograd needs to know of it.  Its value never changes in place
 * where somebody may look from an earlier time: what looks like a write gives the object another
 * value (facula/tensor.py), unless its memory is shown outside. */
#include "module.h"

PyTypeObject *py_tensor_type;
static allocfunc alloc_tensor;

static TensorObject *make(PyTypeObject *type, fac_tensor *t, DeviceObject *device) {
    allocfunc alloc =
        type == py_tensor_type ? alloc_tensor : (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    TensorObject *self = (TensorObject *)alloc(type, 0);
    if (!self) {
        fac_tensor_free(t);
        return NULL;
    }
    self->t = t;
    self->device = device;
    return self;
}

TensorObject *py_tensor(fac_tensor *t, DeviceObject *device) {
    return make(py_tensor_type, t, device);
}

TensorObject *py_alias(TensorObject *x) {
    TensorObject *y = py_tensor(x->t ? fac_tensor_retain(x->t) : NULL, x->device);
    if (y && x->lazy) y->lazy = fac_lazy_retain(x->lazy);
    if (y) y->epoch = x->epoch;
    if (y) y->ended = x->ended;
    return y;
}

fac_tensor *py_converted(fac_tensor *t, fac_dtype dtype) {
    if (!t || !dtype || fac_tensor_type(t).dtype == dtype) return t;
    fac_tensor *to;
    fac_error err;
    fac_status status = fac_tensor_convert(t, dtype, &to, &err);
    fac_tensor_free(t);
    if (!status) return to;
    py_raise(&err);
    return NULL;
}

/* Of what is no Tensor. */
static fac_tensor *elements_of(PyObject *o, fac_dtype dtype, bool copy) {
    bool number = PyFloat_Check(o) || PyLong_Check(o) || PyList_Check(o) || PyTuple_Check(o);
    /* a string alone is more often a mistake, a path say, than a text */
    bool text = dtype == FAC_TEXT && PyUnicode_Check(o);
    return number || text ? py_sequence(o, dtype) : py_converted(py_of_array(o, copy), dtype);
}

TensorObject *py_tensor_from(PyObject *o, fac_dtype dtype, bool copy) {
    if (py_is_tensor(o)) {
        TensorObject *x = (TensorObject *)o;
        if (!copy && (!dtype || py_type(x).dtype == dtype)) return (TensorObject *)Py_NewRef(o);
        if (!py_value(o)) return NULL;
        fac_tensor *t = py_converted(fac_tensor_retain(x->t), dtype);
        return t ? py_tensor(t, x->device) : NULL;
    }
    fac_tensor *t = elements_of(o, dtype, copy);
    return t ? py_tensor(t, NULL) : NULL;
}

static PyObject *new_tensor(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "data", "dtype", "device", "requires_grad", NULL };
    PyObject *data, *dtype = NULL, *on = NULL;
    int requires_grad = 0;
    if (!kwargs && PyTuple_Size(args) == 1) /* most calls, and reading options costs 30 ns */
        data = PyTuple_GetItem(args, 0);
    else if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOp:Tensor", names, &data, &dtype, &on,
                                          &requires_grad))
        return NULL;
    fac_dtype as;
    if (!py_dtype_from(dtype, FAC_NONE, &as)) return NULL;
    DeviceObject *device = on && on != Py_None ? py_device_from(on) : NULL;
    if (on && on != Py_None && !device) return NULL;
    TensorObject *self = NULL;
    if (py_is_tensor(data)) {
        TensorObject *from = py_tensor_from(data, as, false);
        if (!from) return NULL;
        if (!device) device = from->device;
        if (py_value((PyObject *)from)) self = make(type, fac_tensor_retain(from->t), device);
        Py_DECREF(from);
    } else {
        fac_tensor *t = elements_of(data, as, false);
        if (t) self = make(type, t, device);
    }
    if (self) self->requires_grad = requires_grad;
    return (PyObject *)self;
}

static int traverse(PyObject *o, visitproc visit, void *arg) {
    TensorObject *self = (TensorObject *)o;
    Py_VISIT(Py_TYPE(o));
    Py_VISIT(self->grad);
    Py_VISIT(self->node);
    Py_VISIT(self->hooks);
    return 0;
}
static int clear(PyObject *o) {
    TensorObject *self = (TensorObject *)o;
    Py_CLEAR(self->grad);
    Py_CLEAR(self->node);
    Py_CLEAR(self->hooks);
    return 0;
}
static void dealloc(PyObject *o) {
    TensorObject *self = (TensorObject *)o;
    PyTypeObject *type = Py_TYPE(o);
    PyObject_GC_UnTrack(o);
    if (self->weak) PyObject_ClearWeakRefs(o);
    clear(o);
    fac_tensor_free(self->t);
    fac_lazy_free(self->lazy);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(o);
    Py_DECREF(type);
}

/* ---- methods ---- */

static PyObject *item(PyObject *o, PyObject *none) {
    (void)none;
    TensorObject *self = (TensorObject *)o;
    if (!py_read_traced(self) || !py_value(o)) return NULL;
    fac_type type = fac_tensor_type(self->t);
    if (fac_dims_count(&type.dims) == 1) {
        PyObject *list = py_tolist(self->t);
        while (list && PyList_Check(list)) {
            PyObject *first = Py_NewRef(PyList_GetItem(list, 0));
            Py_DECREF(list);
            list = first;
        }
        return list;
    }
    PyObject *shape = py_dims(&type.dims);
    if (shape)
        PyErr_Format(PyExc_ValueError, "item() of a tensor of shape %S, which has not one element",
                     shape);
    Py_XDECREF(shape);
    return NULL;
}
static PyObject *tolist(PyObject *o, PyObject *none) {
    (void)none;
    if (!py_read_traced((TensorObject *)o) || !py_value(o)) return NULL;
    return py_tolist(((TensorObject *)o)->t);
}

/* The same value without history: shares memory.  For a graph that is made it stays what it is. */
static PyObject *detach(PyObject *o, PyObject *none) {
    (void)none;
    TensorObject *x = (TensorObject *)o, *y = py_alias(x);
    if (y && py_tracing()) {
        y->node = Py_XNewRef(x->node);
        y->index = x->index;
    }
    return (PyObject *)y;
}

/* self becomes what `from` is: value, history. */
static PyObject *become(PyObject *o, PyObject *from) {
    if (!py_is_tensor(from)) {
        PyErr_SetString(PyExc_TypeError, "a Tensor was expected");
        return NULL;
    }
    TensorObject *self = (TensorObject *)o, *with = (TensorObject *)from;
    fac_error err;
    if (self->exports && (!py_value(from) || !py_lazy_settle())) return NULL;
    if (self->exports) { /* who looks at this memory sees the new value */
        fac_type type = fac_tensor_type(with->t);
        fac_tensor *flat;
        if (fac_tensor_convert(with->t, type.dtype, &flat, &err)) return py_raise(&err);
        fac_status status =
            fac_tensor_write(self->t, fac_tensor_data(flat), fac_type_bytes(&type), &err);
        fac_tensor_free(flat);
        if (status) return py_raise(&err);
    } else {
        fac_tensor *old = self->t;
        fac_lazy *recorded = self->lazy;
        self->t = with->t ? fac_tensor_retain(with->t) : NULL;
        self->lazy = with->lazy ? fac_lazy_retain(with->lazy) : NULL;
        self->epoch = with->epoch;
        self->ended = with->ended;
        fac_tensor_free(old);
        fac_lazy_free(recorded);
    }
    PyObject *node = self->node;
    self->node = Py_XNewRef(with->node);
    Py_XDECREF(node);
    self->index = with->index;
    self->requires_grad |= with->requires_grad;
    return Py_NewRef(o);
}

static PyObject *on_device(PyObject *o, PyObject *where) {
    TensorObject *self = (TensorObject *)o;
    DeviceObject *device = py_device_from(where);
    if (!device || !py_value(o)) return NULL;
    return (PyObject *)py_tensor(fac_tensor_retain(self->t), device);
}

/* Another window on the same memory. */
static PyObject *window(PyObject *o, PyObject *args) {
    TensorObject *self = (TensorObject *)o;
    PyObject *shape, *steps;
    long long offset = 0;
    fac_dims dims, strides;
    if (!PyArg_ParseTuple(args, "OO|L:_window", &shape, &steps, &offset)) return NULL;
    if (!py_dims_from(shape, &dims) || !py_dims_from(steps, &strides) || !py_value(o)) return NULL;
    if (dims.n != strides.n) {
        PyErr_SetString(PyExc_ValueError, "a stride for each dim was expected");
        return NULL;
    }
    fac_tensor *t;
    fac_error err;
    if (fac_tensor_view(self->t, dims, strides.d, offset, &t, &err)) return py_raise(&err);
    return (PyObject *)py_tensor(t, self->device);
}

/* A copy of its own, contiguous, of a dtype. */
static PyObject *convert(PyObject *o, PyObject *as) {
    TensorObject *self = (TensorObject *)o;
    fac_dtype dtype;
    fac_tensor *t;
    fac_error err;
    fac_status status;
    if (!py_dtype_from(as, py_type(self).dtype, &dtype) || !py_read_traced(self) || !py_value(o))
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = fac_tensor_convert(self->t, dtype, &t, &err);
    Py_END_ALLOW_THREADS if (status) return py_raise(&err);
    return (PyObject *)py_tensor(t, self->device);
}

static PyMethodDef methods[] = {
    { "item", item, METH_NOARGS, "The only element, as a number of Python's." },
    { "tolist", tolist, METH_NOARGS, "Nested lists of numbers." },
    { "detach", detach, METH_NOARGS,
      "The same memory without history: no gradient flows through." },
    { "_become", become, METH_O, "Takes the value and the history of another one." },
    { "_on", on_device, METH_O, "The same value for another device." },
    { "_window", window, METH_VARARGS,
      "(shape, strides, offset): another window on the same memory." },
    { "_convert", convert, METH_O, "A copy of its own, contiguous, of a dtype." },
    { "__dlpack__", (PyCFunction)(void (*)(void))py_tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
      "A capsule that other libraries read: the same memory." },
    { "__dlpack_device__", py_tensor_dlpack_device, METH_NOARGS, "(1, 0): host memory." },
    { 0 }
};

int py_tensor_init(PyObject *module) {
    PyType_Slot own[] = { { Py_tp_new, new_tensor },
                          { Py_tp_doc,
                            "A typed array that knows how it was made: see facula.tensor()." },
                          { Py_tp_dealloc, dealloc },
                          { Py_tp_traverse, traverse },
                          { Py_tp_clear, clear },
                          { Py_tp_methods, methods },
                          { Py_tp_getset, py_tensor_getset },
                          { Py_tp_members, py_tensor_members },
                          { Py_bf_getbuffer, py_tensor_getbuffer },
                          { Py_bf_releasebuffer, py_tensor_releasebuffer } };
    enum { OWN = sizeof own / sizeof *own };
    PyType_Slot slots[OWN + 48];
    int n = 0;
    for (; n < OWN; n++) slots[n] = own[n];
    for (const PyType_Slot *s = py_number_slots; s->slot; s++) slots[n++] = *s;
    slots[n] = (PyType_Slot){ 0, NULL };
    PyType_Spec spec = { "facula.Tensor", sizeof(TensorObject), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots };
    py_tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!py_tensor_type) return -1;
    alloc_tensor = (allocfunc)PyType_GetSlot(py_tensor_type, Py_tp_alloc);
    return PyModule_AddObjectRef(module, "Tensor", (PyObject *)py_tensor_type);
}
