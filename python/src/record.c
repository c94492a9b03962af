/* Calls that gradients go through.  An eager call runs a Function; where an input requires a
 * gradient, the result remembers a Node: the function, its inputs and what it gave.  Walking the
 * nodes backwards is Python's affair (facula/autograd.py); a node says what its own gradients are.
 */
#include <string.h>
#include "module.h"

typedef struct NodeObject {
    PyObject_HEAD Function *f;
    const fac_op *op;
    PyObject *inputs;           /* a tuple of Tensors and None; NULL once released */
    PyObject *hooks;            /* {result: [functions of its gradient]}, or NULL */
    fac_tensor **read, **saved; /* the values of the inputs, and of the results; NULL: recorded */
    fac_lazy **recorded;        /* inputs that were not computed yet */
    uint64_t *versions;         /* of those that were read */
    DeviceObject *device;
} NodeObject;

static PyTypeObject *node_type;
static allocfunc alloc_node;
/* Of a thread: one that computes without gradients changes nothing for the others. */
static _Thread_local bool enabled = true;
static _Thread_local bool tracing; /* every call is recorded, whatever it is for */

bool py_grad_enabled(void) { return enabled; }

static PyObject *set_grad_enabled(PyObject *module, PyObject *on) {
    (void)module;
    int value = PyObject_IsTrue(on);
    if (value < 0) return NULL;
    bool before = enabled;
    enabled = value;
    return PyBool_FromLong(before);
}
static PyObject *set_tracing(PyObject *module, PyObject *on) {
    (void)module;
    int value = PyObject_IsTrue(on);
    if (value < 0) return NULL;
    bool before = tracing;
    tracing = value;
    return PyBool_FromLong(before);
}
static PyObject *is_grad_enabled(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return PyBool_FromLong(enabled);
}

/* ---- calling ---- */

static bool wants(PyObject *const in[], int n, const Function *f) {
    for (int i = 0; i < n; i++)
        if (py_is_tensor(in[i]) && ((TensorObject *)in[i])->requires_grad && f->floats_in[i])
            return true;
    return false;
}

static NodeObject *new_node(Function *f, const fac_op *op, int n, PyObject *const in[],
                            fac_tensor *const out[]) {
    PyObject *inputs = PyTuple_New(n);
    void *room = PyMem_Calloc((size_t)(3 * n + f->nout), sizeof(uint64_t));
    NodeObject *self = inputs && room ? (NodeObject *)alloc_node(node_type, 0) : NULL;
    if (!self) {
        if (!room) PyErr_NoMemory();
        PyMem_Free(room);
        Py_XDECREF(inputs);
        return NULL;
    }
    self->read = room;
    self->saved = self->read + n;
    self->recorded = (fac_lazy **)(self->saved + f->nout);
    self->versions = (uint64_t *)(self->recorded + n);
    self->inputs = inputs;
    self->f = py_function_hold(f);
    self->op = op;
    for (int i = 0; i < n; i++) {
        PyTuple_SetItem(inputs, i, Py_NewRef(in[i]));
        if (!py_is_tensor(in[i])) continue;
        TensorObject *x = (TensorObject *)in[i];
        if (x->lazy && !x->t) self->recorded[i] = fac_lazy_retain(x->lazy);
        if (!x->t) continue;
        self->read[i] = fac_tensor_retain(x->t);
        self->versions[i] = fac_tensor_version(self->read[i]);
    }
    for (int k = 0; out && k < f->nout; k++) self->saved[k] = fac_tensor_retain(out[k]);
    return self;
}

/* Inputs are remembered as they are now: an object that gets another value later is another input.
 */
static bool snapshot(int n, PyObject *const in[], PyObject *to[]) {
    for (int i = 0; i < n; i++) {
        TensorObject *x = (TensorObject *)in[i];
        if (!py_is_tensor(in[i]) || !x->node) {
            to[i] = Py_NewRef(in[i]);
            continue;
        }
        TensorObject *same = py_alias(x);
        if (!same) {
            while (i-- > 0) Py_DECREF(to[i]);
            return false;
        }
        same->node = Py_NewRef(x->node);
        same->index = x->index;
        same->requires_grad = x->requires_grad;
        to[i] = (PyObject *)same;
    }
    return true;
}

static PyObject *recorded(Function *f, const fac_op *op, int n, PyObject *const in[],
                          fac_tensor *const out[]) {
    PyObject *now[PY_PORTS];
    if (!snapshot(n, in, now)) return NULL;
    NodeObject *node = new_node(f, op, n, now, out);
    for (int i = 0; i < n; i++) Py_DECREF(now[i]);
    return (PyObject *)node;
}

/* Takes out[], or lazy[] where that is not NULL. */
static PyObject *wrap(Function *f, fac_tensor *out[], fac_lazy *lazy[], DeviceObject *device,
                      PyObject *node, bool grads) {
    PyObject *all[PY_PORTS];
    for (int k = 0; k < f->nout; k++) {
        TensorObject *y = py_tensor(lazy ? NULL : out[k], device);
        if (y && lazy) y->lazy = lazy[k];
        bool floats = y && fac_dtype_get(py_type(y).dtype)->kind == 'f';
        if (!y) {
            while (k-- > 0) Py_DECREF(all[k]);
            return NULL;
        }
        if (node && (floats || tracing)) {
            y->node = Py_NewRef(node);
            y->index = k;
            y->requires_grad = grads && floats;
        }
        all[k] = (PyObject *)y;
    }
    if (f->nout == 1) return all[0];
    PyObject *tuple = PyTuple_New(f->nout);
    for (int k = 0; k < f->nout; k++)
        if (tuple)
            PyTuple_SetItem(tuple, k, all[k]);
        else
            Py_DECREF(all[k]);
    return tuple;
}

/* in[]: Tensors, or None where one is absent. */
static PyObject *call(Function *f, const fac_op *op, int n, PyObject *const in[],
                      DeviceObject *device) {
    fac_tensor *given[PY_PORTS], *out[PY_PORTS];
    fac_lazy *lazy[PY_PORTS];
    bool later = py_lazy_on() && !tracing;
    if (later && !py_lazy_call(f, device, n, in, lazy)) return NULL;
    for (int i = 0; i < n && !later; i++) {
        given[i] = py_is_tensor(in[i]) ? py_value(in[i]) : NULL;
        if (!given[i] && py_is_tensor(in[i])) return NULL;
    }
    if (!later && !py_function_run(f, given, out)) return NULL;
    bool grads = enabled && !(op->is & FAC_OP_NO_GRAD) && wants(in, n, f),
         record = grads || tracing;
    PyObject *node = record ? recorded(f, op, n, in, later ? NULL : out) : NULL;
    if (record && !node) {
        for (int k = 0; k < f->nout; k++)
            if (later)
                fac_lazy_free(lazy[k]);
            else
                fac_tensor_free(out[k]);
        return NULL;
    }
    if (node) ((NodeObject *)node)->device = device;
    PyObject *y = wrap(f, out, later ? lazy : NULL, device, node, grads);
    Py_XDECREF(node);
    return y;
}

PyObject *py_apply_op(const fac_op *op, const char *attrs, int want, int n, PyObject *const in[]) {
    TensorObject *given[PY_PORTS];
    DeviceObject *device = NULL;
    if (n > PY_PORTS) n = PY_PORTS;
    for (int i = 0; i < n; i++) {
        given[i] = NULL;
        if (in[i] == Py_None) continue;
        if (!py_is_tensor(in[i])) {
            PyErr_Format(PyExc_TypeError, "%s: input %d is a %S, a Tensor was expected", op->name,
                         i, (PyObject *)Py_TYPE(in[i]));
            return NULL;
        }
        TensorObject *x = (TensorObject *)in[i];
        given[i] = x;
        if (!device) device = x->device;
    }
    DeviceObject *on = device ? device : py_device_from(NULL);
    Function *f = on ? py_function_op(op, attrs, want, on->device, n, given) : NULL;
    return f ? call(f, op, n, in, device) : NULL;
}

/* apply(operator, attributes or None, how many results or 0, inputs...) */
PyObject *py_apply(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    if (n < 3 || n > PY_PORTS + 3 || !PyUnicode_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "apply(operator, attributes or None, results, inputs...)");
        return NULL;
    }
    const char *name = PyUnicode_AsUTF8AndSize(args[0], NULL), *attrs = NULL;
    if (!name) return NULL;
    if (args[1] != Py_None && !(attrs = PyUnicode_AsUTF8AndSize(args[1], NULL))) return NULL;
    long want = PyLong_AsLong(args[2]);
    if (want == -1 && PyErr_Occurred()) return NULL;
    if (want < 0 || want >= PY_PORTS) want = 0;
    const fac_op *op = fac_op_find(name);
    if (op && !(op->is & FAC_OP_BODIES))
        return py_apply_op(op, attrs, (int)want, (int)(n - 3), args + 3);
    PyErr_Format(PyExc_ValueError,
                 op ? "the operator \"%s\" has graphs inside and cannot be called alone"
                    : "there is no operator \"%s\"",
                 name);
    return NULL;
}

/* ---- nodes ---- */

static int traverse(PyObject *o, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(o));
    Py_VISIT(((NodeObject *)o)->inputs);
    Py_VISIT(((NodeObject *)o)->hooks);
    return 0;
}
static int clear(PyObject *o) {
    NodeObject *self = (NodeObject *)o;
    Py_ssize_t n = self->inputs ? PyTuple_Size(self->inputs) : 0;
    for (Py_ssize_t i = 0; i < n; i++) fac_tensor_free(self->read[i]);
    for (Py_ssize_t i = 0; i < n; i++) fac_lazy_free(self->recorded[i]);
    for (int k = 0; self->read && k < self->f->nout; k++) fac_tensor_free(self->saved[k]);
    PyMem_Free(self->read);
    self->read = NULL;
    Py_CLEAR(self->inputs);
    Py_CLEAR(self->hooks);
    return 0;
}
static void dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    PyObject_GC_UnTrack(o);
    clear(o);
    py_function_free(((NodeObject *)o)->f);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

static PyObject *get_inputs(PyObject *o, void *none) {
    (void)none;
    NodeObject *self = (NodeObject *)o;
    return self->inputs ? Py_NewRef(self->inputs) : PyTuple_New(0);
}
static PyObject *get_name(PyObject *o, void *none) {
    (void)none;
    return PyUnicode_FromString(((NodeObject *)o)->op->name);
}
static PyObject *get_outputs(PyObject *o, void *none) {
    (void)none;
    return PyLong_FromLong(((NodeObject *)o)->f->nout);
}
static PyObject *get_hooks(PyObject *o, void *none) {
    (void)none;
    PyObject *hooks = ((NodeObject *)o)->hooks;
    return Py_NewRef(hooks ? hooks : Py_None);
}
static int set_hooks(PyObject *o, PyObject *value, void *none) {
    (void)none;
    PyObject *old = ((NodeObject *)o)->hooks;
    ((NodeObject *)o)->hooks = value && value != Py_None ? Py_NewRef(value) : NULL;
    Py_XDECREF(old);
    return 0;
}
static PyObject *repr(PyObject *o) {
    return PyUnicode_FromFormat("<Node %s>", ((NodeObject *)o)->op->name);
}

static bool unchanged(const NodeObject *self) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(self->inputs); i++) {
        if (!self->read[i] || fac_tensor_version(self->read[i]) == self->versions[i]) continue;
        PyErr_Format(PyExc_RuntimeError,
                     "%s: input %zd was written after the operator read it, so its gradient cannot"
                     " be computed: copy it before it is changed (x.clone())",
                     self->op->name, i);
        return false;
    }
    return true;
}

static uint64_t mask_of(const NodeObject *self) {
    uint64_t mask = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(self->inputs); i++) {
        PyObject *x = PyTuple_GetItem(self->inputs, i);
        if (py_is_tensor(x) && ((TensorObject *)x)->requires_grad && self->f->floats_in[i])
            mask |= UINT64_C(1) << i;
    }
    return mask;
}

static fac_type result_type(const NodeObject *self, int k) {
    return fac_value_type(fac_graph_output(self->f->graph, k));
}
static bool is_float(const NodeObject *self, int k) {
    return fac_dtype_get(result_type(self, k).dtype)->kind == 'f';
}

/* What came in for result k, or zeros. */
static PyObject *incoming(const NodeObject *self, PyObject *list, int k) {
    PyObject *d = PyList_GetItem(list, k);
    if (d && d != Py_None) return Py_NewRef(d);
    if (!d) PyErr_Clear();
    fac_type type = result_type(self, k);
    fac_tensor *zeros;
    fac_error err;
    if (fac_tensor_new(NULL, type.dtype, type.dims, &zeros, &err)) return py_raise(&err);
    return (PyObject *)py_tensor(zeros, self->device);
}

/* Input i as it was when it was read: the object may have got another value since. */
static PyObject *as_read(const NodeObject *self, int i) {
    PyObject *x = PyTuple_GetItem(self->inputs, i);
    TensorObject *now = (TensorObject *)x;
    if (self->recorded[i] && now->lazy != self->recorded[i]) {
        TensorObject *then = py_tensor(NULL, self->device);
        if (then) then->lazy = fac_lazy_retain(self->recorded[i]);
        return (PyObject *)then;
    }
    if (!self->read[i] || now->t == self->read[i]) return Py_NewRef(x);
    return (PyObject *)py_tensor(fac_tensor_retain(self->read[i]), self->device);
}

static PyObject *spread(uint64_t mask, Py_ssize_t n, PyObject *grads) {
    PyObject *list = PyList_New(n);
    bool single = py_is_tensor(grads);
    Py_ssize_t next = 0;
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *g = Py_None;
        if (mask >> i & 1) g = single ? grads : PyTuple_GetItem(grads, next++);
        PyList_SetItem(list, i, Py_NewRef(g));
    }
    Py_DECREF(grads);
    return list;
}

/* vjp([d result...], create_graph): gradients by the inputs, None where none is wanted. */
static PyObject *vjp(PyObject *o, PyObject *args) {
    NodeObject *self = (NodeObject *)o;
    PyObject *list, *in[PY_PORTS];
    int create = 0, n = 0;
    if (!PyArg_ParseTuple(args, "O!p:vjp", &PyList_Type, &list, &create)) return NULL;
    if (!self->inputs) {
        PyErr_SetString(
            PyExc_RuntimeError,
            "backward() went through this part of the graph already and released it: say"
            " retain_graph=True the first time");
        return NULL;
    }
    uint64_t mask = mask_of(self);
    if (!mask || !unchanged(self)) return mask ? NULL : PyList_New(0);
    bool saved = !create && self->saved[0] && !py_lazy_on();
    Function *f = py_function_vjp(self->f, saved ? mask | UINT64_C(1) << 62 : mask);
    if (!f) return NULL;
    bool ok = true;
    for (; ok && n < PyTuple_Size(self->inputs); n += ok) ok = (in[n] = as_read(self, n)) != NULL;
    for (int k = 0; ok && k < self->f->nout; k++)
        if (is_float(self, k)) {
            in[n] = incoming(self, list, k);
            ok = in[n] != NULL;
            n += ok;
        }
    for (int k = 0; ok && saved && k < self->f->nout; k++)
        if (is_float(self, k)) {
            in[n] = (PyObject *)py_tensor(fac_tensor_retain(self->saved[k]), self->device);
            ok = in[n] != NULL;
            n += ok;
        }
    bool before = enabled;
    enabled = create;
    PyObject *grads = ok ? call(f, self->op, n, in, self->device) : NULL;
    enabled = before;
    for (int i = 0; i < n; i++) Py_DECREF(in[i]);
    return grads ? spread(mask, PyTuple_Size(self->inputs), grads) : NULL;
}

int py_node_emit(PyObject *o, fac_graph *g, int n, fac_value *const in[], fac_value *out[]) {
    fac_error err;
    if (Py_TYPE(o) != node_type || n != ((NodeObject *)o)->f->nin) {
        PyErr_SetString(PyExc_TypeError, "only calls of operators can be written into a graph");
        return -1;
    }
    const Function *f = ((NodeObject *)o)->f;
    if (py_function_emit(f, g, in, out)) return f->nout;
    if (fac_graph_check(g, &err))
        py_raise(&err);
    else
        PyErr_SetString(PyExc_RuntimeError,
                        "a call without results cannot be written into a graph");
    return -1;
}

static PyObject *release(PyObject *o, PyObject *none) {
    (void)none;
    clear(o);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = { { "vjp", vjp, METH_VARARGS,
                                   "([d result...], create_graph): gradients by the inputs." },
                                 { "release", release, METH_NOARGS, "Forgets inputs and results." },
                                 { 0 } };
static PyGetSetDef getset[] = { { "inputs", get_inputs, NULL, "Tensors that were read.", NULL },
                                { "name", get_name, NULL, "Of the operator.", NULL },
                                { "outputs", get_outputs, NULL, "How many results.", NULL },
                                { "hooks", get_hooks, set_hooks,
                                  "{result: [functions of its gradient]} or None", NULL },
                                { 0 } };
static PyType_Slot slots[] = { { Py_tp_doc, "A recorded call of an operator." },
                               { Py_tp_dealloc, dealloc },
                               { Py_tp_traverse, traverse },
                               { Py_tp_clear, clear },
                               { Py_tp_methods, methods },
                               { Py_tp_getset, getset },
                               { Py_tp_repr, repr },
                               { 0 } };
static PyType_Spec spec = { "facula.Node", sizeof(NodeObject), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            slots };
static PyMethodDef functions[] = {
    { "set_grad_enabled", set_grad_enabled, METH_O,
      "Are calls recorded for gradients?  What it was before." },
    { "set_tracing", set_tracing, METH_O, "Is every call recorded?  What it was before." },
    { "is_grad_enabled", is_grad_enabled, METH_NOARGS, "Are calls recorded for gradients?" },
    { 0 }
};

int py_record_init(PyObject *module) {
    node_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!node_type) return -1;
    alloc_node = (allocfunc)PyType_GetSlot(node_type, Py_tp_alloc);
    if (PyModule_AddFunctions(module, functions) < 0) return -1;
    return PyModule_AddObjectRef(module, "Node", (PyObject *)node_type);
}
