/* facula report: everything that is known of a model, in one page that needs nothing else. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "report.h"

static struct {
    job_options job;
    const char *to, *target;
    double seconds;
    bool profile, peaks, date, json;
} o;
static const option options[] = {
    { "-o", OPTION_OUT, &o.to, "FILE", "the page; - for standard output" },
    { "--profile", OPTION_FLAG, &o.profile, NULL,
      "run it, and show times and where each step stands under the roofline" },
    { "--seconds", OPTION_REAL, &o.seconds, "S", "with --profile: how long to measure; default 1",
      "(0, inf)" },
    { "--peaks", OPTION_FLAG, &o.peaks, NULL, "measure this machine for the roofline" },
    { "--target", OPTION_TEXT, &o.target, "F,B",
      "the roofline's machine: operations and bytes a second, such as 350G,20G; "
      "default 1T,100G" },
    { "--date", OPTION_FLAG, &o.date, NULL,
      "say when it was made; without, the same model gives the same page" },
    { "--batch", OPTION_INT, &o.job.batch, "N", "size of the open first dim; default 1",
      OPTION_COUNT },
    { "--shape", OPTION_LIST, &o.job.shapes, "NAME=DIMS", "sizes of an input: x=1x3x224x224" },
    { "--weights", OPTION_TEXT, &o.job.weights, "FILE", "for zoo:NAME" },
    LINK_ROOT_OPTION,
    { "--precision", OPTION_TEXT, &o.job.precision, "NAME",
      "with --profile: as in facula profile" },
    DEVICE_OPTIONS(o.job.device),
    { "--json", OPTION_FLAG, &o.json, NULL, "what was written, for machines" },
    { 0 }
};

/* ---- the machine of the roofline ---- */

/* "350G" */
static bool quantity(const char *text, const char **end, double *out) {
    char *after;
    *out = strtod(text, &after);
    const char *units = "kMGT", *u = *after ? strchr(units, *after) : NULL;
    for (const char *k = units; u && k <= u; k++) *out *= 1000;
    *end = after + (u != NULL);
    return after > text && *out > 0 && *out < 1e30;
}

static int machine_find(report *r, fac_peaks *peaks) {
    fac_error err = { 0 };
    fac_device *d = NULL;
    const char *end = "";
    r->machine = (machine){ "a machine of 1,000 GFLOP/s and 100 GB/s (the option --target names "
                            "another, --peaks measures one)",
                            1e12, 1e11, NULL };
    if (o.target) {
        r->machine.about = "the machine given with --target";
        if (quantity(o.target, &end, &r->machine.flops) && *end == ',' &&
            quantity(end + 1, &end, &r->machine.bytes) && !*end)
            return EXIT_OK;
        return usage_error(
            verb_find("report"),
            "--target needs operations and bytes a second such as 350G,20G, not \"%s\"", o.target);
    }
    if (r->time)
        *peaks = r->time->peaks;
    else if (o.peaks) {
        int code = device_open(&o.job.device, &d);
        if (code) return code;
        if (fac_device_peaks(d, peaks, &err)) code = fail(&err);
        fac_device_free(d);
        if (code) return code;
    } else
        return EXIT_OK;
    r->machine = (machine){ "this machine, as measured", peaks->flops, peaks->memory_read, peaks };
    return EXIT_OK;
}

/* ---- the page ---- */

static bool page(FILE *to, report *r) {
    page_start(to, r);
    page_facts(to, r);
    const bool good = report_graph(to, r) && report_tree(to, r) && report_kinds(to, r) &&
                      report_time(to, r) && report_memory(to, r) && report_roofline(to, r) &&
                      report_levels(to, r) && report_counts(to, r) && report_plan(to, r);
    page_end(to, r);
    return good;
}

/* The facts themselves are those of summary, inspect and profile. */
static int written_json(const report *r, size_t bytes) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "model", r->name);
    cJSON_AddStringToObject(root, "file", o.to);
    cJSON_AddNumberToObject(root, "bytes", (double)bytes);
    cJSON_AddNumberToObject(root, "layers", r->t.layers);
    cJSON_AddBoolToObject(root, "measured", r->time != NULL);
    return json_print(root);
}

static int write_page(report *r) {
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    bool good = memory && page(memory, r);
    if (memory && fclose(memory)) good = false;
    if (!good) {
        free(text);
        return fail_text("out of memory");
    }
    const bool here = !strcmp(o.to, "-");
    const int code = here ? EXIT_OK : file_write(o.to, text, size);
    if (here) out_raw(text, stdout);
    free(text);
    if (code || here) return code;
    if (o.json) return written_json(r, size);
    printf("%s: %.0f kB\n", o.to, 1e-3 * (double)size);
    return EXIT_OK;
}

static int build(report *r) {
    static fac_peaks peaks;
    static char date[32];
    const time_t seconds = time(NULL);
    struct tm day;
    int code = machine_find(r, &peaks);
    if (!code) code = memory_find(r->a, r->m, &o.job.shapes, o.job.batch, &r->memory);
    if (code) return code;
    branch *tree = tree_new(r->a, FAC_COUNT_CORE);
    if (!tree) return fail_text("out of memory");
    if (o.date && gmtime_r(&seconds, &day) && strftime(date, sizeof date, "%Y-%m-%d", &day))
        r->stamp = date;
    r->tree = tree;
    code = write_page(r);
    tree_free(tree);
    return code;
}

static int run(list args) {
    const verb *self = verb_find("report");
    static profile time_of;
    model m = { 0 };
    fac_error err = { 0 };
    fac_analysis *a = NULL;
    if (args.n != 1) return usage_error(self, "which model?");
    if (!o.to) return usage_error(self, "where to? (-o FILE.html)");
    if (o.json && !strcmp(o.to, "-"))
        return usage_error(self, "--json and the page cannot both go to standard output");
    int code = memory_limit(o.job.device.memory_limit);
    if (!code) code = model_load(args.at[0], o.job.weights, &o.job.shapes, 0, &m);
    if (!code) code = batch_fits(m.graph, fac_graph_inputs(m.graph) > 0, o.job.batch);
    if (!code && fac_analyze(m.graph, o.job.batch, &a, &err)) code = fail(&err);
    if (!code && o.profile) code = profile_measure(&time_of, self, &o.job, args.at[0], o.seconds);
    if (!code) {
        report r = { .name = args.at[0],
                     .m = &m,
                     .a = a,
                     .t = fac_analysis_totals(a),
                     .time = o.profile ? &time_of : NULL };
        code = build(&r);
        memory_free(&r.memory);
    }
    profile_free(&time_of);
    fac_analysis_free(a);
    model_free(&m);
    return code;
}

const verb verb_report = { .name = "report",
                           .summary = "a page about a model: graph, costs, memory, roofline",
                           .usage = "facula report MODEL -o "
                                    "FILE.html [options]",
                           .options = options,
                           .run = run,
                           .more = "MODEL: zoo:NAME, FILE.onnx, or FILE.txt as `facula show` "
                                   "writes it.  The page is one file: it fetches nothing, "
                                   "reads without its\n"
                                   "script, prints, and follows the light or dark scheme of the "
                                   "browser.  `facula summary`, `inspect` and `profile` "
                                   "give the same\n"
                                   "numbers as text and as JSON." };
