/* facula peaks: what the machine can do at best, measured. */
#include <string.h>
#include "json.h"

static struct {
    device_options device;
    bool json;
} o;

static const option options[] = { DEVICE_OPTIONS(o.device),
                                  { "--json", OPTION_FLAG, &o.json, NULL,
                                    "print JSON, as docs/JSON.md describes" },
                                  { 0 } };

static cJSON *to_json(const fac_device *d, const fac_peaks *p) {
    static const char *const caches[FAC_CACHES] = { "l1", "l2", "l3" };
    cJSON *j = cJSON_CreateObject(), *c;
    cJSON_AddStringToObject(j, "device", fac_device_about(d));
    cJSON_AddNumberToObject(j, "threads", p->threads);
    json_number(j, "flops", p->flops, 4);
    json_number(j, "flops_one_thread", p->flops_one, 4);
    for (int k = 0; k < FAC_CACHES; k++) {
        cJSON_AddItemToObject(j, caches[k], c = cJSON_CreateObject());
        cJSON_AddNumberToObject(c, "bytes", (double)p->cache[k]);
        json_number(c, "read", p->cache_read[k], 4);
    }
    json_number(j, "memory_read", p->memory_read, 4);
    json_number(j, "memory_copy", p->memory_copy, 4);
    json_number(j, "fork_join_s", p->fork_join, 3);
    if (p->launch > 0) json_number(j, "launch_s", p->launch, 3);
    if (p->tensor_tf32 > 0) json_number(j, "tensor_tf32", p->tensor_tf32, 4);
    if (p->tensor_half > 0) json_number(j, "tensor_half", p->tensor_half, 4);
    return j;
}

static void print(const fac_device *d, const fac_peaks *p) {
    printf("%s\n", fac_device_about(d));
    const bool gpu = p->launch > 0;
    printf("  arithmetic  %8.1f GFLOP/s, one %s %.1f\n", 1e-9 * p->flops,
           gpu ? "compute unit" : "thread", 1e-9 * p->flops_one);
    if (p->tensor_tf32 > 0)
        printf("  matrices    %8.1f GFLOP/s in TF32, %.1f in bf16\n", 1e-9 * p->tensor_tf32,
               1e-9 * p->tensor_half);
    for (int k = 0; k < FAC_CACHES; k++)
        if (p->cache_read[k] > 0)
            printf("  L%d read     %8.1f GB/s  (%zu kB%s)\n", k + 1, 1e-9 * p->cache_read[k],
                   p->cache[k] >> 10, k < 2 && !gpu ? " a core" : "");
    printf("  memory      %8.1f GB/s read, %.1f copied (both ways together)\n",
           1e-9 * p->memory_read, 1e-9 * p->memory_copy);
    if (gpu)
        printf("  launch      %8.2f us in a chain, %.2f alone and waited for\n", 1e6 * p->launch,
               1e6 * p->fork_join);
    else
        printf("  fork, join  %8.2f us\n", 1e6 * p->fork_join);
}

/* One row an instruction set; what the machine lacks opens as a lesser one, which has its own turn.
 */
static int measure(const char *isa, cJSON *rows) {
    fac_error err = { 0 };
    fac_device *d = NULL;
    fac_peaks p;
    device_options one = o.device;
    if (isa) one.isa = isa;
    int code = device_open(&one, &d);
    if (code) return code;
    const size_t n = isa ? strlen(isa) : 0;
    if (!isa || (!strncmp(fac_device_about(d), isa, n) && fac_device_about(d)[n] == ',')) {
        if (fac_device_peaks(d, &p, &err))
            code = fail(&err);
        else if (rows)
            cJSON_AddItemToArray(rows, to_json(d, &p));
        else
            print(d, &p);
    }
    fac_device_free(d);
    return code;
}

static int run(list args) {
#if defined(__aarch64__)
    static const char *const isas[] = { "neon", NULL };
#elif defined(__x86_64__)
    static const char *const isas[] = { "avx512", "avx2", "portable", NULL };
#else
    static const char *const isas[] = { "portable", NULL };
#endif
    if (args.n) return usage_error(verb_find("peaks"), "it takes no arguments");
    cJSON *root = o.json ? cJSON_CreateObject() : NULL,
          *rows = root ? cJSON_AddArrayToObject(root, "peaks") : NULL;
    int code = EXIT_OK;
    if (o.device.isa || (o.device.device && strcmp(o.device.device, "cpu")))
        code = measure(NULL, rows);
    else
        for (int k = 0; isas[k] && !code; k++) code = measure(isas[k], rows);
    if (!root || code) {
        cJSON_Delete(root);
        return code;
    }
    return json_print(root);
}

const verb verb_peaks = {
    .name = "peaks",
    .summary = "measure what the machine can do at best",
    .usage = "facula peaks [options]",
    .options = options,
    .examples = "peaks\npeaks --device opencl --json",
    .run = run,
    .more = "Measured are: arithmetic in f32 for each instruction set of the cpu, where a "
            "multiply-add counts as\ntwo operations; reading from each cache and from memory with "
            "all threads; copying; starting all\nthreads and waiting for them.  `facula profile` "
            "compares with these numbers."
};
