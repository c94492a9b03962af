/* Models out of models. */
#include <string.h>
#include "module.h"

enum { NAMES = 256 };

/* The graph by its address: it is made while the arguments are evaluated. */
static PyObject *made(fac_status status, fac_graph **g, const fac_error *err) {
    return status ? py_raise(err) : py_graph(*g);
}

static PyObject *counted(fac_status status, fac_graph *g, int n, const fac_error *err) {
    PyObject *graph = made(status, &g, err);
    return graph ? Py_BuildValue("(Ni)", graph, n) : NULL;
}

static bool names_from(PyObject *list, const char *to[], int *n) {
    *n = 0;
    if (!PyList_Check(list) || PyList_Size(list) > NAMES) {
        PyErr_SetString(PyExc_TypeError, "a list of at most 256 names was expected");
        return false;
    }
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        to[*n] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);
        if (!to[(*n)++]) return false;
    }
    return true;
}

static PyObject *extract(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *g, *from, *to;
    const char *in[NAMES], *outs[NAMES];
    int nin, nout;
    if (!PyArg_ParseTuple(args, "O!OO:extract", py_graph_type, &g, &from, &to)) return NULL;
    if (!names_from(from, in, &nin) || !names_from(to, outs, &nout)) return NULL;
    fac_graph *out = NULL;
    fac_error err;
    return made(fac_graph_extract(py_graph_of(g), nin, in, nout, outs, &out, &err), &out, &err);
}

/* Edits that read a graph and two texts at most, by name: what users call is a method in Python. */
static PyObject *edit(PyObject *module, PyObject *args) {
    (void)module;
    const char *what, *a = NULL, *b = NULL;
    PyObject *o;
    if (!PyArg_ParseTuple(args, "sO!|zz:edit", &what, py_graph_type, &o, &a, &b)) return NULL;
    const fac_graph *g = py_graph_of(o);
    fac_graph *out = NULL;
    fac_error err = { 0 };
    int n = 0;
    fac_status status;
    bool needs_a = strcmp(what, "simplify") && strcmp(what, "bake");
    bool needs_b = !strcmp(what, "rename") || !strcmp(what, "insert") || !strcmp(what, "replace") ||
                   !strcmp(what, "set") || !strcmp(what, "shape");
    if ((needs_a && !a) || (needs_b && !b)) {
        PyErr_Format(PyExc_ValueError, "%s: a text is missing", what);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS if (!strcmp(what, "simplify")) status =
        fac_graph_simplified(g, &out, &err);
    else if (!strcmp(what, "bake")) status = fac_graph_baked(g, &n, &out, &err);
    else if (!strcmp(what, "rename")) status = fac_graph_rename(g, a, b, &out, &err);
    else if (!strcmp(what, "remove")) status = fac_graph_removed(g, a, &n, &out, &err);
    else if (!strcmp(what, "insert")) status = fac_graph_inserted(g, a, b, &n, &out, &err);
    else if (!strcmp(what, "replace")) status = fac_graph_replaced(g, a, b, &n, &out, &err);
    else if (!strcmp(what, "set")) status = fac_graph_set(g, a, b, &n, &out, &err);
    else if (!strcmp(what, "add_output")) status = fac_graph_output_added(g, a, b, &out, &err);
    else if (!strcmp(what, "remove_output")) status = fac_graph_output_removed(g, a, &out, &err);
    else if (!strcmp(what, "shape")) status = fac_graph_shaped(g, a, b, &out, &err);
    else {
        err.status = status = FAC_E_ARGUMENT;
        PyOS_snprintf(err.text, sizeof err.text, "there is no edit \"%s\"", what);
    }
    Py_END_ALLOW_THREADS return counted(status, out, n, &err);
}

static PyObject *sized(PyObject *module, PyObject *args) {
    (void)module;
    const char *what, *name = NULL;
    PyObject *o;
    long long n;
    if (!PyArg_ParseTuple(args, "sO!L|z:sized", &what, py_graph_type, &o, &n, &name)) return NULL;
    const fac_graph *g = py_graph_of(o);
    fac_graph *out = NULL;
    fac_error err;
    int count = 0;
    fac_status status;
    if (!strcmp(what, "batch"))
        status = fac_graph_sized(g, n, &out, &err);
    else if (!strcmp(what, "reorder"))
        status = fac_graph_reordered(g, n, &out, &err);
    else if (!strcmp(what, "strip"))
        status = fac_graph_stripped(g, n, &count, &out, &err);
    else
        status = fac_graph_bound(g, name ? name : "", n, &out, &err);
    return counted(status, out, count, &err);
}

static PyObject *floats(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *o, *as, *keep;
    const char *names[NAMES];
    int ports = 0;
    fac_float_opts opts = { .keep = names };
    if (!PyArg_ParseTuple(args, "O!OOp:floats", py_graph_type, &o, &as, &keep, &ports)) return NULL;
    if (!py_dtype_from(as, FAC_NONE, &opts.to) || !names_from(keep, names, &opts.nkeep))
        return NULL;
    opts.keep_ports = ports;
    fac_float_report r = { 0 };
    fac_graph *out = NULL;
    fac_error err;
    PyObject *g = made(fac_graph_floats_but(py_graph_of(o), &opts, &r, &out, &err), &out, &err);
    if (!g) return NULL;
    return Py_BuildValue("(N{s:i,s:i,s:i,s:L,s:L})", g, "tensors", r.tensors, "kept", r.kept,
                         "casts", r.casts, "overflowed", (long long)r.overflowed, "vanished",
                         (long long)r.vanished);
}

static PyObject *tensor_set(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *o, *x;
    const char *name;
    if (!PyArg_ParseTuple(args, "O!sO!:tensor_set", py_graph_type, &o, &name, py_tensor_type, &x))
        return NULL;
    fac_graph *out = NULL;
    fac_error err;
    if (!py_value(x)) return NULL;
    return made(fac_graph_tensor_set(py_graph_of(o), name, ((TensorObject *)x)->t, &out, &err),
                &out, &err);
}

static PyObject *append(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *a, *b, *from, *to;
    const char *f[NAMES], *t[NAMES];
    int nf, nt;
    if (!PyArg_ParseTuple(args, "O!O!OO:append", py_graph_type, &a, py_graph_type, &b, &from, &to))
        return NULL;
    if (!names_from(from, f, &nf) || !names_from(to, t, &nt)) return NULL;
    if (nf != nt) {
        PyErr_SetString(PyExc_ValueError,
                        "as many outputs of the one as inputs of the other were expected");
        return NULL;
    }
    fac_graph *out = NULL;
    fac_error err;
    return made(fac_graph_appended(py_graph_of(a), py_graph_of(b), nf, f, t, &out, &err), &out,
                &err);
}

/* rewrite(graph, text, name, limit): (Graph, [{rule, matches, skipped, why}]) */
static PyObject *rewrite(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *o;
    const char *text, *name;
    int limit = 0;
    if (!PyArg_ParseTuple(args, "O!ss|i:rewrite", py_graph_type, &o, &text, &name, &limit))
        return NULL;
    fac_rules *rules = NULL;
    fac_error err;
    if (fac_rules_read(text, name, &rules, &err)) return py_raise(&err);
    int n = fac_rules_count(rules);
    fac_rule_report *report = PyMem_Calloc((size_t)(n ? n : 1), sizeof *report);
    fac_graph *out = NULL;
    PyObject *g = NULL, *list = NULL;
    if (report)
        g = made(fac_graph_rewritten(py_graph_of(o), rules, limit, report, &out, &err), &out, &err);
    else
        PyErr_NoMemory();
    if (g) list = PyList_New(0);
    for (int i = 0; list && i < n; i++) {
        PyObject *one = Py_BuildValue(
            "{s:N,s:i,s:i,s:N}", "rule", py_text(fac_rules_name(rules, i)), "matches",
            report[i].matches, "skipped", report[i].skipped, "why", py_text(report[i].why));
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    PyMem_Free(report);
    fac_rules_free(rules);
    if (list) return Py_BuildValue("(NN)", g, list);
    Py_XDECREF(g);
    return NULL;
}

PyMethodDef py_edit_methods[] = {
    { "edit", edit, METH_VARARGS, "(what, graph, text, text): (Graph, how many were changed)" },
    { "edit_sized", sized, METH_VARARGS, "(what, graph, number, name): (Graph, how many)" },
    { "extract", extract, METH_VARARGS, "(graph, inputs, outputs): the part between." },
    { "floats", floats, METH_VARARGS, "(graph, dtype, keep, keep_ports): (Graph, report)" },
    { "tensor_set", tensor_set, METH_VARARGS, "(graph, name, Tensor)" },
    { "append", append, METH_VARARGS, "(a, b, outputs of a, inputs of b)" },
    { "rewrite", rewrite, METH_VARARGS, "(graph, rules, name, limit): (Graph, report)" },
    { 0 }
};
