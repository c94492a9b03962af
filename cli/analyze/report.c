/* facula report: everything that is known of a model, in one page that needs nothing else. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "files.h"
#include "inspect.h"
#include "measure/profile.h"

static struct {
    job_options job;
    const char *to, *target;
    double seconds;
    bool profile, peaks, date, json;
} o;
static const option options[] = {
    { "-o", OPTION_OUT, &o.to, "FILE", "where to write the page; - for standard output" },
    { "--profile", OPTION_FLAG, &o.profile, NULL,
      "run the model, and show times and where each step is under the roofline" },
    { "--seconds", OPTION_REAL, &o.seconds, "S", "with --profile: seconds to measure; default 1",
      "(0, inf)" },
    { "--peaks", OPTION_FLAG, &o.peaks, NULL, "measure this machine, for the roofline" },
    { "--target", OPTION_TEXT, &o.target, "F,B",
      "another machine for the roofline: operations and bytes a second, such as 350G,20G; default "
      "1T,100G" },
    { "--date", OPTION_FLAG, &o.date, NULL,
      "state when the page was made; without it, the same model gives the same page" },
    { "--batch", OPTION_INT, &o.job.batch, "N",
      "size of the open first dim of the inputs; default 1", OPTION_COUNT },
    { "--shape", OPTION_LIST, &o.job.shapes, "NAME=DIMS",
      "sizes of an input: x=1x3x224x224; may be repeated" },
    { "--weights", OPTION_TEXT, &o.job.weights, "FILE", "for zoo:NAME" },
    LINK_ROOT_OPTION,
    { "--precision", OPTION_TEXT, &o.job.precision, "NAME",
      "with --profile: as in facula profile" },
    DEVICE_OPTIONS(o.job.device),
    { "--json", OPTION_FLAG, &o.json, NULL,
      "print what was written as JSON, as docs/JSON.md describes" },
    { 0 }
};

/* ---- the machine of the roofline ---- */

static int machine_find(const fac_timing *timing, fac_page_opts *to, fac_peaks *peaks) {
    fac_error err = { 0 };
    fac_device *d = NULL;
    if (o.target) {
        to->machine = "the machine given with --target";
        if (fac_page_machine(o.target, &to->flops, &to->bytes)) return EXIT_OK;
        return usage_error(
            verb_find("report"),
            "--target needs operations and bytes a second such as 350G,20G, not \"%s\"", o.target);
    }
    if (!timing && !o.peaks) return EXIT_OK;
    if (timing) *peaks = timing->peaks;
    int code = timing ? EXIT_OK : device_open(&o.job.device, &d);
    if (!code && d && fac_device_peaks(d, peaks, &err)) code = fail(&err);
    fac_device_free(d);
    to->machine = "this machine, as measured";
    to->flops = peaks->flops;
    to->bytes = peaks->memory_read;
    to->peaks = peaks;
    return code;
}

/* ---- the page ---- */

/* The facts themselves are those of summary, inspect and profile. */
static int written_json(const char *name, const fac_analysis *a, size_t bytes) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "model", name);
    cJSON_AddStringToObject(root, "file", o.to);
    cJSON_AddNumberToObject(root, "bytes", (double)bytes);
    cJSON_AddNumberToObject(root, "layers", fac_analysis_totals(a).layers);
    cJSON_AddBoolToObject(root, "measured", o.profile);
    return json_print(root);
}

/* Where a page goes: what was written, and how that went. */
typedef struct written {
    size_t bytes;
    int code;
} written;

static fac_status put(void *self, const char *text, size_t n, fac_error *err) {
    written *w = self;
    (void)err;
    w->bytes = n;
    if (strcmp(o.to, "-"))
        w->code = file_write(o.to, text, n);
    else
        out_raw(text, stdout);
    return FAC_OK;
}

static int build(const char *name, const model *m, const fac_analysis *a,
                 const fac_timing *timing) {
    fac_error err = { 0 };
    fac_peaks peaks;
    fac_memory_facts memory = { 0 };
    written w = { 0 };
    char date[32];
    const time_t seconds = time(NULL);
    struct tm day;
    fac_page_opts opts = {
        .name = name, .about = m->zoo ? m->zoo->help : NULL, .memory = &memory, .time = timing
    };
    int code = machine_find(timing, &opts, &peaks);
    if (!code) code = memory_find(a, m, &o.job.shapes, o.job.batch, &memory);
    if (o.date && gmtime_r(&seconds, &day) && strftime(date, sizeof date, "%Y-%m-%d", &day))
        opts.date = date;
    if (!code && fac_page_write(m->graph, a, &opts, put, &w, &err)) code = fail(&err);
    fac_memory_facts_free(&memory);
    if (code || w.code) return code ? code : w.code;
    if (!strcmp(o.to, "-")) return EXIT_OK;
    if (o.json) return written_json(name, a, w.bytes);
    printf("%s: %.0f kB\n", o.to, 1e-3 * (double)w.bytes);
    return EXIT_OK;
}

static int run(list args) {
    const verb *self = verb_find("report");
    static profile time_of;
    model m = { 0 };
    fac_error err = { 0 };
    fac_analysis *a = NULL;
    const int wrong = arguments_fit(self, args, 1, 1, "which model?");
    if (wrong) return wrong;
    if (!o.to) return usage_error(self, "-o FILE.html: where to?");
    if (o.json && !strcmp(o.to, "-"))
        return usage_error(self, "--json and the page cannot both go to standard output");
    if (!o.profile && (option_given(&o.seconds) || o.job.precision))
        return usage_error(self, "--seconds and --precision need --profile: nothing is run");
    const int idle = o.profile || o.peaks
                         ? EXIT_OK
                         : options_idle(self, device_names, "goes with --profile or --peaks");
    if (idle) return idle;
    if (o.target && o.peaks)
        return usage_error(self, "--target cannot go with --peaks: the roofline has one machine");
    int code = memory_limit(o.job.device.memory_limit);
    if (!code) code = model_load(args.at[0], o.job.weights, &o.job.shapes, 0, &m);
    if (!code) code = batch_fits(m.graph, fac_graph_inputs(m.graph) > 0, o.job.batch);
    if (!code && fac_analyze(m.graph, o.job.batch, &a, &err)) code = fail(&err);
    if (!code && o.profile) code = profile_measure(&time_of, self, &o.job, args.at[0], o.seconds);
    if (!code) code = build(args.at[0], &m, a, o.profile ? &time_of.t : NULL);
    profile_free(&time_of);
    fac_analysis_free(a);
    model_free(&m);
    return code;
}

const verb verb_report = {
    .name = "report",
    .summary = "write a page about a model: graph, costs, memory, roofline",
    .usage = "facula report MODEL -o "
             "FILE.html [options]",
    .options = options,
    .examples =
        "report model.onnx -o model.html\nreport model.onnx -o model.html --profile --peaks",
    .run = run,
    .more = "MODEL is zoo:NAME, FILE.onnx, or FILE.txt as `facula show` writes it.  The page is "
            "one file: it\nfetches nothing, can be read without its script, prints, and follows "
            "the browser's light or dark\nscheme.  `facula summary`, `inspect` and `profile` print "
            "the same numbers as text and as JSON."
};
