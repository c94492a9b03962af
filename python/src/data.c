/* Photos, names of classes, data sets, weights. */
#include <string.h>
#include "module.h"

/* ---- photos ---- */

static PyObject *image_array(fac_image *image) {
    fac_dims dims = { 3, { image->height, image->width, 3 } };
    fac_tensor *t;
    fac_error err;
    fac_status status = fac_tensor_new(NULL, FAC_U8, dims, &t, &err);
    if (!status)
        status =
            fac_tensor_write(t, image->rgb, (size_t)image->height * (size_t)image->width * 3, &err);
    fac_image_free(image);
    return status ? py_raise(&err) : (PyObject *)py_tensor(t, NULL);
}

/* photo(path or bytes): u8 [H,W,3] */
static PyObject *photo(PyObject *module, PyObject *source) {
    (void)module;
    fac_image image;
    fac_error err;
    fac_status status;
    if (PyBytes_Check(source)) {
        status = fac_image_decode(PyBytes_AsString(source), (size_t)PyBytes_Size(source),
                                  "these bytes", &image, &err);
    } else {
        PyObject *path;
        if (!PyUnicode_FSConverter(source, &path)) return NULL;
        Py_BEGIN_ALLOW_THREADS status = fac_image_load(PyBytes_AsString(path), &image, &err);
        Py_END_ALLOW_THREADS Py_DECREF(path);
    }
    return status ? py_raise(&err) : image_array(&image);
}

/* prepare(u8 [H,W,3], spec, height, width, dtype): what a network reads; 0: the size that spec says
 */
static PyObject *prepare(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *pixels, *as = NULL;
    const char *spec;
    int height = 0, width = 0;
    fac_preprocess how;
    fac_error err;
    if (!PyArg_ParseTuple(args, "O!s|iiO:prepare", py_tensor_type, &pixels, &spec, &height, &width,
                          &as))
        return NULL;
    if (fac_preprocess_parse(spec, &how, &err)) return py_raise(&err);
    if (!py_dtype_from(as, FAC_F32, &how.dtype)) return NULL;
    if (height && width && (height != how.height || width != how.width)) {
        if (how.resize && how.height > 0) how.resize = how.resize * height / how.height;
        how.height = height;
        how.width = width;
    }
    if (!py_value(pixels)) return NULL;
    fac_type type = py_type((TensorObject *)pixels);
    if (type.dtype != FAC_U8 || type.dims.n != 3 || type.dims.d[2] != 3) {
        PyErr_SetString(PyExc_ValueError, "pixels are a tensor uint8 [height, width, 3]");
        return NULL;
    }
    fac_tensor *flat, *x;
    if (fac_tensor_convert(((TensorObject *)pixels)->t, FAC_U8, &flat, &err)) return py_raise(&err);
    fac_image image = { (int)type.dims.d[1], (int)type.dims.d[0],
                        (uint8_t *)fac_tensor_data(flat) };
    fac_status status = fac_image_tensor(&image, &how, &x, &err);
    fac_tensor_free(flat);
    return status ? py_raise(&err) : (PyObject *)py_tensor(x, NULL);
}

typedef struct Bytes {
    char *at;
    size_t n, room;
} Bytes;
static bool put(void *self, const void *data, size_t n) {
    Bytes *b = self;
    if (b->n + n > b->room) {
        size_t room = (b->n + n) * 2;
        char *wider = PyMem_Realloc(b->at, room);
        if (!wider) return false;
        b->at = wider;
        b->room = room;
    }
    memcpy(b->at + b->n, data, n);
    b->n += n;
    return true;
}

/* png(u8 [H,W,3]): the bytes of a file */
static PyObject *png(PyObject *module, PyObject *o) {
    (void)module;
    fac_type type = { 0 };
    if (py_is_tensor(o) && !py_value(o)) return NULL;
    if (py_is_tensor(o)) type = py_type((TensorObject *)o);
    if (type.dtype != FAC_U8 || type.dims.n != 3 || type.dims.d[2] != 3) {
        PyErr_SetString(PyExc_ValueError, "a Tensor uint8 [height, width, 3] was expected");
        return NULL;
    }
    fac_tensor *flat;
    fac_error err;
    if (fac_tensor_convert(((TensorObject *)o)->t, FAC_U8, &flat, &err)) return py_raise(&err);
    fac_image image = { (int)type.dims.d[1], (int)type.dims.d[0],
                        (uint8_t *)fac_tensor_data(flat) };
    Bytes b = { 0 };
    fac_status status = fac_image_encode(&image, put, &b, &err);
    fac_tensor_free(flat);
    PyObject *bytes = status ? py_raise(&err) : PyBytes_FromStringAndSize(b.at, (Py_ssize_t)b.n);
    PyMem_Free(b.at);
    return bytes;
}

static PyObject *presets(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    PyObject *dict = PyDict_New();
    for (const fac_preset *p = fac_presets; dict && p->name; p++) {
        char text[FAC_PREPROCESS_TEXT];
        if (fac_preprocess_print(&p->how, text, sizeof text) < 0 ||
            !py_put(dict, p->name, py_text(text)))
            Py_CLEAR(dict);
    }
    return dict;
}

/* top(scores, row, k, labels text or None): [(index, score, probability, name)] */
static PyObject *top(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *x;
    long long row;
    int k, n;
    const char *text = NULL;
    if (!PyArg_ParseTuple(args, "O!Li|z:top", py_tensor_type, &x, &row, &k, &text)) return NULL;
    if (k < 1 || k > 100000) {
        PyErr_SetString(PyExc_ValueError, "top: 1 to 100000 classes");
        return NULL;
    }
    fac_labels *labels = NULL;
    fac_error err;
    if (!py_value(x)) return NULL;
    if (text && fac_labels_parse(text, strlen(text), "labels", &labels, &err))
        return py_raise(&err);
    fac_class *best = PyMem_Calloc((size_t)k, sizeof *best);
    PyObject *list = NULL;
    if (!best)
        PyErr_NoMemory();
    else if (fac_top(((TensorObject *)x)->t, row, labels, k, best, &n, &err))
        py_raise(&err);
    else
        list = PyList_New(0);
    for (int i = 0; list && i < n; i++) {
        PyObject *one = Py_BuildValue("(LddN)", (long long)best[i].index, best[i].score,
                                      best[i].probability, py_text(best[i].name));
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    PyMem_Free(best);
    fac_labels_free(labels);
    return list;
}

/* ---- data sets ---- */

static PyObject *arrays(fac_dataset *d) {
    fac_dims dims = { 1 + d->item.n, { d->count } };
    memcpy(dims.d + 1, d->item.d, (size_t)d->item.n * sizeof *dims.d);
    fac_dtype dtype = d->bytes ? FAC_U8 : FAC_F32;
    const void *data = d->bytes ? (const void *)d->bytes : (const void *)d->values;
    fac_tensor *x = NULL, *y = NULL;
    fac_error err;
    fac_type type = { dtype, dims };
    fac_status status = fac_tensor_new(NULL, dtype, dims, &x, &err);
    if (!status) status = fac_tensor_write(x, data, fac_type_bytes(&type), &err);
    if (!status) status = fac_tensor_new(NULL, FAC_I64, fac_shape(d->count), &y, &err);
    if (!status) status = fac_tensor_write(y, d->labels, (size_t)d->count * 8, &err);
    PyObject *names = PyList_New(0);
    for (int i = 0; names && d->class_names && i < d->classes; i++) {
        PyObject *name = py_text(d->class_names[i]);
        if (!name || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    int classes = d->classes;
    double mean[3], std[3];
    memcpy(mean, d->mean, sizeof mean);
    memcpy(std, d->std, sizeof std);
    fac_dataset_free(d);
    if (status) {
        fac_tensor_free(x);
        fac_tensor_free(y);
        Py_XDECREF(names);
        return py_raise(&err);
    }
    return Py_BuildValue("(NNiN(ddd)(ddd))", py_tensor(x, NULL), py_tensor(y, NULL), classes, names,
                         mean[0], mean[1], mean[2], std[0], std[1], std[2]);
}

/* dataset(kind, folder or name, train, count, seed): (x, labels, classes, names, mean, std) */
static PyObject *dataset(PyObject *module, PyObject *args) {
    (void)module;
    const char *kind, *where;
    int train = 1;
    long long count = 0;
    unsigned long long seed = 0;
    if (!PyArg_ParseTuple(args, "ss|pLK:dataset", &kind, &where, &train, &count, &seed))
        return NULL;
    fac_dataset d = { 0 };
    fac_error err = { FAC_E_ARGUMENT, "no such data set" };
    fac_status status = FAC_E_ARGUMENT;
    Py_BEGIN_ALLOW_THREADS if (!strcmp(kind, "mnist")) status =
        fac_dataset_mnist(where, train, &d, &err);
    else if (!strcmp(kind, "cifar10")) status = fac_dataset_cifar10(where, train, &d, &err);
    else if (!strcmp(kind, "cifar100")) status = fac_dataset_cifar100(where, train, &d, &err);
    else if (!strcmp(kind, "toy")) status = fac_dataset_toy(where, count, seed, &d, &err);
    else if (!strcmp(kind, "images")) status =
        fac_dataset_images(where, (int)count, (int)seed, &d, &err);
    Py_END_ALLOW_THREADS return status ? py_raise(&err) : arrays(&d);
}

/* ---- weights ---- */

static PyObject *load_weights(PyObject *module, PyObject *path) {
    (void)module;
    PyObject *bytes;
    fac_weights *w;
    fac_error err;
    fac_status status;
    if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = fac_weights_load(PyBytes_AsString(bytes), &w, &err);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (status) return py_raise(&err);
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < fac_weights_count(w); i++) {
        TensorObject *t = py_tensor(fac_tensor_retain(fac_weights_tensor(w, i)), NULL);
        if (t) t->readonly = true; /* it may lie in the mapped file */
        if (!py_put(dict, fac_weights_name(w, i), (PyObject *)t)) Py_CLEAR(dict);
    }
    fac_weights_free(w);
    return dict;
}

/* save_weights(kind, path, {name: Tensor}); kind "npy", "npz" or "safetensors" */
static PyObject *save_weights(PyObject *module, PyObject *args) {
    (void)module;
    const char *kind;
    PyObject *path, *dict, *name, *x;
    if (!PyArg_ParseTuple(args, "sO&O!:save_weights", &kind, PyUnicode_FSConverter, &path,
                          &PyDict_Type, &dict))
        return NULL;
    size_t n = (size_t)PyDict_Size(dict);
    const char **names = PyMem_Calloc(n ? n : 1, sizeof *names);
    fac_tensor **tensors = PyMem_Calloc(n ? n : 1, sizeof *tensors);
    Py_ssize_t at = 0;
    size_t i = 0;
    bool ok = names && tensors;
    if (!ok) PyErr_NoMemory();
    while (ok && PyDict_Next(dict, &at, &name, &x)) {
        ok = PyUnicode_Check(name) && py_is_tensor(x) &&
             (names[i] = PyUnicode_AsUTF8AndSize(name, NULL)) != NULL;
        if (ok)
            ok = (tensors[i++] = py_value(x)) != NULL;
        else if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a dictionary of names to Tensors was expected");
    }
    fac_error err;
    fac_status status = FAC_OK;
    const char *to = PyBytes_AsString(path);
    if (ok && !strcmp(kind, "npz"))
        status = fac_npz_save(to, (int)n, names, tensors, &err);
    else if (ok && !strcmp(kind, "npy") && n == 1)
        status = fac_npy_save(tensors[0], to, &err);
    else if (ok)
        status = fac_safetensors_save(to, (int)n, names, tensors, &err);
    PyMem_Free(names);
    PyMem_Free(tensors);
    Py_DECREF(path);
    if (ok && status) return py_raise(&err);
    return ok ? Py_NewRef(Py_None) : NULL;
}

PyMethodDef py_data_methods[] = {
    { "photo", photo, METH_O, "(path or bytes): uint8 [height, width, 3]." },
    { "prepare", prepare, METH_VARARGS,
      "(pixels, spec, height, width, dtype): what a network reads." },
    { "png", png, METH_O, "(uint8 [height, width, 3]): the bytes of a PNG file." },
    { "presets", presets, METH_NOARGS, "Preprocessing by name." },
    { "top", top, METH_VARARGS, "(scores, row, k, labels): the best classes." },
    { "dataset", dataset, METH_VARARGS,
      "(kind, where, train, count, seed): (x, labels, classes, names, mean, std)" },
    { "load_weights", load_weights, METH_O,
      "(path): {name: Tensor} of .npy, .npz, .safetensors, .pth." },
    { "save_weights", save_weights, METH_VARARGS, "(kind, path, {name: Tensor})" },
    { 0 }
};
