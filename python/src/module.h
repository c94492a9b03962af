/* What the files of the extension module share.  Every function that returns a PyObject * returns a
 * new reference, or NULL with an exception set, unless it says otherwise. */
#ifndef FACULA_PYTHON_MODULE_H
#define FACULA_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stdbool.h>
#include <stdint.h>
#include "facula/facula.h"
#include "facula/lazy.h"
#include "facula/op.h"

typedef struct Function Function;

/* ---- errors.c ---- */

int py_errors_init(PyObject *module);
/* Raises what err says as the exception class of its status.  Always NULL. */
PyObject *py_raise(const fac_error *err);
extern PyObject *py_error;

/* ---- dtype.c ---- */

/* The objects that Python has for element types, by fac_dtype; set once by facula/dtypes.py. */
PyObject *py_set_dtypes(PyObject *module, PyObject *list);
PyObject *py_dtype_rows(PyObject *module, PyObject *none);
PyObject *py_dtype(fac_dtype dtype);
/* From such an object, a name ("f32", "float32"), or None, which is `missing`.  false: an
 * exception. */
bool py_dtype_from(PyObject *o, fac_dtype missing, fac_dtype *out);
const char *py_dtype_format(fac_dtype dtype); /* of the struct module; NULL: it has none */
fac_dtype py_dtype_of_format(const char *format, Py_ssize_t itemsize);

/* ---- dims.c ---- */

PyObject *py_dims(const fac_dims *dims);       /* a tuple; open sizes are None */
bool py_dims_from(PyObject *o, fac_dims *out); /* from an integer or a sequence of them */

/* ---- device.c ---- */

typedef struct DeviceObject {
    PyObject_HEAD fac_device *device;
    fac_recorder *recorder; /* made at the first lazy call */
} DeviceObject;
extern PyTypeObject *py_device_type;
int py_device_init(PyObject *module);

/* ---- trial.c ---- */
int py_trial_init(PyObject *module);
/* A borrowed device that lives as long as the process: from NULL or None (cpu), a name, a Device.
 */
DeviceObject *py_device_from(PyObject *o);

/* ---- tensor.c ---- */

typedef struct TensorObject {
    PyObject_HEAD fac_tensor *t; /* NULL: not computed yet, see lazy.c  */
    fac_lazy *lazy;       /* what was recorded, or a leaf of the segment `epoch`; may be NULL */
    uint64_t epoch;       /* 0: lazy is what was recorded */
    uint64_t ended;       /* of the leaf: py_is_shown     */
    DeviceObject *device; /* borrowed: where its results are computed; NULL: the cpu    */
    PyObject *grad;       /* a Tensor, or NULL */
    PyObject *node;       /* what made it: a Node or an object of Python's; NULL: a leaf */
    PyObject *hooks;      /* a list of callables, or NULL */
    PyObject *weak;
    Py_ssize_t exports; /* buffers and capsules that show its memory */
    int index;          /* which result of node */
    bool requires_grad, retains_grad, readonly;
} TensorObject;
extern PyTypeObject *py_tensor_type;
int py_tensor_init(PyObject *module);
#define py_is_tensor(o) PyObject_TypeCheck((PyObject *)(o), py_tensor_type)
TensorObject *py_tensor(fac_tensor *t, DeviceObject *device); /* takes the reference of t */
/* t as another dtype, FAC_NONE: as it is; takes the reference of t.  NULL: an exception, or t is.
 */
fac_tensor *py_converted(fac_tensor *t, fac_dtype dtype);
/* A tensor of an object: itself, an array with the buffer protocol, a number or nested sequences.
 */
TensorObject *py_tensor_from(PyObject *o, fac_dtype dtype, bool copy);

TensorObject *py_alias(TensorObject *x); /* the same value, without its history */

/* ---- shown.c: memory that may be written from outside ---- */

/* One more shows the memory of t; false: an exception. */
bool py_show(const fac_tensor *t);
void py_hide(const fac_tensor *t); /* one less, after py_show */
/* Whether its memory is shown now.  ended: changes each time a view of it ends. */
bool py_is_shown(const fac_tensor *t, uint64_t *ended);

/* ---- lazy.c: calls that are recorded, and computed on the first read ---- */

int py_lazy_init(PyObject *module);
bool py_lazy_on(void);
/* Is every call of this thread recorded, for a graph? */
bool py_tracing(void);
/* A warning when the elements of a traced value are read: they are those of the example.  false: an
 * exception. */
bool py_read_traced(const TensorObject *x);
fac_type py_type(const TensorObject *x); /* without computing it */
bool py_lazy_settle(void); /* computes all that was recorded, before memory is written */
/* Its tensor, borrowed, computed if need be; o is a TensorObject.  NULL: an exception. */
fac_tensor *py_value(PyObject *o);
/* Records a function of these; in[i] may be None.  out[]: values.  false: an exception. */
bool py_lazy_call(Function *f, DeviceObject *device, int n, PyObject *const in[], fac_lazy *out[]);
TensorObject *py_lazy_number(PyObject *o, fac_dtype dtype, DeviceObject *device);

/* ---- stop.c: Ctrl-C in long work ---- */

int py_stop_init(PyObject *module);
bool py_stop_asked(void *none); /* of a device: fac_stop_asked */
void py_work_begin(void);
void py_work_end(fac_status status); /* may leave an exception, which py_raise keeps */
#define PY_WORK_BEGIN                                                                              \
    py_work_begin();                                                                               \
    Py_BEGIN_ALLOW_THREADS
#define PY_WORK_END(status) Py_END_ALLOW_THREADS py_work_end(status);

/* ---- buffer.c ---- */

int py_tensor_getbuffer(PyObject *self, Py_buffer *view, int flags);
void py_tensor_releasebuffer(PyObject *self, Py_buffer *view);
fac_tensor *py_borrow_buffer(PyObject *o, bool copy); /* NULL: an exception */
/* For an array of another package's elements, which *is says, one that the buffer protocol knows:
 * of their bytes, or (*bytes is false) of the numbers.  NULL: an exception, or (none) another
 * array. */
PyObject *py_shown_as_known(PyObject *array, fac_dtype *is, bool *bytes);
PyObject *py_is_added(PyObject *module, PyObject *array);
fac_tensor *py_of_array(PyObject *o, bool copy);       /* the same, and of arrays of texts */
fac_tensor *py_sequence(PyObject *o, fac_dtype dtype); /* numbers, texts, nested sequences */
PyObject *py_tolist(fac_tensor *t);

/* ---- dlpack.c ---- */

PyObject *py_tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *py_tensor_dlpack_device(PyObject *self, PyObject *none);
PyObject *py_from_dlpack(PyObject *module, PyObject *o);

/* ---- function.c: a graph of given types as a thing to call; ops, and gradients of functions ----
 */

enum { PY_PORTS = 64 }; /* inputs of one function at most */
struct Function {
    int refs, nin, nout;
    fac_graph *graph;
    fac_program *program; /* made at the first run */
    fac_lazy_body *body;  /* made at the first recorded call, for this recorder */
    fac_recorder *recorder;
    fac_device *device;
    bool floats_in[PY_PORTS], fixed[PY_PORTS]; /* fixed: the contents are part of the graph */
    Function **vjps;                           /* its gradients, by what they are asked for */
    uint64_t *masks;
    int nvjps;
    bool gradient; /* of another function */
    uint64_t work; /* elements of all operands: who holds the GIL for how long */
};
Function *py_function_hold(Function *f); /* one more reference */
void py_function_free(Function *f);      /* drops one */
/* Of a graph's inputs, all of its results; the caller's. */
Function *py_function_graph(const fac_graph *g, fac_device *device);
/* Of an op; borrowed from the cache.  want: so many results; 0: those that are not optional. */
Function *py_function_op(const fac_op *op, const char *attrs, int want, fac_device *device, int n,
                         TensorObject *const in[]);
/* Gradients by the inputs of `mask` from inputs, and d outputs (all of a floating type); borrowed
 * from f. */
Function *py_function_vjp(Function *f, uint64_t mask);
/* Writes it into a graph.  false: the graph has an error. */
bool py_function_emit(const Function *f, fac_graph *g, fac_value *const in[], fac_value *out[]);
bool py_function_run(Function *f, fac_tensor *const in[], fac_tensor *out[]);
PyObject *py_cache_stat(PyObject *module, PyObject *none);

/* ---- record.c: calls that gradients go through ---- */

int py_record_init(PyObject *module);
/* The op of these tensors (NULL or None: absent): a Tensor, or a tuple of them where it has several
 * results. */
PyObject *py_apply_op(const fac_op *op, const char *attrs, int want, int n, PyObject *const in[]);
PyObject *py_apply(PyObject *module, PyObject *const *args, Py_ssize_t n);
bool py_grad_enabled(void);

/* Writes the call of a Node into g: how many results, -1 after an exception. */
int py_node_emit(PyObject *node, fac_graph *g, int n, fac_value *const in[], fac_value *out[]);
int py_builder_init(PyObject *module);
int py_fused_init(PyObject *module);
/* A tuple of the results of f, without a history. */
PyObject *py_call_plain(Function *f, int n, PyObject *const in[], DeviceObject *device);

/* ---- number.c ---- */

/* attributes.c */
extern PyGetSetDef py_tensor_getset[];
extern PyMemberDef py_tensor_members[];
extern PyType_Slot py_number_slots[];
/* A number as a scalar of this dtype, which is a float. */
PyObject *py_scalar(PyObject *o, fac_dtype dtype, DeviceObject *device);
PyObject *py_set_fallbacks(PyObject *module, PyObject *dict);

/* ---- op.c ---- */

PyObject *py_ops(PyObject *module, PyObject *none);

/* ---- graph.c, program.c ---- */

typedef struct GraphObject {
    PyObject_HEAD fac_graph *graph;
} GraphObject;
static inline fac_graph *py_graph_of(PyObject *o) { return ((GraphObject *)o)->graph; }
extern PyTypeObject *py_graph_type;
int py_graph_init(PyObject *module);
int py_program_init(PyObject *module);
fac_program *py_program_from(PyObject *o); /* borrowed; NULL: an exception */
PyObject *py_graph(fac_graph *g);          /* takes g; NULL: no memory */

/* ---- the tools ---- */

extern PyMethodDef py_look_methods[], py_edit_methods[], py_data_methods[], py_compare_methods[];
extern PyMethodDef py_lend_methods[], py_quantize_methods[];
extern PyMethodDef py_studio_methods[], py_page_methods[], py_zeros_methods[];
extern PyMethodDef py_walk_methods[], py_glance_methods[];
/* The tensors of a list of n, each retained; where `absent` is set one may be None.  NULL: an
 * exception; else py_operands_drop gives them back. */
fac_tensor **py_operands(PyObject *list, int n, bool absent);
void py_operands_drop(fac_tensor **in, int n);
enum { PY_STRINGS = 256 };
/* The texts of a list of at most so many, borrowed; None: none.  false: an exception. */
bool py_strings(PyObject *list, const char *to[], int *n);

/* A dictionary's entry that is made here; takes the reference.  false: an exception. */
bool py_put(PyObject *dict, const char *key, PyObject *value);
PyObject *py_text(const char *s); /* None for NULL */

#endif
