/* Two models: the same function?  What differs?  And products that fit a unit of limited size. */
#include <string.h>
#include "module.h"

/* ---- verify ---- */

typedef struct Segments {
    PyObject *list;
    bool failed;
} Segments;

static void segment(void *self, const fac_verify_segment *s) {
    Segments *to = self;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *one = Py_BuildValue("{s:z,s:z,s:d,s:d,s:d}", "a", s->a, "b", s->b, "worst", s->worst,
                                  "ratio", s->ratio, "elements", s->elements);
    to->failed |= !one || PyList_Append(to->list, one) < 0;
    Py_XDECREF(one);
    PyGILState_Release(state);
}

static PyObject *verdict(const fac_verdict *v, PyObject *segments) {
    return Py_BuildValue("{s:s,s:N,s:N,s:N,s:N,s:d,s:d,s:d,s:d,s:i,s:O}", "same",
                         fac_sameness_word(v->same), "why", py_text(v->why), "note",
                         py_text(v->note), "first", py_text(v->first), "last", py_text(v->last),
                         "worst", v->worst, "ratio", v->ratio, "elements", v->elements, "differing",
                         v->differing, "round", v->round, "segments", segments);
}

enum { INPUTS = 256 };

static PyObject *verify(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *keys[] = { "a",     "b",    "device", "mode",   "seed",  "rounds",
                            "batch", "rtol", "atol",   "inputs", "whole", NULL };
    static const char *const modes[] = { "full", "exact", "bound", "data" };
    (void)module;
    PyObject *a, *b, *on = NULL, *inputs = NULL;
    const char *mode = "full";
    unsigned long long seed = 0;
    long long batch = 0;
    int whole = 0;
    fac_tensor *in[INPUTS];
    fac_verify_opts o = { .inputs = in, .segment = segment };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!|OsKiLddOp:verify", keys, py_graph_type, &a,
                                     py_graph_type, &b, &on, &mode, &seed, &o.rounds, &batch,
                                     &o.rtol, &o.atol, &inputs, &whole))
        return NULL;
    int m = 0;
    while (m < 4 && strcmp(modes[m], mode)) m++;
    if (m == 4) {
        PyErr_Format(PyExc_ValueError, "mode is full, exact, bound or data, not %s", mode);
        return NULL;
    }
    o.mode = (fac_verify_mode)m;
    o.seed = seed;
    o.batch = batch;
    o.whole = whole;
    for (Py_ssize_t i = 0; inputs && PyList_Check(inputs) && i < PyList_Size(inputs) && i < INPUTS;
         i++) {
        PyObject *x = PyList_GetItem(inputs, i);
        if (!py_is_tensor(x)) {
            PyErr_SetString(PyExc_TypeError, "inputs are a list of Tensors");
            return NULL;
        }
        in[o.n] = py_value(x);
        if (!in[o.n++]) return NULL;
    }
    DeviceObject *device = py_device_from(on);
    Segments segments = { PyList_New(0), false };
    o.self = &segments;
    if (!device || !segments.list) return NULL;
    fac_verdict v = { 0 };
    fac_error err;
    fac_status status;
    PY_WORK_BEGIN
    status = fac_verify(py_graph_of(a), py_graph_of(b), device->device, &o, &v, &err);
    PY_WORK_END(status)
    PyObject *result = NULL;
    if (status)
        py_raise(&err);
    else if (!segments.failed)
        result = verdict(&v, segments.list);
    Py_DECREF(segments.list);
    return result;
}

/* ---- diff ---- */

static PyObject *change(const fac_change *c) {
    static const char *const of[] = { "input", "parameter", "node", "output" };
    static const char *const kinds[] = { "added",   "removed", "changed",
                                         "rewired", "renamed", "moved" };
    return Py_BuildValue("{s:s,s:s,s:N,s:N,s:N,s:d,s:d}", "of", of[c->of], "kind", kinds[c->kind],
                         "a", py_text(c->a), "b", py_text(c->b), "text", py_text(c->text),
                         "largest", c->largest, "share", c->share);
}

static PyObject *diff(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *keys[] = { "a", "b", "names", "order", "structure", NULL };
    (void)module;
    PyObject *a, *b;
    int names = 0, order = 0, structure = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!|ppp:diff", keys, py_graph_type, &a,
                                     py_graph_type, &b, &names, &order, &structure))
        return NULL;
    fac_diff_opts opts = { names, order, structure };
    fac_differences *d;
    fac_error err;
    fac_status status;
    PY_WORK_BEGIN
    status = fac_diff(py_graph_of(a), py_graph_of(b), &opts, &d, &err);
    PY_WORK_END(status)
    if (status) return py_raise(&err);
    PyObject *list = PyList_New(0);
    for (int i = 0; list && fac_differences_get(d, i); i++) {
        PyObject *one = change(fac_differences_get(d, i));
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    fac_diff_totals t = fac_differences_totals(d);
    fac_differences_free(d);
    if (!list) return NULL;
    return Py_BuildValue("{s:O,s:N,s:i,s:i,s:i,s:i,s:i}", "same", t.same ? Py_True : Py_False,
                         "changes", list, "nodes_a", t.nodes_a, "nodes_b", t.nodes_b, "params_a",
                         t.params_a, "params_b", t.params_b, "sizes", t.sizes);
}

/* ---- tile ---- */

static PyObject *row(const fac_tile_row *r) {
    return Py_BuildValue(
        "{s:z,s:z,s:N,s:(LLL),s:L,s:(LLL),s:L,s:L,s:d,s:d,s:d,s:d,s:d,s:d,s:z,s:z,s:z}", "name",
        r->name, "op", r->op, "dtype", py_dtype(r->dtype), "mnk", (long long)r->m, (long long)r->n,
        (long long)r->k, "count", (long long)r->count, "tile", (long long)r->tile_m,
        (long long)r->tile_n, (long long)r->tile_k, "tiles", (long long)r->tiles, "unaligned",
        (long long)r->unaligned, "macs", r->macs, "work", r->work, "utilisation", r->utilisation,
        "sram", r->sram, "bytes", r->bytes, "seconds", r->seconds, "bound", r->bound, "kept",
        r->kept, "advice", r->advice);
}

static bool chosen(const char *word, const char *const *words, int *out) {
    for (*out = 0; words[*out]; ++*out)
        if (!strcmp(words[*out], word)) return true;
    PyErr_Format(PyExc_ValueError, "\"%s\" is not one of %s, %s...", word, words[0], words[1]);
    return false;
}

static PyObject *tile(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *keys[] = { "graph", "m",   "n",     "k",    "sum",        "mode",
                            "conv",  "pad", "batch", "only", "count_only", NULL };
    static const char *const sums[] = { "chain", "tree", "sum", NULL }, *const modes[] = {
        "unroll", "function", "loop", NULL
    };
    static const char *const convs[] = { "patches", "taps", NULL };
    (void)module;
    PyObject *graph;
    long long m, n, k, batch = 0;
    const char *sum = "chain", *mode = "unroll", *conv = "patches", *only = NULL;
    int pad = 0, count_only = 0, s, how, c;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!LLL|ssspLzp:tile", keys, py_graph_type,
                                     &graph, &m, &n, &k, &sum, &mode, &conv, &pad, &batch, &only,
                                     &count_only))
        return NULL;
    if (!chosen(sum, sums, &s) || !chosen(mode, modes, &how) || !chosen(conv, convs, &c))
        return NULL;
    fac_tile_opts opts = { .m = m,
                           .n = n,
                           .k = k,
                           .sum = (fac_tile_sum)s,
                           .pad = pad,
                           .count_only = count_only,
                           .batch = batch,
                           .only = only,
                           .mode = (fac_tile_mode)how,
                           .conv = (fac_tile_conv)c };
    fac_graph *out = NULL;
    fac_tiling *t;
    fac_error err;
    fac_status status;
    PY_WORK_BEGIN
    status = fac_graph_tile(py_graph_of(graph), &opts, count_only ? NULL : &out, &t, &err);
    PY_WORK_END(status)
    if (status) return py_raise(&err);
    PyObject *rows = PyList_New(0);
    for (int i = 0; rows && i < fac_tiling_rows(t); i++) {
        PyObject *one = row(fac_tiling_row(t, i));
        if (!one || PyList_Append(rows, one) < 0) Py_CLEAR(rows);
        Py_XDECREF(one);
    }
    fac_tiling_free(t);
    PyObject *made = out ? py_graph(out) : Py_NewRef(Py_None);
    if (rows && made) return Py_BuildValue("(NN)", made, rows);
    Py_XDECREF(rows);
    Py_XDECREF(made);
    return NULL;
}

PyMethodDef py_compare_methods[] = {
    { "verify", (PyCFunction)(void (*)(void))verify, METH_VARARGS | METH_KEYWORDS,
      "(a, b, ...): are they the same function?" },
    { "diff", (PyCFunction)(void (*)(void))diff, METH_VARARGS | METH_KEYWORDS,
      "(a, b, ...): how they differ in structure." },
    { "tile", (PyCFunction)(void (*)(void))tile, METH_VARARGS | METH_KEYWORDS,
      "(graph, m, n, k, ...): (Graph or None, rows)" },
    { 0 }
};
