/* facula bench --serve: many measurements of one model in one process, so that they can take turns
 * with another program's. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench.h"
#include "files.h"
#include "facula/io.h"
#include "json.h"

enum { KEPT = 64, NAME = 32, PATH = 512, RUNS = 10000 };

/* What a line asks for.  A program is kept under its first three members. */
typedef struct request {
    long batch;
    char precision[NAME], mode[NAME];
    double seconds;
    char in[PATH], out[PATH];
} request;
typedef struct kept {
    request of;
    job j;
} kept;

static bool same(const request *a, const request *b) {
    return a->batch == b->batch && !strcmp(a->precision, b->precision) && !strcmp(a->mode, b->mode);
}

static void forget(job *j) {
    job_unsettle(j);
    fac_graph_free(j->m.graph);
}

/* Device and model are those of base, but for the graph, which precision may change. */
static int program_for(kept *all, int *n, const job *base, const job_options *o, const request *r,
                       job **out) {
    for (int i = 0; i < *n; i++)
        if (same(&all[i].of, r)) {
            *out = &all[i].j;
            return EXIT_OK;
        }
    if (*n == KEPT) return fail_text("more than %d different programs", KEPT);
    kept *k = &all[*n];
    job_options own = *o;
    k->of = *r;
    k->j = (job){ .m = base->m, .device = base->device };
    if (!(k->j.m.graph = fac_graph_clone(base->m.graph))) return fail_text("out of memory");
    own.batch = r->batch;
    own.precision = k->of.precision;
    own.train = !strcmp(r->mode, "train");
    const int code = job_settle(&k->j, verb_find("bench"), &own);
    if (code)
        forget(&k->j);
    else
        *out = &all[(*n)++].j;
    return code;
}

static int run_and_wait(job *j) {
    fac_error err = { 0 };
    return fac_program_run(j->program, j->in, j->out, &err) || fac_device_sync(j->device, &err)
               ? fail(&err)
               : EXIT_OK;
}

static int feed(job *j, const char *path) {
    fac_error err = { 0 };
    fac_tensor *t = NULL;
    if (fac_npy_load(path, &t, &err)) return fail(&err);
    const fac_type have = fac_tensor_type(t), want = fac_tensor_type(j->in[0]);
    fac_status status = FAC_OK;
    int code = EXIT_OK;
    const bool fits = have.dtype == want.dtype && fac_dims_equal(&have.dims, &want.dims);
    if (fits)
        status = fac_tensor_write(j->in[0], fac_tensor_data(t), fac_type_bytes(&have), &err);
    else
        code = fail_text("%s: not the shape of the input", path);
    fac_tensor_free(t);
    return status ? fail(&err) : code;
}

/* Processor time of all threads of this process, in milliseconds. */
static double processor_ms(void) { return 1e3 * (double)clock() / CLOCKS_PER_SEC; }

/* What measured runs took, in milliseconds a run; cpu: processor time. */
typedef struct times {
    double median, least, cpu;
    int runs;
} times;

static int measure(job *j, double limit, times *to) {
    static double ms[RUNS];
    int n = 0, code = run_and_wait(j);
    if (!code) code = run_and_wait(j);
    const double cpu = processor_ms();
    for (double start = now(); !code && n < RUNS && (n < 3 || now() - start < limit); n++) {
        const double t = now();
        code = run_and_wait(j);
        ms[n] = 1e3 * (now() - t);
    }
    const double used = processor_ms() - cpu;
    if (code) return code;
    const double median = median_of(ms, n);
    *to = (times){ median, ms[0], used / n, n };
    return EXIT_OK;
}

static int answer(job *j, const request *r) {
    fac_error err = { 0 };
    cJSON *root = cJSON_CreateObject();
    const double start = now();
    times took = { 0 };
    int code = EXIT_OK;
    if (*r->out) code = output_check(r->out);
    if (!code && *r->in && same_file(r->in, r->out)) code = fail_text("%s: " INPUT_TOO, r->out);
    if (!code && *r->in) code = feed(j, r->in);
    if (!code) code = run_and_wait(j);
    json_number(root, "first_run_ms", 1e3 * (now() - start), 6);
    if (!code && *r->out && fac_npy_save(j->out[0], r->out, &err)) code = fail(&err);
    if (!code && r->seconds > 0) code = measure(j, r->seconds, &took);
    json_number(root, "median_ms", took.median, 6);
    json_number(root, "min_ms", took.least, 6);
    json_number(root, "cpu_ms", took.cpu, 6);
    cJSON_AddNumberToObject(root, "runs", took.runs);
    cJSON_AddNumberToObject(root, "steps", (double)fac_program_steps(j->program, NULL, 0));
    cJSON_AddNumberToObject(root, "memory_bytes", (double)fac_device_memory(j->device).now);
    if (!code) return json_line(root);
    cJSON_Delete(root);
    return code;
}

int bench_serve(const job_options *o, const char *what) {
    static kept all[KEPT];
    static char line[2 * PATH + 128];
    job base = { 0 };
    int n = 0, code = job_begin(&base, verb_find("bench"), o, what);
    while (!code && fgets(line, sizeof line, stdin)) {
        request r = { 0 };
        job *j = NULL;
        const int got = sscanf(line, "%ld %31s %31s %lf %511s %511s", &r.batch, r.precision, r.mode,
                               &r.seconds, r.in, r.out);
        if (got < 4 || got == 5 || r.batch < 1) {
            fail_text("a line is BATCH PRECISION infer|train SECONDS [IN.npy OUT.npy], not: %s",
                      line);
            puts("{\"failed\":true}");
        } else if (program_for(all, &n, &base, o, &r, &j) || answer(j, &r))
            puts("{\"failed\":true}");
        fflush(stdout);
    }
    for (int i = 0; i < n; i++) forget(&all[i].j);
    job_close(&base);
    return code;
}
