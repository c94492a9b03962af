/* facula tune: measures which solvers are fastest, and remembers them. */
#include <math.h>
#include <string.h>
#include <unistd.h>
#include "job.h"
#include "json.h"

static struct {
    job_options job;
    const char *output;
    double seconds;
    long rounds, most;
    bool merge, export, list, faster, all, json;
} o;

static const option options[] = {
    JOB_OPTIONS(o.job),
    { "--seconds", OPTION_REAL, &o.seconds, "S", "seconds to measure in each pass; default 0.2",
      "(0, inf)" },
    { "--rounds", OPTION_INT, &o.rounds, "N", "how many times to measure all candidates; default 2",
      "[1, 1000]" },
    { "--most", OPTION_INT, &o.most, "N",
      "most candidates of a problem, those with the least estimates; default all that may win",
      "[1, 1000]" },
    { "--merge", OPTION_FLAG, &o.merge, NULL,
      "write the best of several wisdom files, the arguments, to -o" },
    { "--export", OPTION_FLAG, &o.export, NULL, "write what is known for this device to -o" },
    { "--list", OPTION_FLAG, &o.list, NULL, "print what is known for this device" },
    { "--faster", OPTION_FLAG, &o.faster, NULL,
      "with --export or --list: only where estimates choose worse" },
    { "-o", OPTION_OUT, &o.output, "FILE", "the file that --merge or --export writes" },
    DEVICE_OPTIONS(o.job.device),
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { "--all", OPTION_FLAG, &o.all, NULL, "with --json: print the times of all candidates" },
    { 0 }
};

/* ---- the file ---- */

/* Where wisdom is kept, and what is in it so far. */
static int open_wisdom(char path[4096], fac_wisdom **out) {
    fac_error err = { 0 };
    if (o.job.device.wisdom)
        snprintf(path, 4096, "%s", o.job.device.wisdom);
    else if (!fac_wisdom_path(path, 4096))
        return fail_text("no file for wisdom: give one with --wisdom or FACULA_WISDOM");
    if (!*path) return fail_text("no file for wisdom: --wisdom is empty");
    if (access(path, F_OK)) return fac_wisdom_new(out, &err) ? fail(&err) : EXIT_OK;
    return fac_wisdom_load(path, out, &err) ? fail(&err) : EXIT_OK;
}

static int save(const fac_wisdom *w, const char *path) {
    fac_error err = { 0 };
    const int code = folders_above(path);
    if (code) return code;
    return fac_wisdom_save(w, path, &err) ? fail(&err) : EXIT_OK;
}

static void solver_text(const char *solver, int variant, char to[128]) {
    if (variant)
        snprintf(to, 128, "%s:%d", solver, variant);
    else
        snprintf(to, 128, "%s", solver);
}

static void entry_json(cJSON *to, const fac_wisdom_entry *e) {
    char solver[128];
    cJSON *c = cJSON_CreateObject();
    solver_text(e->solver, e->variant, solver);
    cJSON_AddItemToArray(to, c);
    cJSON_AddStringToObject(c, "problem", e->problem);
    cJSON_AddStringToObject(c, "solver", solver);
    json_number(c, "before_us", 1e6 * e->otherwise, 4);
    json_number(c, "after_us", 1e6 * e->seconds, 4);
}

/* How many entries a file got; device: whose, or NULL. */
static int saved(const fac_wisdom *w, const char *device, const char *path) {
    const size_t n = fac_wisdom_count(w);
    if (!o.json) {
        printf("%zu %s", n, n == 1 ? "entry" : "entries");
        if (device) printf(" of %s", device);
        printf(" in %s\n", path);
        return EXIT_OK;
    }
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "file", path);
    cJSON_AddNumberToObject(root, "count", (double)n);
    if (device) cJSON_AddStringToObject(root, "device", device);
    return json_print(root);
}

static int merge(list args) {
    fac_error err = { 0 };
    fac_wisdom *all = NULL, *one;
    if (!o.output || args.n < 1)
        return usage_error(verb_find("tune"),
                           "--merge takes wisdom files, and -o FILE for the result");
    int code = fac_wisdom_new(&all, &err) ? fail(&err) : EXIT_OK;
    for (int i = 0; i < args.n && !code; i++) {
        if (fac_wisdom_load(args.at[i], &one, &err))
            code = fail(&err);
        else {
            if (fac_wisdom_merge(all, one, &err)) code = fail(&err);
            fac_wisdom_free(one);
        }
    }
    if (!code) code = save(all, o.output);
    if (!code) code = saved(all, NULL, o.output);
    fac_wisdom_free(all);
    return code;
}

/* ---- what is known ---- */

static void print_entry(const fac_wisdom_entry *e) {
    char solver[128];
    solver_text(e->solver, e->variant, solver);
    printf("%10.1f %10.1f  %-28s %s\n", 1e6 * e->otherwise, 1e6 * e->seconds, solver, e->problem);
}

static void heading(void) {
    printf("%10s %10s  %-28s %s\n", "us before", "after", "solver", "problem");
}

/* Entries of the device, copied to a wisdom of their own. */
static int of_device(const fac_wisdom *w, const fac_device *d, fac_wisdom *to) {
    fac_error err = { 0 };
    for (size_t i = 0; i < fac_wisdom_count(w); i++) {
        const fac_wisdom_entry e = fac_wisdom_at(w, i);
        if (strcmp(e.device, fac_device_key(d)) || (o.faster && e.seconds >= e.otherwise)) continue;
        if (fac_wisdom_put(to, &e, &err)) return fail(&err);
    }
    return EXIT_OK;
}

static int print_known(const fac_wisdom *own, const fac_device *d, const char *path) {
    cJSON *root = o.json ? cJSON_CreateObject() : NULL;
    cJSON *entries = root ? cJSON_AddArrayToObject(root, "entries") : NULL;
    if (root) {
        cJSON_AddStringToObject(root, "wisdom", path);
        cJSON_AddStringToObject(root, "device", fac_device_key(d));
    } else {
        printf("%s, device %s\n", path, fac_device_key(d));
        heading();
    }
    for (size_t i = 0; i < fac_wisdom_count(own); i++) {
        const fac_wisdom_entry e = fac_wisdom_at(own, i);
        if (root)
            entry_json(entries, &e);
        else
            print_entry(&e);
    }
    return root ? json_print(root) : EXIT_OK;
}

static int known(void) {
    fac_error err = { 0 };
    fac_wisdom *w = NULL, *own = NULL;
    fac_device *d = NULL;
    char path[4096];
    if (o.export && !o.output) return usage_error(verb_find("tune"), "--export needs -o FILE");
    device_options plain = o.job.device;
    plain.wisdom = "";
    int code = open_wisdom(path, &w);
    if (!code) code = device_open(&plain, &d);
    if (!code && fac_wisdom_new(&own, &err)) code = fail(&err);
    if (!code) code = of_device(w, d, own);
    if (!code && o.list) code = print_known(own, d, path);
    if (!code && o.export) code = save(own, o.output);
    if (!code && o.export) code = saved(own, fac_device_key(d), o.output);
    fac_wisdom_free(own);
    fac_wisdom_free(w);
    fac_device_free(d);
    return code;
}

/* ---- tuning ---- */

typedef struct watcher {
    double start;
    cJSON *all;
} watcher; /* all: NULL, nobody asked */

static void show_progress(void *self, int pass, int passes) {
    progress("tuning", pass, passes, ((watcher *)self)->start);
}

static void note(void *self, const char *problem, const fac_tuned *t) {
    char solver[128];
    watcher *w = self;
    cJSON *c;
    if (!w->all) return;
    solver_text(t->solver, t->variant, solver);
    cJSON_AddItemToArray(w->all, c = cJSON_CreateObject());
    cJSON_AddStringToObject(c, "problem", problem);
    cJSON_AddStringToObject(c, "solver", solver);
    json_number(c, "estimate_us", isfinite(t->estimate) ? 1e6 * t->estimate : 0, 4);
    json_number(c, "us", isfinite(t->seconds) ? 1e6 * t->seconds : 0, 4);
}

static cJSON *to_json(const char *what, const fac_tune_stat *s, const fac_wisdom *learnt,
                      cJSON *all) {
    cJSON *j = cJSON_CreateObject(), *entries;
    cJSON_AddStringToObject(j, "model", what);
    cJSON_AddNumberToObject(j, "problems", s->problems);
    cJSON_AddNumberToObject(j, "candidates", s->candidates);
    cJSON_AddNumberToObject(j, "changed", s->changed);
    cJSON_AddNumberToObject(j, "refused", s->refused);
    cJSON_AddNumberToObject(j, "winners", s->winners);
    cJSON_AddNumberToObject(j, "confirmed", s->confirmed);
    json_number(j, "together_ms", 1e3 * s->together, 6);
    json_number(j, "before_ms", 1e3 * s->before, 6);
    json_number(j, "after_ms", 1e3 * s->after, 6);
    cJSON_AddItemToObject(j, "entries", entries = cJSON_CreateArray());
    for (size_t i = 0; i < fac_wisdom_count(learnt); i++) {
        const fac_wisdom_entry e = fac_wisdom_at(learnt, i);
        entry_json(entries, &e);
    }
    if (all) cJSON_AddItemToObject(j, "measured", all);
    return j;
}

static void print(const char *what, const fac_tune_stat *s, const fac_wisdom *learnt) {
    printf("%s: %d problem%s, %d candidate%s\n", what, s->problems, plural(s->problems),
           s->candidates, plural(s->candidates));
    heading();
    for (size_t i = 0; i < fac_wisdom_count(learnt); i++) {
        const fac_wisdom_entry e = fac_wisdom_at(learnt, i);
        print_entry(&e);
    }
    printf("a run: %.3f ms by estimates, %.3f ms with what was learnt (%d changed", 1e3 * s->before,
           1e3 * s->after, s->changed);
    printf(s->refused ? ", %d faster ones refused: their results are wrong)\n" : ")\n", s->refused);
    if (s->winners)
        printf("of %d that seemed faster %d were so again, together %.3f ms%s\n", s->winners,
               s->confirmed, 1e3 * s->together,
               s->confirmed && !s->changed ? ": not faster as a whole, so none is kept" : "");
}

static int tune(const char *what, fac_wisdom *all, cJSON *rows) {
    fac_error err = { 0 };
    fac_wisdom *learnt = NULL;
    fac_tune_stat stat;
    job_options plain = o.job;
    job j = { 0 };
    watcher watching = { now(), rows && o.all ? cJSON_CreateArray() : NULL };
    plain.device.wisdom = "";
    const fac_tune_opts opts = { o.seconds, (int)o.rounds, show_progress,
                                 &watching, (int)o.most,   note };
    int code = job_open(&j, verb_find("tune"), &plain, what);
    if (!code && fac_wisdom_new(&learnt, &err)) code = fail(&err);
    if (!code && fac_program_tune(j.program, j.in, &opts, learnt, &stat, &err)) code = fail(&err);
    for (size_t i = 0; !code && i < fac_wisdom_count(learnt); i++) {
        const fac_wisdom_entry e = fac_wisdom_at(learnt, i);
        if (fac_wisdom_put(all, &e, &err)) code = fail(&err);
    }
    if (!code && rows)
        cJSON_AddItemToArray(rows, to_json(what, &stat, learnt, watching.all));
    else
        cJSON_Delete(watching.all);
    if (!code && !rows) print(what, &stat, learnt);
    fac_wisdom_free(learnt);
    job_close(&j);
    return code;
}

static int run(list args) {
    if (o.merge + o.export + o.list > 1)
        return usage_error(verb_find("tune"), "one of --merge, --export and --list");
    if (o.merge) return merge(args);
    const bool knows = o.export || o.list;
    const int wrong = arguments_fit(verb_find("tune"), args, !knows, knows ? 0 : ANY_NUMBER,
                                    "which models or problems?");
    if (wrong) return wrong;
    if (o.output && !o.export)
        return usage_error(verb_find("tune"), "-o is for --merge and --export: --wisdom FILE says "
                                              "where what is learnt goes");
    if (knows) return known();
    if (o.faster) return usage_error(verb_find("tune"), "--faster is for --export and --list");
    if (o.all && !o.json) return usage_error(verb_find("tune"), "--all is for --json");
    char path[4096];
    fac_wisdom *all = NULL;
    int code = open_wisdom(path, &all);
    cJSON *root = o.json ? cJSON_CreateObject() : NULL,
          *rows = root ? cJSON_AddArrayToObject(root, "tuned") : NULL;
    for (int i = 0; i < args.n && !code; i++) code = tune(args.at[i], all, rows);
    if (!code) code = save(all, path);
    if (!code && root)
        cJSON_AddStringToObject(root, "wisdom", path);
    else if (!code)
        printf("wisdom: %zu entr%s in %s\n", fac_wisdom_count(all),
               fac_wisdom_count(all) == 1 ? "y" : "ies", path);
    fac_wisdom_free(all);
    if (code || !root) {
        cJSON_Delete(root);
        return code;
    }
    return json_print(root);
}

const verb verb_tune = {
    .name = "tune",
    .summary = "measure which solvers are fastest here, and remember them",
    .usage = "facula tune MODEL|PROBLEM... [options]\n       facula tune --merge FILE... -o FILE\n"
             "       facula tune --export -o FILE | --list [--faster]",
    .options = options,
    .examples = "tune model.onnx --threads 2\ntune --merge a.wisdom b.wisdom -o both.wisdom\ntune "
                "--list --faster",
    .run = run,
    .more = "Each model is run many times, in each pass with other solvers for its nodes.  Those "
            "are kept that\nare the fastest twice and whose results are those of the reference "
            "kernels, or on other devices\nthan the cpu those of the cpu.  What is found goes to a "
            "text file, by device, instruction set,\nthreads and problem: --wisdom FILE, else "
            "FACULA_WISDOM, else ~/.local/share/facula/wisdom.  Every\nprogram reads it; without "
            "it the solvers' estimates decide.\n\n--batch, --precision, --train and --threads "
            "matter: tune with those that will be used."
};
