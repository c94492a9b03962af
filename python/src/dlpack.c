/* DLPack (https://dmlc.github.io/dlpack): memory that is shared with PyTorch, NumPy and others on
 * the host.  The structures are those of version 1.0; capsules of older versions are read, too. */
#include <stdlib.h>
#include <string.h>
#include "module.h"

typedef struct {
    int32_t type, id;
} Device;
typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DataType;
typedef struct {
    void *data;
    Device device;
    int32_t ndim;
    DataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} Array;
typedef struct Managed {
    Array array;
    void *context;
    void (*deleter)(struct Managed *);
} Managed;
typedef struct Versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct Versioned *);
    uint64_t flags;
    Array array;
} Versioned;
enum { HOST = 1, READ_ONLY = 1, INT = 0, UINT = 1, FLOAT = 2, BFLOAT = 4, BOOL = 6 };

static const DataType types[FAC_DTYPES] = {
    [FAC_F32] = { FLOAT, 32, 1 },   [FAC_F64] = { FLOAT, 64, 1 }, [FAC_F16] = { FLOAT, 16, 1 },
    [FAC_BF16] = { BFLOAT, 16, 1 }, [FAC_I8] = { INT, 8, 1 },     [FAC_I16] = { INT, 16, 1 },
    [FAC_I32] = { INT, 32, 1 },     [FAC_I64] = { INT, 64, 1 },   [FAC_U8] = { UINT, 8, 1 },
    [FAC_U16] = { UINT, 16, 1 },    [FAC_U32] = { UINT, 32, 1 },  [FAC_U64] = { UINT, 64, 1 },
    [FAC_BOOL] = { BOOL, 8, 1 }
};

static fac_dtype dtype_of(DataType d) {
    for (int i = 1; i < FAC_DTYPES; i++)
        if (types[i].bits && !memcmp(&types[i], &d, sizeof d)) return (fac_dtype)i;
    return FAC_NONE;
}

/* ---- out ---- */

typedef struct Out {
    union {
        Managed old;
        Versioned now;
    } as;
    int64_t shape[FAC_DIMS], strides[FAC_DIMS];
    fac_tensor *t;
    bool shown;
} Out;

/* The other library may be in any thread, and may outlive Python. */
static void hide(const fac_tensor *t) {
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    py_hide(t);
    PyGILState_Release(state);
}

static void delete_out(Out *out) {
    if (out->shown) hide(out->t);
    fac_tensor_free(out->t);
    free(out);
}
static void delete_old(Managed *m) { delete_out(m->context); }
static void delete_now(Versioned *v) { delete_out(v->context); }

static void unused(PyObject *capsule) { /* nobody took it */
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        Managed *m = PyCapsule_GetPointer(capsule, "dltensor");
        m->deleter(m);
    } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        Versioned *v = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        v->deleter(v);
    }
}

static void describe(Array *a, Out *out) {
    fac_type type = fac_tensor_type(out->t);
    for (int i = 0; i < type.dims.n; i++) {
        out->shape[i] = type.dims.d[i];
        out->strides[i] = fac_tensor_strides(out->t)[i];
    }
    *a = (Array){ (void *)fac_tensor_data(out->t),
                  { HOST, 0 },
                  type.dims.n,
                  types[type.dtype],
                  out->shape,
                  out->strides,
                  0 };
}

static PyObject *capsule_of(TensorObject *self, bool versioned) {
    Out *out = calloc(1, sizeof *out);
    if (!out) return PyErr_NoMemory();
    if (!self->readonly && !py_show(self->t)) {
        free(out);
        return NULL;
    }
    out->shown = !self->readonly;
    out->t = fac_tensor_retain(self->t);
    PyObject *capsule;
    if (versioned) {
        out->as.now = (Versioned){ .major = 1,
                                   .context = out,
                                   .deleter = delete_now,
                                   .flags = self->readonly ? READ_ONLY : 0 };
        describe(&out->as.now.array, out);
        capsule = PyCapsule_New(&out->as.now, "dltensor_versioned", unused);
    } else {
        out->as.old = (Managed){ .context = out, .deleter = delete_old };
        describe(&out->as.old.array, out);
        capsule = PyCapsule_New(&out->as.old, "dltensor", unused);
    }
    if (!capsule) delete_out(out);
    return capsule;
}

PyObject *py_tensor_dlpack(PyObject *o, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "stream", "max_version", "dl_device", "copy", NULL };
    PyObject *stream = NULL, *version = NULL, *device = NULL, *copy = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &version,
                                     &device, &copy))
        return NULL;
    TensorObject *self = (TensorObject *)o;
    if (!py_value(o)) return NULL;
    fac_dtype dtype = fac_tensor_type(self->t).dtype;
    if (!types[dtype].bits) {
        PyErr_Format(PyExc_BufferError, "elements of type %s are no type of DLPack",
                     fac_dtype_get(dtype)->name);
        return NULL;
    }
    if (self->requires_grad) {
        PyErr_SetString(PyExc_BufferError,
                        "a tensor that requires gradients cannot be exported: use x.detach()");
        return NULL;
    }
    long major = 0;
    if (version && PyTuple_Check(version) && PyTuple_Size(version) > 0)
        major = PyLong_AsLong(PyTuple_GetItem(version, 0));
    if (PyErr_Occurred()) return NULL;
    if (copy == Py_True) {
        fac_tensor *t;
        fac_error err;
        if (fac_tensor_convert(self->t, dtype, &t, &err)) return py_raise(&err);
        TensorObject *own = py_tensor(t, self->device);
        PyObject *capsule = own ? capsule_of(own, major >= 1) : NULL;
        Py_XDECREF((PyObject *)own);
        return capsule;
    }
    if (self->readonly && major < 1) {
        PyErr_SetString(PyExc_BufferError,
                        "this tensor's memory is read only, which old DLPack cannot say: copy it");
        return NULL;
    }
    return capsule_of(self, major >= 1);
}

PyObject *py_tensor_dlpack_device(PyObject *o, PyObject *none) {
    (void)o, (void)none;
    return Py_BuildValue("(ii)", HOST, 0);
}

/* ---- in ---- */

/* What a tensor over memory of another library holds. */
typedef struct Taken {
    Managed *old;
    Versioned *now;          /* one of both */
    const fac_tensor *shown; /* the memory may be written */
} Taken;

static void release(void *owner) {
    Taken *taken = owner;
    if (taken->shown) hide(taken->shown);
    if (taken->old && taken->old->deleter) taken->old->deleter(taken->old);
    if (taken->now && taken->now->deleter) taken->now->deleter(taken->now);
    free(taken);
}

static fac_tensor *of_array(const Array *a, void *owner) {
    fac_dtype dtype = dtype_of(a->dtype);
    if (!dtype || a->dtype.lanes != 1 || a->ndim > FAC_DIMS || a->device.type != HOST) {
        PyErr_Format(PyExc_BufferError,
                     "a DLPack array of device %d, type code %d, %d bits, %d dims: host memory of"
                     " facula's dtypes and at most %d dims can be taken",
                     (int)a->device.type, a->dtype.code, a->dtype.bits, (int)a->ndim,
                     (int)FAC_DIMS);
        return NULL;
    }
    fac_dims dims = { .n = a->ndim };
    for (int i = 0; i < a->ndim; i++) dims.d[i] = a->shape[i];
    fac_tensor *t;
    fac_error err;
    const char *data = (const char *)a->data + a->byte_offset;
    if (fac_tensor_borrow(dtype, dims, a->strides, data, release, owner, &t, &err)) {
        py_raise(&err);
        return NULL;
    }
    return t;
}

/* The capsule is still the caller's where this fails. */
static fac_tensor *over(const Array *a, Taken how, bool readonly) {
    Taken *taken = calloc(1, sizeof *taken);
    if (!taken) return (fac_tensor *)PyErr_NoMemory();
    fac_tensor *t = of_array(a, taken);
    if (!t) {
        free(taken);
        return NULL;
    }
    if (!readonly && !py_show(t)) {
        fac_tensor_free(t);
        return NULL;
    }
    *taken = how;
    taken->shown = readonly ? NULL : t;
    return t;
}

static PyObject *take(PyObject *capsule) {
    fac_tensor *t = NULL;
    bool readonly = false;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        Versioned *v = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        readonly = v->flags & READ_ONLY;
        t = over(&v->array, (Taken){ .now = v }, readonly);
        if (t) PyCapsule_SetName(capsule, "used_dltensor_versioned");
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        Managed *m = PyCapsule_GetPointer(capsule, "dltensor");
        t = over(&m->array, (Taken){ .old = m }, false);
        if (t) PyCapsule_SetName(capsule, "used_dltensor");
    } else
        PyErr_SetString(PyExc_TypeError, "a capsule of DLPack that nobody took yet was expected");
    TensorObject *self = t ? py_tensor(t, NULL) : NULL;
    if (self) self->readonly = readonly;
    return (PyObject *)self;
}

static PyObject *ask(PyObject *o) {
    PyObject *method = PyObject_GetAttrString(o, "__dlpack__");
    PyObject *none = method ? PyTuple_New(0) : NULL;
    PyObject *version = none ? Py_BuildValue("{s:(ii)}", "max_version", 1, 0) : NULL;
    PyObject *capsule = version ? PyObject_Call(method, none, version) : NULL;
    if (!capsule && version && PyErr_ExceptionMatches(PyExc_TypeError)) { /* before 1.0 */
        PyErr_Clear();
        capsule = PyObject_Call(method, none, NULL);
    }
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(version);
    return capsule;
}

PyObject *py_from_dlpack(PyObject *module, PyObject *o) {
    (void)module;
    PyObject *capsule = PyCapsule_CheckExact(o) ? Py_NewRef(o) : ask(o);
    PyObject *self = capsule ? take(capsule) : NULL;
    Py_XDECREF(capsule);
    return self;
}
