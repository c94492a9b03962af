/* A language model as a job: a step of decoding, one token of each slot after a few others. */
#include <string.h>
#include <sys/stat.h>
#include "job.h"

enum {
    BEFORE = 63, /* tokens that the step's one sees, where the context has so many */
    MOST_SLOTS = 1024
};

static bool ends(const char *path, const char *with) {
    const size_t n = strlen(path), m = strlen(with);
    return n >= m && !strcmp(path + n - m, with);
}

bool job_is_language(const char *what) {
    char path[4096];
    struct stat about;
    if (ends(what, ".gguf")) return true;
    const int n = snprintf(path, sizeof path, "%s/config.json", what);
    return n > 0 && (size_t)n < sizeof path && !stat(path, &about);
}

/* Options that say nothing of a step of decoding are refused. */
static int check(const verb *v, const job_options *o) {
    if (o->train || o->shapes.n || o->weights || o->solver || o->inputs)
        return usage_error(v, "of a language model a step of decoding is measured: without "
                              "--train, --shape, --weights, --solver and --inputs");
    if (o->batch > MOST_SLOTS)
        return usage_error(v, "--batch of a language model: at most %d slots", MOST_SLOTS);
    return EXIT_OK;
}

/* One step after others, so that there is a run to repeat. */
static int first_step(fac_session *s, int slots, int64_t context) {
    static const int32_t ids[BEFORE];
    fac_error err = { 0 };
    const int64_t before = context > BEFORE ? BEFORE : context - 1;
    for (int k = before < 1; k < 2; k++) {
        for (int at = 0; at < slots; at++)
            if (fac_session_feed(s, at, ids, k ? 1 : before, &err)) return fail(&err);
        if (fac_session_step(s, &err)) return fail(&err);
    }
    return EXIT_OK;
}

int job_open_language(job *j, const verb *v, const job_options *o, const char *what) {
    fac_error err = { 0 };
    numerics how;
    const double start = now();
    int code = check(v, o);
    if (!code) code = precision_read(v, o->precision, &how);
    if (!code && how.mixed)
        code = usage_error(v, "--precision of a language model: highest, high or medium");
    if (!code) code = device_open(&o->device, &j->device);
    if (code) return code;
    const fac_lm_opts opts = { .precision = how.products };
    const int slots = o->batch ? (int)o->batch : 1;
    if (fac_lm_load(what, j->device, &opts, &j->lm, &err) ||
        fac_session_new_slots(j->lm, slots, &j->session, &err))
        return fail(&err);
    code = first_step(j->session, slots, fac_lm_about(j->lm).context);
    if (code) return code;
    const fac_session_run run = fac_session_last(j->session);
    j->program = run.program;
    j->in = run.in;
    j->out = run.out;
    j->nin = run.nin;
    j->nout = run.nout;
    j->loaded = now() - start;
    return EXIT_OK;
}
