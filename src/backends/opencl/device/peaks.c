/* See peaks.h: arithmetic in registers, by multiply-adds and where they work by tensor cores;
 * reading and copying memory; launching.  Times are those of the device's clock, the best of
 * several tries. */
#include "backends/opencl/device/clock.h"
#include "backends/opencl/device/launch.h"
#include "backends/opencl/nvidia/unit/nvidia.h"
#include "backends/opencl/device/peaks.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "cl_nv_common.h"
#include "cl_peak.h"

enum {
    TRIES = 5,
    GROUP = 256,
    GROUPS = 8,
    CHAINS = 16,
    TILES = 8,
    COLUMNS = 128,
    LAUNCHES = 200
}; /* GROUPS: of one unit */

typedef struct bench {
    fac_opencl *o;
    size_t items, group;
    fac_span from, to;
    const fac_nv_kind *wgmma; /* NULL: a kernel for any device */
} bench;

static fac_status kernel_of(const bench *b, const char *define, const char *name, fac_cl_kernel *k,
                            fac_error *err) {
    fac_text text = { 0 };
    fac_text_print(&text, "#define %s\n", define);
    if (b->wgmma) {
        fac_text_add(&text, fac_kernel_nv_common);
        fac_nv_wgmma_text(&text, COLUMNS, *b->wgmma, 0);
    }
    fac_text_add(&text, fac_kernel_peak);
    fac_status status = text.failed ? fac_raise_memory(err, "the text of a kernel")
                                    : fac_cl_kernel_new(b->o, text.s, "", name, k, err);
    fac_text_free(&text);
    return status;
}

/* Seconds of the fastest of some launches. */
static fac_status fastest(const bench *b, const char *define, const char *name, int n,
                          const fac_cl_arg *args, double *seconds, fac_error *err) {
    const fac_cl_range range = { 1, { b->items }, { b->group } };
    fac_cl_kernel k;
    fac_command *all = NULL;
    size_t commands = 0;
    FAC_TRY(kernel_of(b, define, name, &k, err));
    fac_status status =
        fac_cl_launch(b->o, &k, &range, n, args, err); /* built, and the memory touched */
    if (!status) status = fac_cl_watch(&b->o->device, NULL, NULL, err);
    for (int i = 0; i < TRIES && !status; i++)
        status = fac_cl_launch(b->o, &k, &range, n, args, err);
    if (!status) status = fac_cl_watch(&b->o->device, &all, &commands, err);
    *seconds = 0;
    for (size_t i = 0; i < commands; i++)
        if (i == 0 || all[i].end - all[i].start < *seconds) *seconds = all[i].end - all[i].start;
    fac_release(all);
    fac_cl_kernel_free(b->o, &k);
    return status;
}

static double rate(double work, double seconds) { return seconds > 0 ? work / seconds : 0; }

static fac_status arithmetic(const bench *b, fac_peaks *p, fac_error *err) {
    const float a = 0.999f, c = 0.001f;
    const cl_int times = b->o->limits.gpu ? 4096 : 1024;
    const fac_cl_arg args[] = { fac_cl_arg_span(b->to), fac_cl_arg_value(&a, sizeof a),
                                fac_cl_arg_value(&c, sizeof c),
                                fac_cl_arg_value(&times, sizeof times) };
    double seconds;
    FAC_TRY(fastest(b, "FMA", "peak_fma", 4, args, &seconds, err));
    p->flops = rate(2.0 * CHAINS * times * (double)b->items, seconds);
    p->flops_one = p->flops / p->threads;
    return FAC_OK;
}

/* shape: of the instruction; flops: of one of them by a warp. */
static fac_status tensor(const bench *b, const char *shape, double flops, double *out,
                         fac_error *err) {
    enum { WARP = 32 };
    const cl_int times = 4096;
    const fac_cl_arg args[] = { fac_cl_arg_span(b->to), fac_cl_arg_value(&times, sizeof times) };
    fac_text define = { 0 };
    double seconds;
    fac_text_print(&define, "TENSOR \"%s\"", shape);
    fac_status status = define.failed ? fac_raise_memory(err, "the text of a kernel")
                                      : fastest(b, define.s, "peak_tensor", 2, args, &seconds, err);
    fac_text_free(&define);
    if (!status) *out = rate(flops * TILES * times * (double)(b->items / WARP), seconds);
    return status;
}

/* The same of sm_90's instruction for four warps. */
static fac_status wgmma(const bench *any, fac_nv_kind kind, double *out, fac_error *err) {
    enum { GROUP_OF_FOUR = 128, AT_ONCE = 4 };
    const cl_int times = 1024;
    const fac_cl_arg args[] = { fac_cl_arg_span(any->to), fac_cl_arg_value(&times, sizeof times) };
    const char *define =
        kind == FAC_NV_KIND_TF32 ? "WGMMA wgmma_tf32_n128_ss" : "WGMMA wgmma_bf16_n128_ss";
    const double flops = 2.0 * 64 * COLUMNS * (kind == FAC_NV_KIND_TF32 ? 8 : 16);
    bench b = *any;
    double seconds;
    b.group = GROUP_OF_FOUR;
    b.wgmma = &kind;
    FAC_TRY(fastest(&b, define, "peak_wgmma", 2, args, &seconds, err));
    *out = rate(flops * AT_ONCE * times * (double)(b.items / b.group), seconds);
    return FAC_OK;
}

static fac_status memory(const bench *b, size_t bytes, fac_peaks *p, fac_error *err) {
    const cl_ulong n = bytes / sizeof(cl_float4);
    const fac_cl_arg args[] = { fac_cl_arg_span(b->from), fac_cl_arg_span(b->to),
                                fac_cl_arg_value(&n, sizeof n) };
    double seconds;
    FAC_TRY(fastest(b, "READ", "peak_read", 3, args, &seconds, err));
    p->memory_read = rate((double)bytes, seconds);
    FAC_TRY(fastest(b, "COPY", "peak_copy", 3, args, &seconds, err));
    p->memory_copy = rate(2 * (double)bytes, seconds);
    return FAC_OK;
}

/* One kernel more in a chain, and one alone that is waited for, by the host's clock. */
static fac_status launching(const bench *b, fac_peaks *p, fac_error *err) {
    const fac_cl_range range = { 1, { 32 }, { 32 } };
    const fac_cl_arg args[] = { fac_cl_arg_span(b->to) };
    fac_cl_kernel k;
    FAC_TRY(kernel_of(b, "NOTHING", "peak_nothing", &k, err));
    fac_status status = FAC_OK;
    for (int t = 0; t < TRIES && !status; t++) {
        for (int n = 1; n <= LAUNCHES && !status; n += LAUNCHES - 1) {
            status = b->o->device.backend->sync(&b->o->device, err);
            const double start = fac_seconds();
            for (int i = 0; i < n && !status; i++)
                status = fac_cl_launch(b->o, &k, &range, 1, args, err);
            if (!status) status = b->o->device.backend->sync(&b->o->device, err);
            double *best = n == 1 ? &p->fork_join : &p->launch;
            if (t == 0 || (fac_seconds() - start) / n < *best) *best = (fac_seconds() - start) / n;
        }
    }
    fac_cl_kernel_free(b->o, &k);
    return status;
}

static fac_status measure(const bench *b, size_t bytes, fac_peaks *p, fac_error *err) {
    FAC_TRY(arithmetic(b, p, err));
    FAC_TRY(memory(b, bytes, p, err));
    FAC_TRY(launching(b, p, err));
    if (fac_cl_has_path(b->o, FAC_CL_WGMMA)) {
        FAC_TRY(wgmma(b, FAC_NV_KIND_TF32, &p->tensor_tf32, err));
        return wgmma(b, FAC_NV_KIND_BF16, &p->tensor_half, err);
    }
    if (!fac_cl_has_path(b->o, FAC_CL_MMA)) return FAC_OK;
    FAC_TRY(tensor(b, "m16n8k8.row.col.f32.tf32.tf32.f32", 2.0 * 16 * 8 * 8, &p->tensor_tf32, err));
    return tensor(b, "m16n8k16.row.col.f32.bf16.bf16.f32", 2.0 * 16 * 8 * 16, &p->tensor_half, err);
}

fac_status fac_cl_peaks(fac_device *d, fac_peaks *out, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    const size_t want = o->limits.gpu ? (size_t)1 << 30 : (size_t)64 << 20,
                 room = o->limits.memory / 8;
    size_t bytes = want < room ? want : room;
    if (bytes > o->limits.largest) bytes = o->limits.largest;
    const size_t group = o->limits.group < GROUP ? o->limits.group : GROUP;
    bench b = { .o = o, .group = group, .items = group * GROUPS * o->limits.units };
    *out = (fac_peaks){ .threads = (int)o->limits.units };
    fac_status status = fac_device_alloc(d, bytes, &b.from.memory, err);
    if (!status) status = fac_device_alloc(d, bytes, &b.to.memory, err);
    if (!status) status = d->backend->zero(d, b.from, bytes, err);
    if (!status) status = measure(&b, bytes, out, err);
    fac_device_release(d, b.to.memory, bytes);
    fac_device_release(d, b.from.memory, bytes);
    return status;
}
