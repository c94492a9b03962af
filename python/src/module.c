/* The extension module facula._facula: everything that Python's files are built on. */
#include "module.h"

static PyObject *version(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return PyUnicode_FromString(FACULA_VERSION);
}

static PyMethodDef functions[] = {
    { "apply", (PyCFunction)(void (*)(void))py_apply, METH_FASTCALL,
      "(operator, attributes or None, results or 0, inputs...)" },
    { "ops", py_ops, METH_NOARGS, "The operators as data." },
    { "dtype_rows", py_dtype_rows, METH_NOARGS,
      "Element types: name, kind, elements and bytes of a block, ml_dtypes' name." },
    { "set_dtypes", py_set_dtypes, METH_O, "The objects that stand for element types." },
    { "is_added", py_is_added, METH_O,
      "Is it an array of elements that NumPy has from another package?" },
    { "set_fallbacks", py_set_fallbacks, METH_O,
      "Functions for what operators do not do themselves." },
    { "from_dlpack", py_from_dlpack, METH_O, "A tensor over the memory of another library's." },
    { "cache_info", py_cache_stat, METH_NOARGS, "Functions that are kept, made, found again." },
    { "version", version, METH_NOARGS, "Of the library." },
    { 0 }
};

static int fill(PyObject *m) {
    int (*const parts[])(PyObject *) = { py_errors_init, py_stop_init,    py_device_init,
                                         py_trial_init,  py_tensor_init,  py_record_init,
                                         py_graph_init,  py_program_init, py_builder_init,
                                         py_lazy_init,   py_fused_init };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i](m) < 0) return -1;
    PyMethodDef *const methods[] = { py_look_methods,    py_edit_methods,  py_data_methods,
                                     py_compare_methods, py_lend_methods,  py_quantize_methods,
                                     py_studio_methods,  py_page_methods,  py_zeros_methods,
                                     py_walk_methods,    py_glance_methods };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (PyModule_AddFunctions(m, methods[i]) < 0) return -1;
    return 0;
}

static PyModuleDef definition = { PyModuleDef_HEAD_INIT, "_facula", "facula's C side.", -1,
                                  functions };

PyMODINIT_FUNC PyInit__facula(void);
PyMODINIT_FUNC PyInit__facula(void) {
    PyObject *m = PyModule_Create(&definition);
    if (m && fill(m) < 0) Py_CLEAR(m);
    return m;
}
