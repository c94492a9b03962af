/* Lazy calls: an operator is recorded (facula/lazy.h) and computed with all others when somebody
 * looks at a value.  Gradients are recorded likewise, so a whole step of training is one program,
 * which is found again in the next step. */
#include "module.h"

static _Thread_local enum { LAZY_UNSAID, LAZY_OFF, LAZY_ON } said; /* by this thread */
static bool on_at_first; /* where a thread says nothing: FACULA_LAZY */
static uint64_t epoch =
    1;                 /* grows with each flush: leaves of memory that is shown are given anew */
static char read_mark; /* the user of a value whose contents a Tensor has */

bool py_lazy_on(void) { return said == LAZY_UNSAID ? on_at_first : said == LAZY_ON; }

fac_type py_type(const TensorObject *x) {
    return x->t ? fac_tensor_type(x->t) : fac_lazy_type(x->lazy);
}

fac_tensor *py_value(PyObject *o) {
    TensorObject *x = (TensorObject *)o;
    if (x->t) return x->t;
    fac_lazy *lazy = fac_lazy_retain(x->lazy);
    fac_tensor *t = NULL;
    fac_error err;
    fac_status status;
    epoch++;
    PY_WORK_BEGIN
    status = fac_lazy_tensor(lazy, &t, &err);
    PY_WORK_END(status)
    fac_lazy_free(lazy);
    if (status) return (fac_tensor *)py_raise(&err);
    if (x->t)
        fac_tensor_free(t); /* another thread was faster */
    else
        x->t = t;
    if (x->lazy) fac_lazy_set_user(x->lazy, &read_mark);
    return x->t;
}

static fac_recorder *recorder(DeviceObject *device) {
    fac_error err;
    DeviceObject *d = device ? device : py_device_from(NULL);
    if (!d) return NULL;
    if (!d->recorder && fac_recorder_new(d->device, NULL, &d->recorder, &err)) py_raise(&err);
    return d->recorder;
}

/* Does x go on as what the recorder knows it by?  A leaf whose memory was shown since may have
 * other contents: then what was made from it is made anew. */
static bool goes_on(TensorObject *x, const fac_recorder *r) {
    if (!x->lazy || fac_lazy_recorder(x->lazy) != r) return false;
    if (!x->t) return fac_lazy_user(x->lazy) != &read_mark;
    if (!x->epoch || x->epoch == epoch) return x->epoch;
    uint64_t ended;
    if (py_is_shown(x->t, &ended)) return false;
    if (ended == x->ended) return true;
    fac_tensor_data(x->t); /* a device's are newer than what was shown */
    fac_tensor_touch(x->t);
    return false;
}

/* Borrowed: what the recorder knows x by. */
static fac_lazy *operand(TensorObject *x, fac_recorder *r) {
    fac_error err;
    if (goes_on(x, r)) return x->lazy;
    if (!py_value((PyObject *)x)) return NULL;
    fac_lazy *made;
    if (fac_lazy_of(r, x->t, &made, &err)) return (fac_lazy *)py_raise(&err);
    fac_lazy_free(x->lazy);
    x->lazy = made;
    x->epoch = epoch;
    py_is_shown(x->t, &x->ended);
    return made;
}

static bool make_body(Function *f, fac_recorder *r) {
    fac_error err;
    if (f->body && f->recorder == r) return true;
    fac_lazy_body_free(f->body);
    f->body = NULL;
    f->recorder = r;
    if (fac_lazy_body_new(r, f->graph, &f->body, &err)) return py_raise(&err) != NULL;
    return true;
}

bool py_lazy_call(Function *f, DeviceObject *device, int n, PyObject *const in[], fac_lazy *out[]) {
    fac_lazy *given[PY_PORTS];
    fac_error err;
    fac_recorder *r = recorder(device);
    if (!r || !make_body(f, r)) return false;
    for (int i = 0; i < n; i++) {
        if (!py_is_tensor(in[i]) || f->fixed[i]) continue;
        if (!operand((TensorObject *)in[i], r)) return false;
    }
    int given_n = 0;
    for (int i = 0; i < n; i++) {           /* a flush in between: it was a leaf, and is one anew */
        if (!py_is_tensor(in[i])) continue; /* absent: no input of the graph */
        fac_lazy **x = &given[given_n++];
        *x = f->fixed[i] ? NULL : operand((TensorObject *)in[i], r);
        if (!*x && !f->fixed[i]) return false;
    }
    const fac_status status = fac_record_body(r, f->body, given, out, &err);
    if (status) py_raise(&err);
    return !status;
}

TensorObject *py_lazy_number(PyObject *o, fac_dtype dtype, DeviceObject *device) {
    fac_error err;
    fac_lazy *lazy;
    double x = PyFloat_AsDouble(o);
    fac_recorder *r = recorder(device);
    if (!r || (x == -1 && PyErr_Occurred())) return NULL;
    if (fac_lazy_number(r, dtype, x, &lazy, &err)) return (TensorObject *)py_raise(&err);
    TensorObject *t = py_tensor(NULL, device);
    if (t)
        t->lazy = lazy;
    else
        fac_lazy_free(lazy);
    return t;
}

/* ---- what Python sees ---- */

static PyObject *set_lazy(PyObject *module, PyObject *value) {
    (void)module;
    int is = PyObject_IsTrue(value);
    if (is < 0) return NULL;
    bool before = py_lazy_on();
    said = is ? LAZY_ON : LAZY_OFF;
    return PyBool_FromLong(before);
}
static PyObject *set_lazy_at_first(PyObject *module, PyObject *value) {
    (void)module;
    int is = PyObject_IsTrue(value);
    if (is < 0) return NULL;
    on_at_first = is;
    Py_RETURN_NONE;
}
static PyObject *is_lazy(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return PyBool_FromLong(py_lazy_on());
}

static PyObject *lazy_epoch(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return PyLong_FromUnsignedLongLong(epoch);
}

static PyObject *flush(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *where = NULL;
    if (!PyArg_ParseTuple(args, "|O:flush", &where)) return NULL;
    DeviceObject *d = py_device_from(where);
    if (!d) return NULL;
    if (!d->recorder) Py_RETURN_NONE;
    fac_error err;
    fac_status status;
    epoch++;
    PY_WORK_BEGIN
    status = fac_flush(d->recorder, &err);
    PY_WORK_END(status)
    if (status) return py_raise(&err);
    Py_RETURN_NONE;
}

bool py_lazy_settle(void) {
    bool on = py_lazy_on();
    PyObject *none = on ? PyTuple_New(0) : NULL;
    PyObject *done = none ? flush(NULL, none) : NULL;
    Py_XDECREF(none);
    Py_XDECREF(done);
    return !on || done;
}

static PyObject *stats(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *where = NULL;
    if (!PyArg_ParseTuple(args, "|O:lazy_stats", &where)) return NULL;
    DeviceObject *d = py_device_from(where);
    if (!d) return NULL;
    fac_recorder_stat s = { 0 };
    if (d->recorder) s = fac_recorder_stats(d->recorder);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:n,s:n}", "flushes", s.flushes, "hits", s.hits,
                         "planned", s.planned, "recorded", s.recorded, "states", s.states, "inputs",
                         s.inputs, "pending", s.pending, "programs", s.programs);
}

static PyMethodDef functions[] = {
    { "set_lazy", set_lazy, METH_O,
      "Are this thread's calls recorded and computed later?  What it was before." },
    { "set_lazy_at_first", set_lazy_at_first, METH_O, "The same for threads that say nothing." },
    { "is_lazy", is_lazy, METH_NOARGS, "Are calls recorded and computed later?" },
    { "lazy_epoch", lazy_epoch, METH_NOARGS, "A number that grows with each flush." },
    { "flush", flush, METH_VARARGS, "(device=None): computes what is recorded." },
    { "lazy_stats", stats, METH_VARARGS,
      "(device=None): segments, how many were found again, how many planned." },
    { 0 }
};

int py_lazy_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
