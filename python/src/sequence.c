/* Tensors of numbers, of texts, and of nested sequences of them. */
#include <string.h>
#include "module.h"

static bool is_list(PyObject *o) { return PyList_Check(o) || PyTuple_Check(o); }
static Py_ssize_t length(PyObject *o) { return PyList_Check(o) ? PyList_Size(o) : PyTuple_Size(o); }
static PyObject *at(PyObject *o, Py_ssize_t i) {
    return PyList_Check(o) ? PyList_GetItem(o, i) : PyTuple_GetItem(o, i);
}

/* What is gathered while a nested sequence is walked. */
typedef struct Walk {
    fac_dims dims;
    fac_dtype seen; /* the widest kind: bools, then integers, then floats */
    Py_ssize_t next;
    double *f;
    int64_t *i;
    bool wide, negative; /* integers that only u64 holds; such that it does not */
    const char **text;   /* of strings that the sequence keeps alive; NULL: numbers */
} Walk;

static fac_dtype kind_of(PyObject *o) {
    if (PyBool_Check(o)) return FAC_BOOL;
    return PyLong_Check(o) ? FAC_I64 : FAC_F32;
}

static bool shape_of(PyObject *o, fac_dims *dims) {
    dims->n = 0;
    while (is_list(o)) {
        if (dims->n == FAC_DIMS) {
            PyErr_Format(PyExc_ValueError, "lists nested more than %d deep", (int)FAC_DIMS);
            return false;
        }
        dims->d[dims->n++] = length(o);
        if (!length(o)) break;
        o = at(o, 0);
    }
    return true;
}

static int rank_of(fac_dtype kind) {
    if (kind == FAC_F32) return 3;
    return kind == FAC_I64 ? 2 : kind == FAC_BOOL;
}

/* An integer; one from 2^63 on as its bits. */
static bool whole(PyObject *o, int64_t *to, Walk *w) {
    *to = PyLong_AsLongLong(o);
    if (*to != -1 || !PyErr_Occurred()) {
        w->negative |= *to < 0;
        return true;
    }
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
    PyErr_Clear();
    const unsigned long long bits = PyLong_AsUnsignedLongLong(o);
    if (bits == (unsigned long long)-1 && PyErr_Occurred()) return false;
    *to = (int64_t)bits;
    w->wide = true;
    return true;
}

static bool text_leaf(PyObject *o, Walk *w) {
    Py_ssize_t size;
    if (!PyUnicode_Check(o)) {
        PyErr_Format(PyExc_TypeError, "a text was expected, not %R", o);
        return false;
    }
    const char *text = PyUnicode_AsUTF8AndSize(o, &size);
    if (text && strlen(text) != (size_t)size) {
        PyErr_Format(PyExc_ValueError, "a text with a null character: %R", o);
        return false;
    }
    w->text[w->next++] = text;
    return text;
}

static bool leaf(PyObject *o, Walk *w) {
    if (w->text) return text_leaf(o, w);
    fac_dtype kind = kind_of(o);
    if (rank_of(kind) > rank_of(w->seen)) w->seen = kind;
    double f = PyFloat_AsDouble(o);
    if (f == -1 && PyErr_Occurred()) {
        if (!PyLong_Check(o)) PyErr_Format(PyExc_TypeError, "a number was expected, not %R", o);
        return false;
    }
    w->f[w->next] = f;
    w->i[w->next] = 0;
    if (kind != FAC_F32 && !whole(o, &w->i[w->next], w)) return false;
    w->next++;
    return true;
}

static bool walk(PyObject *o, int depth, Walk *w) {
    if (!is_list(o)) {
        if (depth == w->dims.n) return leaf(o, w);
        PyErr_SetString(PyExc_ValueError, "lists of different depths");
        return false;
    }
    if (depth >= w->dims.n || length(o) != w->dims.d[depth]) {
        PyErr_Format(PyExc_ValueError, "lists of different lengths at depth %d", depth);
        return false;
    }
    for (Py_ssize_t i = 0; i < length(o); i++)
        if (!walk(at(o, i), depth + 1, w)) return false;
    return true;
}

/* A new tensor of these elements, each of so many bytes; NULL: an exception. */
static fac_tensor *made(fac_dtype dtype, fac_dims dims, const void *elements, size_t bytes) {
    fac_tensor *t = NULL;
    fac_error err;
    fac_status status = fac_tensor_new(NULL, dtype, dims, &t, &err);
    if (!status)
        status = fac_tensor_write(t, elements, (size_t)fac_dims_count(&dims) * bytes, &err);
    if (!status) return t;
    fac_tensor_free(t);
    py_raise(&err);
    return NULL;
}

/* The numbers as f64, or as i64 or u64 where all of them are integers, then as they are wanted. */
static fac_tensor *gathered(const Walk *w, fac_dtype dtype) {
    bool ints = w->seen == FAC_I64 || w->seen == FAC_BOOL;
    bool unsigned_ = ints && w->wide;
    if (unsigned_ && (w->negative || !dtype || fac_dtype_get(dtype)->kind == 'i')) {
        PyErr_SetString(
            PyExc_OverflowError,
            "an integer from 2^63 on: say dtype=uint64 (without negative ones) or a float");
        return NULL;
    }
    if (!dtype) dtype = w->seen ? w->seen : FAC_F32;
    fac_dtype from = ints ? FAC_I64 : FAC_F64;
    if (unsigned_) from = FAC_U64;
    return py_converted(made(from, w->dims, ints ? (const void *)w->i : w->f, 8), dtype);
}

static fac_tensor *gathered_texts(const Walk *w, fac_dtype dtype) {
    return py_converted(made(FAC_TEXT, w->dims, w->text, sizeof *w->text), dtype);
}

static PyObject *first_of(PyObject *o) {
    while (is_list(o) && length(o)) o = at(o, 0);
    return o;
}

/* A sequence of tensors or arrays is a stack of them. */
static bool holds_arrays(PyObject *o) {
    o = first_of(o);
    return !is_list(o) && !PyFloat_Check(o) && !PyLong_Check(o) && !PyUnicode_Check(o);
}

/* NumPy's letter for what an array holds; 0: the object has none. */
static char letter_of(PyObject *o) {
    PyObject *dtype = PyObject_GetAttrString(o, "dtype");
    PyObject *kind = dtype ? PyObject_GetAttrString(dtype, "kind") : NULL;
    const char *letter = kind && PyUnicode_Check(kind) ? PyUnicode_AsUTF8AndSize(kind, NULL) : NULL;
    const char found = letter ? letter[0] : 0;
    Py_XDECREF(kind);
    Py_XDECREF(dtype);
    if (PyErr_Occurred()) PyErr_Clear();
    return found;
}

/* The elements of an array of texts, which no buffer shows, one after another; NULL: it is none. */
static PyObject *texts_in(PyObject *o, fac_dims *dims) {
    const char letter = letter_of(o);
    PyObject *shape = NULL, *flat = NULL, *list = NULL;
    bool ok = strchr("UTO", letter) && letter;
    if (ok) shape = PyObject_GetAttrString(o, "shape");
    if (ok) flat = PyObject_CallMethod(o, "ravel", NULL);
    if (flat) list = PyObject_CallMethod(flat, "tolist", NULL);
    ok = shape && list && PyTuple_Check(shape) && PyTuple_Size(shape) <= FAC_DIMS;
    ok = ok && is_list(list) && (letter != 'O' || PyUnicode_Check(first_of(list)));
    dims->n = ok ? (int)PyTuple_Size(shape) : 0;
    for (int i = 0; i < dims->n; i++) dims->d[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    Py_XDECREF(shape);
    Py_XDECREF(flat);
    if (ok) return list;
    Py_XDECREF(list);
    PyErr_Clear();
    return NULL;
}

static fac_tensor *of_texts(PyObject *list, fac_dims dims) {
    Walk w = { .dims = { 1, { length(list) } } };
    fac_tensor *t = NULL;
    w.text = PyMem_Malloc(((size_t)length(list) + 1) * sizeof *w.text);
    if (!w.text) PyErr_NoMemory();
    if (w.text && walk(list, 0, &w)) {
        w.dims = dims;
        t = gathered_texts(&w, FAC_TEXT);
    }
    PyMem_Free(w.text);
    return t;
}

fac_tensor *py_of_array(PyObject *o, bool copy) {
    fac_tensor *t = py_borrow_buffer(o, copy);
    if (t) return t;
    fac_dims dims;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *list = texts_in(o, &dims);
    if (!list) {
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    t = of_texts(list, dims);
    Py_DECREF(list);
    return t;
}

static fac_tensor *as_stack(PyObject *o, fac_dtype dtype) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *array = numpy ? PyObject_CallMethod(numpy, "asarray", "O", o) : NULL;
    Py_XDECREF(numpy);
    if (!array) return NULL;
    fac_tensor *t = py_converted(py_of_array(array, true), dtype);
    Py_DECREF(array);
    return t;
}

/* Texts where the first element is one, else numbers. */
static bool rooms_of(PyObject *o, Walk *w) {
    const int64_t count = fac_dims_count(&w->dims);
    const size_t n = count > 0 ? (size_t)count : 1;
    if (count < 0 || count > PY_SSIZE_T_MAX / 16) return PyErr_NoMemory() != NULL;
    if (PyUnicode_Check(first_of(o))) {
        w->text = PyMem_Malloc(n * sizeof *w->text);
        return w->text || PyErr_NoMemory() != NULL;
    }
    w->f = PyMem_Malloc(n * sizeof *w->f);
    w->i = PyMem_Malloc(n * sizeof *w->i);
    return (w->f && w->i) || PyErr_NoMemory() != NULL;
}

fac_tensor *py_sequence(PyObject *o, fac_dtype dtype) {
    Walk w = { .seen = FAC_NONE };
    if (holds_arrays(o)) return as_stack(o, dtype);
    if (!shape_of(o, &w.dims)) return NULL;
    fac_tensor *t = NULL;
    if (rooms_of(o, &w) && walk(o, 0, &w))
        t = w.text ? gathered_texts(&w, dtype) : gathered(&w, dtype);
    PyMem_Free(w.f);
    PyMem_Free(w.i);
    PyMem_Free(w.text);
    return t;
}
