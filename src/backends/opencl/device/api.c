/* Opening libOpenCL, and the names of its errors. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "backends/opencl/device/api.h"
#include "base/error.h"

static const char *const libraries[] = { "libOpenCL.so.1", "libOpenCL.so",
                                         "/System/Library/Frameworks/OpenCL.framework/OpenCL",
                                         "/vendor/lib64/libOpenCL.so" };

/* NODELETE: drivers start threads of their own and do not survive being unloaded. */
enum { HOW = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

void fac_cl_api_close(fac_cl_api *cl) {
    if (cl->library) dlclose(cl->library);
    memset(cl, 0, sizeof *cl);
}

fac_status fac_cl_api_open(fac_cl_api *cl, fac_error *err) {
    memset(cl, 0, sizeof *cl);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !cl->library; i++)
        cl->library = dlopen(libraries[i], HOW);
    if (!cl->library)
        return fac_raise(
            err, FAC_E_UNSUPPORTED,
            "opencl: there is no libOpenCL (Debian: ocl-icd-libopencl1, and the driver of "
            "the device or pocl-opencl-icd, which runs on the CPU)");
    const struct {
        const char *name;
        void *to;
    } calls[] = {
#define FAC_CL_ROW(name) { "cl" #name, &cl->name },
        FAC_CL_CALLS(FAC_CL_ROW)
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        void *symbol = dlsym(cl->library, calls[i].name);
        if (!symbol) {
            fac_cl_api_close(cl);
            return fac_raise(err, FAC_E_UNSUPPORTED,
                             "opencl: the library has no %s: it is older than OpenCL 1.2",
                             calls[i].name);
        }
        memcpy(calls[i].to, &symbol,
               sizeof symbol); /* C has no cast from an object to a function */
    }
    return FAC_OK;
}

const char *fac_cl_error_name(cl_int code) {
    static const struct {
        cl_int code;
        const char *name;
    } names[] = {
#define NAME(n) { n, #n }
        NAME(CL_DEVICE_NOT_FOUND),        NAME(CL_DEVICE_NOT_AVAILABLE),
        NAME(CL_COMPILER_NOT_AVAILABLE),  NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE),
        NAME(CL_OUT_OF_RESOURCES),        NAME(CL_OUT_OF_HOST_MEMORY),
        NAME(CL_BUILD_PROGRAM_FAILURE),   NAME(CL_INVALID_VALUE),
        NAME(CL_INVALID_DEVICE),          NAME(CL_INVALID_BINARY),
        NAME(CL_INVALID_BUILD_OPTIONS),   NAME(CL_INVALID_PROGRAM),
        NAME(CL_INVALID_KERNEL_NAME),     NAME(CL_INVALID_KERNEL_ARGS),
        NAME(CL_INVALID_ARG_SIZE),        NAME(CL_INVALID_WORK_GROUP_SIZE),
        NAME(CL_INVALID_WORK_ITEM_SIZE),  NAME(CL_INVALID_COMMAND_QUEUE),
        NAME(CL_INVALID_MEM_OBJECT),      NAME(CL_INVALID_BUFFER_SIZE),
        NAME(CL_INVALID_EVENT_WAIT_LIST), NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
        NAME(CL_INVALID_CONTEXT)
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code) return names[i].name;
    return "an unknown error";
}

/* ---- what there is ---- */

enum { PLATFORMS = 32, DEVICES = 64 };

static void platform_text(const fac_cl_api *cl, cl_platform_id p, cl_platform_info what, char *to,
                          size_t size) {
    if (cl->GetPlatformInfo(p, what, size - 1, to, NULL)) to[0] = 0;
}

static void device_text(const fac_cl_api *cl, cl_device_id d, cl_device_info what, char *to,
                        size_t size) {
    if (cl->GetDeviceInfo(d, what, size - 1, to, NULL)) to[0] = 0;
}

static fac_cl_place place_of(const fac_cl_api *cl, cl_platform_id p, cl_device_id d) {
    fac_cl_place at = { .platform = p, .device = d };
    cl->GetDeviceInfo(d, CL_DEVICE_TYPE, sizeof at.type, &at.type, NULL);
    device_text(cl, d, CL_DEVICE_NAME, at.name, sizeof at.name);
    device_text(cl, d, CL_DEVICE_VENDOR, at.vendor, sizeof at.vendor);
    device_text(cl, d, CL_DRIVER_VERSION, at.driver, sizeof at.driver);
    platform_text(cl, p, CL_PLATFORM_NAME, at.platform_name, sizeof at.platform_name);
    return at;
}

int fac_cl_places(const fac_cl_api *cl, fac_cl_place *to, int max) {
    cl_platform_id platforms[PLATFORMS];
    cl_uint count = 0;
    int n = 0;
    if (cl->GetPlatformIDs(PLATFORMS, platforms, &count)) return 0;
    if (count > PLATFORMS) count = PLATFORMS;
    for (int gpu = 1; gpu >= 0; gpu--)
        for (cl_uint p = 0; p < count; p++) {
            cl_device_id devices[DEVICES];
            cl_uint found = 0;
            if (cl->GetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, DEVICES, devices, &found))
                continue;
            for (cl_uint i = 0; i < found && i < DEVICES; i++) {
                fac_cl_place at = place_of(cl, platforms[p], devices[i]);
                if (((at.type & CL_DEVICE_TYPE_GPU) != 0) != gpu) continue;
                if (n < max) to[n] = at;
                n++;
            }
        }
    return n;
}
