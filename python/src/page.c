/* The page about a model, as text. */
#include "module.h"

typedef struct Asked {
    const char *target;
    DeviceObject *measured; /* NULL: its machine is not measured */
    PyObject *program;      /* NULL: nothing was run */
    const char *precision;
    int half;
    fac_peaks peaks;
    fac_timing timing;
    fac_page_opts opts;
} Asked;

static fac_status put(void *self, const char *text, size_t n, fac_error *err) {
    PyGILState_STATE state = PyGILState_Ensure();
    *(PyObject **)self = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
    const bool good = *(PyObject **)self;
    if (!good) PyErr_Clear();
    PyGILState_Release(state);
    if (good) return FAC_OK;
    *err = (fac_error){ FAC_E_NOMEM, "out of memory" };
    return FAC_E_NOMEM;
}

static fac_status measure(Asked *a, fac_error *err) {
    const fac_status status = fac_device_peaks(a->measured->device, &a->peaks, err);
    if (status || a->opts.flops > 0) return status;
    a->opts.machine = "this machine, as measured";
    a->opts.flops = a->peaks.flops;
    a->opts.bytes = a->peaks.memory_read;
    a->opts.peaks = &a->peaks;
    return FAC_OK;
}

static fac_status watch(Asked *a, fac_program *p, fac_error *err) {
    fac_precision precision = FAC_PRECISION_HIGHEST;
    if (a->precision) fac_precision_parse(a->precision, &precision);
    a->timing.device = fac_device_about(a->measured->device);
    a->timing.peaks = a->peaks;
    a->timing.products = fac_peaks_products(&a->peaks, precision, a->half);
    a->opts.time = &a->timing;
    return fac_timing_of(p, &a->timing, err);
}

static fac_status write_page(const fac_graph *g, int64_t batch, fac_program *p, Asked *a,
                             PyObject **out, fac_error *err) {
    fac_analysis *analysis;
    fac_memory_facts memory = { 0 };
    fac_status status = fac_analyze(g, batch, &analysis, err);
    if (status) return status;
    a->opts.memory = &memory;
    if (a->measured) status = measure(a, err);
    if (!status && p) status = watch(a, p, err);
    if (!status) status = fac_memory_facts_of(analysis, g, NULL, &memory, err);
    if (!status) status = fac_page_write(g, analysis, &a->opts, put, out, err);
    fac_memory_facts_free(&memory);
    fac_timing_free(&a->timing);
    fac_analysis_free(analysis);
    return status;
}

/* What was run: (program, median, runs, precision, half). */
static bool timing_from(PyObject *o, Asked *a) {
    return PyArg_ParseTuple(o, "Odizp:timing", &a->program, &a->timing.median, &a->timing.runs,
                            &a->precision, &a->half);
}

static PyObject *page(PyObject *module, PyObject *args) {
    (void)module;
    Asked a = { 0 };
    PyObject *graph, *on, *timing, *text = NULL;
    long long batch;
    if (!PyArg_ParseTuple(args, "O!szzLzOO:page", py_graph_type, &graph, &a.opts.name,
                          &a.opts.about, &a.opts.date, &batch, &a.target, &on, &timing))
        return NULL;
    if (on != Py_None) a.measured = py_device_from(on);
    if (on != Py_None && !a.measured) return NULL;
    if (timing != Py_None && !(PyTuple_Check(timing) && timing_from(timing, &a))) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "timing is a tuple");
        return NULL;
    }
    fac_program *p = a.program ? py_program_from(a.program) : NULL;
    if (a.program && !p) return NULL;
    if (p && !a.measured) {
        PyErr_SetString(PyExc_ValueError, "what was run needs its device");
        return NULL;
    }
    if (a.target && !fac_page_machine(a.target, &a.opts.flops, &a.opts.bytes)) {
        PyErr_Format(PyExc_ValueError,
                     "target needs operations and bytes a second such as 350G,20G, not \"%s\"",
                     a.target);
        return NULL;
    }
    if (a.target) a.opts.machine = "the machine given as target";
    fac_error err;
    fac_status status;
    PY_WORK_BEGIN
    status = write_page(((GraphObject *)graph)->graph, batch, p, &a, &text, &err);
    PY_WORK_END(status)
    if (!status) return text;
    Py_XDECREF(text);
    return py_raise(&err);
}

PyMethodDef py_page_methods[] = {
    { "page", page, METH_VARARGS,
      "(graph, name, about, date, batch, target, measured, timing): the page as text." },
    { 0 }
};
