/* facula/opencl.h: working together with a program's own OpenCL code.  Only in builds with the
 * OpenCL backend.
 *
 * OpenCL's headers are not needed here: cl_context is a struct _cl_context *, and so on. */
#ifndef FACULA_OPENCL_INTEROP_H
#define FACULA_OPENCL_INTEROP_H

#include "facula/device.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

struct _cl_context;
struct _cl_command_queue;
struct _cl_mem;
struct _cl_event;

/* A device that works in the caller's context and queue, which must be in order and of that
 * context: commands of both sides run in the order in which they were submitted.  Both are
 * retained. */
fac_status fac_opencl_device(struct _cl_context *context, struct _cl_command_queue *queue,
                             const fac_device_opts *opts, fac_device **out, fac_error *err);
/* Those of any OpenCL device; they stay its own.  NULL when it is none. */
struct _cl_context *fac_opencl_context(const fac_device *device);
/* The queue of the device's commands. */
struct _cl_command_queue *fac_opencl_queue(const fac_device *device);

/* A contiguous tensor over a buffer of the device's context, from byte `at` on (a multiple of the
 * element's size), without a copy.  The buffer is retained.  What the caller's commands write to
 * it, programs see from their next run on; fac_opencl_changed says that they did, so that nothing
 * prepared from the old contents is used. */
fac_status fac_opencl_tensor(fac_device *device, struct _cl_mem *buffer, size_t at, fac_dtype dtype,
                             fac_dims dims, fac_tensor **out, fac_error *err);
/* The caller's commands wrote to the tensor: its version is raised. */
void fac_opencl_changed(fac_tensor *t);
/* Where a tensor that lives on an OpenCL device is: the buffer, which stays the tensor's, and the
 * byte of its first element. NULL for others. */
struct _cl_mem *fac_opencl_buffer(const fac_tensor *t, size_t *at);

/* For callers with queues of their own.  What is submitted to the device from now on waits for
 * these events. */
fac_status fac_opencl_wait_for(fac_device *device, struct _cl_event *const *events, int n,
                               fac_error *err);
/* An event that is complete when all that was submitted so far is; the caller releases it. */
fac_status fac_opencl_event(fac_device *device, struct _cl_event **out, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
