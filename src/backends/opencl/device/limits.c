/* What the driver tells of a device, for those who plan for it (gpu/limits.h). */
#include <stdio.h>
#include <string.h>
#include "backends/opencl/device/opencl.h"

enum { MAX_NUM_SUB_GROUPS = 0x105C }; /* a question of OpenCL 2.1 */

void fac_cl_ask(const fac_opencl *o, cl_device_info what, void *to, size_t size) {
    if (o->cl.GetDeviceInfo(o->place.device, what, size, to, NULL)) memset(to, 0, size);
}

void fac_cl_find_limits(fac_opencl *o) {
    fac_gpu_limits *l = &o->limits;
    cl_ulong memory, largest, local;
    cl_uint units, align, subgroups, vector;
    char version[128] = "";
    fac_cl_ask(o, CL_DEVICE_GLOBAL_MEM_SIZE, &memory, sizeof memory);
    fac_cl_ask(o, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &largest, sizeof largest);
    fac_cl_ask(o, CL_DEVICE_LOCAL_MEM_SIZE, &local, sizeof local);
    fac_cl_ask(o, CL_DEVICE_MAX_COMPUTE_UNITS, &units, sizeof units);
    fac_cl_ask(o, CL_DEVICE_MEM_BASE_ADDR_ALIGN, &align, sizeof align);
    fac_cl_ask(o, CL_DEVICE_MAX_WORK_GROUP_SIZE, &l->group, sizeof l->group);
    fac_cl_ask(o, CL_DEVICE_MAX_PARAMETER_SIZE, &l->arguments, sizeof l->arguments);
    fac_cl_ask(o, CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, &vector, sizeof vector);
    fac_cl_ask(o, MAX_NUM_SUB_GROUPS, &subgroups, sizeof subgroups);
    fac_cl_ask(o, CL_DEVICE_OPENCL_C_VERSION, version, sizeof version - 1);
    fac_cl_ask(o, CL_DEVICE_EXTENSIONS, o->extensions, sizeof o->extensions - 1);
    l->memory = memory;
    l->largest = largest;
    l->local = local;
    l->units = units;
    l->vector = vector;
    snprintf(l->vendor, sizeof l->vendor, "%s", o->place.vendor);
    l->align = align / 8;
    l->fp64 = strstr(o->extensions, "cl_khr_fp64") != NULL;
    l->fp16 = strstr(o->extensions, "cl_khr_fp16") != NULL;
    l->subgroups = subgroups != 0;
    l->gpu = o->place.type & CL_DEVICE_TYPE_GPU;
    if (sscanf(version, "OpenCL C %d.%d", &l->major, &l->minor) != 2) {
        l->major = 1;
        l->minor = 0;
    }
}
