/* What the files of `facula op` share. */
#ifndef FACULA_CLI_OP_H
#define FACULA_CLI_OP_H
#include "cli.h"
#include "facula/op.h"

/* ---- op.c ---- */
void op_takes(unsigned takes, char *to, size_t size);        /* "floats, integers" */
void op_attr_kind(const fac_attr *a, char *to, size_t size); /* "2 integers", "constant|edge" */
const char *op_meaning(const fac_op *op);

/* ---- op_json.c: one op, or all of them when NULL; written: with the opsets from which on it is
 * written ---- */
int op_json(const fac_op *one, bool written);

/* ---- op_onnx.c ---- */
int op_onnx_list(void); /* an exit code */
void op_case_list(void);
/* The first opset from which on nothing more becomes possible; how many of its cases are written
 * there.  -1 after an error was printed. */
int op_first_opset(const fac_op *op, int *written, int *cases);

/* ---- op_support.c ---- */
int op_support_list(const char *device, bool json);
#endif
