/* Memory in and out without NumPy's headers: the buffer protocol, numbers and nested sequences. */
#include <string.h>
#include "module.h"

/* ---- out ---- */

typedef struct Shown {
    Py_ssize_t shape[FAC_DIMS], strides[FAC_DIMS];
    fac_tensor *t;
} Shown;

static bool fill(Py_buffer *view, TensorObject *self, const void *data, int flags) {
    fac_type type = fac_tensor_type(self->t);
    Py_ssize_t item = fac_dtype_get(type.dtype)->block_bytes;
    Shown *shown = PyMem_Malloc(sizeof *shown);
    if (!shown) PyErr_NoMemory();
    if (!shown || (!self->readonly && !py_show(self->t))) {
        PyMem_Free(shown);
        return false;
    }
    const int64_t *strides = fac_tensor_strides(self->t);
    for (int i = 0; i < type.dims.n; i++) {
        shown->shape[i] = (Py_ssize_t)type.dims.d[i];
        shown->strides[i] = (Py_ssize_t)strides[i] * item;
    }
    shown->t = fac_tensor_retain(self->t);
    view->buf = (void *)data;
    view->obj = Py_NewRef((PyObject *)self);
    view->len = (Py_ssize_t)fac_type_bytes(&type);
    view->itemsize = item;
    view->readonly = self->readonly;
    view->ndim = flags & PyBUF_ND ? type.dims.n : 1; /* bytes alone: memoryview reads no shape */
    view->format = flags & PyBUF_FORMAT ? (char *)py_dtype_format(type.dtype) : NULL;
    view->shape = flags & PyBUF_ND ? shown->shape : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? shown->strides : NULL;
    view->suboffsets = NULL;
    view->internal = shown;
    return true;
}

int py_tensor_getbuffer(PyObject *o, Py_buffer *view, int flags) {
    TensorObject *self = (TensorObject *)o;
    view->obj = NULL;
    if (!py_read_traced(self) || !py_value(o)) return -1;
    fac_dtype dtype = fac_tensor_type(self->t).dtype;
    if (!py_dtype_format(dtype)) {
        PyErr_Format(PyExc_BufferError,
                     "elements of type %s have no buffer format: convert them with .to()",
                     fac_dtype_get(dtype)->name);
        return -1;
    }
    if ((flags & PyBUF_WRITABLE) && self->readonly) {
        PyErr_SetString(PyExc_BufferError, "this tensor's memory is read only");
        return -1;
    }
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !fac_tensor_contiguous(self->t)) {
        PyErr_SetString(PyExc_BufferError, "this tensor is not contiguous");
        return -1;
    }
    const void *data;
    Py_BEGIN_ALLOW_THREADS data = fac_tensor_data(self->t);
    Py_END_ALLOW_THREADS fac_type type = fac_tensor_type(self->t);
    if (!data && fac_type_bytes(&type)) {
        PyErr_SetString(PyExc_BufferError, "the device did not give the elements back");
        return -1;
    }
    if (!fill(view, self, data ? data : "", flags)) return -1;
    self->exports++;
    return 0;
}

void py_tensor_releasebuffer(PyObject *o, Py_buffer *view) {
    Shown *shown = view->internal;
    ((TensorObject *)o)->exports--;
    if (!view->readonly) py_hide(shown->t);
    fac_tensor_free(shown->t);
    PyMem_Free(shown);
}

/* ---- in ---- */

/* What a tensor over an array holds. */
typedef struct Borrowed {
    Py_buffer view;
    const fac_tensor *shown; /* the array may be written */
} Borrowed;

static void release(void *owner) {
    PyGILState_STATE state = PyGILState_Ensure();
    Borrowed *b = owner;
    if (b->shown) py_hide(b->shown);
    PyBuffer_Release(&b->view);
    PyMem_Free(b);
    PyGILState_Release(state);
}

/* Strides in elements; false: some are no multiple of an element, or negative. */
static bool strides_of(const Py_buffer *view, int64_t *to) {
    for (int i = 0; i < view->ndim; i++) {
        if (view->strides[i] < 0 || view->strides[i] % view->itemsize) return false;
        to[i] = view->strides[i] / view->itemsize;
    }
    return true;
}

/* A contiguous copy of the elements, whatever the strides are. */
static fac_tensor *copied(Py_buffer *view, fac_dtype dtype, fac_dims dims) {
    fac_tensor *t;
    fac_error err;
    void *flat = PyMem_Malloc(view->len ? (size_t)view->len : 1);
    if (!flat) {
        PyErr_NoMemory();
        return NULL;
    }
    fac_status status = FAC_OK;
    bool ok = PyBuffer_ToContiguous(flat, view, view->len, 'C') == 0;
    if (ok && (status = fac_tensor_new(NULL, dtype, dims, &t, &err))) py_raise(&err);
    if (ok && !status && (status = fac_tensor_write(t, flat, (size_t)view->len, &err))) {
        py_raise(&err);
        fac_tensor_free(t);
    }
    PyMem_Free(flat);
    return ok && !status ? t : NULL;
}

static fac_tensor *of_view(Borrowed *b, bool copy, bool *kept) {
    Py_buffer *view = &b->view;
    fac_dtype dtype = py_dtype_of_format(view->format, view->itemsize);
    if (!dtype) {
        PyErr_Format(PyExc_TypeError, "an array of format '%s', which is no dtype of facula",
                     view->format ? view->format : "B");
        return NULL;
    }
    if (view->ndim > FAC_DIMS) {
        PyErr_Format(PyExc_ValueError, "an array of %d dims, at most %d can be", view->ndim,
                     (int)FAC_DIMS);
        return NULL;
    }
    fac_dims dims = { .n = view->ndim };
    for (int i = 0; i < view->ndim; i++) dims.d[i] = view->shape[i];
    int64_t strides[FAC_DIMS];
    if (copy || !view->len || !strides_of(view, strides)) return copied(view, dtype, dims);
    fac_tensor *t;
    fac_error err;
    if (fac_tensor_borrow(dtype, dims, strides, view->buf, release, b, &t, &err)) {
        py_raise(&err);
        return NULL;
    }
    *kept = true;
    if (view->readonly) return t;
    if (py_show(t)) {
        b->shown = t;
        return t;
    }
    fac_tensor_free(t);
    return NULL;
}

/* Scalars of NumPy have buffers, other objects may say __array__. */
static PyObject *as_array(PyObject *o) {
    if (PyObject_CheckBuffer(o)) return Py_NewRef(o);
    PyObject *array = PyObject_CallMethod(o, "__array__", NULL);
    if (array) return array;
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "no tensor can be made of a %S", (PyObject *)Py_TYPE(o));
    }
    return NULL;
}

fac_tensor *py_borrow_buffer(PyObject *o, bool copy) {
    PyObject *array = as_array(o);
    Borrowed *b = array ? PyMem_Malloc(sizeof *b) : NULL;
    if (!b) {
        if (array) PyErr_NoMemory();
        Py_XDECREF(array);
        return NULL;
    }
    bool kept = false;
    fac_tensor *t = NULL;
    b->shown = NULL;
    int failed = PyObject_GetBuffer(array, &b->view, PyBUF_RECORDS_RO);
    Py_DECREF(array);
    if (!failed) t = of_view(b, copy, &kept);
    if (kept) return t;
    if (!failed) PyBuffer_Release(&b->view);
    PyMem_Free(b);
    return t;
}

/* ---- numbers and nested sequences ---- */

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

static bool leaf(PyObject *o, Walk *w) {
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
    fac_tensor *wide, *t;
    fac_error err;
    if (fac_tensor_new(NULL, from, w->dims, &wide, &err)) {
        py_raise(&err);
        return NULL;
    }
    const void *data = ints ? (const void *)w->i : (const void *)w->f;
    fac_status status = fac_tensor_write(wide, data, (size_t)w->next * 8, &err);
    if (!status && dtype == from) return wide;
    if (!status) status = fac_tensor_convert(wide, dtype, &t, &err);
    fac_tensor_free(wide);
    if (!status) return t;
    py_raise(&err);
    return NULL;
}

/* A sequence of tensors or arrays is a stack of them. */
static bool holds_arrays(PyObject *o) {
    while (is_list(o) && length(o)) o = at(o, 0);
    return !is_list(o) && !PyFloat_Check(o) && !PyLong_Check(o);
}

static fac_tensor *as_stack(PyObject *o, fac_dtype dtype) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *array = numpy ? PyObject_CallMethod(numpy, "asarray", "O", o) : NULL;
    Py_XDECREF(numpy);
    if (!array) return NULL;
    fac_tensor *t = py_borrow_buffer(array, true), *as;
    Py_DECREF(array);
    if (!t || !dtype || fac_tensor_type(t).dtype == dtype) return t;
    fac_error err;
    fac_status status = fac_tensor_convert(t, dtype, &as, &err);
    fac_tensor_free(t);
    if (!status) return as;
    py_raise(&err);
    return NULL;
}

fac_tensor *py_sequence(PyObject *o, fac_dtype dtype) {
    Walk w = { .seen = FAC_NONE };
    if (holds_arrays(o)) return as_stack(o, dtype);
    if (!shape_of(o, &w.dims)) return NULL;
    int64_t count = fac_dims_count(&w.dims);
    if (count < 0 || count > PY_SSIZE_T_MAX / 16) return (fac_tensor *)PyErr_NoMemory();
    w.f = PyMem_Malloc((size_t)(count ? count : 1) * 8);
    w.i = PyMem_Malloc((size_t)(count ? count : 1) * 8);
    fac_tensor *t = NULL;
    if (!w.f || !w.i)
        PyErr_NoMemory();
    else if (walk(o, 0, &w))
        t = gathered(&w, dtype);
    PyMem_Free(w.f);
    PyMem_Free(w.i);
    return t;
}

/* ---- back to lists ---- */

typedef struct List {
    const double *f;
    const int64_t *i;
    const char *const *text;
    fac_dtype dtype;
    const fac_dims *dims;
} List;

static PyObject *element(const List *l, int64_t k) {
    char kind = fac_dtype_get(l->dtype)->kind;
    if (kind == 't') return py_text(l->text[k]);
    if (kind == 'f') return PyFloat_FromDouble(l->f[k]);
    if (kind == 'b') return PyBool_FromLong(l->i[k] != 0);
    return kind == 'u' ? PyLong_FromUnsignedLongLong((uint64_t)l->i[k])
                       : PyLong_FromLongLong(l->i[k]);
}

static PyObject *nested(const List *l, int depth, int64_t *next) {
    if (depth == l->dims->n) return element(l, (*next)++);
    PyObject *list = PyList_New((Py_ssize_t)l->dims->d[depth]);
    for (Py_ssize_t i = 0; list && i < l->dims->d[depth]; i++) {
        PyObject *o = nested(l, depth + 1, next);
        if (!o) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SetItem(list, i, o);
    }
    return list;
}

PyObject *py_tolist(fac_tensor *t) {
    fac_type type = fac_tensor_type(t);
    char kind = fac_dtype_get(type.dtype)->kind;
    fac_dtype as = FAC_I64;
    if (kind == 'f')
        as = FAC_F64;
    else if (kind == 't')
        as = FAC_TEXT;
    else if (type.dtype == FAC_U64)
        as = FAC_U64;
    fac_tensor *wide;
    fac_error err;
    if (fac_tensor_convert(t, as, &wide, &err)) return py_raise(&err);
    const void *data = fac_tensor_data(wide);
    List l = { data, data, data, type.dtype, &type.dims };
    int64_t next = 0;
    PyObject *list = nested(&l, 0, &next);
    fac_tensor_free(wide);
    return list;
}
