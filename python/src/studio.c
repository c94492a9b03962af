/* The playground for a training of one's own: a server in threads of its own, which never touch
 * Python. */
#include <string.h>
#include "module.h"

static const char mark[] = "facula.studio";
enum { TEXTS = 4 };

typedef struct Studio {
    fac_studio *studio; /* NULL: closed */
    int users;          /* calls of other threads that are under way; the last one closes it */
    bool closing;       /* nobody begins any more */
    char *text[TEXTS];  /* of its options, which live as long as it does */
} Studio;

static void end(Studio *s) {
    fac_studio *studio = s->studio;
    s->closing = true;
    if (s->users) return;
    s->studio = NULL;
    Py_BEGIN_ALLOW_THREADS fac_studio_close(studio);
    Py_END_ALLOW_THREADS
}

static void release(PyObject *capsule) {
    Studio *s = PyCapsule_GetPointer(capsule, mark);
    if (!s) return;
    end(s);
    for (int k = 0; k < TEXTS; k++) PyMem_Free(s->text[k]);
    PyMem_Free(s);
}

static Studio *studio_of(PyObject *capsule) {
    Studio *s = PyCapsule_GetPointer(capsule, mark);
    if (s && s->studio && !s->closing) return s;
    if (s) PyErr_SetString(PyExc_ValueError, "this studio was closed");
    return NULL;
}

static bool keep(char **to, const char *text) {
    if (!text) return true;
    *to = PyMem_Malloc(strlen(text) + 1);
    if (*to) strcpy(*to, text);
    return *to != NULL;
}

static fac_status serve(Studio *s, int port, int threads, fac_error *err) {
    const fac_studio_opts o = { .port = port,
                                .threads = threads,
                                .device = s->text[0],
                                .data = s->text[1],
                                .model = s->text[2],
                                .watch = s->text[3] };
    fac_status status;
    Py_BEGIN_ALLOW_THREADS status = fac_studio_open(&o, &s->studio, err);
    Py_END_ALLOW_THREADS return status;
}

static PyObject *studio_open(PyObject *module, PyObject *args) {
    (void)module;
    const char *text[TEXTS];
    int port, threads;
    fac_error err;
    if (!PyArg_ParseTuple(args, "iizzzz:studio_open", &port, &threads, &text[0], &text[1], &text[2],
                          &text[3]))
        return NULL;
    Studio *s = PyMem_Calloc(1, sizeof *s);
    PyObject *capsule = s ? PyCapsule_New(s, mark, release) : PyErr_NoMemory();
    if (!capsule) {
        PyMem_Free(s);
        return NULL;
    }
    bool kept = true;
    for (int k = 0; k < TEXTS; k++) kept &= keep(&s->text[k], text[k]);
    if (!kept)
        PyErr_NoMemory();
    else if (serve(s, port, threads, &err))
        py_raise(&err);
    if (!PyErr_Occurred()) return Py_BuildValue("(Ns)", capsule, fac_studio_address(s->studio));
    Py_DECREF(capsule);
    return NULL;
}

static PyObject *studio_log(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule, *list, *numbers;
    const char *names[PY_STRINGS];
    double step, values[PY_STRINGS];
    int n;
    fac_error err;
    if (!PyArg_ParseTuple(args, "OdOO!:studio_log", &capsule, &step, &list, &PyList_Type, &numbers))
        return NULL;
    Studio *s = studio_of(capsule);
    if (!s || !py_strings(list, names, &n)) return NULL;
    if (PyList_Size(numbers) != n) {
        PyErr_SetString(PyExc_ValueError, "a value for each name was expected");
        return NULL;
    }
    for (int k = 0; k < n; k++) {
        values[k] = PyFloat_AsDouble(PyList_GetItem(numbers, k));
        if (values[k] == -1 && PyErr_Occurred()) return NULL;
    }
    if (fac_studio_log(s->studio, step, n, names, values, &err)) return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *studio_weights(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule, *list, *tensors;
    const char *names[PY_STRINGS];
    int n;
    fac_error err;
    fac_status status;
    if (!PyArg_ParseTuple(args, "OOO:studio_weights", &capsule, &list, &tensors)) return NULL;
    Studio *s = studio_of(capsule);
    if (!s || !py_strings(list, names, &n)) return NULL;
    fac_tensor **of = py_operands(tensors, n, false);
    if (!of) return NULL;
    s->users++;
    PY_WORK_BEGIN
    status = fac_studio_weights(s->studio, n, names, of, &err);
    PY_WORK_END(status)
    if (!--s->users && s->closing) end(s);
    py_operands_drop(of, n);
    if (status) return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *studio_stop_asked(PyObject *module, PyObject *capsule) {
    (void)module;
    const Studio *s = PyCapsule_GetPointer(capsule, mark);
    if (!s) return NULL;
    return PyBool_FromLong(s->studio && fac_studio_stop_asked(s->studio));
}

static PyObject *studio_close(PyObject *module, PyObject *capsule) {
    (void)module;
    Studio *s = PyCapsule_GetPointer(capsule, mark);
    if (!s) return NULL;
    end(s);
    Py_RETURN_NONE;
}

PyMethodDef py_studio_methods[] = {
    { "studio_open", studio_open, METH_VARARGS,
      "(port, threads, device, data, model, watch) -> (studio, address)" },
    { "studio_log", studio_log, METH_VARARGS, "(studio, step, names, values)" },
    { "studio_weights", studio_weights, METH_VARARGS, "(studio, names, tensors)" },
    { "studio_stop_asked", studio_stop_asked, METH_O, "Somebody pressed Stop." },
    { "studio_close", studio_close, METH_O, "Ends the server." },
    { 0 }
};
