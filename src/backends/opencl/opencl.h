/* The OpenCL device: one context and one in-order queue on one device of one platform.  It has kernels for elementwise
 * nodes; all others are solved by the cpu (src/run/away.c).
 *
 * Everything is submitted to the queue in the order of the calls and nothing waits but reads: so memory that is given back may be
 * given out again at once, its next writer runs behind its last reader.  A failing command breaks the queue; the error is kept
 * and every later call answers with it. */
#ifndef FACULA_OPENCL_H
#define FACULA_OPENCL_H
#include "backends/device.h"
#include "backends/opencl/api.h"

typedef struct fac_cl_segment fac_cl_segment;

/* What fac_span.memory points to: a part of a buffer. */
typedef struct fac_cl_block {
    fac_cl_segment      *segment;
    size_t               at, bytes;             /* in the segment */
    bool                 used;
    struct fac_cl_block *next, *prev;           /* neighbours in the segment */
} fac_cl_block;

struct fac_cl_segment {
    cl_mem          memory;
    size_t          bytes;
    bool            small;                      /* shared by small blocks only */
    fac_cl_block   *first;
    fac_cl_segment *next;
};

/* Memory is taken from the driver in segments and never given back unless it runs short: asking it costs as much as many
 * kernels. */
typedef struct fac_cl_memory {
    pthread_mutex_t lock;
    fac_cl_segment *segments;
    size_t          reserved, used;             /* bytes */
} fac_cl_memory;

typedef struct fac_cl_limits {
    size_t   memory, largest, local, align;     /* bytes: in all, of one buffer, of a work group, of a buffer's start */
    size_t   group;                             /* most work items in a group */
    unsigned units;                             /* compute units */
    bool     fp64, fp16, gpu;
    int      major, minor;                      /* OpenCL C */
} fac_cl_limits;

typedef struct fac_opencl {
    fac_device        device;                   /* first */
    fac_cl_api        cl;
    fac_cl_place      place;
    fac_cl_limits     limits;
    cl_context        context;
    cl_command_queue  queue;
    fac_cl_memory     memory;
    pthread_mutex_t   launch;                   /* setting arguments and enqueueing belong together */
    fac_error         broken;                   /* the first error of the queue; kept */
} fac_opencl;

static inline fac_opencl *fac_opencl_of(fac_device *d) { return (fac_opencl *)d; }
extern const fac_backend fac_backend_opencl;

/* An error of the driver as one of ours: "opencl:0: WHAT: CL_...".  Out of memory is FAC_E_NOMEM, all else FAC_E_DEVICE. */
fac_status fac_cl_raise(fac_opencl *o, cl_int code, const char *what, fac_error *err);

/* ---- memory.c ---- */

fac_status fac_cl_memory_init(fac_cl_memory *m, fac_error *err);
void       fac_cl_memory_fini(fac_opencl *o);
fac_status fac_cl_take(fac_opencl *o, size_t bytes, fac_cl_block **out, fac_error *err);
void       fac_cl_give(fac_opencl *o, fac_cl_block *block);
size_t     fac_cl_trim(fac_opencl *o);          /* gives segments in which nothing is used back to the driver; how many bytes */

static inline cl_mem fac_cl_buffer(fac_span s) { return ((const fac_cl_block *)s.memory)->segment->memory; }
static inline size_t fac_cl_at(fac_span s) { return ((const fac_cl_block *)s.memory)->at + s.at; }

/* ---- program.c ---- */

/* Source text behind kernels/prelude.cl, with options, compiled, or found in the cache on disk.  FAC_E_DEVICE with the compiler's own words. */
fac_status fac_cl_program(fac_opencl *o, const char *source, const char *options, cl_program *out, fac_error *err);
#endif
