/* Making kernels, setting their arguments and enqueueing them: see launch.h. */
#include <string.h>
#include "backends/opencl/launch.h"
#include "base/error.h"

fac_status fac_cl_kernel_new(fac_opencl *o, const char *source, const char *options, const char *name, fac_cl_kernel *out,
                             fac_error *err) {
    cl_int code;
    memset(out, 0, sizeof *out);
    out->name = name;
    FAC_TRY(fac_cl_program(o, source, options, &out->program, err));
    out->kernel = o->cl.CreateKernel(out->program, name, &code);
    if (!code) return FAC_OK;
    out->kernel = NULL;
    fac_cl_kernel_free(o, out);
    return fac_cl_raise(o, code, name, err);
}

void fac_cl_kernel_free(fac_opencl *o, fac_cl_kernel *k) {
    if (k->kernel) o->cl.ReleaseKernel(k->kernel);
    if (k->program) o->cl.ReleaseProgram(k->program);
    memset(k, 0, sizeof *k);
}

static cl_int set(const fac_opencl *o, const fac_cl_kernel *k, cl_uint i, const fac_cl_arg *a) {
    if (a->kind == FAC_CL_LOCAL) return o->cl.SetKernelArg(k->kernel, i, a->bytes, NULL);
    if (a->kind == FAC_CL_VALUE) return o->cl.SetKernelArg(k->kernel, i, a->bytes, a->value);
    const cl_mem memory = a->span.memory ? fac_cl_buffer(a->span) : NULL;
    return o->cl.SetKernelArg(k->kernel, i, sizeof memory, &memory);
}

fac_status fac_cl_launch(fac_opencl *o, const fac_cl_kernel *k, const fac_cl_range *range, int n, const fac_cl_arg *args,
                         fac_error *err) {
    size_t items[3];
    for (int i = 0; i < range->dims; i++) {
        if (!range->items[i]) return FAC_OK;
        items[i] = (range->items[i] + range->group[i] - 1) / range->group[i] * range->group[i];
    }
    cl_int code = 0;
    pthread_mutex_lock(&o->launch);         /* a kernel keeps its arguments: setting and enqueueing belong together */
    for (int i = 0; i < n && !code; i++) code = set(o, k, (cl_uint)i, &args[i]);
    if (!code) code = o->cl.EnqueueNDRangeKernel(o->queue, k->kernel, (cl_uint)range->dims, NULL, items, range->group, 0, NULL, NULL);
    fac_status status = code ? fac_cl_raise(o, code, k->name, err) : FAC_OK;
    pthread_mutex_unlock(&o->launch);
    return status;
}
