/* See winograd.h. */
#include "backends/opencl/conv/winograd.h"
#include "base/error.h"
#include "cl_gemm_common.h"
#include "cl_winograd.h"

enum { LINE = 64 }; /* items of a group */

double fac_cl_winograd_slice(const fac_opencl *o, int variant) {
    static const double sizes[FAC_CL_WINOGRAD_VARIANTS] = { 256e6, 24e6, 4e6 };
    if (variant) return sizes[variant - 1];
    return sizes[o->limits.gpu ? 0 : 2];
}

bool fac_cl_winograd_takes(const fac_problem *p, const fac_cl_conv *c, int out) {
    const fac_conv_geom *g = &c->g;
    if (g->rank != 2 || p->variant > FAC_CL_WINOGRAD_VARIANTS) return false;
    for (int k = 1; k < 3; k++)
        if (g->kernel[k] != 3 || g->stride[k] != 1 || g->dilation[k] != 1) return false;
    const bool careful = p->precision == FAC_PRECISION_HIGHEST,
               exact = out == 2 && c->kind != FAC_GPU_GRAD_W;
    return c->r.dtype == FAC_F32 && c->r.result == FAC_F32 && c->C && (exact || !careful);
}

fac_status fac_cl_winograd_kernel(fac_opencl *o, const fac_gpu_product *r, int out,
                                  const char *options, const char *name, fac_cl_kernel *to,
                                  fac_error *err) {
    fac_text text = { 0 };
    const bool good = fac_cl_finish_text(r, o->limits.fp64, false, &text);
    fac_text_print(&text, "#define OUT %d\n%s", out, options);
    fac_text_add(&text, fac_kernel_gemm_common);
    fac_text_add(&text, fac_kernel_winograd);
    fac_status status = good && !text.failed
                            ? fac_cl_kernel_new(o, text.s, fac_cl_options(r), name, to, err)
                            : fac_raise_memory(err, "the text of a kernel");
    fac_text_free(&text);
    return status;
}

fac_cl_range fac_cl_winograd_range(const fac_opencl *o, int64_t tiles, int64_t planes) {
    const size_t group = o->limits.group < LINE ? o->limits.group : LINE;
    return (fac_cl_range){ 2, { (size_t)tiles, (size_t)planes }, { group, 1 } };
}
