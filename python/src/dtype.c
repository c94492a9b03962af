/* Element types: facula's, those of Python's objects for them, and the letters of the struct
 * module. */
#include <string.h>
#include "module.h"

static PyObject *objects[FAC_DTYPES];

PyObject *py_set_dtypes(PyObject *module, PyObject *list) {
    (void)module;
    Py_ssize_t n = PyList_Check(list) ? PyList_Size(list) : -1;
    if (n != FAC_DTYPES) {
        PyErr_Format(PyExc_ValueError, "a list of %d dtypes was expected", (int)FAC_DTYPES);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *old = objects[i];
        objects[i] = Py_NewRef(PyList_GetItem(list, i));
        Py_XDECREF(old);
    }
    Py_RETURN_NONE;
}

/* What ml_dtypes calls the types that NumPy has from there alone. */
static const char *const added[FAC_DTYPES] = {
    [FAC_BF16] = "bfloat16",
    [FAC_I4] = "int4",
    [FAC_U4] = "uint4",
    [FAC_I2] = "int2",
    [FAC_U2] = "uint2",
    [FAC_F8E4M3] = "float8_e4m3fn",
    [FAC_F8E4M3UZ] = "float8_e4m3fnuz",
    [FAC_F8E5M2] = "float8_e5m2",
    [FAC_F8E5M2UZ] = "float8_e5m2fnuz",
    [FAC_F8E8M0] = "float8_e8m0fnu",
    [FAC_F4E2M1] = "float4_e2m1fn",
};

/* [(name, kind, elements of a block, bytes of a block, ml_dtypes' name)], in the order of their
 * codes. */
PyObject *py_dtype_rows(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    PyObject *list = PyList_New(FAC_DTYPES);
    for (int i = 0; list && i < FAC_DTYPES; i++) {
        const fac_dtype_info *d = fac_dtype_get((fac_dtype)i);
        PyObject *row =
            Py_BuildValue("(sCiiz)", d->name, d->kind, d->block_elements, d->block_bytes, added[i]);
        if (!row)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, i, row);
    }
    return list;
}

PyObject *py_dtype(fac_dtype dtype) {
    PyObject *o = dtype < FAC_DTYPES ? objects[dtype] : NULL;
    return o ? Py_NewRef(o) : PyUnicode_FromString(fac_dtype_get(dtype)->name);
}

static const struct {
    const char *name;
    fac_dtype dtype;
} names[] = {
    { "float32", FAC_F32 }, { "float", FAC_F32 },  { "float64", FAC_F64 }, { "double", FAC_F64 },
    { "float16", FAC_F16 }, { "half", FAC_F16 },   { "int8", FAC_I8 },     { "int16", FAC_I16 },
    { "int32", FAC_I32 },   { "int", FAC_I32 },    { "int64", FAC_I64 },   { "long", FAC_I64 },
    { "uint8", FAC_U8 },    { "uint16", FAC_U16 }, { "uint32", FAC_U32 },  { "uint64", FAC_U64 },
    { "bool", FAC_BOOL },   { "text", FAC_TEXT },
};

static fac_dtype of_name(const char *name) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].name, name)) return names[i].dtype;
    for (int i = 0; i < FAC_DTYPES; i++)
        if (added[i] && !strcmp(added[i], name)) return (fac_dtype)i;
    return fac_dtype_find(name);
}

static fac_dtype of_class(PyObject *o) {
    if (o == (PyObject *)&PyFloat_Type) return FAC_F32;
    if (o == (PyObject *)&PyLong_Type) return FAC_I64;
    return o == (PyObject *)&PyBool_Type ? FAC_BOOL : FAC_NONE;
}

/* NumPy's dtypes and classes of scalars have names. */
static fac_dtype of_attribute(PyObject *o) {
    fac_dtype dtype = FAC_NONE;
    PyObject *name = PyObject_GetAttrString(o, PyType_Check(o) ? "__name__" : "name");
    if (name && PyUnicode_Check(name)) {
        const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
        if (text) dtype = of_name(text);
    }
    Py_XDECREF(name);
    PyErr_Clear();
    return dtype;
}

bool py_dtype_from(PyObject *o, fac_dtype missing, fac_dtype *out) {
    if (!o || o == Py_None) {
        *out = missing;
        return true;
    }
    for (int i = 0; i < FAC_DTYPES; i++)
        if (o == objects[i]) {
            *out = (fac_dtype)i;
            return true;
        }
    *out = FAC_NONE;
    if (PyUnicode_Check(o)) {
        const char *text = PyUnicode_AsUTF8AndSize(o, NULL);
        if (!text) return false;
        *out = of_name(text);
    } else {
        *out = of_class(o);
        if (!*out) *out = of_attribute(o);
    }
    if (*out) return true;
    PyErr_Format(PyExc_TypeError, "no dtype: %R (float32, int64, bool... are)", o);
    return false;
}

static const char *const formats[FAC_DTYPES] = {
    [FAC_F32] = "f", [FAC_F64] = "d", [FAC_F16] = "e", [FAC_I8] = "b",
    [FAC_I16] = "h", [FAC_I32] = "i", [FAC_I64] = "q", [FAC_U8] = "B",
    [FAC_U16] = "H", [FAC_U32] = "I", [FAC_U64] = "Q", [FAC_BOOL] = "?",
};

const char *py_dtype_format(fac_dtype dtype) { return dtype < FAC_DTYPES ? formats[dtype] : NULL; }

static fac_dtype integer(bool is_signed, Py_ssize_t size) {
    static const fac_dtype of[2][4] = { { FAC_U8, FAC_U16, FAC_U32, FAC_U64 },
                                        { FAC_I8, FAC_I16, FAC_I32, FAC_I64 } };
    switch (size) {
    case 1:
        return of[is_signed][0];
    case 2:
        return of[is_signed][1];
    case 4:
        return of[is_signed][2];
    case 8:
        return of[is_signed][3];
    default:
        return FAC_NONE;
    }
}

fac_dtype py_dtype_of_format(const char *format, Py_ssize_t itemsize) {
    if (!format) return FAC_U8;
    if (*format == '@' || *format == '=' || (*format == '<' && *(const unsigned char *)&(int){ 1 }))
        format++;
    if (!*format || format[1]) return FAC_NONE;
    switch (*format) {
    case 'f':
        return itemsize == 4 ? FAC_F32 : FAC_NONE;
    case 'd':
        return itemsize == 8 ? FAC_F64 : FAC_NONE;
    case 'e':
        return FAC_F16;
    case '?':
        return FAC_BOOL;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
        return integer(true, itemsize);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
    case 'c':
        return integer(false, itemsize);
    default:
        return FAC_NONE;
    }
}

/* ---- dims ---- */

PyObject *py_dims(const fac_dims *dims) {
    PyObject *tuple = PyTuple_New(dims->n);
    for (int i = 0; tuple && i < dims->n; i++) {
        PyObject *size = dims->d[i] < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(dims->d[i]);
        if (!size) {
            Py_DECREF(tuple);
            return NULL;
        }
        PyTuple_SetItem(tuple, i, size);
    }
    return tuple;
}

static bool one_dim(PyObject *o, fac_dims *out) {
    out->n = 1;
    out->d[0] = PyLong_AsLongLong(o);
    return out->d[0] != -1 || !PyErr_Occurred();
}

bool py_dims_from(PyObject *o, fac_dims *out) {
    if (PyLong_Check(o)) return one_dim(o, out);
    PyObject *list = PySequence_Tuple(o);
    if (!list) return false;
    Py_ssize_t n = PyTuple_Size(list);
    bool ok = n <= FAC_DIMS;
    if (!ok)
        PyErr_Format(PyExc_ValueError, "a shape of %zd dims, at most %d can be", n, (int)FAC_DIMS);
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *index = PyNumber_Index(PyTuple_GetItem(list, i));
        out->d[i] = index ? PyLong_AsLongLong(index) : -1;
        ok = !PyErr_Occurred();
        Py_XDECREF(index);
    }
    Py_DECREF(list);
    out->n = ok ? (int)n : 0;
    return ok;
}

bool py_put(PyObject *dict, const char *key, PyObject *value) {
    if (!value) return false;
    int failed = PyDict_SetItemString(dict, key, value);
    Py_DECREF(value);
    return !failed;
}

PyObject *py_text(const char *s) {
    if (!s) Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(s, (Py_ssize_t)strlen(s), "replace");
}
