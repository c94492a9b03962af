/* facula profile: where the time of a run goes, and how far each node is from what the machine can do. */
#include <math.h>
#include <string.h>
#include "job.h"
#include "json.h"

static struct {
    job_options job;
    const char *trace;
    double seconds;
    long   top;
    bool   json;
} o;

static const option options[] = {
    JOB_OPTIONS(o.job),
    { "--solver", OPTION_TEXT, &o.job.solver, "NAME", "only this solver, for the nodes of its op" },
    { "--top", OPTION_INT, &o.top, "N", "only the N slowest nodes, slowest first" },
    { "--seconds", OPTION_REAL, &o.seconds, "S", "how long to measure; default 1" },
    { "--chrome-trace", OPTION_TEXT, &o.trace, "FILE", "one run as a trace for chrome://tracing or ui.perfetto.dev" },
    DEVICE_OPTIONS(o.job.device),
    { "--json", OPTION_FLAG, &o.json, NULL, "for machines" },
    { 0 } };

enum { FEWEST = 3, MOST = 2000 };

/* One step of a mean run.  limit: seconds that the machine at its best would take for it, by arithmetic or by memory. */
typedef struct row {
    fac_step_stat s;
    double seconds, flops, limit;
    bool   by_memory;
} row;

typedef struct profile {
    job           j;
    fac_peaks     peaks;
    fac_plan_stat plan;
    row          *rows;
    size_t        n;
    double        seconds, macs, bytes;         /* sums over the rows */
    double        median;                       /* of whole runs */
    int           runs;
} profile;

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static int slowest_first(const void *a, const void *b) {
    return by_value(&((const row *)b)->seconds, &((const row *)a)->seconds);
}

static int run_all(profile *p) {
    fac_error err = { 0 };
    static double times[MOST];
    const double limit = o.seconds > 0 ? o.seconds : 1;
    if (fac_program_plan(p->j.program, p->j.in, &p->plan, &err)) return fail(&err);
    for (int i = 0; i < 2; i++)
        if (fac_program_run(p->j.program, p->j.in, p->j.out, &err)) return fail(&err);
    fac_program_profile(p->j.program, true);
    for (double start = now(); p->runs < MOST && (p->runs < FEWEST || now() - start < limit); p->runs++) {
        const double from = now();
        if (fac_program_run(p->j.program, p->j.in, p->j.out, &err) || fac_device_sync(p->j.device, &err)) return fail(&err);
        times[p->runs] = now() - from;
    }
    qsort(times, (size_t)p->runs, sizeof *times, by_value);
    p->median = times[p->runs / 2];
    return EXIT_OK;
}

static int collect(profile *p) {
    p->n = fac_program_steps(p->j.program, NULL, 0);
    fac_step_stat *s = calloc(p->n + 1, sizeof *s);
    p->rows = calloc(p->n + 1, sizeof *p->rows);
    if (!s || !p->rows) {
        free(s);
        return fail_text("out of memory");
    }
    fac_program_steps(p->j.program, s, p->n);
    for (size_t i = 0; i < p->n; i++) {
        row *r = &p->rows[i];
        *r = (row){ .s = s[i], .seconds = ratio(s[i].seconds, (double)s[i].runs), .flops = 2 * s[i].macs };
        const double arithmetic = ratio(r->flops, p->peaks.flops), memory = ratio(s[i].bytes, p->peaks.memory_read);
        r->limit = fmax(arithmetic, memory);
        r->by_memory = memory >= arithmetic;
        p->seconds += r->seconds, p->macs += s[i].macs, p->bytes += s[i].bytes;
    }
    free(s);
    return EXIT_OK;
}

/* ---- by op ---- */

typedef struct sum { const char *op; int n; double seconds, flops, bytes; } sum;

static sum *sums(const profile *p, size_t *n) {
    sum *all = calloc(p->n + 1, sizeof *all);
    *n = 0;
    for (size_t i = 0; all && i < p->n; i++) {
        const row *r = &p->rows[i];
        size_t k = 0;
        while (k < *n && strcmp(all[k].op, r->s.op)) k++;
        if (k == *n) all[(*n)++].op = r->s.op;
        all[k].n++, all[k].seconds += r->seconds, all[k].flops += r->flops, all[k].bytes += r->s.bytes;
    }
    for (size_t i = 1; all && i < *n; i++)              /* few: by insertion */
        for (size_t k = i; k && all[k].seconds > all[k - 1].seconds; k--) {
            const sum swap = all[k];
            all[k] = all[k - 1], all[k - 1] = swap;
        }
    return all;
}

/* ---- for people ---- */

static void solver_text(const fac_step_stat *s, char to[128]) {
    if (s->variant) snprintf(to, 128, "%s:%d", s->solver, s->variant);
    else snprintf(to, 128, "%s", s->solver);
}

static void print(const profile *p, const sum *all, size_t n) {
    const fac_peaks *k = &p->peaks;
    char a[32], b[32], solver[128];
    printf("machine  %s: %.1f GFLOP/s, %.1f GB/s from memory; both are in use at %.1f operations a byte\n",
           fac_device_about(p->j.device), 1e-9 * k->flops, 1e-9 * k->memory_read, ratio(k->flops, k->memory_read));
    printf("run      %.3f ms (median of %d), %.3f ms in %zu steps; %.1f GFLOP/s, %.0f %% of the peak\n", 1e3 * p->median, p->runs,
           1e3 * p->seconds, p->n, 2e-9 * p->macs / p->median, 200 * p->macs / p->median / k->flops);
    printf("work     %s multiply-adds in the steps, %s in the graph%s\n\n", count_text(p->macs, a, sizeof a),
           count_text(p->plan.macs, b, sizeof b), p->macs == p->plan.macs ? "" : ": they differ");
    printf("%9s %6s %5s %9s %8s  %s\n", "us", "%", "steps", "GFLOP/s", "GB/s", "op");
    for (size_t i = 0; i < n; i++)
        printf("%9.1f %6.1f %5d %9.1f %8.1f  %s\n", 1e6 * all[i].seconds, 100 * ratio(all[i].seconds, p->seconds), all[i].n,
               1e-9 * ratio(all[i].flops, all[i].seconds), 1e-9 * ratio(all[i].bytes, all[i].seconds), all[i].op);
    printf("\n%9s %6s %9s %6s %8s %6s %8s %6s  %-26s %-18s %s\n", "us", "%", "GFLOP/s", "% peak", "GB/s", "% mem", "op/byte",
           "% roof", "solver", "layouts", "node");
    for (size_t i = 0; i < p->n && (o.top <= 0 || i < (size_t)o.top); i++) {
        const row *r = &p->rows[i];
        const double t = r->seconds;
        solver_text(&r->s, solver);
        printf("%9.1f %6.1f %9.1f %6.1f %8.1f %6.1f %8.1f %5.0f%c  %-26s %-18s %s\n", 1e6 * t, 100 * ratio(t, p->seconds),
               1e-9 * ratio(r->flops, t), 100 * ratio(ratio(r->flops, t), k->flops), 1e-9 * ratio(r->s.bytes, t),
               100 * ratio(ratio(r->s.bytes, t), k->memory_read), ratio(r->flops, r->s.bytes), 100 * ratio(r->limit, t),
               r->by_memory ? 'm' : 'a', solver, r->s.layouts, r->s.nodes);
    }
}

/* ---- for machines ---- */

static cJSON *row_json(const profile *p, const row *r) {
    const double t = r->seconds;
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "node", r->s.nodes);
    cJSON_AddStringToObject(j, "op", r->s.op);
    cJSON_AddStringToObject(j, "solver", r->s.solver);
    cJSON_AddNumberToObject(j, "variant", r->s.variant);
    cJSON_AddStringToObject(j, "layouts", r->s.layouts);
    json_number(j, "us", 1e6 * t, 6);
    json_number(j, "share", ratio(t, p->seconds), 4);
    cJSON_AddNumberToObject(j, "macs", r->s.macs);
    cJSON_AddNumberToObject(j, "bytes", r->s.bytes);
    json_number(j, "gflops", 1e-9 * ratio(r->flops, t), 5);
    json_number(j, "gbytes_per_s", 1e-9 * ratio(r->s.bytes, t), 5);
    json_number(j, "intensity", ratio(r->flops, r->s.bytes), 5);
    json_number(j, "peak_share", ratio(ratio(r->flops, t), p->peaks.flops), 4);
    json_number(j, "memory_share", ratio(ratio(r->s.bytes, t), p->peaks.memory_read), 4);
    json_number(j, "roof_share", ratio(r->limit, t), 4);
    cJSON_AddStringToObject(j, "bound", r->by_memory ? "memory" : "arithmetic");
    return j;
}

static int print_json(const profile *p, const sum *all, size_t n) {
    cJSON *root = cJSON_CreateObject(), *machine, *ops, *nodes, *c;
    cJSON_AddItemToObject(root, "machine", machine = cJSON_CreateObject());
    cJSON_AddStringToObject(machine, "device", fac_device_about(p->j.device));
    json_number(machine, "flops", p->peaks.flops, 4);
    json_number(machine, "memory_read", p->peaks.memory_read, 4);
    json_number(machine, "fork_join_s", p->peaks.fork_join, 3);
    json_number(root, "median_ms", 1e3 * p->median, 6);
    json_number(root, "steps_ms", 1e3 * p->seconds, 6);
    cJSON_AddNumberToObject(root, "runs", p->runs);
    cJSON_AddNumberToObject(root, "macs", p->macs);
    cJSON_AddNumberToObject(root, "graph_macs", p->plan.macs);
    cJSON_AddItemToObject(root, "ops", ops = cJSON_CreateArray());
    for (size_t i = 0; i < n; i++) {
        cJSON_AddItemToArray(ops, c = cJSON_CreateObject());
        cJSON_AddStringToObject(c, "op", all[i].op);
        cJSON_AddNumberToObject(c, "steps", all[i].n);
        json_number(c, "us", 1e6 * all[i].seconds, 6);
        json_number(c, "share", ratio(all[i].seconds, p->seconds), 4);
    }
    cJSON_AddItemToObject(root, "nodes", nodes = cJSON_CreateArray());
    for (size_t i = 0; i < p->n && (o.top <= 0 || i < (size_t)o.top); i++) cJSON_AddItemToArray(nodes, row_json(p, &p->rows[i]));
    return json_print(root);
}

/* https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU: complete events, microseconds. */
static int write_trace(const profile *p) {
    cJSON *root = cJSON_CreateObject(), *events, *e, *args;
    double at = 0;
    cJSON_AddItemToObject(root, "traceEvents", events = cJSON_CreateArray());
    for (size_t i = 0; i < p->n; i++) {
        const row *r = &p->rows[i];
        cJSON_AddItemToArray(events, e = cJSON_CreateObject());
        cJSON_AddStringToObject(e, "name", r->s.nodes);
        cJSON_AddStringToObject(e, "cat", r->s.op);
        cJSON_AddStringToObject(e, "ph", "X");
        json_number(e, "ts", 1e6 * at, 9);
        json_number(e, "dur", 1e6 * r->seconds, 6);
        cJSON_AddNumberToObject(e, "pid", 0);
        cJSON_AddNumberToObject(e, "tid", 0);
        cJSON_AddItemToObject(e, "args", args = cJSON_CreateObject());
        cJSON_AddStringToObject(args, "solver", r->s.solver);
        cJSON_AddStringToObject(args, "layouts", r->s.layouts);
        json_number(args, "GFLOP/s", 1e-9 * ratio(r->flops, r->seconds), 4);
        json_number(args, "GB/s", 1e-9 * ratio(r->s.bytes, r->seconds), 4);
        at += r->seconds;
    }
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    FILE *f = text ? fopen(o.trace, "w") : NULL;
    bool ok = f && fputs(text, f) >= 0;
    if (f && fclose(f)) ok = false;
    free(text);
    return ok ? EXIT_OK : fail_text("%s: cannot be written", o.trace);
}

static int work(profile *p, const char *what) {
    fac_error err = { 0 };
    size_t n;
    int code = job_open(&p->j, verb_find("profile"), &o.job, what);
    if (!code && fac_device_peaks(p->j.device, &p->peaks, &err)) code = fail(&err);
    if (!code) code = run_all(p);
    if (!code) code = collect(p);
    if (!code && o.trace) code = write_trace(p);
    if (code) return code;
    if (o.top > 0) qsort(p->rows, p->n, sizeof *p->rows, slowest_first);
    sum *all = sums(p, &n);
    if (!all) return fail_text("out of memory");
    if (o.json) code = print_json(p, all, n);
    else print(p, all, n);
    free(all);
    return code;
}

static int run(list args) {
    static profile p;
    if (args.n != 1) return usage_error(verb_find("profile"), "which model or problem?");
    if (o.top < 0 || o.seconds < 0) return usage_error(verb_find("profile"), "--top and --seconds are positive");
    if (o.job.train && o.job.solver) return usage_error(verb_find("profile"), "--train goes without --solver");
    int code = work(&p, args.at[0]);
    free(p.rows);
    job_close(&p.j);
    return code;
}

const verb verb_profile = {
    .name = "profile", .summary = "where the time of a run or a training step goes",
    .usage = "facula profile MODEL|PROBLEM [options]", .options = options, .run = run,
    .more = "For each step: time, share, rates, and how far it is from the machine's peaks (facula peaks).  op/byte: operations\n"
            "for each byte of its operands; \"% roof\": of the best that this allows, with a where arithmetic is the limit and m\n"
            "where memory is.  Rates count the multiply-adds of the definition, so Winograd may pass 100 %; operands that stay in a\n"
            "cache may, too." };
