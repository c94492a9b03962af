/* A kernel of a plan and its launches: what every OpenCL solver does between its text and the
 * queue. */
#ifndef FACULA_OPENCL_LAUNCH_H
#define FACULA_OPENCL_LAUNCH_H
#include "backends/opencl/device/opencl.h"

/* Its program may still be at the compiler when it is made: see build.h. */
typedef struct fac_cl_kernel {
    fac_cl_build *build;
    struct fac_cl_setting *setting; /* the driver's kernel and the arguments that it has */
    const char *name;               /* for errors; outlives it */
} fac_cl_kernel;

/* One argument: the buffer of a span (its byte offset goes to the kernel as a number of its own),
 * bytes by value, or that many bytes of local memory. */
typedef enum fac_cl_arg_kind { FAC_CL_BUFFER, FAC_CL_VALUE, FAC_CL_LOCAL } fac_cl_arg_kind;
typedef struct fac_cl_arg {
    fac_cl_arg_kind kind;
    size_t bytes; /* of a value, or of local memory */
    const void *value;
    fac_span span;
} fac_cl_arg;

static inline fac_cl_arg fac_cl_arg_span(fac_span s) {
    return (fac_cl_arg){ .kind = FAC_CL_BUFFER, .span = s };
}
static inline fac_cl_arg fac_cl_arg_value(const void *value, size_t bytes) {
    return (fac_cl_arg){ FAC_CL_VALUE, bytes, value, { 0 } };
}
static inline fac_cl_arg fac_cl_arg_local(size_t bytes) {
    return (fac_cl_arg){ FAC_CL_LOCAL, bytes, NULL, { 0 } };
}

/* Work items in all and in a group, by dim: items is rounded up to whole groups. */
typedef struct fac_cl_range {
    int dims;
    size_t items[3], group[3];
} fac_cl_range;

/* The kernel `name` of a source text (after prelude.cl); out is all NULL after an error.
 * What the compiler has to say comes at the first launch, or when the plan that it is for is
 * complete. */
fac_status fac_cl_kernel_new(fac_opencl *o, const char *source, const char *options,
                             const char *name, fac_cl_kernel *out, fac_error *err);
void fac_cl_kernel_free(fac_opencl *o, fac_cl_kernel *k);

/* Puts the kernel into the queue; any thread may call.  A range without items is no work. Arguments
 * that are as they were at the last launch are not set again: a solver just gives them all. */
fac_status fac_cl_launch(fac_opencl *o, const fac_cl_kernel *k, const fac_cl_range *range, int n,
                         const fac_cl_arg *args, fac_error *err);
/* The driver's kernel, for questions about it; waits for the compiler. */
fac_status fac_cl_kernel_get(fac_opencl *o, const fac_cl_kernel *k, cl_kernel *out, fac_error *err);
#endif
