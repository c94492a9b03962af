/* Programs: graphs made runnable on a device. */
#include <string.h>
#include "module.h"

typedef struct ProgramObject {
    PyObject_HEAD fac_program *program;
    DeviceObject *device;
    int nin, nout;
} ProgramObject;
static PyTypeObject *program_type;

fac_program *py_program_from(PyObject *o) {
    if (Py_TYPE(o) == program_type) return ((ProgramObject *)o)->program;
    PyErr_SetString(PyExc_TypeError, "a Program was expected");
    return NULL;
}

static void dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    fac_program_free(((ProgramObject *)o)->program);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

static PyObject *new_program(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "graph",     "device",         "precision", "no_fuse",
                             "plan_only", "detect_anomaly", NULL };
    PyObject *graph, *on = NULL;
    const char *precision = NULL;
    int no_fuse = 0, plan_only = 0, anomaly = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|Ozppp:Program", names, py_graph_type, &graph,
                                     &on, &precision, &no_fuse, &plan_only, &anomaly))
        return NULL;
    DeviceObject *device = py_device_from(on);
    if (!device) return NULL;
    fac_program_opts opts = { .no_fuse = no_fuse,
                              .plan_only = plan_only,
                              .detect_anomaly = anomaly };
    if (precision && !fac_precision_parse(precision, &opts.precision)) {
        PyErr_Format(PyExc_ValueError, "precision is default, highest, high or medium, not %s",
                     precision);
        return NULL;
    }
    const fac_graph *g = ((GraphObject *)graph)->graph;
    int nin = fac_graph_inputs(g), nout = fac_graph_outputs(g);
    fac_program *p;
    fac_error err;
    fac_status status;
    PY_WORK_BEGIN
    status = fac_program_new(g, device->device, &opts, &p, &err);
    PY_WORK_END(status)
    if (status) return py_raise(&err);
    ProgramObject *self = (ProgramObject *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self)
        fac_program_free(p);
    else
        *self = (ProgramObject){ .ob_base = self->ob_base, p, device, nin, nout };
    return (PyObject *)self;
}

fac_tensor **py_operands(PyObject *list, int n, bool absent) {
    if (!PyList_Check(list) || PyList_Size(list) != n) {
        PyErr_Format(PyExc_ValueError, "a list of %d tensors was expected", n);
        return NULL;
    }
    fac_tensor **in = PyMem_Calloc((size_t)n + 1, sizeof *in);
    if (!in) return (fac_tensor **)PyErr_NoMemory();
    for (int i = 0; i < n; i++) {
        PyObject *x = PyList_GetItem(list, i);
        if (x == Py_None && absent) continue;
        if (!py_is_tensor(x))
            PyErr_Format(PyExc_TypeError, "tensor %d is no Tensor but a %S", i,
                         (PyObject *)Py_TYPE(x));
        fac_tensor *t = py_is_tensor(x) ? py_value(x) : NULL;
        in[i] = t ? fac_tensor_retain(t) : NULL;
        if (t) continue;
        while (i-- > 0) fac_tensor_free(in[i]);
        PyMem_Free(in);
        return NULL;
    }
    return in;
}

void py_operands_drop(fac_tensor **in, int n) {
    for (int i = 0; i < n; i++) fac_tensor_free(in[i]);
    PyMem_Free(in);
}

static PyObject *results_of(ProgramObject *self, fac_tensor *out[]) {
    PyObject *results = PyList_New(self->nout);
    for (int k = 0; k < self->nout; k++) {
        TensorObject *y = py_tensor(out[k], self->device);
        if (!y)
            Py_CLEAR(results);
        else if (results)
            PyList_SetItem(results, k, (PyObject *)y);
        else
            Py_DECREF(y);
    }
    PyMem_Free(out);
    return results;
}

static PyObject *run(PyObject *o, PyObject *args) {
    ProgramObject *self = (ProgramObject *)o;
    PyObject *inputs, *outputs = NULL;
    if (!PyArg_ParseTuple(args, "O|O:run", &inputs, &outputs)) return NULL;
    fac_tensor **in = py_operands(inputs, self->nin, false), **out;
    if (!in) return NULL;
    if (outputs)
        out = py_operands(outputs, self->nout, true);
    else
        out = PyMem_Calloc((size_t)self->nout + 1, sizeof *out);
    if (!out) {
        py_operands_drop(in, self->nin);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    fac_error err;
    fac_status status;
    PY_WORK_BEGIN
    status = fac_program_run(self->program, in, out, &err);
    for (int k = 0; !status && k < self->nout; k++) (void)fac_tensor_data(out[k]); /* waits */
    PY_WORK_END(status)
    py_operands_drop(in, self->nin);
    if (!status) return results_of(self, out);
    if (outputs)
        py_operands_drop(out, self->nout);
    else
        PyMem_Free(out);
    return py_raise(&err);
}

static PyObject *stat_dict(const fac_plan_stat *s) {
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n,s:i,s:d}", "arena", s->arena, "values", s->values,
                         "bound", s->bound, "packed", s->packed, "copied", s->copied, "steps",
                         s->steps, "macs", s->macs);
}

static PyObject *plan(PyObject *o, PyObject *list) {
    ProgramObject *self = (ProgramObject *)o;
    fac_tensor **in = py_operands(list, self->nin, false);
    if (!in) return NULL;
    fac_plan_stat stat = { 0 };
    fac_error err;
    fac_status status;
    PY_WORK_BEGIN
    status = fac_program_plan(self->program, in, &stat, &err);
    PY_WORK_END(status)
    py_operands_drop(in, self->nin);
    return status ? py_raise(&err) : stat_dict(&stat);
}

/* What facula.torch's shim runs: the address of the fac_program, which lives as long as this. */
static PyObject *address(PyObject *o, PyObject *none) {
    (void)none;
    return PyLong_FromVoidPtr(((ProgramObject *)o)->program);
}

static PyObject *profile(PyObject *o, PyObject *on) {
    int is = PyObject_IsTrue(on);
    if (is < 0) return NULL;
    fac_program_profile(((ProgramObject *)o)->program, is);
    Py_RETURN_NONE;
}

static PyObject *step(const fac_step_stat *s) {
    return Py_BuildValue("{s:z,s:z,s:z,s:z,s:i,s:d,s:d,s:d,s:L,s:O}", "nodes", s->nodes, "op",
                         s->op, "solver", s->solver, "layouts", s->layouts, "variant", s->variant,
                         "seconds", s->seconds, "macs", s->macs, "bytes", s->bytes, "runs",
                         (long long)s->runs, "fallback", s->fallback ? Py_True : Py_False);
}
static PyObject *steps(PyObject *o, PyObject *none) {
    (void)none;
    fac_program *p = ((ProgramObject *)o)->program;
    size_t n = fac_program_steps(p, NULL, 0);
    fac_step_stat *at = PyMem_Calloc(n ? n : 1, sizeof *at);
    if (!at) return PyErr_NoMemory();
    n = fac_program_steps(p, at, n);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *one = step(&at[i]);
        if (!one)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, one);
    }
    PyMem_Free(at);
    return list;
}

static PyMethodDef methods[] = {
    { "run", run, METH_VARARGS,
      "([Tensor...], [Tensor or None...]): the results, written to those that are given." },
    { "address", address, METH_NOARGS, "Of the fac_program, for C." },
    { "plan", plan, METH_O, "([Tensor...]): memory and steps of the plan for these sizes." },
    { "profile", profile, METH_O, "Counts the time of each step from now on." },
    { "steps", steps, METH_NOARGS, "What each step did since profile(True)." },
    { 0 }
};
static PyType_Slot slots[] = { { Py_tp_doc, "A graph made runnable; any thread may run it." },
                               { Py_tp_new, new_program },
                               { Py_tp_dealloc, dealloc },
                               { Py_tp_methods, methods },
                               { 0 } };
static PyType_Spec spec = { "facula.Program", sizeof(ProgramObject), 0, Py_TPFLAGS_DEFAULT, slots };

int py_program_init(PyObject *module) {
    program_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return program_type ? PyModule_AddObjectRef(module, "Program", (PyObject *)program_type) : -1;
}
