/* Calls that gradients go through.  An eager call runs a Function; where an input requires a
 * gradient, the result remembers a Node (node.c): the function, its inputs and what it gave. */
#include "node.h"

/* Of a thread: one that computes without gradients changes nothing for the others. */
static _Thread_local bool enabled = true;
static _Thread_local bool tracing;    /* every call is recorded, whatever it is for */
static _Thread_local PyObject *scope; /* which module calls meanwhile: a path, or NULL */

bool py_grad_enabled(void) { return enabled; }
bool py_grad_enable(bool on) {
    const bool before = enabled;
    enabled = on;
    return before;
}

bool py_tracing(void) { return tracing; }
bool py_read_traced(const TensorObject *x) {
    if (!tracing || !x->node) return true;
    return !PyErr_WarnEx(PyExc_UserWarning,
                         "the elements of a tensor are read while a graph is made of the calls: "
                         "what follows from them is fixed to this example",
                         1);
}

static PyObject *set_grad_enabled(PyObject *module, PyObject *on) {
    (void)module;
    int value = PyObject_IsTrue(on);
    if (value < 0) return NULL;
    return PyBool_FromLong(py_grad_enable(value));
}
static PyObject *set_tracing(PyObject *module, PyObject *on) {
    (void)module;
    int value = PyObject_IsTrue(on);
    if (value < 0) return NULL;
    bool before = tracing;
    tracing = value;
    return PyBool_FromLong(before);
}
static PyObject *set_scope(PyObject *module, PyObject *path) {
    (void)module;
    PyObject *before = scope ? scope : Py_NewRef(Py_None);
    scope = path == Py_None ? NULL : Py_NewRef(path);
    return before;
}
static PyObject *is_tracing(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return PyBool_FromLong(tracing);
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
    NodeObject *node = py_node_new(f, op, n, now, out);
    for (int i = 0; i < n; i++) Py_DECREF(now[i]);
    if (node && tracing) node->scope = Py_XNewRef(scope);
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

PyObject *py_record_call(Function *f, const fac_op *op, int n, PyObject *const in[],
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
    PyObject *node = NULL;
    if (record) node = recorded(f, op, n, in, later ? NULL : out);
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

PyObject *py_call_plain(Function *f, int n, PyObject *const in[], DeviceObject *device) {
    fac_tensor *given[PY_PORTS], *out[PY_PORTS];
    fac_lazy *lazy[PY_PORTS];
    const bool later = py_lazy_on();
    if (later && !py_lazy_call(f, device, n, in, lazy)) return NULL;
    for (int i = 0; i < n && !later; i++)
        if (!(given[i] = py_value(in[i]))) return NULL;
    if (!later && !py_function_run(f, given, out)) return NULL;
    PyObject *y = wrap(f, out, later ? lazy : NULL, device, NULL, false);
    PyObject *tuple = y && f->nout == 1 ? PyTuple_Pack(1, y) : NULL;
    if (!y || f->nout != 1) return y;
    Py_DECREF(y);
    return tuple;
}

PyObject *py_apply_op(const fac_op *op, const char *attrs, int want, int n, PyObject *const in[]) {
    TensorObject *given[PY_PORTS];
    DeviceObject *device = NULL;
    if (n > PY_PORTS) n = PY_PORTS;
    for (int i = 0; i < n; i++) {
        given[i] = NULL;
        if (in[i] == Py_None) continue;
        if (!py_is_tensor(in[i])) {
            PyErr_Format(PyExc_TypeError,
                         "%s: input %d is a %S, a Tensor was expected (fac.tensor makes one)",
                         op->name, i, (PyObject *)Py_TYPE(in[i]));
            return NULL;
        }
        TensorObject *x = (TensorObject *)in[i];
        given[i] = x;
        if (!device) device = x->device;
    }
    DeviceObject *on = device ? device : py_device_from(NULL);
    Function *f = on ? py_function_op(op, attrs, want, on->device, n, given) : NULL;
    return f ? py_record_call(f, op, n, in, device) : NULL;
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

static PyMethodDef functions[] = {
    { "set_grad_enabled", set_grad_enabled, METH_O,
      "Are calls recorded for gradients?  What it was before." },
    { "set_tracing", set_tracing, METH_O, "Is every call recorded?  What it was before." },
    { "set_scope", set_scope, METH_O, "The module that calls from now on; what it was before." },
    { "is_tracing", is_tracing, METH_NOARGS, "Is every call recorded, for a graph?" },
    { "is_grad_enabled", is_grad_enabled, METH_NOARGS, "Are calls recorded for gradients?" },
    { 0 }
};

int py_record_init(PyObject *module) {
    return PyModule_AddFunctions(module, functions) < 0 ? -1 : py_node_init(module);
}
