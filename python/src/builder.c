/* A Builder writes recorded calls into a graph: how networks of Python's become models that are
 * saved, analysed and run as one program.  Values are numbers. */
#include <string.h>
#include "module.h"

typedef struct BuilderObject {
    PyObject_HEAD fac_graph *graph;
    fac_value **values;
    Py_ssize_t n, room;
} BuilderObject;

static BuilderObject *of(PyObject *o) { return (BuilderObject *)o; }

static PyObject *new_builder(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)args, (void)kwargs;
    BuilderObject *self = (BuilderObject *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self && !(self->graph = fac_graph_new())) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}
static void dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    fac_graph_free(of(o)->graph);
    PyMem_Free(of(o)->values);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

static bool open_still(BuilderObject *b) {
    if (b->graph) return true;
    PyErr_SetString(PyExc_ValueError, "this graph is finished");
    return false;
}

static PyObject *keep(BuilderObject *b, fac_value *v) {
    fac_error err;
    if (fac_graph_check(b->graph, &err)) return py_raise(&err);
    if (b->n == b->room) {
        Py_ssize_t room = b->room ? b->room * 2 : 64;
        fac_value **wider = PyMem_Realloc(b->values, (size_t)room * sizeof *wider);
        if (!wider) return PyErr_NoMemory();
        b->values = wider;
        b->room = room;
    }
    b->values[b->n] = v;
    return PyLong_FromSsize_t(b->n++);
}

static fac_value *at(BuilderObject *b, PyObject *number) {
    Py_ssize_t i = PyLong_AsSsize_t(number);
    if (i == -1 && PyErr_Occurred()) return NULL;
    if (i >= 0 && i < b->n) return b->values[i];
    PyErr_SetString(PyExc_IndexError, "no such value");
    return NULL;
}

static PyObject *input(PyObject *o, PyObject *args) {
    const char *name;
    PyObject *as, *sizes;
    fac_dtype dtype;
    fac_dims dims;
    if (!PyArg_ParseTuple(args, "sOO:input", &name, &as, &sizes) || !open_still(of(o))) return NULL;
    if (!py_dtype_from(as, FAC_F32, &dtype) || !py_dims_from(sizes, &dims)) return NULL;
    return keep(of(o), fac_input(of(o)->graph, name, dtype, dims));
}

/* leaf(kind, name, tensor): kind "param", "state" or "const". */
static PyObject *leaf(PyObject *o, PyObject *args) {
    const char *kind, *name;
    PyObject *x;
    if (!PyArg_ParseTuple(args, "szO!:leaf", &kind, &name, py_tensor_type, &x) ||
        !open_still(of(o)))
        return NULL;
    fac_graph *g = of(o)->graph;
    fac_tensor *t = py_value(x);
    if (!t) return NULL;
    if (!strcmp(kind, "param")) return keep(of(o), fac_param(g, name, t));
    return keep(of(o), strcmp(kind, "state") ? fac_const(g, t) : fac_state(g, name, t));
}

static PyObject *emit(PyObject *o, PyObject *args) {
    PyObject *node, *numbers;
    fac_value *in[PY_PORTS], *out[PY_PORTS];
    if (!PyArg_ParseTuple(args, "OO!:emit", &node, &PyList_Type, &numbers) || !open_still(of(o)))
        return NULL;
    Py_ssize_t n = PyList_Size(numbers);
    for (Py_ssize_t i = 0; i < n && i < PY_PORTS; i++) {
        PyObject *number = PyList_GetItem(numbers, i);
        in[i] = NULL;
        if (number != Py_None && !(in[i] = at(of(o), number))) return NULL;
    }
    int nout = py_node_emit(node, of(o)->graph, (int)n, in, out);
    if (nout < 0) return NULL;
    PyObject *list = PyList_New(nout);
    for (int k = 0; list && k < nout; k++) {
        PyObject *number = keep(of(o), out[k]);
        if (!number)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, k, number);
    }
    return list;
}

/* ---- operators by name ---- */

static bool values_from(BuilderObject *b, PyObject *numbers, fac_value *in[]) {
    for (Py_ssize_t i = 0; i < PyList_Size(numbers); i++) {
        PyObject *number = PyList_GetItem(numbers, i);
        in[i] = NULL;
        if (number != Py_None && !(in[i] = at(b, number))) return false;
    }
    return true;
}

static PyObject *kept_results(BuilderObject *b, fac_value *first, int want) {
    PyObject *list = PyList_New(want);
    for (int k = 0; list && k < want; k++) {
        PyObject *number = keep(b, k ? fac_value_other(first, k) : first);
        if (!number)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, k, number);
    }
    return list;
}

/* apply(operator, attributes or None, results, [value or None...]): the values of its results. */
static PyObject *apply(PyObject *o, PyObject *args) {
    const char *name, *attrs;
    int want;
    PyObject *numbers;
    if (!PyArg_ParseTuple(args, "sziO!:apply", &name, &attrs, &want, &PyList_Type, &numbers) ||
        !open_still(of(o)))
        return NULL;
    const fac_op *op = fac_op_find(name);
    if (!op) {
        PyErr_Format(PyExc_ValueError, "there is no operator '%s'", name);
        return NULL;
    }
    Py_ssize_t n = PyList_Size(numbers);
    fac_value **in = PyMem_Calloc((size_t)n + 1, sizeof *in);
    if (!in) return PyErr_NoMemory();
    PyObject *list = NULL;
    if (values_from(of(o), numbers, in)) {
        fac_value *first = fac_apply(of(o)->graph, op, attrs, (int)n, in);
        list = kept_results(of(o), first, want);
    }
    PyMem_Free(in);
    return list;
}

static PyObject *ints(PyObject *o, PyObject *sizes) {
    if (!open_still(of(o))) return NULL;
    Py_ssize_t n = PySequence_Size(sizes);
    fac_dims dims;
    if (n < 0 || !py_dims_from(sizes, &dims)) return NULL;
    return keep(of(o), fac_ints(of(o)->graph, dims));
}

static PyObject *number(PyObject *o, PyObject *args) {
    PyObject *as;
    double x;
    fac_dtype dtype;
    if (!PyArg_ParseTuple(args, "Od:number", &as, &x) || !open_still(of(o))) return NULL;
    if (!py_dtype_from(as, FAC_F32, &dtype)) return NULL;
    return keep(of(o), fac_number(of(o)->graph, dtype, x));
}

static PyObject *type_of(PyObject *o, PyObject *number) {
    fac_value *v = open_still(of(o)) ? at(of(o), number) : NULL;
    if (!v) return NULL;
    fac_type type = fac_value_type(v);
    return Py_BuildValue("(NN)", py_dtype(type.dtype), py_dims(&type.dims));
}

static PyObject *update(PyObject *o, PyObject *args) {
    PyObject *state, *next;
    if (!PyArg_ParseTuple(args, "OO:update", &state, &next) || !open_still(of(o))) return NULL;
    fac_value *to = at(of(o), state), *from = to ? at(of(o), next) : NULL;
    if (!from) return NULL;
    fac_update(to, from);
    fac_error err;
    if (fac_graph_check(of(o)->graph, &err)) return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *output(PyObject *o, PyObject *args) {
    const char *name;
    PyObject *number;
    if (!PyArg_ParseTuple(args, "sO:output", &name, &number) || !open_still(of(o))) return NULL;
    fac_value *v = at(of(o), number);
    if (!v) return NULL;
    fac_output(of(o)->graph, name, v);
    Py_RETURN_NONE;
}

static PyObject *scope(PyObject *o, PyObject *args) {
    const char *path, *class;
    if (!PyArg_ParseTuple(args, "sz:scope", &path, &class) || !open_still(of(o))) return NULL;
    if (class)
        fac_graph_set_class(of(o)->graph, path, class);
    else if (*path)
        fac_graph_push(of(o)->graph, path);
    else
        fac_graph_pop(of(o)->graph);
    Py_RETURN_NONE;
}

static PyObject *finish(PyObject *o, PyObject *none) {
    (void)none;
    if (!open_still(of(o))) return NULL;
    fac_graph *g = of(o)->graph;
    of(o)->graph = NULL;
    of(o)->n = 0;
    fac_graph_sweep(g);
    return py_graph(g);
}

static PyMethodDef methods[] = {
    { "input", input, METH_VARARGS, "(name, dtype, shape): a value." },
    { "leaf", leaf, METH_VARARGS, "(\"param\", \"state\" or \"const\", name, Tensor): a value." },
    { "emit", emit, METH_VARARGS, "(Node, [value or None...]): the values of its results." },
    { "output", output, METH_VARARGS, "(name, value)" },
    { "apply", apply, METH_VARARGS,
      "(operator, attributes, results, [value or None...]): values." },
    { "ints", ints, METH_O, "A constant int64[n]." },
    { "number", number, METH_VARARGS, "(dtype, x): a constant scalar." },
    { "type", type_of, METH_O, "(dtype, shape) of a value." },
    { "update", update, METH_VARARGS, "(state, value): what the state becomes after a run." },
    { "scope", scope, METH_VARARGS,
      "(name, None) opens one, (\"\", None) closes it, (path, class) says what it is." },
    { "finish", finish, METH_NOARGS, "The Graph." },
    { 0 }
};
static PyType_Slot slots[] = { { Py_tp_doc, "Writes recorded calls into a Graph." },
                               { Py_tp_new, new_builder },
                               { Py_tp_dealloc, dealloc },
                               { Py_tp_methods, methods },
                               { 0 } };
static PyType_Spec spec = { "facula.Builder", sizeof(BuilderObject), 0, Py_TPFLAGS_DEFAULT, slots };

int py_builder_init(PyObject *module) {
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(&spec);
    return type ? PyModule_AddObjectRef(module, "Builder", (PyObject *)type) : -1;
}
