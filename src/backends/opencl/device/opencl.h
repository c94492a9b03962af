/* The OpenCL device: one context and one in-order queue (now and then a second one: side_queue.c)
 * on one device of one platform.  What no kernel takes is solved by the cpu
 * (src/plan/cpu_fallback.c).
 *
 * Everything is submitted to the queue in the order of the calls and nothing waits but reads: so
 * memory that is given back may be given out again at once, its next writer runs after its last
 * reader.  A failing command breaks the queue; the error is kept and every later call answers with
 * it. */
#ifndef FACULA_OPENCL_H
#define FACULA_OPENCL_H
#include "backends/device.h"
#include "backends/gpu/limits.h"
#include "backends/opencl/device/api.h"
#include "backends/opencl/device/build.h"

typedef struct fac_cl_segment fac_cl_segment;

/* What fac_span.memory points to: a part of a buffer. */
typedef struct fac_cl_block {
    fac_cl_segment *segment;
    size_t at, bytes; /* in the segment */
    bool used;
    struct fac_cl_block *next, *prev; /* neighbours in the segment */
} fac_cl_block;

struct fac_cl_segment {
    cl_mem memory;
    size_t bytes;
    bool small; /* shared by small blocks only */
    fac_cl_block *first;
    fac_cl_segment *next;
};

/* Memory is taken from the driver in segments and never given back unless it runs short: asking it
 * costs as much as many kernels. */
typedef struct fac_cl_memory {
    pthread_mutex_t lock;
    fac_cl_segment *segments;
    size_t reserved, used;   /* bytes */
    _Atomic size_t released; /* segments, ever: a handle may come again as another buffer */
    bool apart; /* a buffer for each block, kept and never used again: for tools that watch buffers
                 */
} fac_cl_memory;

/* Pinned host memory in pieces: small writes share one, large transfers go through all of them in
 * turn. */
enum { FAC_CL_PIECES = 8 };
typedef struct fac_cl_staging {
    pthread_mutex_t lock;
    cl_mem buffer; /* NULL until the first transfer */
    char *at;
    int piece;                    /* the one at hand */
    size_t used;                  /* of it */
    cl_event busy[FAC_CL_PIECES]; /* the last transfer out of each */
} fac_cl_staging;

/* Commands since the last wait, the newest ones. */
enum { FAC_CL_PENDING = 1024 };
typedef struct fac_cl_pending {
    const char *step;
    cl_event event;
} fac_cl_pending;

typedef struct fac_cl_watched fac_cl_watched;

/* A second queue, and the thread that has it: 0: none.  on: of that thread alone, it submits there.
 */
typedef struct fac_cl_second {
    cl_command_queue queue;
    _Atomic uintptr_t thread;
    bool on;
} fac_cl_second;
typedef struct fac_opencl {
    fac_device device; /* first */
    fac_cl_api cl;
    fac_cl_place place;
    fac_gpu_limits limits;
    char extensions[8192];
    atomic_int paths[20]; /* what probes found: probe.h */
    atomic_int last;      /* 1: images may have their channels last, -1: no, 0: nobody has asked */
    cl_context context;
    cl_command_queue queue;
    bool borrowed; /* both are somebody else's, who may have other queues there */
    fac_cl_memory memory;
    fac_cl_staging staging;
    fac_cl_builds builds;
    pthread_mutex_t
        launch; /* setting arguments and enqueueing belong together; also of what follows */
    const char *_Atomic step; /* what is being submitted */
    fac_cl_pending pending[FAC_CL_PENDING];
    size_t submitted, waited; /* commands in all, and those of them that are known to be done */
    pthread_mutex_t fault;
    bool locks, traced; /* traced: each command leaves an event, so that errors find their step */
    fac_error broken;   /* the first error of the queue; kept */
    atomic_bool failed,
        complaining; /* complaining: kernels that may were submitted since somebody looked */
    fac_cl_block *complaint; /* see complaint.h; NULL until one is made that may */
    fac_error complained;    /* what nobody was told yet */
    fac_cl_watched *watched; /* clock.c; NULL until somebody watches */
    fac_cl_second second;    /* side_queue.c */
} fac_opencl;

static inline fac_opencl *fac_opencl_of(fac_device *d) { return (fac_opencl *)d; }
extern const fac_backend fac_backend_opencl;

/* An error of the driver as one of ours: "opencl:0: WHAT: CL_...".  Out of memory is FAC_E_NOMEM,
 * all else FAC_E_DEVICE. */
fac_status fac_cl_raise(fac_opencl *o, cl_int code, const char *what, fac_error *err);
/* step may be NULL */
fac_status fac_cl_raise_in(fac_opencl *o, cl_int code, const char *step, const char *what,
                           fac_error *err);
/* A device that failed answers with the error that broke it. */
fac_status fac_cl_alive(fac_opencl *o, fac_error *err);

/* ---- memory.c ---- */

fac_status fac_cl_memory_init(fac_cl_memory *m, fac_error *err);
void fac_cl_memory_fini(fac_opencl *o);
fac_status fac_cl_take(fac_opencl *o, size_t bytes, fac_cl_block **out, fac_error *err);
void fac_cl_give(fac_opencl *o, fac_cl_block *block);
size_t fac_cl_trim(
    fac_opencl *o); /* gives segments in which nothing is used back to the driver; how many bytes */

static inline cl_mem fac_cl_buffer(fac_span s) {
    return ((const fac_cl_block *)s.memory)->segment->memory;
}
static inline size_t fac_cl_at(fac_span s) { return ((const fac_cl_block *)s.memory)->at + s.at; }
static inline int64_t fac_cl_floats_at(fac_span s) {
    return (int64_t)(fac_cl_at(s) / sizeof(float));
}

/* ---- device.c, for interop.c ---- */

/* A device on these: a queue of a context on the device of the place; both are retained. */
fac_status fac_cl_open_on(fac_opencl *o, cl_context context, cl_command_queue queue,
                          const fac_device_opts *opts, fac_error *err);
void fac_cl_close(fac_opencl *o);
extern const fac_memory_ops fac_cl_memory_ops;

/* ---- limits.c ---- */

/* The answer to a question, zeros where the driver has none. */
void fac_cl_ask(const fac_opencl *o, cl_device_info what, void *to, size_t size);
/* Fills in limits and extensions. */
void fac_cl_find_limits(fac_opencl *o);

/* ---- facts.c ---- */

void fac_cl_facts(fac_device *d, fac_fact *tell, void *self);
void fac_cl_tell_paths(fac_device *d, fac_fact *tell, void *self);

/* ---- program.c: what build.c compiles ---- */

/* All that the compiled form depends on. */
fac_hash fac_cl_program_key(const fac_opencl *o, const char *source, const char *options);
/* Source text after prelude.cl, with options: found in the cache on disk, or compiled.
 * FAC_E_DEVICE with the compiler's own words. */
/* (Text with instructions of sm_90a: nvidia/unit/ptx.c.) */
fac_status fac_cl_program(fac_opencl *o, fac_hash key, const char *source, const char *options,
                          cl_program *out, bool *found, fac_error *err);
/* What the driver keeps of a built program; fac_release; NULL: it gives nothing. */
void *fac_cl_program_binary(const fac_cl_api *cl, cl_program p, size_t *bytes);

/* ---- transfer.c ---- */

/* Through pinned memory, so that nothing waits but reads: a write has taken its bytes when it
 * returns. */
fac_status fac_cl_write(fac_opencl *o, fac_span to, const void *from, size_t bytes, fac_error *err);
fac_status fac_cl_read(fac_opencl *o, fac_span from, void *to, size_t bytes, fac_error *err);
void fac_cl_staging_fini(fac_opencl *o);

/* ---- side_queue.c ---- */

extern const fac_beside fac_cl_beside;
/* Where this thread submits what no one waits for: kernels, copies, fills. */
cl_command_queue fac_cl_queue(const fac_opencl *o);
void fac_cl_second_fini(fac_opencl *o);

/* ---- pending.c: errors of what was submitted come later, and are told with the step that they
 * belong to ---- */

/* A command of the step at hand was submitted; takes the event, if it left one.  Under o->launch,
 * as what follows of it. */
void fac_cl_pending_add(fac_opencl *o, cl_event event);
/* An error at a wait; what was submitted so far, to be forgotten after a wait for it that was good.
 */
fac_status fac_cl_blame(fac_opencl *o, cl_int code, const char *what, fac_error *err);
size_t fac_cl_pending_mark(fac_opencl *o);
void fac_cl_pending_clear(fac_opencl *o, size_t mark);
#endif
