/* The operators as data: what Python's functions, their signatures and their docs are made from. */
#include "module.h"

static PyObject *ports(const fac_port *p) {
    PyObject *list = PyList_New(0);
    for (; list && p && p->name; p++) {
        PyObject *one =
            Py_BuildValue("{s:s,s:I,s:O,s:O,s:O,s:O}", "name", p->name, "takes", p->takes,
                          "optional", p->is & FAC_OPTIONAL ? Py_True : Py_False, "variadic",
                          p->is & FAC_VARIADIC ? Py_True : Py_False, "host",
                          p->is & FAC_HOST ? Py_True : Py_False, "internal",
                          p->is & FAC_INTERNAL ? Py_True : Py_False);
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyObject *choices(const fac_attr *a) {
    PyObject *list = PyList_New(0);
    for (const char *const *c = a->kind == FAC_A_ENUM ? a->choices : NULL; list && c && *c; c++) {
        PyObject *text = PyUnicode_FromString(*c);
        if (!text || PyList_Append(list, text) < 0) Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyObject *attrs(const fac_attr *a) {
    static const char *const kinds[] = { "int",   "real", "flag", "enum",
                                         "dtype", "dims", "text", "reals" };
    PyObject *list = PyList_New(0);
    for (; list && a && a->name; a++) {
        PyObject *one =
            Py_BuildValue("{s:s,s:s,s:i,s:d,s:d,s:d,s:z,s:N}", "name", a->name, "kind",
                          kinds[a->kind], "count", a->count, "default", a->zero_means, "min",
                          a->min, "max", a->max, "help", a->help, "choices", choices(a));
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

PyObject *py_ops(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    PyObject *list = PyList_New(0);
    for (const fac_op *const *op = fac_ops; list && *op; op++) {
        PyObject *one = Py_BuildValue("{s:s,s:z,s:N,s:N,s:N,s:I}", "name", (*op)->name, "doc",
                                      (*op)->doc, "in", ports((*op)->in), "out", ports((*op)->out),
                                      "attrs", attrs((*op)->attrs), "is", (*op)->is);
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}
