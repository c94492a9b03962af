/* Memory in and out without NumPy's headers: the buffer protocol, and lists of the elements. */
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
    fac_dtype is;            /* of bytes that are shown as integers, else FAC_NONE */
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
    fac_dtype dtype = b->is ? b->is : py_dtype_of_format(view->format, view->itemsize);
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

/* Of the buffer of an array; is: of bytes that are shown as integers. */
static fac_tensor *of_buffer(PyObject *array, fac_dtype is, bool copy) {
    Borrowed *b = PyMem_Malloc(sizeof *b);
    if (!b) {
        PyErr_NoMemory();
        return NULL;
    }
    bool kept = false;
    fac_tensor *t = NULL;
    *b = (Borrowed){ .is = is };
    int failed = PyObject_GetBuffer(array, &b->view, PyBUF_RECORDS_RO);
    if (!failed) t = of_view(b, copy, &kept);
    if (kept) return t;
    if (!failed) PyBuffer_Release(&b->view);
    PyMem_Free(b);
    return t;
}

/* NULL, with the exception that was there: it is no array of another package's elements. */
static fac_tensor *of_foreign(PyObject *array, bool copy) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    fac_dtype is;
    bool bytes;
    PyObject *shown = py_shown_as_known(array, &is, &bytes);
    if (!shown && !PyErr_Occurred()) {
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    if (!shown) return NULL;
    fac_tensor *t = of_buffer(shown, bytes ? is : FAC_NONE, copy);
    Py_DECREF(shown);
    return py_converted(t, is);
}

fac_tensor *py_borrow_buffer(PyObject *o, bool copy) {
    PyObject *array = as_array(o);
    if (!array) return NULL;
    fac_tensor *t = of_buffer(array, FAC_NONE, copy);
    if (!t) t = of_foreign(array, copy);
    Py_DECREF(array);
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
