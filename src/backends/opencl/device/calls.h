/* A plan that is some launches: what the solvers whose kernels are written in NAME.cl have
 * in common.
 *
 * Such a kernel takes one struct by value, in which first the places of its buffers stand, in
 * elements, then the numbers that its plan pushed, all as long; then its buffers.  Types of
 * elements are options, sizes are numbers: one compiled kernel serves all shapes. */
#ifndef FACULA_OPENCL_CALLS_H
#define FACULA_OPENCL_CALLS_H
#include "backends/opencl/device/launch.h"
#include "base/text.h"

/* The most that a call may have while it is made; what a plan keeps is cut to what it has: the
 * driver's work drives it out of the caches between launches, so it should be few lines side by
 * side. What has more than 40 buffers asks limits.arguments: every device takes 1,024 bytes, a
 * place and a pointer for each buffer. */
enum { FAC_CL_BUFFERS = 240, FAC_CL_NUMBERS = 120 };

typedef enum fac_cl_origin {
    FAC_CL_IN,
    FAC_CL_OUT,
    FAC_CL_WORK,
    FAC_CL_TABLE,
    FAC_CL_COMPLAINT
} fac_cl_origin;
/* size: of an element, in bytes */
typedef struct fac_cl_operand {
    fac_cl_origin origin;
    int index;
    size_t size;
    int64_t offset;
} fac_cl_operand;

typedef struct fac_cl_call {
    fac_cl_kernel kernel;
    fac_cl_range range;
    int buffers, numbers,
        step; /* step: which number names the step to kernels that may complain; -1: none */
    fac_cl_operand *buffer;
    int64_t *number;
} fac_cl_call;

typedef struct fac_cl_plan {
    int calls, room;
    fac_span table; /* the plan's own memory */
    size_t table_bytes;
    fac_cl_call call[];
} fac_cl_plan;

/* ---- while offering ---- */

/* Brings blocked operands into plain layouts; false: a body, or an element type that the device
 * does not have. */
bool fac_cl_settle(const fac_opencl *o, fac_problem *p);
/* The same of what may have a body. */
bool fac_cl_settle_operands(const fac_opencl *o, fac_problem *p);
bool fac_cl_settle_operands_plain(const fac_opencl *o, fac_problem *p);
bool fac_cl_has(const fac_opencl *o, fac_dtype t);
const char *fac_cl_tag(fac_dtype t); /* "bf16" */
/* Launches plus the bytes of all operands. */
double fac_cl_price(const fac_opencl *o, const fac_problem *p, int launches);

/* The result with its channels last when x, of the same rank, lies so: what comes from a
 * convolution stays as it is. */
void fac_cl_lay_alike(const fac_operand *x, fac_operand *y);
bool fac_cl_channels_last(const fac_operand *x);
/* All operands plain. */
bool fac_cl_settle_plain(const fac_opencl *o, fac_problem *p);

/* ---- while making ---- */

/* An empty plan with room for so many calls (NULL: no memory), and the same one cut to what it has
 * when all are added; added: how that went.  After an error it is gone. */
fac_cl_plan *fac_cl_plan_open(int calls);
fac_status fac_cl_plan_close(fac_device *d, fac_cl_plan *plan, fac_status added, void **out,
                             fac_error *err);

/* Adds the launches to a plan; all of it is done here. */
typedef fac_status fac_cl_adder(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                                fac_error *err);
fac_status fac_cl_plan_make(fac_device *d, const fac_problem *p, int calls, fac_cl_adder *add,
                            void **out, fac_error *err);

/* The next call; its kernel is made of elements.cl and the source.  work_items, group: a
 * range of one dim. */
fac_status fac_cl_call_new(fac_opencl *o, fac_cl_plan *plan, const char *source,
                           const fac_text *options, const char *name, fac_cl_call **out,
                           fac_error *err);
/* The same of a text that is complete. */
fac_status fac_cl_call_text(fac_opencl *o, fac_cl_plan *plan, const fac_text *text,
                            const char *options, const char *name, fac_cl_call **out,
                            fac_error *err);
void fac_cl_call_items(fac_cl_call *c, size_t items, size_t group);
void fac_cl_call_in(fac_cl_call *c, const fac_problem *p, int i); /* an absent one, too */
void fac_cl_call_bytes(fac_cl_call *c, int i); /* input i, plain, its place in bytes */
void fac_cl_call_out(fac_cl_call *c, const fac_problem *p, int k);
void fac_cl_call_work(fac_cl_call *c, size_t bytes_before, size_t size);
void fac_cl_call_table(fac_cl_call *c, size_t size);
void fac_cl_call_complaint(
    fac_cl_call *c); /* the last buffer, and its step as the first number: index.cl */
static inline void fac_cl_call_number(fac_cl_call *c, int64_t x) { c->number[c->numbers++] = x; }
static inline void fac_cl_call_numbers(fac_cl_call *c, const int64_t *x, size_t n) {
    for (size_t k = 0; k < n; k++) fac_cl_call_number(c, x[k]);
}
void fac_cl_call_real(fac_cl_call *c, double x, fac_dtype computing); /* for REAL() */
/* The plan's own memory, filled. */
fac_status fac_cl_plan_table(fac_opencl *o, fac_cl_plan *plan, const void *data, size_t bytes,
                             fac_error *err);
/* A table of zeros, at which groups count (last.cl), who leave zeros. */
fac_status fac_cl_plan_counters(fac_opencl *o, fac_cl_plan *plan, size_t n, fac_error *err);

/* Whether places in all operands fit 31 bits; the option says so otherwise. */
void fac_cl_option_wide(const fac_problem *p, fac_text *options);

/* V of elements.cl. */
int fac_cl_width(const fac_opencl *o, fac_dtype computing);

/* ---- of the solver ---- */

void fac_cl_plan_done(fac_device *d, void *plan);
fac_status fac_cl_plan_run(const void *plan, fac_device *d, const fac_span *in, const fac_span *out,
                           fac_span work, fac_error *err);
/* Without the calls before this one. */
fac_status fac_cl_plan_run_from(const void *plan, int first, fac_device *d, const fac_span *in,
                                const fac_span *out, fac_span work, fac_error *err);
#endif
