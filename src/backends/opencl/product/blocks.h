/* Weights in blocks of few bits that kernels can read (blocks.cl). */
#ifndef FACULA_OPENCL_BLOCKS_H
#define FACULA_OPENCL_BLOCKS_H
#include "backends/opencl/device/calls.h"
#include "base/error.h"
#include "cl_blocks.h"

/* The name of a type in -DTYPE_NAME; NULL: kernels do not know it. */
static inline const char *fac_cl_blocks_name(fac_dtype t) {
    switch (t) {
    case FAC_Q8_0:
        return "Q8_0";
    case FAC_Q4_0:
        return "Q4_0";
    case FAC_Q4_1:
        return "Q4_1";
    case FAC_Q4_K:
        return "Q4_K";
    case FAC_Q6_K:
        return "Q6_K";
    default:
        return NULL;
    }
}

/* -DTYPE_NAME, and of a block its bytes and its units of eight numbers. */
static inline void fac_cl_option_blocks(fac_dtype t, fac_text *options) {
    const fac_dtype_info *i = fac_dtype_get(t);
    fac_text_print(options, "-DV=1 -DT=float -DTYPE_%s -DBYTES=%d -DUNITS=%d",
                   fac_cl_blocks_name(t), (int)i->block_bytes, (int)i->block_elements / 8);
}

/* A call of a kernel that reads blocks. */
static inline fac_status fac_cl_call_blocks(fac_opencl *o, fac_cl_plan *plan, const char *source,
                                            const fac_text *options, const char *name,
                                            fac_cl_call **out, fac_error *err) {
    fac_text all = { 0 };
    fac_text_add(&all, fac_kernel_blocks);
    fac_text_add(&all, source);
    fac_status status = all.failed ? fac_raise_memory(err, "the text of a kernel") : FAC_OK;
    if (!status) status = fac_cl_call_new(o, plan, all.s, options, name, out, err);
    fac_text_free(&all);
    return status;
}
#endif
