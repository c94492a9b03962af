/* Compiling kernels beside everything else: what make() of several nodes asks for is built by
 * threads at once, and the same text is built once a device. */
#ifndef FACULA_OPENCL_BUILD_H
#define FACULA_OPENCL_BUILD_H
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include "base/table.h"
#include "facula/status.h"

struct fac_opencl;

typedef enum fac_cl_build_state {
    FAC_CL_WAITING,
    FAC_CL_BUILDING,
    FAC_CL_BUILT
} fac_cl_build_state;
typedef struct fac_cl_build {
    fac_hash key;
    char *source, *options; /* until it is built */
    cl_program program;     /* NULL when it failed: `error` */
    fac_error error;
    fac_cl_build_state state;
    bool told; /* the error, by fac_cl_builds_settle */
    int users;
    struct fac_cl_build *next, *next_waiting; /* of all; of those that wait */
} fac_cl_build;

typedef struct fac_cl_builds {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    fac_cl_build *all, *first, *last; /* first, last: waiting */
    int threads, waiting, busy, count;
    size_t compiled, found; /* by the driver's compiler; in the cache on disk */
    char *texts;            /* folder that texts are written to; NULL: none */
    bool dry;               /* texts are made, programs are not: for tests */
} fac_cl_builds;

/* texts: see fac_device_opts.kernel_texts. */
fac_status fac_cl_builds_init(fac_cl_builds *b, const char *texts, fac_error *err);
void fac_cl_builds_fini(struct fac_opencl *o); /* waits for the threads */

/* build_text.c: writes a kernel's text, with its options in the first line, to FOLDER/HASH.cl. */
fac_status fac_cl_write_text(const char *folder, const char *source, const char *options,
                             fac_error *err);

/* Begins, or finds what was begun.  Kept until fac_cl_build_put, and while there is room
 * afterwards. */
fac_status fac_cl_build_get(struct fac_opencl *o, const char *source, const char *options,
                            fac_cl_build **out, fac_error *err);
void fac_cl_build_put(struct fac_opencl *o, fac_cl_build *build); /* NULL is fine */
/* Waits for it, or builds it here and now when no thread has begun. */
fac_status fac_cl_build_wait(struct fac_opencl *o, fac_cl_build *build, fac_error *err);
/* Waits for all; the error of one that failed and was not told yet. */
fac_status fac_cl_builds_settle(struct fac_opencl *o, fac_error *err);
#endif
