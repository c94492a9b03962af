/* What attention/few and attention_step share: the kernel of attention_few.cl. */
#ifndef FACULA_OPENCL_ATTENTION_FEW_H
#define FACULA_OPENCL_ATTENTION_FEW_H
#include "backends/opencl/attention/heads.h"

typedef struct fac_cl_few {
    fac_cl_heads q, k, v, y;
    int64_t batch, window;
    double scale, cap;
    int items, near; /* of a group; neighbours in one access */
} fac_cl_few;

/* From the node's attributes and four operands; false: too many queries or too wide a head. */
bool fac_cl_few_read(const fac_opencl *o, const fac_problem *p, const fac_operand *const x[4],
                     int64_t kv_heads, fac_cl_few *s);
/* Seconds of a launch with so many keys. */
double fac_cl_few_seconds(const fac_opencl *o, const fac_problem *p, const fac_cl_few *s);
void fac_cl_few_options(const fac_cl_few *s, fac_text *to);
/* The call of its kernel, with a text in front; frees the options. */
fac_status fac_cl_few_call(fac_opencl *o, fac_cl_plan *plan, const char *before, fac_text *options,
                           fac_cl_call **out, fac_error *err);
void fac_cl_few_numbers(const fac_cl_few *s, fac_cl_call *c);
void fac_cl_push_heads(const fac_cl_heads *h, fac_cl_call *c); /* steps of batch, head, row */
#endif
