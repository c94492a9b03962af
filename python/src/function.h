/* A function (function.c) and how its graph is written (function_graph.c). */
#ifndef FACULA_PYTHON_FUNCTION_H
#define FACULA_PYTHON_FUNCTION_H
#include "module.h"

typedef struct Recipe { /* how the graph of a function is written */
    const fac_op *op;
    char *attrs;
    fac_tensor *fixed[PY_PORTS]; /* inputs whose contents are part of it */
    bool absent[PY_PORTS];
    fac_type types[PY_PORTS];
    int n;
    Function *of; /* instead of op: the gradient of this one */
    uint64_t mask;
    int want; /* results; 0: those that are not optional */
} Recipe;

typedef struct Entry {
    Function f;
    Recipe how;
    uint64_t hash, used;
    size_t bytes;
    struct Entry *next;
    unsigned char key[];
} Entry;

/* Writes the graph and counts its inputs and results; false: a Python error. */
bool py_function_build_op(Entry *e);
/* saved: results of the function are inputs, after the gradients that arrive. */
bool py_function_build_vjp(Entry *e, bool saved);
#endif
