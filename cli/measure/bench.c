/* facula bench: how fast a model, or one problem, is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "bench.h"
#include "facula/op.h"
#include "json.h"

static struct {
    job_options job;
    long runs, callers;
    double seconds;
    bool json, verify, profile, memory, serve;
    const char *against;
} o;

static const option options[] = {
    JOB_OPTIONS(o.job),
    { "--solver", OPTION_TEXT, &o.job.solver, "NAME",
      "use this solver alone, for the nodes of its op" },
    { "--verify", OPTION_FLAG, &o.verify, NULL, "check the result against the reference kernels" },
    { "--profile", OPTION_FLAG, &o.profile, NULL,
      "print the time of each step (`facula profile` prints more)" },
    { "--memory", OPTION_FLAG, &o.memory, NULL, "print what the device holds memory for" },
    { "--seconds", OPTION_REAL, &o.seconds, "S",
      "seconds to measure, for 10,000 runs at most; default 2", "(0, inf)" },
    { "--runs", OPTION_INT, &o.runs, "N", "measure exactly N runs instead", "[1, 10000]" },
    { "--callers", OPTION_INT, &o.callers, "N",
      "measure throughput: N threads run the model at once, each run on one thread", "[1, 256]" },
    { "--against", OPTION_TEXT, &o.against, "MODEL",
      "compare with this model, in turn, by the medians of each layer: what few bits are worth" },
    { "--serve", OPTION_FLAG, &o.serve, NULL,
      "measure what each line of standard input asks for: see below" },
    DEVICE_OPTIONS(o.job.device),
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

enum { RUNS = 10000 }; /* also the most that --runs takes */

/* A run is over when its results are there. */
static fac_status run_and_wait(job *j, fac_error *err) {
    fac_status status = fac_program_run(j->program, j->in, j->out, err);
    return status ? status : fac_device_sync(j->device, err);
}

static double peak_memory(void) {
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) ? 0 : 1024.0 * (double)u.ru_maxrss;
}

static void print_memory(fac_device *d) {
    const fac_memory_stat m = fac_device_memory(d);
    const struct {
        const char *what;
        size_t bytes;
    } rows[] = { { "held now", m.now },
                 { "  tensors", m.tensors },
                 { "  parameters and results", m.mirrors },
                 { "  values between steps", m.arenas },
                 { "  packed weights", m.packed },
                 { "  operands of runs", m.operands },
                 { "held at most", m.peak },
                 { "taken from the driver", m.reserved } };
    char text[32];
    printf("device memory of %s\n", fac_device_name(d));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("  %-26s %12s\n", rows[i].what,
               bytes_text((double)rows[i].bytes, text, sizeof text));
    printf("  %-26s %12s\n", "given back when asked",
           bytes_text((double)fac_device_trim(d), text, sizeof text));
}

enum { BYTES = 4 }; /* an `accuracy` */

/* Whether kernels may round what a product reads to 8 bits: see `linear` of blocks, and `accuracy`
 * of matmul_nbits. */
static bool rounds_to_bytes(const fac_node *n) {
    if (o.job.precision && !strcmp(o.job.precision, "highest")) return false;
    for (const fac_attr *a = n->op->attrs; a && a->name; a++)
        if (!strcmp(a->name, "accuracy"))
            return *(const int64_t *)(const void *)((const char *)n->attrs + a->at) == BYTES;
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && fac_dtype_get(n->in[k]->type.dtype)->kind == 'q') return true;
    return false;
}

static bool has_bytes(const fac_graph *g) {
    const fac_node *n = fac_graph_output(g, 0)->node;
    while (n && n->prev) n = n->prev;
    while (n && !rounds_to_bytes(n)) n = n->next;
    return n != NULL;
}

/* What --verify allows, by the least precise output: half types keep 8 to 11 bits, operands that
 * kernels may round keep 8, and whole networks lose some of them. */
static double tolerance(const job *j) {
    double allowed = has_bytes(j->m.graph) ? 2e-2 : 1e-3;
    for (int i = 0; i < fac_graph_outputs(j->m.graph); i++) {
        fac_dtype d = fac_tensor_type(j->out[i]).dtype;
        if (d == FAC_F16 || d == FAC_BF16) allowed = 2e-2;
    }
    return allowed;
}

/* Largest |difference| relative to the largest |value| of each output. */
static int verify(const job *j, double *error) {
    fac_error err = { 0 };
    fac_program *p = NULL;
    fac_tensor **ref = tensors_new(j->nout);
    fac_program_opts opts = { .solver = "ref", .no_fuse = true };
    int n = j->nout, code = EXIT_OK;
    *error = 0;
    if (!ref) return fail_text("out of memory");
    if (fac_program_new(j->m.graph, j->device, &opts, &p, &err) ||
        fac_program_run(p, j->in, ref, &err))
        code = fail(&err);
    for (int i = 0; i < n && !code; i++) {
        fac_tensor *a = NULL, *b = NULL;
        fac_type t = fac_tensor_type(ref[i]);
        if (fac_tensor_convert(j->out[i], FAC_F64, &a, &err) ||
            fac_tensor_convert(ref[i], FAC_F64, &b, &err)) {
            code = fail(&err);
        } else {
            const double *x = fac_tensor_data(a), *y = fac_tensor_data(b);
            double top = 0, worst = 0;
            for (int64_t k = 0; k < fac_dims_count(&t.dims); k++) {
                top = fmax(top, fabs(y[k]));
                worst = isnan(x[k]) != isnan(y[k]) ? INFINITY : fmax(worst, fabs(x[k] - y[k]));
            }
            *error = fmax(*error, worst / (top > 0 ? top : 1));
        }
        fac_tensor_free(a);
        fac_tensor_free(b);
    }
    tensors_free(ref, n);
    fac_program_free(p);
    return code;
}

static double ratio(double x, double y) { return y > 0 ? x / y : 0; }

static int print_profile(fac_program *p) {
    size_t n = fac_program_steps(p, NULL, 0);
    fac_step_stat *s = calloc(n + 1, sizeof *s);
    if (!s) return fail_text("out of memory");
    fac_program_steps(p, s, n);
    double total = 0;
    for (size_t i = 0; i < n; i++) total += s[i].runs ? s[i].seconds / (double)s[i].runs : 0;
    printf("\n%9s %6s %9s %8s  %-24s %s\n", "us", "%", "GFLOP/s", "GB/s", "solver", "node");
    for (size_t i = 0; i < n; i++) {
        double t = s[i].runs ? s[i].seconds / (double)s[i].runs : 0;
        printf("%9.1f %6.1f %9.1f %8.1f  %-24s %s\n", 1e6 * t, ratio(100 * t, total),
               ratio(2e-9 * s[i].macs, t), ratio(1e-9 * s[i].bytes, t), s[i].solver, s[i].nodes);
    }
    free(s);
    return EXIT_OK;
}

static int measure(job *j) {
    fac_error err = { 0 };
    fac_plan_stat stat;
    static double ms[RUNS];
    int n = 0, most = o.runs ? (int)o.runs : RUNS;
    double start = now(), limit = o.seconds > 0 ? o.seconds : 2, macs = 0, error = 0;
    if (fac_program_plan(j->program, j->in, &stat, &err)) return fail(&err);
    double compiled = now() - start, first_run = 0;
    start = now();
    for (int i = 0; i < 3 || (i < 50 && now() - start < 0.2 * limit); i++) { /* warm-up */
        if (run_and_wait(j, &err)) return fail(&err);
        if (i == 0) first_run = now() - start;
        if (now() - start > limit) break;
    }
    fac_program_profile(j->program, o.profile);
    for (start = now(); n < most; n++) {
        double t = now();
        if (!o.runs && n >= 5 && t - start > limit) break;
        if (run_and_wait(j, &err)) return fail(&err);
        ms[n] = 1e3 * (now() - t);
        progress("measuring", n, o.runs > 0 ? most : n + 2, start);
    }
    progress("measuring", 1, 1, start);
    size_t steps = fac_program_steps(j->program, NULL, 0);
    fac_step_stat *s = calloc(steps + 1, sizeof *s);
    if (!s) return fail_text("out of memory");
    fac_program_steps(j->program, s, steps);
    for (size_t i = 0; i < steps; i++) macs += s[i].macs;
    free(s);
    double median = median_of(ms, n), gflops = 2e-6 * macs / median, peak = peak_memory();
    fac_type first = fac_graph_inputs(j->m.graph) ? fac_tensor_type(j->in[0]) : (fac_type){ 0 };
    double images = first.dims.n > 0 ? (double)first.dims.d[0] : 1;
    if (o.verify) {
        int code = verify(j, &error);
        if (code) return code;
    }
    if (o.json) {
        cJSON *root = cJSON_CreateObject();
        json_number(root, "median_ms", median, 6);
        json_number(root, "min_ms", ms[0], 6);
        json_number(root, "max_ms", ms[n - 1], 6);
        cJSON_AddNumberToObject(root, "runs", n);
        json_number(root, "gflops", gflops, 6);
        json_number(root, "images_per_s", 1e3 * images / median, 6);
        cJSON_AddNumberToObject(root, "peak_bytes", peak);
        cJSON_AddNumberToObject(root, "arena_bytes", (double)stat.arena);
        cJSON_AddNumberToObject(root, "packed_bytes", (double)stat.packed);
        json_number(root, "load_ms", 1e3 * j->loaded, 6);
        json_number(root, "compile_ms", 1e3 * compiled, 6);
        json_number(root, "first_run_ms", 1e3 * first_run, 6);
        json_number(root, "start_ms", 1e3 * (j->loaded + compiled + first_run), 6);
        if (o.verify) json_number(root, "error", error, 3);
        int code = json_print(root);
        if (code) return code;
        return error > tolerance(j) ? EXIT_FAILED : EXIT_OK;
    }
    char a[32], b[32], c[32], d[32], e[32];
    printf("median  %.3f ms   min %.3f   max %.3f   (%d run%s)\n", median, ms[0], ms[n - 1], n,
           plural(n));
    printf("        %.1f images/s, %.1f GFLOP/s (%s multiply-adds)\n", 1e3 * images / median,
           gflops, count_text(macs, a, sizeof a));
    printf("memory  peak %s; arena %s of %s in all values, at least %s; packed weights %s\n",
           bytes_text(peak, a, sizeof a), bytes_text((double)stat.arena, b, sizeof b),
           bytes_text((double)stat.values, c, sizeof c),
           bytes_text((double)stat.bound, d, sizeof d),
           bytes_text((double)stat.packed, e, sizeof e));
    printf("start   load %.1f ms, compile %.1f, first run %.1f; %d step%s; %s (%s)\n",
           1e3 * j->loaded, 1e3 * compiled, 1e3 * first_run, stat.steps, plural(stat.steps),
           fac_device_name(j->device), fac_device_about(j->device));
    if (o.verify)
        printf("verify  largest difference from the reference %.2g of the largest value: %s\n",
               error, error <= tolerance(j) ? "ok" : "WRONG");
    if (o.memory) print_memory(j->device);
    if (o.profile && print_profile(j->program)) return EXIT_FAILED;
    return error > tolerance(j) ? EXIT_FAILED : EXIT_OK;
}

static int run(list args) {
    static job j;
    const int wrong = arguments_fit(verb_find("bench"), args, 1, 1, "which model or problem?");
    if (wrong) return wrong;
    if (o.job.train && (o.verify || o.job.solver))
        return usage_error(verb_find("bench"),
                           "--train times a whole model, without --solver and --verify");
    if (o.callers && (o.job.train || o.runs || o.verify || o.profile || o.memory))
        return usage_error(
            verb_find("bench"),
            "--callers does not go with --train, --runs, --verify, --profile, --memory");
    if (o.against &&
        (o.job.train || o.runs || o.verify || o.profile || o.memory || o.callers || o.serve))
        return usage_error(verb_find("bench"), "--against goes with --seconds, --json and inputs "
                                               "alone");
    if (o.serve) return bench_serve(&o.job, args.at[0]);
    if (o.callers && !o.job.device.threads) o.job.device.threads = 1;
    int code = job_open(&j, verb_find("bench"), &o.job, args.at[0]);
    const double seconds = o.seconds > 0 ? o.seconds : 2;
    if (code) {
        job_close(&j);
        return code;
    }
    if (o.against)
        code = bench_against(&j, &o.job, o.against, seconds, o.json);
    else if (o.callers)
        code = bench_callers(&j, (int)o.callers, seconds, o.json);
    else
        code = measure(&j);
    job_close(&j);
    return code;
}

const verb verb_bench = {
    .name = "bench",
    .summary = "time a model or one problem",
    .usage = "facula bench MODEL|PROBLEM [options]",
    .options = options,
    .examples = "bench model.onnx --batch 8 --threads 1\nbench zoo:resnet50 --train --precision "
                "bf16\nbench 'gemm(f32[512,256], f32[256,1024])' --solver gemm/gemm --verify",
    .run = run,
    .more = "PROBLEM is one line such as\n  'conv2d(f32[8,64,56,56], f32[64,64,3,3], f32[64]) "
            "pad=1,1,1,1 {relu}'\nIts operands after the first are parameters, as in a network: "
            "they are prepacked once, and results\nthat are optional are not made.  With --inputs "
            "all operands are inputs and all results are made.\n`facula op` lists the ops, `facula "
            "devices` the solvers.\n\n--serve reads lines BATCH PRECISION infer|train SECONDS "
            "[IN.npy OUT.npy], keeps a program for each,\nand answers with a line of JSON; "
            "bench/gpu_networks.py asks so, in turn with PyTorch.  IN.npy becomes\nthe input of "
            "this run and of later ones of the program; the first output of a run goes to OUT.npy."
};
