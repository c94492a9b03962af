/* The OpenCL library, opened at run time: a program made with facula starts, and runs on the CPU,
 * where there is none. Version 1.2 of the interface (Khronos 2012) is all that is asked for. */
#ifndef FACULA_OPENCL_API_H
#define FACULA_OPENCL_API_H
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>
#include "facula/status.h"

#define FAC_CL_CALLS(X)                                                                            \
    X(GetPlatformIDs)                                                                              \
    X(GetPlatformInfo) X(GetDeviceIDs) X(GetDeviceInfo) X(CreateContext) X(ReleaseContext)         \
        X(CreateCommandQueue) X(ReleaseCommandQueue) X(Finish) X(Flush) X(CreateBuffer)            \
            X(ReleaseMemObject) X(EnqueueReadBuffer) X(EnqueueWriteBuffer) X(EnqueueCopyBuffer)    \
                X(EnqueueFillBuffer) X(CreateProgramWithSource) X(CreateProgramWithBinary)         \
                    X(BuildProgram) X(GetProgramInfo) X(GetProgramBuildInfo) X(ReleaseProgram)     \
                        X(CreateKernel) X(ReleaseKernel) X(SetKernelArg) X(GetKernelWorkGroupInfo) \
                            X(EnqueueNDRangeKernel) X(EnqueueMapBuffer) X(EnqueueUnmapMemObject)   \
                                X(WaitForEvents) X(GetEventInfo) X(ReleaseEvent) X(RetainEvent)    \
                                    X(GetEventProfilingInfo) X(EnqueueMarkerWithWaitList)          \
                                        X(EnqueueBarrierWithWaitList) X(CreateUserEvent)           \
                                            X(SetUserEventStatus) X(RetainContext)                 \
                                                X(RetainCommandQueue) X(RetainMemObject)           \
                                                    X(GetContextInfo) X(GetCommandQueueInfo)       \
                                                        X(GetMemObjectInfo)

/* cl.CreateBuffer is clCreateBuffer, and so on. */
#define FAC_CL_MEMBER(name) __typeof__(&cl##name) name;
typedef struct fac_cl_api {
    void *library;
    FAC_CL_CALLS(FAC_CL_MEMBER)
} fac_cl_api;

/* FAC_E_UNSUPPORTED says what to install.  The loader counts, so every device opens and closes its
 * own. */
fac_status fac_cl_api_open(fac_cl_api *cl, fac_error *err);
void fac_cl_api_close(fac_cl_api *cl);
const char *fac_cl_error_name(cl_int code); /* "CL_OUT_OF_RESOURCES"; "an unknown error" */

/* One device of one platform, as it is listed. */
typedef struct fac_cl_place {
    cl_platform_id platform;
    cl_device_id device;
    cl_device_type type;
    char name[128], vendor[64], platform_name[64], driver[64];
} fac_cl_place;

/* All devices of all platforms, GPUs first, else in the drivers' order; at most max are written.
 * Returns how many there are; a platform that answers with an error has none. */
int fac_cl_places(const fac_cl_api *cl, fac_cl_place *to, int max);
#endif
