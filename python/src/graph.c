/* Graphs: models from files and the zoo, what is known of them, and writing them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "module.h"

PyTypeObject *py_graph_type;

PyObject *py_graph(fac_graph *g) {
    if (!g) return PyErr_NoMemory();
    fac_error err;
    if (fac_graph_check(g, &err)) {
        fac_graph_free(g);
        return py_raise(&err);
    }
    GraphObject *self =
        (GraphObject *)((allocfunc)PyType_GetSlot(py_graph_type, Py_tp_alloc))(py_graph_type, 0);
    if (self)
        self->graph = g;
    else
        fac_graph_free(g);
    return (PyObject *)self;
}

static void dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    fac_graph_free(py_graph_of(o));
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

/* ---- ports ---- */

/* Sizes; open ones are their names. */
static PyObject *shape(const fac_graph *g, const fac_dims *dims) {
    PyObject *tuple = PyTuple_New(dims->n);
    for (int i = 0; tuple && i < dims->n; i++) {
        PyObject *size = dims->d[i] < 0 ? py_text(fac_symbol_name(g, dims->d[i]))
                                        : PyLong_FromLongLong(dims->d[i]);
        if (!size)
            Py_CLEAR(tuple);
        else
            PyTuple_SetItem(tuple, i, size);
    }
    return tuple;
}

static PyObject *port(const fac_graph *g, const char *name, const fac_value *v) {
    fac_type type = fac_value_type(v);
    PyObject *dict = PyDict_New();
    bool ok = dict && py_put(dict, "name", py_text(name)) &&
              py_put(dict, "dtype", py_dtype(type.dtype)) &&
              py_put(dict, "shape", shape(g, &type.dims));
    if (!ok) Py_CLEAR(dict);
    return dict;
}

static PyObject *inputs(PyObject *o, PyObject *none) {
    (void)none;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < fac_graph_inputs(py_graph_of(o)); i++) {
        const fac_value *v = fac_graph_input(py_graph_of(o), i);
        PyObject *p = port(py_graph_of(o), fac_value_name(v), v);
        if (!p || PyList_Append(list, p) < 0) Py_CLEAR(list);
        Py_XDECREF(p);
    }
    return list;
}
static PyObject *outputs(PyObject *o, PyObject *none) {
    (void)none;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < fac_graph_outputs(py_graph_of(o)); i++) {
        PyObject *p = port(py_graph_of(o), fac_graph_output_name(py_graph_of(o), i),
                           fac_graph_output(py_graph_of(o), i));
        if (!p || PyList_Append(list, p) < 0) Py_CLEAR(list);
        Py_XDECREF(p);
    }
    return list;
}

static PyObject *parameters(PyObject *o, PyObject *none) {
    (void)none;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < fac_graph_params(py_graph_of(o)); i++) {
        const fac_value *v = fac_graph_param(py_graph_of(o), i);
        TensorObject *t = py_tensor(fac_tensor_retain(fac_value_tensor(v)), NULL);
        if (t) t->readonly = true;
        PyObject *row = t ? Py_BuildValue("(NNO)", py_text(fac_value_name(v)), t,
                                          fac_value_trains(v) ? Py_True : Py_False)
                          : NULL;
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* ---- text, notes, files ---- */

static PyObject *text(PyObject *o, PyObject *none) {
    (void)none;
    char *at = NULL;
    size_t bytes = 0;
    fac_error err;
    FILE *to = open_memstream(&at, &bytes);
    if (!to) return PyErr_NoMemory();
    fac_status status = fac_graph_write(py_graph_of(o), to, &err);
    fclose(to);
    PyObject *s = status ? py_raise(&err) : PyUnicode_DecodeUTF8(at, (Py_ssize_t)bytes, "replace");
    free(at);
    return s;
}

static PyObject *notes(PyObject *o, PyObject *none) {
    (void)none;
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < fac_graph_notes(py_graph_of(o)); i++) {
        const char *key = fac_graph_note_key(py_graph_of(o), i);
        if (!py_put(dict, key, py_text(fac_graph_note(py_graph_of(o), key)))) Py_CLEAR(dict);
    }
    return dict;
}
static PyObject *set_note(PyObject *o, PyObject *args) {
    const char *key, *value;
    if (!PyArg_ParseTuple(args, "sz:set_note", &key, &value)) return NULL;
    fac_graph_set_note(py_graph_of(o), key, value);
    Py_RETURN_NONE;
}

static PyObject *save(PyObject *o, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "path", "opset", "batch", "name", NULL };
    PyObject *path;
    int opset = 0;
    long long batch = 0;
    const char *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|iLz:save", names, PyUnicode_FSConverter,
                                     &path, &opset, &batch, &name))
        return NULL;
    fac_onnx_saved saved = { 0 };
    fac_onnx_save_opts opts = { .opset = opset, .batch = batch, .name = name, .saved = &saved };
    fac_graph *g = fac_graph_inference(py_graph_of(o));
    fac_error err;
    fac_status status;
    Py_BEGIN_ALLOW_THREADS status = fac_onnx_save(g, PyBytes_AsString(path), &opts, &err);
    Py_END_ALLOW_THREADS fac_graph_free(g);
    Py_DECREF(path);
    if (status) return py_raise(&err);
    return Py_BuildValue("{s:i,s:i,s:i,s:n,s:n}", "opset", saved.opset, "nodes", saved.nodes,
                         "tensors", saved.tensors, "bytes", (Py_ssize_t)saved.bytes, "data",
                         (Py_ssize_t)saved.data);
}

static PyObject *save_weights(PyObject *o, PyObject *path) {
    PyObject *bytes;
    fac_error err;
    if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
    fac_status status = fac_graph_save_weights(py_graph_of(o), PyBytes_AsString(bytes), &err);
    Py_DECREF(bytes);
    if (status) return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *clone(PyObject *o, PyObject *none) {
    (void)none;
    return py_graph(fac_graph_clone(py_graph_of(o)));
}
static PyObject *inference(PyObject *o, PyObject *none) {
    (void)none;
    return py_graph(fac_graph_inference(py_graph_of(o)));
}

/* ---- where graphs come from ---- */

enum { SHAPES = 64 };

static bool shapes_from(PyObject *dict, fac_onnx_opts *opts, const char *names[], fac_dims dims[]) {
    PyObject *name, *size;
    Py_ssize_t at = 0;
    opts->inputs = names;
    opts->dims = dims;
    while (dict && dict != Py_None && PyDict_Next(dict, &at, &name, &size)) {
        if (opts->n == SHAPES || !PyUnicode_Check(name)) {
            PyErr_SetString(PyExc_ValueError,
                            "shapes are a dictionary of at most 64 names of inputs");
            return false;
        }
        names[opts->n] = PyUnicode_AsUTF8AndSize(name, NULL);
        if (!names[opts->n] || !py_dims_from(size, &dims[opts->n])) return false;
        opts->n++;
    }
    return true;
}

static PyObject *load_onnx(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *path, *shapes = NULL;
    const char *names[SHAPES];
    fac_dims dims[SHAPES];
    fac_onnx_opts opts = { 0 };
    if (!PyArg_ParseTuple(args, "O&|O:load_onnx", PyUnicode_FSConverter, &path, &shapes))
        return NULL;
    if (shapes && shapes != Py_None && !PyDict_Check(shapes)) {
        Py_DECREF(path);
        PyErr_SetString(PyExc_TypeError,
                        "shapes: a dictionary of names of inputs to shapes was expected");
        return NULL;
    }
    if (!shapes_from(shapes, &opts, names, dims)) {
        Py_DECREF(path);
        return NULL;
    }
    fac_graph *g = NULL;
    fac_error err;
    fac_status status;
    Py_BEGIN_ALLOW_THREADS status = fac_onnx_load(PyBytes_AsString(path), &opts, &g, &err);
    Py_END_ALLOW_THREADS Py_DECREF(path);
    return status ? py_raise(&err) : py_graph(g);
}

static PyObject *read_text(PyObject *module, PyObject *args) {
    (void)module;
    const char *s;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "s#:read_text", &s, &bytes)) return NULL;
    FILE *from = fmemopen((void *)s, (size_t)(bytes ? bytes : 1), "r");
    if (!from) return PyErr_SetFromErrno(PyExc_OSError);
    fac_graph *g = NULL;
    fac_error err;
    fac_status status = fac_graph_read(from, &g, &err);
    fclose(from);
    return status ? py_raise(&err) : py_graph(g);
}

static PyObject *zoo_new(PyObject *module, PyObject *args) {
    (void)module;
    const char *name;
    PyObject *path = NULL;
    unsigned long long seed = 0;
    if (!PyArg_ParseTuple(args, "sO&K:zoo_new", &name, PyUnicode_FSConverter, &path, &seed))
        return NULL;
    fac_weights *w = NULL;
    fac_graph *g = NULL;
    fac_error err;
    fac_status status = FAC_OK;
    const char *file = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS if (*file) status = fac_weights_load(file, &w, &err);
    if (!status) status = fac_zoo_new(name, w, seed, &g, &err);
    fac_weights_free(w);
    Py_END_ALLOW_THREADS Py_DECREF(path);
    return status ? py_raise(&err) : py_graph(g);
}

static PyObject *zoo_models(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    PyObject *list = PyList_New(0);
    for (const fac_zoo *z = fac_zoo_models; list && z->name; z++) {
        PyObject *one = Py_BuildValue("{s:s,s:s,s:(iii),s:i,s:z}", "name", z->name, "help", z->help,
                                      "shape", z->channels, z->height, z->width, "classes",
                                      z->classes, "preset", z->preset);
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyMethodDef methods[] = {
    { "inputs", inputs, METH_NOARGS,
      "What it reads: dictionaries of name, dtype, shape; open sizes are names." },
    { "outputs", outputs, METH_NOARGS, "What it gives, likewise." },
    { "parameters", parameters, METH_NOARGS, "(name, Tensor, is it trained?)" },
    { "text", text, METH_NOARGS, "The graph as text, a node a line." },
    { "notes", notes, METH_NOARGS, "Metadata, a dictionary of texts." },
    { "set_note", set_note, METH_VARARGS, "(key, text or None)" },
    { "save", (PyCFunction)(void (*)(void))save, METH_VARARGS | METH_KEYWORDS,
      "(path, opset=0, batch=0, name=None): as ONNX." },
    { "save_weights", save_weights, METH_O, "Parameters and states as safetensors." },
    { "clone", clone, METH_NOARGS, "A copy that shares the parameters." },
    { "inference", inference, METH_NOARGS, "A copy without updates and dropout." },
    { 0 }
};
static PyType_Slot slots[] = { { Py_tp_doc, "What is computed: nodes joined by values." },
                               { Py_tp_dealloc, dealloc },
                               { Py_tp_methods, methods },
                               { 0 } };
static PyType_Spec spec = { "facula.Graph", sizeof(GraphObject), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots };
static PyMethodDef functions[] = {
    { "load_onnx", load_onnx, METH_VARARGS, "(path, shapes=None): a Graph." },
    { "read_text", read_text, METH_VARARGS, "(text): a Graph." },
    { "zoo_new", zoo_new, METH_VARARGS, "(name, weights or \"\", seed): a Graph." },
    { "zoo_models", zoo_models, METH_NOARGS, "The networks that can be built." },
    { 0 }
};

int py_graph_init(PyObject *module) {
    py_graph_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!py_graph_type || PyModule_AddFunctions(module, functions) < 0) return -1;
    return PyModule_AddObjectRef(module, "Graph", (PyObject *)py_graph_type);
}
