/* facula bench: how fast a model, or one problem, is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "cli.h"
#include "facula/backend.h"
#include "facula/train.h"
#include "json.h"

static struct {
    device_options device;
    const char *solver, *weights;
    list shapes;
    long batch, runs, seed;
    double seconds, recompute;
    bool json, verify, profile, exact, train, memory;
} o;

static const option options[] = {
    { "--batch", OPTION_INT, &o.batch, "N", "size of the first open dim of each input" },
    { "--shape", OPTION_LIST, &o.shapes, "NAME=DIMS", "sizes of an input: x=1x3x224x224" },
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME; random without" },
    { "--solver", OPTION_TEXT, &o.solver, "NAME", "only this solver, for the nodes of its op" },
    { "--verify", OPTION_FLAG, &o.verify, NULL, "check the result against the reference kernels" },
    { "--exact", OPTION_FLAG, &o.exact, NULL, "no reduced precision inside f32 ops" },
    { "--train", OPTION_FLAG, &o.train, NULL, "a training step (cross entropy, Adam) of a classifier, on random labels" },
    { "--recompute", OPTION_REAL, &o.recompute, "SHARE", "with --train: as in facula train" },
    { "--profile", OPTION_FLAG, &o.profile, NULL, "time of each step" },
    { "--memory", OPTION_FLAG, &o.memory, NULL, "what the device holds memory for" },
    { "--seconds", OPTION_REAL, &o.seconds, "S", "how long to measure; default 2" },
    { "--runs", OPTION_INT, &o.runs, "N", "exactly so many runs instead" },
    DEVICE_OPTIONS(o.device),
    { "--seed", OPTION_INT, &o.seed, "S", "of the random inputs" },
    { "--json", OPTION_FLAG, &o.json, NULL, "for machines" },
    { 0 } };

enum { MOST = 64, RUNS = 10000 };

typedef struct job {
    model       m;
    fac_device *device;
    fac_trainer *trainer;               /* --train: it owns the program */
    fac_program *program;
    fac_tensor *in[MOST], *out[MOST];
} job;

/* A run is over when its results are there. */
static fac_status run_and_wait(job *j, fac_error *err) {
    fac_status status = fac_program_run(j->program, j->in, j->out, err);
    return status ? status : fac_device_sync(j->device, err);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double peak_memory(void) {
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) ? 0 : 1024.0 * (double)u.ru_maxrss;
}

static void print_memory(fac_device *d) {
    const fac_memory_stat m = fac_device_memory(d);
    const struct { const char *what; size_t bytes; } rows[] = {
        { "held now", m.now }, { "  tensors", m.tensors }, { "  parameters and results", m.mirrors }, { "  values between steps", m.arenas },
        { "  packed weights", m.packed }, { "  operands of runs", m.operands }, { "held at most", m.peak }, { "taken from the driver", m.reserved } };
    char text[32];
    printf("device memory of %s\n", fac_device_name(d));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) printf("  %-26s %12s\n", rows[i].what, bytes_text((double)rows[i].bytes, text, sizeof text));
    printf("  %-26s %12s\n", "given back when asked", bytes_text((double)fac_device_trim(d), text, sizeof text));
}

/* What --verify allows, by the least precise output: half types keep 8 to 11 bits, and whole networks lose some of them. */
static double tolerance(const job *j) {
    double allowed = 1e-3;
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
    fac_tensor *ref[MOST] = { NULL };
    fac_program_opts opts = { .solver = "ref", .no_fuse = true };
    int n = fac_graph_outputs(j->m.graph), code = EXIT_OK;
    *error = 0;
    if (fac_program_new(j->m.graph, j->device, &opts, &p, &err) || fac_program_run(p, j->in, ref, &err)) code = fail(&err);
    for (int i = 0; i < n && !code; i++) {
        fac_tensor *a = NULL, *b = NULL;
        fac_type t = fac_tensor_type(ref[i]);
        if (fac_tensor_convert(j->out[i], FAC_F64, &a, &err) || fac_tensor_convert(ref[i], FAC_F64, &b, &err)) {
            code = fail(&err);
        } else {
            const double *x = fac_tensor_data(a), *y = fac_tensor_data(b);
            double top = 0, worst = 0;
            for (int64_t k = 0; k < fac_dims_count(&t.dims); k++) {
                top = fmax(top, fabs(y[k]));
                worst = isnan(x[k]) != isnan(y[k]) ? INFINITY : fmax(worst, fabs(x[k] - y[k]));
            }
            *error = fmax(*error, worst > 0 ? worst / (top > 0 ? top : 1) : 0);
        }
        fac_tensor_free(a);
        fac_tensor_free(b);
    }
    for (int i = 0; i < n; i++) fac_tensor_free(ref[i]);
    fac_program_free(p);
    return code;
}

static void print_profile(fac_program *p) {
    size_t n = fac_program_steps(p, NULL, 0);
    fac_step_stat *s = calloc(n + 1, sizeof *s);
    if (!s) return;
    fac_program_steps(p, s, n);
    double total = 0;
    for (size_t i = 0; i < n; i++) total += s[i].runs ? s[i].seconds / (double)s[i].runs : 0;
    printf("\n%9s %6s %9s %8s  %-24s %s\n", "us", "%", "GFLOP/s", "GB/s", "solver", "node");
    for (size_t i = 0; i < n; i++) {
        double t = s[i].runs ? s[i].seconds / (double)s[i].runs : 0;
        printf("%9.1f %6.1f %9.1f %8.1f  %-24s %s\n", 1e6 * t, total > 0 ? 100 * t / total : 0, t > 0 ? 2e-9 * s[i].macs / t : 0, t > 0 ? 1e-9 * s[i].bytes / t : 0,
               s[i].solver, s[i].nodes);
    }
    free(s);
}

static int measure(job *j) {
    fac_error err = { 0 };
    fac_plan_stat stat;
    static double ms[RUNS];
    int n = 0, most = o.runs > 0 && o.runs < RUNS ? (int)o.runs : RUNS;
    double start = now(), limit = o.seconds > 0 ? o.seconds : 2, macs = 0, error = 0;
    if (fac_program_plan(j->program, j->in, &stat, &err)) return fail(&err);
    double compiled = now() - start;
    start = now();
    for (int i = 0; i < 3 || (i < 50 && now() - start < 0.2 * limit); i++) {       /* warm-up */
        if (run_and_wait(j, &err)) return fail(&err);
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
    qsort(ms, (size_t)n, sizeof *ms, by_value);
    double median = ms[n / 2], gflops = 2e-6 * macs / median, peak = peak_memory();
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
        json_number(root, "compile_ms", 1e3 * compiled, 6);
        if (o.verify) json_number(root, "error", error, 3);
        int code = json_print(root);
        return code ? code : error > tolerance(j) ? EXIT_FAILED : EXIT_OK;
    }
    char a[32], b[32], c[32], d[32], e[32];
    printf("median  %.3f ms   min %.3f   max %.3f   (%d runs)\n", median, ms[0], ms[n - 1], n);
    printf("        %.1f images/s, %.1f GFLOP/s (%s multiply-adds)\n", 1e3 * images / median, gflops, count_text(macs, a, sizeof a));
    printf("memory  peak %s; arena %s of %s in all values, at least %s; packed weights %s\n", bytes_text(peak, a, sizeof a), bytes_text((double)stat.arena, b, sizeof b),
           bytes_text((double)stat.values, c, sizeof c), bytes_text((double)stat.bound, d, sizeof d), bytes_text((double)stat.packed, e, sizeof e));
    printf("compile %.1f ms, %d steps; %s (%s)\n", 1e3 * compiled, stat.steps, fac_device_name(j->device), fac_device_about(j->device));
    if (o.verify) printf("verify  largest difference from the reference %.2g of the largest value: %s\n", error, error <= tolerance(j) ? "ok" : "WRONG");
    if (o.memory) print_memory(j->device);
    if (o.profile) print_profile(j->program);
    return error > tolerance(j) ? EXIT_FAILED : EXIT_OK;
}

/* Behind the samples: labels and the learning rate. */
static int train_program(job *j) {
    fac_error err = { 0 };
    const double lr = 1e-3;
    fac_type scalar = { .dtype = FAC_F64 };
    if (fac_graph_inputs(j->m.graph) != 1) return fail_text("--train needs a model with one input");
    fac_type labels = { FAC_I64, { .n = 1, .d = { fac_tensor_type(j->in[0]).dims.d[0] } } };
    if (tensor_random(labels, (uint64_t)o.seed, 1, &j->in[1], &err)) return fail(&err);
    if (fac_tensor_new(NULL, scalar.dtype, scalar.dims, &j->in[2], &err)) return fail(&err);
    if (fac_tensor_write(j->in[2], &lr, sizeof lr, &err)) return fail(&err);
    const fac_trainer_opts opts = { .exact = o.exact, .recompute = o.recompute };
    if (fac_trainer_new(j->m.graph, j->device, &opts, &j->trainer, &err)) return fail(&err);
    j->program = fac_trainer_program(j->trainer);
    return EXIT_OK;
}

static int work(job *j, list args) {
    fac_error err = { 0 };
    int code = device_open(&o.device, &j->device);
    if (code) return code;
    if (strchr(args.at[0], '(')) {
        if (fac_problem_graph(args.at[0], true, &j->m.graph, &err)) return fail(&err);
        int params = fac_graph_params(j->m.graph);
        for (int i = 0; i < params; i++) {
            fac_tensor *t = fac_value_tensor(fac_graph_param(j->m.graph, i)), *r;
            fac_type type = fac_tensor_type(t);
            if (tensor_random(type, (uint64_t)o.seed, (uint64_t)(1000 + i), &r, &err)) return fail(&err);
            fac_status status = fac_tensor_write(t, fac_tensor_data(r), fac_type_bytes(&type), &err);
            fac_tensor_free(r);
            if (status) return fail(&err);
        }
    } else {
        code = model_load(args.at[0], o.weights, &o.shapes, o.seed, &j->m);
        if (code) return code;
    }
    if (fac_graph_inputs(j->m.graph) > MOST || fac_graph_outputs(j->m.graph) > MOST) return fail_text("a model with more than %d inputs or outputs", MOST);
    for (int i = 0; i < fac_graph_inputs(j->m.graph); i++) {
        fac_type t = input_type(fac_graph_input(j->m.graph, i), &o.shapes, o.batch);
        if (j->m.zoo && t.dims.n == 4) {
            if (fac_value_type(fac_graph_input(j->m.graph, i)).dims.d[2] < 0 && !o.shapes.n) t.dims.d[2] = j->m.zoo->height;
            if (fac_value_type(fac_graph_input(j->m.graph, i)).dims.d[3] < 0 && !o.shapes.n) t.dims.d[3] = j->m.zoo->width;
        }
        if (tensor_random(t, (uint64_t)o.seed, (uint64_t)i, &j->in[i], &err)) return fail(&err);
    }
    if (o.train) {
        code = train_program(j);
        return code ? code : measure(j);
    }
    fac_program_opts opts = { .solver = o.solver, .exact = o.exact };
    if (fac_program_new(j->m.graph, j->device, &opts, &j->program, &err)) return fail(&err);
    return measure(j);
}

static int run(list args) {
    static job j;
    if (args.n != 1) return usage_error(verb_find("bench"), "which model or problem?");
    if (o.batch < 0 || o.runs < 0 || o.seconds < 0) return usage_error(verb_find("bench"), "--batch, --runs and --seconds are positive");
    if (o.train && (o.verify || o.solver || strchr(args.at[0], '(')))
        return usage_error(verb_find("bench"), "--train times a whole model, without --solver and --verify");
    if (o.recompute && !o.train) return usage_error(verb_find("bench"), "--recompute is for --train");
    int code = work(&j, args);
    for (int i = 0; i < MOST; i++) {
        fac_tensor_free(j.in[i]);
        fac_tensor_free(j.out[i]);
    }
    if (j.trainer) fac_trainer_free(j.trainer);
    else fac_program_free(j.program);
    model_free(&j.m);
    fac_device_free(j.device);
    return code;
}

const verb verb_bench = {
    .name = "bench", .summary = "times a model or one problem", .usage = "facula bench MODEL|PROBLEM [options]", .options = options, .run = run,
    .more = "PROBLEM is one line such as\n  'conv2d(f32[8,64,56,56], f32[64,64,3,3], f32[64]) pad=1,1,1,1 {relu}'\n"
            "and its operands behind the first are parameters: packed once, as in a network.  `facula op` lists the ops,\n`facula devices` the solvers." };
