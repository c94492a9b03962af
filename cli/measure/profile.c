/* facula profile: where the time of a run goes, and how far each node is from what the machine can
 * do. */
#include <string.h>
#include "json.h"
#include "profile.h"
#include "analyze/summary/summary.h"

static struct {
    job_options job;
    const char *trace;
    list at;
    size_t shown; /* rows that --at leaves */
    double seconds;
    long top;
    bool json;
} o = { .top = -1 };

static const option options[] = {
    JOB_OPTIONS(o.job),
    { "--solver", OPTION_TEXT, &o.job.solver, "NAME",
      "use this solver alone, for the nodes of its op" },
    { "--top", OPTION_INT, &o.top, "N", "print only the N slowest nodes, slowest first",
      OPTION_TALLY },
    { "--at", OPTION_LIST, &o.at, "NAME",
      "only steps of these layers: their names in any view, modules, op:conv2d or kind:Conv2d; '*' "
      "stands for any text" },
    { "--seconds", OPTION_REAL, &o.seconds, "S",
      "seconds to measure, for 2,000 runs at most; default 1", "(0, inf)" },
    { "--chrome-trace", OPTION_OUT, &o.trace, "FILE",
      "write one run as a trace for chrome://tracing or ui.perfetto.dev" },
    DEVICE_OPTIONS(o.job.device),
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

/* ---- for people ---- */

static void solver_text(const fac_step_stat *s, char to[128]) {
    if (s->variant)
        snprintf(to, 128, "%s:%d", s->solver, s->variant);
    else
        snprintf(to, 128, "%s", s->solver);
}

static const char *count_digits(double x, char to[48]) {
    return x > 0 ? digits_text(x, to, 48) : "--";
}

static void print(const profile *p, const fac_timed_step *const *order, const fac_timed_sum *all,
                  size_t n) {
    const fac_peaks *k = &p->t.peaks;
    char a[32], b[32], solver[128];
    printf("machine  %s: %.1f GFLOP/s, %.1f GB/s from memory; both are in use at %.1f operations a "
           "byte\n",
           fac_device_about(p->j.device), 1e-9 * p->t.products, 1e-9 * k->memory_read,
           ratio(p->t.products, k->memory_read));
    printf("run      %.3f ms (median of %d), %.3f ms in %zu steps; %.1f GFLOP/s, %.0f %% of the "
           "peak\n",
           1e3 * p->t.median, p->t.runs, 1e3 * p->t.seconds, p->t.n, 2e-9 * p->t.macs / p->t.median,
           200 * p->t.macs / p->t.median / p->t.products);
    printf("work     %s multiply-adds in the steps, %s in the model%s\n\n",
           count_text(p->t.macs, a, sizeof a), count_text(p->plan.macs, b, sizeof b),
           p->t.macs == p->plan.macs ? ": equal" : ": they differ, see below");
    profile_print_launches(p);
    printf("%9s %6s %5s %9s %8s  %s\n", "us", "%", "steps", "GFLOP/s", "GB/s", "op");
    for (size_t i = 0; i < n; i++)
        printf("%9.1f %6.1f %5d %9.1f %8.1f  %s\n", 1e6 * all[i].seconds,
               100 * ratio(all[i].seconds, p->t.seconds), all[i].n,
               1e-9 * ratio(all[i].flops, all[i].seconds),
               1e-9 * ratio(all[i].bytes, all[i].seconds), all[i].op);
    printf("\n%9s %6s %9s %6s %8s %6s %8s %6s  %-26s %-18s %s\n", "us", "%", "GFLOP/s", "% peak",
           "GB/s", "% mem", "op/byte", "% roof", "solver", "layouts", "node");
    for (size_t i = 0; i < o.shown && (o.top < 0 || i < (size_t)o.top); i++) {
        const fac_timed_step *r = order[i];
        const double t = r->seconds;
        solver_text(&r->s, solver);
        printf("%9.1f %6.1f %9.1f %6.1f %8.1f %6.1f %8.1f %5.0f%c  %-26s %-18s %s\n", 1e6 * t,
               100 * ratio(t, p->t.seconds), 1e-9 * ratio(r->flops, t),
               100 * ratio(ratio(r->flops, t), p->t.products), 1e-9 * ratio(r->s.bytes, t),
               100 * ratio(ratio(r->s.bytes, t), k->memory_read), ratio(r->flops, r->s.bytes),
               100 * ratio(r->limit, t), r->by_memory ? 'm' : 'a', solver, r->s.layouts,
               r->s.nodes);
    }
}

/* Static counts beside executed ones. */
static void counts_print(const profile_count *c, int n) {
    const int widths[] = { -18, 7, 7, 16, 16, 14, 14, -1 };
    char a[48], b[48], x[48], y[48], layers[16], done[16];
    profile_count all = { 0 };
    printf("\nthe model and what the steps do of it:\n\n");
    table_row(stdout, widths, 8, "op", "layers", "done", "MACs", "MACs done", "elements",
              "elements done", "");
    for (int k = 0; k <= n; k++) {
        const profile_count *r = k < n ? &c[k] : &all;
        snprintf(layers, sizeof layers, "%d", r->layers);
        snprintf(done, sizeof done, "%d", r->done);
        table_row(stdout, widths, 8, k < n ? r->op : "all", layers, done, count_digits(r->macs, a),
                  count_digits(r->macs_done, b), count_digits(r->elements, x),
                  count_digits(r->elements_done, y),
                  k < n                     ? profile_why(r)
                  : r->macs == r->macs_done ? "equal MACs"
                                            : "");
        all.layers += r->layers;
        all.done += r->done;
        all.macs += r->macs;
        all.macs_done += r->macs_done;
        all.elements += r->elements;
        all.elements_done += r->elements_done;
    }
}

/* ---- for machines ---- */

static cJSON *counts_json(const profile_count *c, int n) {
    cJSON *all = cJSON_CreateArray();
    for (int k = 0; k < n; k++) {
        cJSON *j = cJSON_CreateObject();
        cJSON_AddStringToObject(j, "op", c[k].op);
        cJSON_AddNumberToObject(j, "layers", c[k].layers);
        cJSON_AddNumberToObject(j, "executed_layers", c[k].done);
        json_number(j, "macs", c[k].macs, 17);
        json_number(j, "executed_macs", c[k].macs_done, 17);
        json_number(j, "elements", c[k].elements, 17);
        json_number(j, "executed_elements", c[k].elements_done, 17);
        cJSON_AddStringToObject(j, "why", profile_why(&c[k]));
        cJSON_AddItemToArray(all, j);
    }
    return all;
}

static cJSON *row_json(const profile *p, const fac_timed_step *r) {
    const double t = r->seconds;
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "node", r->s.nodes);
    cJSON_AddStringToObject(j, "op", r->s.op);
    cJSON_AddStringToObject(j, "solver", r->s.solver);
    cJSON_AddNumberToObject(j, "variant", r->s.variant);
    cJSON_AddStringToObject(j, "layouts", r->s.layouts);
    json_number(j, "us", 1e6 * t, 6);
    if (p->nlaunches) cJSON_AddNumberToObject(j, "launches", p->launched[r - p->t.steps]);
    json_number(j, "share", ratio(t, p->t.seconds), 4);
    cJSON_AddNumberToObject(j, "macs", r->s.macs);
    cJSON_AddNumberToObject(j, "bytes", r->s.bytes);
    json_number(j, "gflops", 1e-9 * ratio(r->flops, t), 5);
    json_number(j, "gbytes_per_s", 1e-9 * ratio(r->s.bytes, t), 5);
    json_number(j, "intensity", ratio(r->flops, r->s.bytes), 5);
    json_number(j, "peak_share", ratio(ratio(r->flops, t), p->t.products), 4);
    json_number(j, "memory_share", ratio(ratio(r->s.bytes, t), p->t.peaks.memory_read), 4);
    json_number(j, "roof_share", ratio(r->limit, t), 4);
    cJSON_AddStringToObject(j, "bound", r->by_memory ? "memory" : "arithmetic");
    return j;
}

static int print_json(const profile *p, const fac_timed_step *const *order,
                      const fac_timed_sum *all, size_t n, const profile_count *counts,
                      int ncounts) {
    cJSON *root = cJSON_CreateObject(), *machine, *ops, *nodes, *c;
    cJSON_AddNumberToObject(root, "schema_version", JSON_SCHEMA);
    cJSON_AddItemToObject(root, "machine", machine = cJSON_CreateObject());
    cJSON_AddStringToObject(machine, "device", fac_device_about(p->j.device));
    json_number(machine, "flops", p->t.peaks.flops, 4);
    json_number(machine, "memory_read", p->t.peaks.memory_read, 4);
    json_number(machine, "fork_join_s", p->t.peaks.fork_join, 3);
    json_number(machine, "products", p->t.products, 4);
    json_number(root, "median_ms", 1e3 * p->t.median, 6);
    json_number(root, "steps_ms", 1e3 * p->t.seconds, 6);
    cJSON_AddNumberToObject(root, "runs", p->t.runs);
    json_number(root, "macs", p->plan.macs, 17);
    json_number(root, "executed_macs", p->t.macs, 17);
    cJSON_AddBoolToObject(root, "macs_equal", p->t.macs == p->plan.macs);
    if (counts) cJSON_AddItemToObject(root, "counts", counts_json(counts, ncounts));
    cJSON_AddItemToObject(root, "ops", ops = cJSON_CreateArray());
    for (size_t i = 0; i < n; i++) {
        cJSON_AddItemToArray(ops, c = cJSON_CreateObject());
        cJSON_AddStringToObject(c, "op", all[i].op);
        cJSON_AddNumberToObject(c, "steps", all[i].n);
        json_number(c, "us", 1e6 * all[i].seconds, 6);
        json_number(c, "share", ratio(all[i].seconds, p->t.seconds), 4);
    }
    if (p->nlaunches) cJSON_AddItemToObject(root, "launches", profile_launches_json(p));
    cJSON_AddItemToObject(root, "nodes", nodes = cJSON_CreateArray());
    for (size_t i = 0; i < o.shown && (o.top < 0 || i < (size_t)o.top); i++)
        cJSON_AddItemToArray(nodes, row_json(p, order[i]));
    return json_print(root);
}

/* https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU: complete events,
 * microseconds. */
static int write_trace(const profile *p) {
    cJSON *root = cJSON_CreateObject(), *events, *e, *args;
    double at = 0;
    cJSON_AddItemToObject(root, "traceEvents", events = cJSON_CreateArray());
    if (p->nlaunches) profile_trace_launches(p, events);
    for (size_t i = 0; i < p->t.n && !p->nlaunches; i++) {
        const fac_timed_step *r = &p->t.steps[i];
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
    return json_write(o.trace, root, false);
}

/* ---- --at ---- */

/* Does the step stand in the module, or carry the name, of a layer? */
static bool does_layer(const fac_timed_step *r, const fac_layer *l) {
    const size_t n = l->is_module ? strlen(l->module) : 0;
    const bool begins = n && !strncmp(r->s.nodes, l->module, n);
    if (begins && (r->s.nodes[n] == '.' || !r->s.nodes[n])) return true;
    return strstr(r->s.nodes, l->name) != NULL;
}

static bool means_step(const profile *p, const fac_timed_step *r, const char *pattern) {
    if (!strcmp(r->s.nodes, pattern)) return true;
    for (int i = 0; p->analysis && fac_analysis_layer(p->analysis, i); i++) {
        if (!fac_analysis_selects(p->analysis, i, pattern)) continue;
        if (does_layer(r, fac_analysis_layer(p->analysis, i))) return true;
    }
    return false;
}

/* Leaves what was asked for; a name that means no step is a mistake. */
static int choose_rows(const profile *p, const fac_timed_step **order) {
    bool *is = calloc(p->t.n + 1, sizeof *is);
    int code = is ? EXIT_OK : fail_text("out of memory");
    for (int k = 0; k < o.at.n && !code; k++) {
        bool any = false;
        for (size_t i = 0; i < p->t.n; i++) {
            const bool here = means_step(p, order[i], o.at.at[k]);
            is[i] |= here;
            any |= here;
        }
        if (!any) code = fail_text("--at: no step does \"%s\"", o.at.at[k]);
    }
    o.shown = 0;
    for (size_t i = 0; i < p->t.n && !code; i++)
        if (is[i] || !o.at.n) order[o.shown++] = order[i];
    free(is);
    return code;
}

static int work(profile *p, const char *what) {
    size_t n;
    int ncounts = 0, code = profile_measure(p, verb_find("profile"), &o.job, what, o.seconds);
    if (!code && o.trace) code = write_trace(p);
    if (code) return code;
    const fac_timed_step **order = fac_timing_order(&p->t, o.top >= 0);
    fac_timed_sum *all = fac_timing_sums(&p->t, &n);
    profile_count *counts = p->analysis ? profile_counts(p, &ncounts) : NULL;
    if (!all || !order || (p->analysis && !counts))
        code = fail_text("out of memory");
    else
        code = choose_rows(p, order);
    if (!code && o.json)
        code = print_json(p, order, all, n, counts, ncounts);
    else if (!code) {
        print(p, order, all, n);
        if (counts) counts_print(counts, ncounts);
    }
    fac_timing_drop(order);
    fac_timing_drop(all);
    free(counts);
    return code;
}

static int run(list args) {
    static profile p;
    const int wrong = arguments_fit(verb_find("profile"), args, 1, 1, "which model or problem?");
    if (wrong) return wrong;
    if (o.job.train && o.job.solver)
        return usage_error(verb_find("profile"), "--train cannot go with --solver");
    int code = work(&p, args.at[0]);
    profile_free(&p);
    return code;
}

const verb verb_profile = {
    .name = "profile",
    .summary = "show where the time of a run or a training step goes",
    .usage = "facula profile MODEL|PROBLEM [options]",
    .options = options,
    .examples = "profile model.onnx --top 10\nprofile zoo:resnet50 --train --batch 8\nprofile "
                "model.onnx --chrome-trace trace.json",
    .run = run,
    .more =
        "For each step: time, share, rates, and how far it is from the machine's peaks (`facula "
        "peaks`).\nop/byte is operations for each byte of the operands; \"% roof\" is the share of "
        "the best that this\nallows, with an a where arithmetic is the limit and an m where memory "
        "is.  Rates count the\nmultiply-adds of the definition, so Winograd may pass 100 %, and so "
        "may operands that stay in a\ncache.\n\nOf a language model, a GGUF file or a folder of "
        "Hugging Face, one step of decoding is measured: a\ntoken after 63 others; with --batch N "
        "a token of each of N slots."
};
