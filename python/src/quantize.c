/* Networks of few bits: trained models in integers, quantizers of training, packed files. */
#include <math.h>
#include <string.h>
#include "module.h"

static PyObject *layer(const fac_integer_layer *l) {
    PyObject *row = Py_BuildValue("{s:z,s:z,s:O,s:d,s:d,s:d}", "name", l->name, "op", l->op, "kept",
                                  l->kept ? Py_True : Py_False, "bytes", l->bytes, "bytes_before",
                                  l->bytes_before, "weight_sqnr", l->weight_sqnr);
    PyObject *output =
        isnan(l->output_sqnr) ? Py_NewRef(Py_None) : PyFloat_FromDouble(l->output_sqnr);
    if (row && !py_put(row, "output_sqnr", output)) Py_CLEAR(row);
    if (!row) Py_XDECREF(output);
    return row;
}

static PyObject *layers_of(const fac_calibrator *c) {
    PyObject *rows = PyList_New(0);
    for (int i = 0; rows && fac_calibrator_layer(c, i); i++) {
        PyObject *row = layer(fac_calibrator_layer(c, i));
        if (!row || PyList_Append(rows, row) < 0) Py_CLEAR(rows);
        Py_XDECREF(row);
    }
    return rows;
}

/* One sample after the other. */
static bool show(fac_calibrator *c, PyObject *samples, int nin) {
    for (Py_ssize_t i = 0; i < PyList_Size(samples); i++) {
        fac_tensor **in = py_operands(PyList_GetItem(samples, i), nin, false);
        if (!in) return false;
        fac_error err;
        fac_status status;
        PY_WORK_BEGIN
        status = fac_calibrator_add(c, in, &err);
        PY_WORK_END(status)
        py_operands_drop(in, nin);
        if (!status) continue;
        py_raise(&err);
        return false;
    }
    return true;
}

static PyObject *finish(fac_calibrator *c) {
    fac_graph *g;
    fac_error err;
    fac_status status;
    PY_WORK_BEGIN
    status = fac_calibrator_finish(c, &g, &err);
    PY_WORK_END(status)
    if (status) return py_raise(&err);
    PyObject *graph = py_graph(g), *rows = graph ? layers_of(c) : NULL;
    PyObject *both = rows ? PyTuple_Pack(2, graph, rows) : NULL;
    Py_XDECREF(graph);
    Py_XDECREF(rows);
    return both;
}

static bool range_rule(const char *name, fac_calibration *to) {
    static const char *const names[] = { "minmax", "percentile", "entropy" };
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, names[i])) continue;
        *to = (fac_calibration)i;
        return true;
    }
    PyErr_Format(PyExc_ValueError, "calibration is minmax, percentile or entropy, not %s", name);
    return false;
}

/* integers(graph, device, scheme, samples, keep, ...): (graph, rows of layers) */
static PyObject *integers(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *graph, *on, *samples, *keep;
    const char *calibration, *kept[PY_STRINGS];
    int is_signed, per_tensor, reduce_range;
    fac_integers how = { .keep = kept };
    if (!PyArg_ParseTuple(args, "O!OsO!Osdppp:integers", py_graph_type, &graph, &on, &how.scheme,
                          &PyList_Type, &samples, &keep, &calibration, &how.percentile, &is_signed,
                          &per_tensor, &reduce_range))
        return NULL;
    DeviceObject *device = py_device_from(on);
    if (!device || !py_strings(keep, kept, &how.nkeep) ||
        !range_rule(calibration, &how.calibration))
        return NULL;
    how.is_signed = is_signed;
    how.per_tensor = per_tensor;
    how.reduce_range = reduce_range;
    fac_calibrator *c;
    fac_error err;
    fac_status status;
    PY_WORK_BEGIN
    status = fac_calibrator_new(py_graph_of(graph), device->device, &how, &c, &err);
    PY_WORK_END(status)
    if (status) return py_raise(&err);
    PyObject *both = show(c, samples, fac_graph_inputs(py_graph_of(graph))) ? finish(c) : NULL;
    fac_calibrator_free(c);
    return both;
}

static PyObject *schemes(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && fac_integers_scheme(i); i++)
        if (!py_put(dict, fac_integers_scheme(i), py_text(fac_integers_about(i)))) Py_CLEAR(dict);
    return dict;
}

/* quantize(graph, schemes, all): (graph, how many layers) */
static PyObject *quantize(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *graph, *list;
    const char *texts[PY_STRINGS];
    int all = 0, changed = 0;
    fac_quantizing how = { .schemes = texts };
    if (!PyArg_ParseTuple(args, "O!Op:quantize", py_graph_type, &graph, &list, &all)) return NULL;
    if (!py_strings(list, texts, &how.n)) return NULL;
    for (int i = 0; i < how.n; i++) {
        const char *wrong = fac_quantizing_wrong(texts[i]);
        if (!wrong) continue;
        PyErr_Format(PyExc_ValueError, "scheme \"%s\": %s", texts[i], wrong);
        return NULL;
    }
    how.all = all;
    fac_graph *g;
    fac_error err;
    if (fac_graph_quantize(py_graph_of(graph), &how, &g, &changed, &err)) return py_raise(&err);
    PyObject *made = py_graph(g);
    return made ? Py_BuildValue("(Ni)", made, changed) : NULL;
}

static PyObject *dequantize(PyObject *module, PyObject *graph) {
    (void)module;
    fac_graph *g;
    fac_error err;
    if (Py_TYPE(graph) != py_graph_type) {
        PyErr_SetString(PyExc_TypeError, "a Graph was expected");
        return NULL;
    }
    if (fac_graph_dequantize(py_graph_of(graph), &g, &err)) return py_raise(&err);
    return py_graph(g);
}

static PyObject *packed_save(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *graph, *path;
    int bytes;
    if (!PyArg_ParseTuple(args, "O!O&p:packed_save", py_graph_type, &graph, PyUnicode_FSConverter,
                          &path, &bytes))
        return NULL;
    fac_graph *g = NULL;
    fac_packing p;
    fac_error err;
    fac_status status;
    const char *name = PyBytes_AsString(path);
    PY_WORK_BEGIN
    status = bytes ? fac_graph_byte_weights(py_graph_of(graph), NULL, &g, &err) : FAC_OK;
    if (!status) status = fac_packed_save(g ? g : py_graph_of(graph), name, &p, &err);
    PY_WORK_END(status)
    Py_DECREF(path);
    fac_graph_free(g);
    if (status) return py_raise(&err);
    return Py_BuildValue("{s:i,s:i,s:i,s:d,s:d}", "layers", p.layers, "byte_layers", p.byte_layers,
                         "float_layers", p.float_layers, "bytes", p.bytes, "bytes_before",
                         p.bytes_before);
}

static PyObject *packed_load(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *path;
    if (!PyArg_ParseTuple(args, "O&:packed_load", PyUnicode_FSConverter, &path)) return NULL;
    fac_graph *g;
    fac_error err;
    fac_status status;
    const char *name = PyBytes_AsString(path);
    PY_WORK_BEGIN
    status = fac_packed_load(name, &g, &err);
    PY_WORK_END(status)
    Py_DECREF(path);
    return status ? py_raise(&err) : py_graph(g);
}

PyMethodDef py_quantize_methods[] = {
    { "integers", integers, METH_VARARGS,
      "(graph, device, scheme, samples, keep, calibration, percentile, signed, per_tensor,"
      " reduce_range): the graph in integers, and its layers." },
    { "integer_schemes", schemes, METH_NOARGS, "{scheme: one line about it}" },
    { "quantize", quantize, METH_VARARGS, "(graph, schemes, all): with quantizers of training." },
    { "dequantize", dequantize, METH_O, "(graph): weights as what they are quantized to." },
    { "packed_save", packed_save, METH_VARARGS, "(graph, path, rest in 8 bits): weights as bits." },
    { "packed_load", packed_load, METH_VARARGS, "(path): such a file." },
    { 0 }
};
