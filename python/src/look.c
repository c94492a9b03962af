/* What models cost and what their tensors hold, as dictionaries. */
#include <string.h>
#include "module.h"

/* ---- layers ---- */

static PyObject *type_of(const fac_type *t) {
    if (!t->dtype) Py_RETURN_NONE;
    return py_dims(&t->dims);
}

static PyObject *layer(const fac_analysis *a, int i, fac_convention c) {
    const fac_layer *l = fac_analysis_layer(a, i);
    PyObject *dict =
        Py_BuildValue("{s:z,s:z,s:z,s:z,s:z,s:z}", "name", l->name, "module", l->module, "op",
                      l->op, "kind", l->kind, "attrs", l->attrs, "node", l->node);
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        { "params", l->params },   { "buffers", l->buffers }, { "macs", l->macs },
        { "other", l->other },     { "read", l->read },       { "written", l->written },
        { "weights", l->weights }, { "alive", l->alive },     { "count", fac_layer_count(a, i, c) }
    };
    bool ok = dict && py_put(dict, "in", type_of(&l->in)) && py_put(dict, "out", type_of(&l->out));
    for (size_t k = 0; ok && k < sizeof numbers / sizeof *numbers; k++)
        ok = py_put(dict, numbers[k].key, PyLong_FromDouble(numbers[k].value));
    if (!ok) Py_CLEAR(dict);
    return dict;
}

static PyObject *totals(const fac_analysis *a, fac_convention c) {
    fac_totals t = fac_analysis_totals(a);
    const struct {
        const char *key;
        double value;
    } numbers[] = { { "params", t.params },
                    { "buffers", t.buffers },
                    { "macs", t.macs },
                    { "other", t.other },
                    { "read", t.read },
                    { "written", t.written },
                    { "weights", t.weights },
                    { "param_bytes", t.param_bytes },
                    { "buffer_bytes", t.buffer_bytes },
                    { "activations", t.activations },
                    { "inputs", t.inputs },
                    { "peak", t.peak },
                    { "bound", t.bound },
                    { "layers", t.layers },
                    { "peak_layer", t.peak_layer },
                    { "count", fac_analysis_count(a, c) } };
    PyObject *dict = PyDict_New();
    for (size_t k = 0; dict && k < sizeof numbers / sizeof *numbers; k++)
        if (!py_put(dict, numbers[k].key, PyLong_FromDouble(numbers[k].value))) Py_CLEAR(dict);
    return dict;
}

static fac_status append_line(void *list, const char *line, fac_error *err) {
    PyObject *s = py_text(line);
    int failed = !s || PyList_Append(list, s) < 0;
    Py_XDECREF(s);
    if (failed) *err = (fac_error){ FAC_E_NOMEM, "out of memory" };
    return failed ? FAC_E_NOMEM : FAC_OK;
}

static PyObject *table(const fac_analysis *a, int depth, bool names) {
    PyObject *list = PyList_New(0);
    fac_error err;
    if (list && fac_analysis_table(a, depth, names, append_line, list, &err)) {
        Py_CLEAR(list);
        py_raise(&err);
    }
    return list;
}

static PyObject *analysis_dict(const fac_analysis *a, fac_convention c, int depth, bool names) {
    PyObject *dict = PyDict_New(), *layers = PyList_New(0);
    for (int i = 0; layers && fac_analysis_layer(a, i); i++) {
        PyObject *one = layer(a, i, c);
        if (!one || PyList_Append(layers, one) < 0) Py_CLEAR(layers);
        Py_XDECREF(one);
    }
    bool ok = dict && layers && py_put(dict, "layers", layers) &&
              py_put(dict, "totals", totals(a, c)) &&
              py_put(dict, "table", table(a, depth, names)) &&
              py_put(dict, "open", py_text(fac_analysis_open(a)));
    if (!ok) Py_CLEAR(dict);
    return dict;
}

static PyObject *analyze(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *keys[] = { "graph", "batch", "convention", "depth", "names", NULL };
    (void)module;
    PyObject *graph;
    long long batch = 0;
    const char *convention = "torchinfo";
    int depth = 0, names = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|Lsip:analyze", keys, py_graph_type, &graph,
                                     &batch, &convention, &depth, &names))
        return NULL;
    fac_convention c;
    if (!fac_convention_find(convention, &c)) {
        PyErr_Format(
            PyExc_ValueError,
            "no convention \"%s\": core, torchinfo, ptflops, fvcore, thop, onnx-tool... are",
            convention);
        return NULL;
    }
    fac_analysis *a;
    fac_error err;
    fac_status status;
    PY_WORK_BEGIN
    status = fac_analyze(py_graph_of(graph), batch, &a, &err);
    PY_WORK_END(status)
    if (status) return py_raise(&err);
    PyObject *dict = analysis_dict(a, c, depth, names);
    fac_analysis_free(a);
    return dict;
}

/* ---- activations ---- */

typedef struct Seen {
    PyObject *dict;
    PyObject *type, *value, *trace;
} Seen;

/* Runs inside of the library with the GIL given away. */
static fac_status see(void *self, const fac_activation *a, const fac_tensor *t, fac_error *err) {
    Seen *seen = self;
    PyGILState_STATE state = PyGILState_Ensure();
    fac_tensor *copy;
    fac_status status = fac_tensor_convert(t, fac_tensor_type(t).dtype, &copy, err);
    if (!status) {
        TensorObject *x = py_tensor(copy, NULL);
        bool ok = x && py_put(seen->dict, a->path ? a->path : a->name, (PyObject *)x);
        if (!ok) {
            PyErr_Fetch(&seen->type, &seen->value, &seen->trace);
            *err = (fac_error){ FAC_E_NOMEM, "out of memory" };
            status = FAC_E_NOMEM;
        } else if (PyErr_CheckSignals() < 0) {
            PyErr_Fetch(&seen->type, &seen->value, &seen->trace);
            *err = (fac_error){ FAC_E_ARGUMENT, "stopped" };
            status = FAC_E_ARGUMENT;
        }
    }
    PyGILState_Release(state);
    return status;
}

static PyObject *activation(const fac_activation *a) {
    fac_stats s = fac_tally_stats(a->tally);
    PyObject *dict = Py_BuildValue(
        "{s:z,s:z,s:d,s:d,s:d,s:d,s:d,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:d,s:d,s:d}", "name",
        a->name, "op", a->op, "min", s.min, "max", s.max, "mean", s.mean, "abs_mean", s.abs_mean,
        "std", s.std, "count", (long long)s.count, "zeros", (long long)s.zeros, "negative",
        (long long)s.negative, "nan", (long long)s.nan, "infinite", (long long)s.infinite,
        "denormals", (long long)s.denormals, "channels", (long long)s.channels, "dead",
        (long long)s.dead, "q01", fac_tally_quantile(a->tally, 0.01), "median",
        fac_tally_quantile(a->tally, 0.5), "q99", fac_tally_quantile(a->tally, 0.99));
    if (dict && !(py_put(dict, "shape", py_dims(&a->type.dims)) &&
                  py_put(dict, "dtype", py_dtype(a->type.dtype))))
        Py_CLEAR(dict);
    return dict;
}

enum { MOST = PY_STRINGS };

bool py_strings(PyObject *list, const char *to[], int *n) {
    *n = 0;
    if (list == Py_None) return true;
    if (!PyList_Check(list) || PyList_Size(list) > MOST) {
        PyErr_SetString(PyExc_TypeError, "a list of at most 256 texts was expected");
        return false;
    }
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        to[*n] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);
        if (!to[(*n)++]) return false;
    }
    return true;
}

/* activations(graph, device, [runs: [Tensor...]], at, keep): (rows, {path: Tensor}) */
static PyObject *activations(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *graph, *on, *runs, *at;
    int keep = 0;
    const char *globs[MOST];
    Seen seen = { NULL, NULL, NULL, NULL };
    if (!PyArg_ParseTuple(args, "O!OO!Op:activations", py_graph_type, &graph, &on, &PyList_Type,
                          &runs, &at, &keep))
        return NULL;
    DeviceObject *device = py_device_from(on);
    fac_activations_opts opts = { .at = globs, .see = keep ? see : NULL, .see_self = &seen };
    if (!device || !py_strings(at, globs, &opts.n)) return NULL;
    fac_activations *a;
    fac_error err;
    if (fac_activations_new(py_graph_of(graph), device->device, &opts, &a, &err))
        return py_raise(&err);
    seen.dict = PyDict_New();
    PyObject *rows = seen.dict ? PyList_New(0) : NULL;
    int nin = fac_graph_inputs(py_graph_of(graph));
    for (Py_ssize_t r = 0; rows && r < PyList_Size(runs); r++) {
        PyObject *list = PyList_GetItem(runs, r);
        fac_tensor *in[MOST];
        bool ok = PyList_Check(list) && PyList_Size(list) == nin && nin <= MOST;
        for (int i = 0; ok && i < nin; i++) {
            ok = py_is_tensor(PyList_GetItem(list, i));
            if (ok) ok = (in[i] = py_value(PyList_GetItem(list, i))) != NULL;
        }
        if (!ok && !PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "a run needs a list of %d tensors", nin);
        fac_status status = FAC_OK;
        if (ok) {
            PY_WORK_BEGIN
            status = fac_activations_add(a, in, &err);
            PY_WORK_END(status)
        }
        if (seen.type)
            PyErr_Restore(seen.type, seen.value, seen.trace);
        else if (status)
            py_raise(&err);
        if (!ok || status) Py_CLEAR(rows);
    }
    for (int i = 0; rows && fac_activations_get(a, i); i++) {
        PyObject *one = activation(fac_activations_get(a, i));
        if (!one || PyList_Append(rows, one) < 0) Py_CLEAR(rows);
        Py_XDECREF(one);
    }
    fac_activations_free(a);
    if (rows) return Py_BuildValue("(NN)", rows, seen.dict);
    Py_XDECREF(seen.dict);
    return NULL;
}

PyMethodDef py_look_methods[] = {
    { "analyze", (PyCFunction)(void (*)(void))analyze, METH_VARARGS | METH_KEYWORDS,
      "(graph, batch=0, convention='torchinfo', depth=0, names=False): layers, totals, the "
      "table." },
    { "activations", activations, METH_VARARGS,
      "(graph, device, runs, at, keep): statistics of every tensor." },
    { 0 }
};
