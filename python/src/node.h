/* What a call remembers where gradients go through it: record.c makes nodes, node.c is one. */
#ifndef FACULA_PYTHON_NODE_H
#define FACULA_PYTHON_NODE_H
#include "module.h"

typedef struct NodeObject {
    PyObject_HEAD Function *f;
    const fac_op *op;
    PyObject *inputs;           /* a tuple of Tensors and None; NULL once released */
    PyObject *hooks;            /* {result: [functions of its gradient]}, or NULL */
    PyObject *scope;            /* which module called it, while a graph is made; or NULL */
    fac_tensor **read, **saved; /* the values of the inputs, and of the results; NULL: recorded */
    fac_lazy **recorded;        /* inputs that were not computed yet */
    uint64_t *versions;         /* of those that were read */
    DeviceObject *device;
} NodeObject;

/* The type `Node` of the module; -1: a Python error. */
int py_node_init(PyObject *module);
/* Of a call that read these Tensors (or None) and gave out, which may be NULL: not computed yet. */
NodeObject *py_node_new(Function *f, const fac_op *op, int n, PyObject *const in[],
                        fac_tensor *const out[]);

bool py_is_node(PyObject *o);
/* A list of the gradients by the inputs, None where none is wanted, from a list of those by the
 * results; create: they have a history. */
PyObject *py_node_vjp(PyObject *node, PyObject *incoming, bool create);
void py_node_release(PyObject *node); /* forgets inputs and results */

/* ---- record.c ---- */
/* Runs f, and records the call where gradients go through it; in[]: Tensors, or None where one is
 * absent. */
PyObject *py_record_call(Function *f, const fac_op *op, int n, PyObject *const in[],
                         DeviceObject *device);
/* Are calls of this thread recorded for gradients?  What it was before. */
bool py_grad_enable(bool on);
#endif
