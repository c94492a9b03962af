/* facula/op_facts.h: what reports and the planner ask of an op.  UNSTABLE tier, part of op.h. */
#ifndef FACULA_OP_FACTS_H
#define FACULA_OP_FACTS_H

#include <stdbool.h>

/* What a rule of another tool may know a layer by. */
typedef enum fac_layer_class {
    FAC_CLASS_OTHER,
    FAC_CLASS_CONV,
    FAC_CLASS_CONV_TRANSPOSE,
    FAC_CLASS_LINEAR, /* linear: a product with a weight of two dims */
    FAC_CLASS_MATMUL,
    FAC_CLASS_BATCH_NORM,
    FAC_CLASS_INSTANCE_NORM,
    FAC_CLASS_LAYER_NORM,
    FAC_CLASS_GROUP_NORM,
    FAC_CLASS_RELU,
    FAC_CLASS_RELU6,
    FAC_CLASS_ACTIVATION,
    FAC_CLASS_PRELU,
    FAC_CLASS_MAX_POOL,
    FAC_CLASS_AVG_POOL,
    FAC_CLASS_ADAPTIVE_POOL,
    FAC_CLASS_SOFTMAX,
    FAC_CLASS_RECURRENT,
    FAC_CLASS_EMBEDDING
} fac_layer_class;

/* Whether each image of a batch (the first dim) sees only itself; elementwise ops need not say. */
typedef enum fac_images {
    FAC_IMAGES_TOGETHER,  /* not known to be separate                                   */
    FAC_IMAGES_FIRST,     /* input 0 has images and the result has the same             */
    FAC_IMAGES_UNREDUCED, /* ... where the first dim is none of those that vanish       */
    FAC_IMAGES_AXIS,      /* ... where attribute `axis` (0 unless said) is another dim  */
    FAC_IMAGES_LAST_AXIS, /* ... the same with -1 unless said                           */
    FAC_IMAGES_VIEW,      /* ... where its view leaves the first dim alone              */
    FAC_IMAGES_JOINED,    /* all inputs have images and are joined along another axis   */
    FAC_IMAGES_ROWS,      /* gemm: not with trans_a, nor with rows of c                 */
    FAC_IMAGES_MATRICES   /* matmul: where the second matrix is the same for all        */
} fac_images;

/* What mixed precision makes of it; ops that only move data, and elementwise ones that do not say,
 * follow. */
typedef enum fac_mixed {
    FAC_MIXED_WIDE,     /* computed in f32                                             */
    FAC_MIXED_PRODUCT,  /* computed in the narrow type                                 */
    FAC_MIXED_FOLLOWS,  /* in the narrow type where all that flows in is narrow        */
    FAC_MIXED_DATA,     /* ... by its input 0 alone, statistics and parameters in f32  */
    FAC_MIXED_SENSITIVE /* elementwise, and yet in f32: results grow by orders of magnitude, or
                           digits are lost */
} fac_mixed;

/* How far floats may be from real numbers: which rule of src/report/verify bounds it.  Ops with
 * float results say so. */
typedef enum fac_round_rule {
    FAC_ROUND_UNSAID,
    FAC_ROUND_NONE, /* no rule: simpler ops are judged instead (define, expand), or nothing is known
                     */
    FAC_ROUND_MOVES, /* moves or picks: errors go the way of the data      */
    FAC_ROUND_KEEPS, /* leaves numbers alone but for a sign or a limit     */
    FAC_ROUND_PRODUCT,
    FAC_ROUND_ADD,
    FAC_ROUND_MUL,
    FAC_ROUND_DIV,
    FAC_ROUND_SUM,
    FAC_ROUND_LARGEST,
    FAC_ROUND_SOFTMAX,
    FAC_ROUND_LOG_SOFTMAX,
    FAC_ROUND_LOG_SUM_EXP,
    FAC_ROUND_BATCH_NORM,
    FAC_ROUND_LAYER_NORM,
    FAC_ROUND_RMS_NORM,
    FAC_ROUND_GROUP_NORM,
    FAC_ROUND_LRN,
    FAC_ROUND_COSH,
    FAC_ROUND_RECIPROCAL,
    FAC_ROUND_POW,
    FAC_ROUND_PICK,
    FAC_ROUND_PRELU,
    FAC_ROUND_WHOLE,    /* jumps from one whole number to the next            */
    FAC_ROUND_SMOOTH,   /* of one number, |f'| <= slope                       */
    FAC_ROUND_MONOTONE, /* of one number, only grows or only falls            */
    FAC_ROUNDS
} fac_round_rule;
/* times_x: f is x times a function that may be near 0 or 1. */
typedef struct fac_rounding {
    fac_round_rule rule;
    double slope;
    bool times_x;
} fac_rounding;
#endif
