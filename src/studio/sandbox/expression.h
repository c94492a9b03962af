/* Turns expressions such as "(x*x)*y + 10*x" or "(x * y).relu().sum()" into ops of a graph.  The
 * text is not trusted: its length, depth and number of operations are limited. */
#ifndef FACULA_STUDIO_EXPRESSION_H
#define FACULA_STUDIO_EXPRESSION_H
#include "facula/op.h"

enum {
    EXPRESSION_TEXT = 500,
    EXPRESSION_STEPS = 128,
    EXPRESSION_DEPTH = 40,
    EXPRESSION_INPUTS = 3
};

/* A variable, a number, or an operation on earlier steps. */
typedef struct expression_step {
    fac_value *value;
    char name[24];
    int n, in[EXPRESSION_INPUTS];
} expression_step;

typedef struct expression {
    fac_graph *g;
    fac_dtype dtype; /* dtype of the numbers */
    int n;
    expression_step of[EXPRESSION_STEPS];
} expression;

/* The caller has put the variables into of[0..n).  *result: the step of the whole expression.
 * Functions are the elementwise operators of `facula op`, under their names and PyTorch's common
 * ones, and sum, mean, prod, max and min of all elements; they may also follow a point.
 * FAC_E_ARGUMENT names the first character that cannot be read. */
fac_status fac_expression_read(expression *e, const char *text, int *result, fac_error *err);
/* How many arguments an operator takes in an expression; 0: it cannot be called there. */
int fac_expression_arity(const fac_op *op);
#endif
