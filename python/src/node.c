/* Nodes: what a recorded call remembers, and what its own gradients are.  Walking them backwards is
 * Python's affair (facula/autograd.py). */
#include <string.h>
#include "node.h"

static PyTypeObject *node_type;
static allocfunc alloc_node;

NodeObject *py_node_new(Function *f, const fac_op *op, int n, PyObject *const in[],
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
    Py_CLEAR(self->scope);
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
static PyObject *get_scope(PyObject *o, void *none) {
    (void)none;
    PyObject *scope = ((NodeObject *)o)->scope;
    return Py_NewRef(scope ? scope : Py_None);
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

PyObject *py_node_vjp(PyObject *o, PyObject *list, bool create) {
    NodeObject *self = (NodeObject *)o;
    PyObject *in[PY_PORTS];
    int n = 0;
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
    const bool before = py_grad_enable(create);
    PyObject *grads = ok ? py_record_call(f, self->op, n, in, self->device) : NULL;
    py_grad_enable(before);
    for (int i = 0; i < n; i++) Py_DECREF(in[i]);
    return grads ? spread(mask, PyTuple_Size(self->inputs), grads) : NULL;
}

/* vjp([d result...], create_graph) */
static PyObject *vjp(PyObject *o, PyObject *args) {
    PyObject *list;
    int create = 0;
    if (!PyArg_ParseTuple(args, "O!p:vjp", &PyList_Type, &list, &create)) return NULL;
    return py_node_vjp(o, list, create);
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

bool py_is_node(PyObject *o) { return Py_TYPE(o) == node_type; }
void py_node_release(PyObject *node) { clear(node); }

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
                                { "scope", get_scope, NULL, "The module that called it.", NULL },
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

int py_node_init(PyObject *module) {
    node_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!node_type) return -1;
    alloc_node = (allocfunc)PyType_GetSlot(node_type, Py_tp_alloc);
    return PyModule_AddObjectRef(module, "Node", (PyObject *)node_type);
}
