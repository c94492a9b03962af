/* Expressions as people write them, "(x*x)*y + 10*x" or "(x * y).relu().sum()", become ops of a
 * graph.  Text of others: length, depth and number of operations are bounded. */
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
    fac_dtype dtype; /* of numbers */
    int n;
    expression_step of[EXPRESSION_STEPS];
} expression;

/* The caller has put the variables into of[0..n).  *result: the step of the whole.  Functions are
 * the elementwise operators of `facula op` by their names and PyTorch's common ones, sum, mean,
 * prod, max and min of all elements, also after a point.  FAC_E_ARGUMENT says where the text stops
 * making sense. */
fac_status fac_expression_read(expression *e, const char *text, int *result, fac_error *err);
/* An operator that an expression may call: how many numbers it is a function of; 0: none. */
int fac_expression_arity(const fac_op *op);
#endif
