/* See probe.h.  Every kernel writes 64 ints, most from one work group; what is right follows from
 * the item's number. */
#include <stdlib.h>
#include <string.h>
#include "backends/opencl/device/cache.h"
#include "backends/opencl/nvidia/bits/bits.h"
#include "backends/opencl/nvidia/unit/nvidia.h"
#include "base/memory.h"
#include "cl_dot.h"
#include "cl_exchange.h"
#include "cl_last.h"
#include "cl_nv_bits_probe.h"
#include "cl_nv_common.h"
#include "cl_nv_maps.h"
#include "cl_nv_maps_probe.h"
#include "cl_nv_probe.h"

enum { ITEMS = 64, EVERYWHERE = 1 };

static const char doubles[] =
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
    "kernel void probe(global int *y) { int i = get_local_id(0); double x = 1.0 + i * 0x1p-40; "
    "y[i] = (int)((x * x - 1.0) * 0x1p39); }\n";
static int doubles_say(int i) { return i; }

/* Sums round to eleven bits, and a subnormal number is not zero. */
static const char half[] = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
                           "kernel void probe(global int *y) { int i = get_local_id(0); half x = "
                           "(half)2048.0f + (half)(float)i; "
                           "y[i] = (int)x + (int)((float)as_half((ushort)i) * 0x1p24f); }\n";
static int half_says(int i) {
    const int even = i & 2 ? i + 1 : i - 1;
    return 2048 + (i & 1 ? even : i) + i;
}

/* The size of a subgroup is the device's affair: the sum of ones over it is its size, and its first
 * item's number is all's. */
static const char subgroups[] =
    "kernel void probe(global int *y) { int i = get_local_id(0), n = sub_group_reduce_add(1);\n"
    "  int first = sub_group_broadcast(i, 0); y[i] = n == (int)get_sub_group_size() && first <= i "
    "&& i < first + n ? i : -1; }\n";
static int subgroups_say(int i) { return i; }

/* A power of two of items, numbered as in their group; an item without a partner in the group asks
 * nobody. */
static const char exchange[] = "EXCHANGER(exchanged, int)\n"
                               "kernel void probe(global int *y) {\n"
                               "    const int i = get_local_id(0), lanes = fac_lanes();\n"
                               "    int good = lanes > 1 && (lanes & (lanes - 1)) == 0;\n"
                               "    for (int n = 1; n < lanes && n < 64; n *= 2) good &= "
                               "exchanged(3 * i + 1, n) == 3 * (i ^ n) + 1;\n"
                               "    y[i] = good ? i : -1;\n"
                               "}\n";
static int exchange_says(int i) { return i; }
static void exchange_by(int way, fac_text *to) {
    fac_text_print(to, "#define FAC_EXCHANGE %d\n", way);
    fac_text_add(to, fac_kernel_exchange);
    fac_text_add(to, exchange);
}
static void shuffle(fac_text *to) { exchange_by(1, to); }
static void shuffle_intel(fac_text *to) { exchange_by(2, to); }
static void shuffle_nvidia(fac_text *to) { exchange_by(3, to); }

/* (i, -i, 3, -4) (2, 1, -5, 6) + 7, and the same bytes without signs: -i is 256 - i, if it is not
 * 0. */
static const char dot8[] =
    "kernel void probe(global int *y) {\n"
    "    const int i = get_local_id(0);\n"
    "    const uint a = as_uint((char4)(i, -i, 3, -4)), b = as_uint((char4)(2, 1, -5, 6));\n"
    "    y[i] = (int)fac_dot_signed(a, b, 7) + 1000 * (int)fac_dot_unsigned(a, b, 7);\n"
    "}\n";
static int dot8_says(int i) {
    return i - 15 - 24 + 7 + 1000 * (2 * i + (i ? 256 - i : 0) + 3 * 251 + 252 * 6 + 7);
}
static void dot8_by(int way, fac_text *to) {
    fac_text_print(to, "#define FAC_DOT %d\n", way);
    fac_text_add(to, fac_kernel_dot);
    fac_text_add(to, dot8);
}
static void dot8_khr(fac_text *to) { dot8_by(1, to); }
static void dot8_nvidia(fac_text *to) { dot8_by(2, to); }

/* D = A B with A[r][c] = r + c (16 x 8) and B all ones but B[k][n] = 1 + n (8 x 8): D[r][n] = (1 +
 * n) (8 r + 28). */
static const char mma[] =
    "kernel void probe(global int *y) { int i = get_local_id(0), g = (i & 31) >> 2, t = i & 3;\n"
    "  float a0 = g + t, a1 = g + 8 + t, a2 = g + t + 4, a3 = g + 8 + t + 4, b0 = 1 + g, b1 = 1 + "
    "g, d0, d1, d2, d3;\n"
    "  asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, "
    "{%4,%5,%6,%7}, {%8,%9}, "
    "{%10,%10,%10,%10};\"\n"
    "    : \"=f\"(d0), \"=f\"(d1), \"=f\"(d2), \"=f\"(d3)\n"
    "    : \"r\"(as_uint(a0)), \"r\"(as_uint(a1)), \"r\"(as_uint(a2)), \"r\"(as_uint(a3)), "
    "\"r\"(as_uint(b0)), "
    "\"r\"(as_uint(b1)), \"f\"(0.0f));\n"
    "  y[i] = (int)(d0 + d1 + d2 + d3); }\n";
static int mma_says(int i) {
    const int g = (i & 31) >> 2, t = i & 3, columns = 2 * (2 * t) + 3;
    return columns * (8 * g + 28) + columns * (8 * (g + 8) + 28);
}

static void wgmma(fac_text *to) {
    fac_text_add(to, fac_kernel_nv_common);
    fac_nv_wgmma_text(to, 8, FAC_NV_KIND_TF32, 0);
    fac_text_add(to, fac_kernel_nv_probe);
}
static int wgmma_says(int i) {
    const int r = 16 * (i >> 5) + ((i & 31) >> 2), t = i & 3;
    return (4 * t + 3) * (8 * r + 28 + 8 * (r + 8) + 28);
}

static void maps_by(int way, fac_text *to) {
    fac_text_print(to, "#define SM90A \"" FAC_NV_MARK "\"\n#define MAPS %d\n", way);
    fac_text_add(to, fac_kernel_nv_common);
    fac_text_add(to, fac_kernel_nv_maps);
    fac_text_add(to, fac_kernel_nv_maps_probe);
}
static void maps(fac_text *to) { maps_by(1, to); }
static void maps_16(fac_text *to) { maps_by(2, to); }
static int maps_say(int i) {
    const int row = i / 8, piece = i % 8, first = 8 * (row + 1) + 4;
    int sum = 0;
    for (int k = 0; k < 4; k++) sum += (k + 1) * (1000 + (first + k) * (first + k));
    return row < 2 && piece == row ? sum : 0; /* piece 0 of a row is swizzled by the row's number */
}

/* Static local memory may be larger than the device reports, which is what arguments may have: all
 * of it is written and read. */
static const char local_memory[] =
    "kernel void probe(global int *y) { local int x[SIZE]; int i = get_local_id(0);\n"
    "  for (int k = i; k < SIZE; k += 64) x[k] = k;\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  int wrong = 0; for (int k = i; k < SIZE; k += 64) wrong += x[SIZE - 1 - k] != SIZE - 1 - "
    "k;\n"
    "  y[i] = wrong ? -1 : i; }\n";
static int local_memory_says(int i) { return i; }

/* One group alone is the last each time, and leaves a zero; the items count at numbers of their
 * own, too. */
static void fences(fac_text *to) {
    fac_text_add(to, "#define FAC_NV_BF16\n");
    fac_text_add(to, fac_kernel_last);
    fac_text_add(to, "kernel void probe(global int *y) {\n"
                     "    local uint before;\n"
                     "    const int i = get_local_id(0);\n"
                     "    y[i] = 0;\n"
                     "    barrier(CLK_GLOBAL_MEM_FENCE);\n"
                     "    bool good = is_last((global uint *)y, 1, &before);\n"
                     "    barrier(CLK_GLOBAL_MEM_FENCE);\n"
                     "    good &= y[0] == 0;\n"
                     "    barrier(CLK_GLOBAL_MEM_FENCE);\n"
                     "    y[i] = 3 * i;\n"
                     "    y[i] = good && fac_count_up((global uint *)y + i) == 3 * i ? i : -1;\n"
                     "}\n");
}
static int fences_say(int i) { return i; }

/* Groups, one for each unit, count up a number after the results and look for a while until all
 * have. */
static void relay(fac_text *to) {
    fac_text_add(to, fac_kernel_nv_common);
    fac_text_print(to,
                   "kernel void probe(global int *y) {\n"
                   "    local int met;\n"
                   "    const int i = get_local_id(0), groups = get_num_groups(0);\n"
                   "    if (i == 0) {\n"
                   "        int n = 0;\n"
                   "        nv_count((global uint *)y + %d);\n"
                   "        for (int turn = 0; turn < 1 << 22 && n < groups; turn++)\n"
                   "            asm volatile(\"ld.acquire.gpu.global.s32 %%0, [%%1];\" : \"=r\"(n) "
                   ": \"l\"(y + %d) : \"memory\");\n"
                   "        met = n == groups;\n"
                   "    }\n"
                   "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                   "    if (get_group_id(0) == 0) y[i] = met ? 2 * i + 1 : -1;\n"
                   "}\n",
                   ITEMS, ITEMS);
}
static int relay_says(int i) { return 2 * i + 1; }

/* key: in FACULA_WITHOUT; newest: in the newest OpenCL C that the device speaks; items: of the
 * group, 64 or what is said, or EVERYWHERE: 64, and a group for each unit; write: the source, where
 * it is put together. */
static const struct path {
    const char *key, *name, *extension, *source, *options;
    int (*right)(int item);
    void (*write)(fac_text *to);
    size_t items;
    bool newest;
} paths[FAC_CL_PATHS] = {
    [FAC_CL_DOUBLES] = { "doubles", "doubles", "cl_khr_fp64", doubles, "", doubles_say, NULL, 0,
                         false },
    [FAC_CL_HALF] = { "half", "half arithmetic", "cl_khr_fp16", half, "", half_says, NULL, 0,
                      false },
    [FAC_CL_SUBGROUPS] = { "subgroups", "subgroups", "cl_khr_subgroups", subgroups, "",
                           subgroups_say, NULL, 0, true },
    [FAC_CL_SHUFFLE] = { "shuffle", "subgroup shuffles", "cl_khr_subgroup_shuffle", NULL, "",
                         exchange_says, shuffle, 0, true },
    [FAC_CL_SHUFFLE_INTEL] = { "shuffle_intel", "subgroup shuffles of Intel", "cl_intel_subgroups",
                               NULL, "", exchange_says, shuffle_intel, 0, true },
    [FAC_CL_SHUFFLE_NVIDIA] = { "shuffle_nvidia", "shuffles of warps",
                                "cl_nv_device_attribute_query", NULL, "", exchange_says,
                                shuffle_nvidia, 0, false },
    [FAC_CL_DOT8] = { "dot8", "byte dot products", "cl_khr_integer_dot_product", NULL, "",
                      dot8_says, dot8_khr, 0, true },
    [FAC_CL_DOT8_NVIDIA] = { "dot8_nvidia", "byte dot products (dp4a)",
                             "cl_nv_device_attribute_query", NULL, "", dot8_says, dot8_nvidia, 0,
                             false },
    [FAC_CL_MMA] = { "mma", "tensor cores (mma.sync)", "cl_nv_device_attribute_query", mma, "",
                     mma_says, NULL, 0, false },
    [FAC_CL_MMA_B1] = { "mma_b1", "tensor cores on bits (mma.sync)", "cl_nv_device_attribute_query",
                        fac_kernel_nv_bits_probe, "", fac_nv_bits_probe, NULL, 0, false },
    [FAC_CL_WGMMA_B1] = { "wgmma_b1", "tensor cores on bits (wgmma)",
                          "cl_nv_device_attribute_query", NULL, "", fac_nv_bits_probe,
                          fac_nv_bits_probe_text, 128, false },
    [FAC_CL_WGMMA] = { "wgmma", "tensor cores (wgmma)", "cl_nv_device_attribute_query", NULL, "",
                       wgmma_says, wgmma, 128, false },
    [FAC_CL_MAPS] = { "maps", "tensor maps (sm_90)", "cl_nv_device_attribute_query", NULL, "",
                      maps_say, maps, 0, false },
    [FAC_CL_MAPS_16] = { "maps16", "tensor maps, strides in 16 bytes (sm_90)",
                         "cl_nv_device_attribute_query", NULL, "", maps_say, maps_16, 0, false },
    [FAC_CL_LOCAL_99] = { "local99", "99 KiB of local memory", "cl_nv_device_attribute_query",
                          local_memory, "-DSIZE=25344", local_memory_says, NULL, 0, false },
    [FAC_CL_LOCAL_163] = { "local163", "163 KiB of local memory", "cl_nv_device_attribute_query",
                           local_memory, "-DSIZE=41728", local_memory_says, NULL, 0, false },
    [FAC_CL_FENCES] = { "fences", "fences between groups", "cl_nv_device_attribute_query", NULL, "",
                        fences_say, fences, 0, false },
    [FAC_CL_RELAY] = { "relay", "steps in one launch", "cl_nv_device_attribute_query", NULL, "",
                       relay_says, relay, EVERYWHERE, false },
};

const char *fac_cl_path_name(fac_cl_path path) { return paths[path].name; }
const char *fac_cl_path_extension(fac_cl_path path) { return paths[path].extension; }

/* What came with OpenCL C 2.0 is not there for a compiler that was asked for nothing. */
static const char *options_of(const fac_opencl *o, const struct path *p) {
    if (!p->newest) return p->options;
    if (o->limits.major >= 3) return " -cl-std=CL3.0";
    return o->limits.major == 2 ? " -cl-std=CL2.0" : "";
}

/* OpenCL 3.0 has subgroups as a feature, which needs no extension's name. */
bool fac_cl_promises(const fac_opencl *o, fac_cl_path path) {
    if (path == FAC_CL_SUBGROUPS && o->limits.subgroups) return true;
    const char *want = paths[path].extension;
    const size_t n = strlen(want);
    for (const char *at = o->extensions; (at = strstr(at, want)); at += n)
        if ((at == o->extensions || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
    return false;
}

/* ---- running one ---- */

typedef struct trial {
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem memory;
} trial;

/* A program with marked instructions is built again with them.  What the driver says, as all of
 * these. */
static cl_int build(const fac_opencl *o, const char *text, const char *options, trial *t) {
    const fac_cl_api *cl = &o->cl;
    cl_int code;
    t->program = cl->CreateProgramWithSource(t->context, 1, &text, NULL, &code);
    if (!code) code = cl->BuildProgram(t->program, 1, &o->place.device, options, NULL, NULL);
    if (code || !strstr(text, FAC_NV_MARK)) return code;
    char *ptx;
    size_t bytes;
    cl_program made;
    const fac_status status =
        fac_nv_uncovered(cl, t->context, o->place.device, t->program, &ptx, &bytes, &made, NULL);
    if (status) return status == FAC_E_NOMEM ? CL_OUT_OF_HOST_MEMORY : CL_BUILD_PROGRAM_FAILURE;
    fac_release(ptx);
    cl->ReleaseProgram(t->program);
    t->program = made;
    return cl->BuildProgram(t->program, 1, &o->place.device, options, NULL, NULL);
}

static cl_int begin(const fac_opencl *o, trial *t) {
    cl_int code;
    t->context = o->cl.CreateContext(NULL, 1, &o->place.device, NULL, NULL, &code);
    if (code) return code;
    t->queue = o->cl.CreateCommandQueue(t->context, o->place.device, 0, &code);
    if (code) return code;
    cl_int zeros[ITEMS + 1] = { 0 };
    t->memory = o->cl.CreateBuffer(t->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                   sizeof zeros, zeros, &code);
    return code;
}

static cl_int run(const fac_opencl *o, const struct path *p, const char *text, trial *t,
                  cl_int *y) {
    const fac_cl_api *cl = &o->cl;
    const bool everywhere = p->items == EVERYWHERE;
    const size_t items = p->items && !everywhere ? p->items : ITEMS,
                 all = items * (everywhere ? o->limits.units : 1);
    cl_int code = build(o, text, options_of(o, p), t);
    if (!code) t->kernel = cl->CreateKernel(t->program, "probe", &code);
    if (!code) code = cl->SetKernelArg(t->kernel, 0, sizeof t->memory, &t->memory);
    if (!code)
        code = cl->EnqueueNDRangeKernel(t->queue, t->kernel, 1, NULL, &all, &items, 0, NULL, NULL);
    return code ? code
                : cl->EnqueueReadBuffer(t->queue, t->memory, CL_TRUE, 0, ITEMS * sizeof *y, y, 0,
                                        NULL, NULL);
}

static void end(const fac_opencl *o, trial *t) {
    if (t->kernel) o->cl.ReleaseKernel(t->kernel);
    if (t->program) o->cl.ReleaseProgram(t->program);
    if (t->memory) o->cl.ReleaseMemObject(t->memory);
    if (t->queue) o->cl.ReleaseCommandQueue(t->queue);
    if (t->context) o->cl.ReleaseContext(t->context);
}

/* A device whose memory others have now says nothing of what it can do. */
static int answer_of(const fac_opencl *o, const struct path *p, const char *text) {
    cl_int y[ITEMS] = { 0 };
    trial t = { 0 };
    cl_int code = begin(o, &t);
    bool untold = code;
    if (!code) code = run(o, p, text, &t, y);
    end(o, &t);
    untold |= code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
    bool good = !code;
    for (int i = 0; i < ITEMS && good; i++) good = y[i] == p->right(i);
    if (untold) return FAC_CL_UNTOLD;
    return good ? FAC_CL_GOOD : FAC_CL_BAD;
}

/* The cache keeps one byte under what a compiled probe would depend on. */
static int recalled(const fac_opencl *o, const struct path *p, const char *text) {
    const fac_hash key = fac_hash_text(fac_cl_program_key(o, text, options_of(o, p)), "probe");
    size_t bytes = 0;
    char *kept = fac_cl_cache_get(key, &bytes), answer = 0;
    if (kept && bytes == 1 && (*kept == 'y' || *kept == 'n')) answer = *kept;
    fac_release(kept);
    if (answer) return answer == 'y' ? FAC_CL_GOOD : FAC_CL_BAD;
    const int found = answer_of(o, p, text);
    answer = found == FAC_CL_GOOD ? 'y' : 'n';
    if (found != FAC_CL_UNTOLD) fac_cl_cache_put(key, &answer, 1);
    return found;
}

static int tried(const fac_opencl *o, const struct path *p) {
    fac_text text = { 0 };
    if (p->write)
        p->write(&text);
    else
        fac_text_add(&text, p->source);
    const int found = text.failed ? FAC_CL_UNTOLD : recalled(o, p, text.s);
    fac_text_free(&text);
    return found;
}

/* Whether a list of names with commas between them has this one. */
static bool names(const char *list, const char *key) {
    const size_t n = strlen(key);
    for (; list && *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == n && !memcmp(list, key, n)) return true;
    return false;
}

bool fac_cl_has_path(fac_opencl *o, fac_cl_path path) {
    const struct path *p = &paths[path];
    if (o->paths[path] == FAC_CL_UNKNOWN)
        o->paths[path] = fac_cl_promises(o, path) && !names(getenv("FACULA_WITHOUT"), p->key)
                             ? tried(o, p)
                             : FAC_CL_BAD;
    return o->paths[path] == FAC_CL_GOOD;
}

/* ---- for kernels ---- */

/* Defines `name` as the first of the ways that works here, counted from 1. */
static bool add_way(fac_opencl *o, const fac_cl_path *ways, int n, const char *name,
                    const char *text, fac_text *front, fac_text *options) {
    int way = 0;
    while (way < n && !fac_cl_has_path(o, ways[way])) way++;
    if (way == n) return false;
    fac_text_print(front, "#define %s %d\n", name, way + 1);
    fac_text_add(front, text);
    fac_text_add(options, options_of(o, &paths[ways[way]]));
    return true;
}

/* An item of a cpu works alone. */
bool fac_cl_exchange_text(fac_opencl *o, fac_text *front, fac_text *options) {
    static const fac_cl_path ways[] = { FAC_CL_SHUFFLE, FAC_CL_SHUFFLE_INTEL,
                                        FAC_CL_SHUFFLE_NVIDIA };
    return o->limits.gpu &&
           add_way(o, ways, 3, "FAC_EXCHANGE", fac_kernel_exchange, front, options);
}

bool fac_cl_dot_text(fac_opencl *o, fac_text *front, fac_text *options) {
    static const fac_cl_path ways[] = { FAC_CL_DOT8, FAC_CL_DOT8_NVIDIA };
    return add_way(o, ways, 2, "FAC_DOT", fac_kernel_dot, front, options);
}
