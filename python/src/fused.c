/* Fused: a graph that Python calls as one, where single operators would cost more than they do: the
 * update of parameters, running statistics.  Gradients do not go through it. */
#include "function.h"

typedef struct FusedObject {
    PyObject_HEAD fac_graph *graph;
    Function *f; /* made at the first call on its device */
} FusedObject;

static FusedObject *of(PyObject *o) { return (FusedObject *)o; }

/* Fused(graph): a copy of it. */
static PyObject *new_fused(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *graph;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O!:Fused", py_graph_type, &graph)) return NULL;
    FusedObject *self = (FusedObject *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) return NULL;
    self->graph = fac_graph_clone(((GraphObject *)graph)->graph);
    if (self->graph) return (PyObject *)self;
    Py_DECREF(self);
    return PyErr_NoMemory();
}

static void dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    py_function_free(of(o)->f);
    fac_graph_free(of(o)->graph);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

static bool function_on(FusedObject *self, DeviceObject *device) {
    DeviceObject *on = device ? device : py_device_from(NULL);
    if (!on) return false;
    if (self->f && self->f->device == on->device) return true;
    Function *f = py_function_graph(self->graph, on->device);
    if (!f) return false;
    py_function_free(self->f);
    self->f = f;
    return true;
}

/* Numbers become scalars of the input's type.  The caller drops in[]; false: an exception. */
static bool operands(const FusedObject *self, PyObject *const args[], Py_ssize_t n,
                     DeviceObject *device, PyObject *in[]) {
    for (Py_ssize_t i = 0; i < n; i++) {
        if (py_is_tensor(args[i]))
            in[i] = Py_NewRef(args[i]);
        else
            in[i] = py_scalar(args[i], fac_value_type(fac_graph_input(self->graph, (int)i)).dtype,
                              device);
        if (in[i]) continue;
        while (i-- > 0) Py_DECREF(in[i]);
        return false;
    }
    return true;
}

/* call(tensors and numbers...): a tuple of the results. */
static PyObject *call(PyObject *o, PyObject *const *args, Py_ssize_t n) {
    FusedObject *self = of(o);
    DeviceObject *device = NULL;
    PyObject *in[PY_PORTS];
    if (n != fac_graph_inputs(self->graph)) {
        PyErr_Format(PyExc_TypeError, "Fused: %zd inputs, %d were expected", n,
                     fac_graph_inputs(self->graph));
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n && !device; i++)
        if (py_is_tensor(args[i])) device = ((TensorObject *)args[i])->device;
    if (!function_on(self, device) || !operands(self, args, n, device, in)) return NULL;
    PyObject *y = py_call_plain(self->f, (int)n, in, device);
    for (Py_ssize_t i = 0; i < n; i++) Py_DECREF(in[i]);
    return y;
}

static PyMethodDef methods[] = { { "call", (PyCFunction)(void (*)(void))call, METH_FASTCALL,
                                   "(tensors and numbers...): a tuple of the results." },
                                 { 0 } };
static PyType_Slot slots[] = { { Py_tp_doc, "(Graph): a graph that is called as one operator." },
                               { Py_tp_new, new_fused },
                               { Py_tp_dealloc, dealloc },
                               { Py_tp_methods, methods },
                               { 0 } };
static PyType_Spec spec = { "facula.Fused", sizeof(FusedObject), 0, Py_TPFLAGS_DEFAULT, slots };

int py_fused_init(PyObject *module) {
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(&spec);
    return type ? PyModule_AddObjectRef(module, "Fused", (PyObject *)type) : -1;
}
