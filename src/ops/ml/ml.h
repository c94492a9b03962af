/* What the readers of ai.onnx.ml share: lists among the attributes, constants, what becomes of
 * scores, labels of classes. */
#ifndef FACULA_OPS_ML_H
#define FACULA_OPS_ML_H
#include "facula/op.h"
#include "facula/ops.h"
#include "ops/shape.h"
#include "ops/onnx_in.h"

#define FAC_ML "ai.onnx.ml"

/* Lists in the graph's memory.  n is -1 where the attribute is absent, and after an error of the
 * graph. */
typedef struct fac_ml_ints {
    int n;
    const int64_t *v;
} fac_ml_ints;
typedef struct fac_ml_reals {
    int n;
    const double *v;
    fac_dtype dtype;
} fac_ml_reals;
typedef struct fac_ml_texts {
    int n;
    const char **v;
} fac_ml_texts;
fac_ml_ints fac_ml_ints_of(const fac_onnx_node *n, fac_graph *g, const char *attr);
fac_ml_texts fac_ml_texts_of(const fac_onnx_node *n, fac_graph *g, const char *attr);
/* Floats; or those of the tensor in "<attr>_as_tensor", or in attr itself.  dtype: of that tensor,
 * else f32. */
fac_ml_reals fac_ml_reals_of(const fac_onnx_node *n, fac_graph *g, const char *attr);

/* A constant list of n elements of this type; texts: of const char *. */
fac_value *fac_ml_const(fac_graph *g, fac_dtype dtype, int64_t n, const void *elements);
/* Numbers as a constant of any dtype and dims. */
fac_value *fac_ml_numbers(fac_graph *g, fac_dtype dtype, fac_dims dims, const double *numbers);

/* x as rows of features in floats: integers become f32, a list is one row. */
fac_value *fac_ml_rows(fac_value *x);

typedef enum fac_ml_post {
    FAC_ML_NONE,
    FAC_ML_SOFTMAX,
    FAC_ML_LOGISTIC,
    FAC_ML_SOFTMAX_ZERO,
    FAC_ML_PROBIT
} fac_ml_post;
/* The attribute post_transform; an error of the graph where it is none. */
fac_ml_post fac_ml_post_of(const fac_onnx_node *n, fac_graph *g);
/* Scores [N, C] after it.  One score alone (C = 1) stays as it is, but for PROBIT: so does ONNX
 * Runtime, whose models rely on it. */
fac_value *fac_ml_post_apply(fac_value *scores, fac_ml_post post);
fac_value *fac_ml_probit(fac_value *scores);

/* The labels of classes: i64 or texts, a constant list.  NULL: the node has none, or an error of
 * the graph. */
typedef struct fac_ml_classes {
    fac_value *labels;
    int n;
    bool texts;
} fac_ml_classes;
fac_ml_classes fac_ml_classes_of(const fac_onnx_node *n, fac_graph *g, const char *ints,
                                 const char *texts);
/* Of scores [N, C] the label of the highest, [N]; of equal ones the first. */
fac_value *fac_ml_label(const fac_ml_classes *c, fac_value *scores);
/* The label of class 1 where `yes` (bool [N]), else that of class 0.  With one class alone these
 * are that label, or 1, and 0 (texts: ""). */
fac_value *fac_ml_label_of_two(const fac_ml_classes *c, fac_value *yes);
/* Two columns [N, 2] from one [N, 1] each. */
fac_value *fac_ml_two_columns(fac_value *a, fac_value *b);
/* Those of one score [N, 1], as ONNX Runtime does: the sigmoids of -s and s with LOGISTIC, one
 * column with PROBIT, else 1 - s and s. */
fac_value *fac_ml_both(fac_value *score, fac_ml_post post);
#endif
