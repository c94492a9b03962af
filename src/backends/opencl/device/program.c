/* Programs: from the cache on disk when it has them, else from the driver's compiler. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backends/opencl/device/cache.h"
#include "backends/opencl/nvidia/unit/nvidia.h"
#include "backends/opencl/device/opencl.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/optional.h"
#include "base/text.h"
#include "facula/version.h"
#include "cl_prelude.h"

fac_hash fac_cl_program_key(const fac_opencl *o, const char *source, const char *options) {
    fac_hash h = fac_hash_text(fac_hash_start(0xc1), fac_kernel_prelude);
    h = fac_hash_text(fac_hash_text(h, source), options);
    h = fac_hash_text(fac_hash_text(h, o->place.name), o->place.driver);
    /* PoCL's own options: what it compiles by -cl-opt-disable takes five times as long. */
    h = fac_hash_text(h, fac_text_or(getenv("POCL_EXTRA_BUILD_FLAGS"), ""));
    return fac_hash_text(fac_hash_text(h, o->place.platform_name), FACULA_VERSION);
}

/* The compiler's own words, or none. */
static char *log_of(fac_opencl *o, cl_program p) {
    size_t n = 0;
    char *log = NULL;
    if (o->cl.GetProgramBuildInfo(p, o->place.device, CL_PROGRAM_BUILD_LOG, 0, NULL, &n) || !n ||
        !(log = fac_alloc(1, n + 1)))
        return NULL;
    o->cl.GetProgramBuildInfo(p, o->place.device, CL_PROGRAM_BUILD_LOG, n, log, NULL);
    return log;
}

static fac_status build(fac_opencl *o, cl_program p, const char *options, fac_error *err) {
    cl_int code = o->cl.BuildProgram(p, 1, &o->place.device, options, NULL, NULL);
    if (!code) return FAC_OK;
    char *log = log_of(o, p);
    fac_status status =
        fac_raise(err, FAC_E_DEVICE, "%s: a kernel does not compile: %s%s%s", o->device.name,
                  fac_cl_error_name(code), fac_text_if(log, ": "), fac_text_or(log, ""));
    fac_release(log);
    return status;
}

/* From a text: without warnings, whose number some drivers print. */
static fac_status compile(fac_opencl *o, cl_program p, const char *options, fac_error *err) {
    fac_text all = { 0 };
    fac_text_print(&all, "%s -w", options);
    fac_status status =
        all.failed
            ? fac_raise(err, FAC_E_NOMEM, "%s: no memory for a compiler's options", o->device.name)
            : build(o, p, all.s, err);
    fac_text_free(&all);
    return status;
}

static bool from_cache(fac_opencl *o, fac_hash key, const char *options, cl_program *out) {
    size_t bytes = 0;
    unsigned char *binary = fac_cl_cache_get(key, &bytes);
    const unsigned char *one = binary;
    cl_int each = 0, code = 0;
    if (!binary) return false;
    cl_program p =
        o->cl.CreateProgramWithBinary(o->context, 1, &o->place.device, &bytes, &one, &each, &code);
    fac_release(binary);
    if (code || each) {
        if (!code) o->cl.ReleaseProgram(p);
        return false;
    }
    if (o->cl.BuildProgram(p, 1, &o->place.device, options, NULL, NULL)) {
        o->cl.ReleaseProgram(p);
        return false;
    }
    *out = p;
    return true;
}

void *fac_cl_program_binary(const fac_cl_api *cl, cl_program p, size_t *bytes) {
    unsigned char *binary = NULL;
    if (cl->GetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, NULL) || !*bytes ||
        !(binary = fac_alloc(1, *bytes)))
        return NULL;
    if (!cl->GetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL)) return binary;
    fac_release(binary);
    return NULL;
}

static void to_cache(fac_opencl *o, fac_hash key, cl_program p) {
    size_t bytes = 0;
    void *binary = fac_cl_program_binary(&o->cl, p, &bytes);
    if (binary) fac_cl_cache_put(key, binary, bytes);
    fac_release(binary);
}

/* A program whose text has marked instructions: *p becomes that of its PTX with them uncovered. */
static fac_status uncover(fac_opencl *o, fac_hash key, const char *options, cl_program *p,
                          fac_error *err) {
    char *ptx = NULL;
    size_t bytes = 0;
    cl_program made = NULL;
    FAC_TRY(fac_nv_uncovered(&o->cl, o->context, o->place.device, *p, &ptx, &bytes, &made, err));
    fac_status status = build(o, made, options, err);
    if (!status) fac_cl_cache_put(key, ptx, bytes);
    fac_release(ptx);
    o->cl.ReleaseProgram(status ? made : *p);
    if (!status) *p = made;
    return status;
}

fac_status fac_cl_program(fac_opencl *o, fac_hash key, const char *source, const char *options,
                          cl_program *out, bool *found, fac_error *err) {
    cl_int code;
    if ((*found = from_cache(o, key, options, out))) return FAC_OK;
    const char *texts[] = { o->limits.fp64 ? "#define FAC_FP64\n" : "", fac_kernel_prelude,
                            source };
    cl_program p = o->cl.CreateProgramWithSource(o->context, 3, texts, NULL, &code);
    if (code) return fac_cl_raise(o, code, "making a program", err);
    const bool marked = strstr(source, FAC_NV_MARK);
    fac_status status = compile(o, p, options, err);
    if (!status && marked) status = uncover(o, key, options, &p, err);
    if (status) {
        o->cl.ReleaseProgram(p);
        return status;
    }
    if (!marked) to_cache(o, key, p);
    *out = p;
    return FAC_OK;
}
