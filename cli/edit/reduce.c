/* facula reduce: the smallest model for which a command still succeeds. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "files.h"
#include "json.h"

static struct {
    const char *check, *output, *weights;
    list shapes;
    long max_runs, seed;
    double timeout;
    bool json, quiet, verbose;
} o = { .timeout = 60 };
static const option options[] = {
    { "--check", OPTION_TEXT, &o.check, "CMD",
      "shell command, in which {} is the model's file; exit status 0: the model is still "
      "interesting" },
    { "-o", OPTION_OUT, &o.output, "OUT",
      "where to write the smallest model so far; default reduced.onnx" },
    { "--max-runs", OPTION_INT, &o.max_runs, "N",
      "how often to run the command; default: until nothing can be taken away", OPTION_COUNT },
    { "--timeout", OPTION_REAL, &o.timeout, "S",
      "seconds after which a run counts as failed; default 60", "(0, inf)" },
    { "--seed", OPTION_INT, &o.seed, "S", "seed of random weights; default 0" },
    { "--shape", OPTION_LIST, &o.shapes, "NAME=DIMS",
      "sizes of an input: x=1x3x224x224; may be repeated" },
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME" },
    LINK_ROOT_OPTION,
    { "--verbose", OPTION_FLAG, &o.verbose, NULL,
      "pass the command's output on, to standard error" },
    { "--quiet", OPTION_FLAG, &o.quiet, NULL, "print no progress" },
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

enum { EXIT_INTERRUPTED = 130, EXIT_TERMINATED = 143 };
static volatile sig_atomic_t
    stopped; /* the signal that ends the search after the run in progress */

static void on_signal(int which) { stopped = which; }

typedef struct job {
    char *trial, *command;
    double begin;
    int timeouts, unsaved;
} job;

/* ---- the command ---- */

/* The path as sh reads it back, in a place that is quoted by '"', by '\'' or, 0, by nothing: at
 * most four times as long. */
static char *quoted(char *to, const char *path, char quote) {
    if (!quote) *to++ = '\'';
    for (; *path; path++) {
        if (*path == '\'' && quote != '"')
            to = stpcpy(to, "'\\''");
        else {
            if (quote == '"' && strchr("\\\"$`", *path)) *to++ = '\\';
            *to++ = *path;
        }
    }
    if (!quote) *to++ = '\'';
    return to;
}

/* The command with the path in place of each {}, or at its end. */
static char *with_path(const char *command, const char *path) {
    size_t holes = 1;
    for (const char *s = command; (s = strstr(s, "{}")); s += 2) holes++;
    char *text = malloc(strlen(command) + holes * (4 * strlen(path) + 3) + 1), *to = text,
         quote = 0;
    for (const char *s = command; text && *s;) {
        if (s[0] == '{' && s[1] == '}') {
            to = quoted(to, path, quote);
            s += 2;
            continue;
        }
        if (*s == '\\' && quote != '\'' && s[1])
            *to++ = *s++;
        else if (*s == quote)
            quote = 0;
        else if (!quote && (*s == '\'' || *s == '"'))
            quote = *s;
        *to++ = *s++;
    }
    if (text && holes == 1) {
        *to++ = ' ';
        to = quoted(to, path, 0);
    }
    if (text) *to = 0;
    return text;
}

/* In a process group of its own, so that all of it can be ended. */
static pid_t start(const char *command) {
    fflush(NULL);
    const pid_t child = fork();
    if (child) return child;
    setpgid(0, 0);
    const int out = o.verbose ? STDERR_FILENO : open("/dev/null", O_WRONLY);
    if (out >= 0) dup2(out, STDOUT_FILENO);
    if (out >= 0 && !o.verbose) dup2(out, STDERR_FILENO);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static void end(pid_t child) {
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
}

/* Whether the command succeeds within the time. */
static fac_status run_command(job *j, fac_reduce_answer *answer, fac_error *err) {
    const pid_t child = start(j->command);
    if (child < 0) {
        err->status = FAC_E_IO;
        snprintf(err->text, sizeof err->text, "no process could be started: %s", strerror(errno));
        return err->status;
    }
    const double until = now() + o.timeout;
    for (long wait = 200000;; wait = wait < 20000000 ? 2 * wait : wait) {
        int status;
        const pid_t got = waitpid(child, &status, WNOHANG);
        if (got == child) {
            kill(-child, SIGKILL); /* what it left behind */
            *answer =
                WIFEXITED(status) && WEXITSTATUS(status) == 0 ? FAC_REDUCE_YES : FAC_REDUCE_NO;
            return FAC_OK;
        }
        if (stopped || now() > until) break;
        nanosleep(&(struct timespec){ 0, wait }, NULL);
    }
    end(child);
    j->timeouts += !stopped;
    *answer = stopped ? FAC_REDUCE_STOP : FAC_REDUCE_NO;
    return FAC_OK;
}

/* ---- one model ---- */

static void tell(const job *j, const fac_reduce_stat *s) {
    if (o.quiet || o.json || !isatty(STDERR_FILENO)) return;
    const double each = s->runs > 1 ? (now() - j->begin) / (s->runs - 1) : 0;
    fprintf(stderr, "\r\033[K%d run%s, %d kept, %d of %d node%s; %s %d of %d, %.0f s for these",
            s->runs, plural(s->runs), s->kept, s->nodes, s->at_first, plural(s->at_first), s->step,
            s->done, s->total, each * (s->total - s->done));
}

/* Written beside the best one, checked, and then in its place: there is a whole model at any
 * time. */
static fac_status check(void *self, const fac_graph *g, const fac_reduce_stat *stat,
                        fac_reduce_answer *answer, fac_error *err) {
    job *j = self;
    fac_error why = { 0 };
    tell(j, stat);
    *answer = stopped ? FAC_REDUCE_STOP : FAC_REDUCE_NO;
    if (stopped) return FAC_OK;
    if (fac_onnx_save(g, j->trial, NULL, &why)) {
        j->unsaved++;
        return stat->runs > 1 ? FAC_OK : (*err = why, why.status);
    }
    fac_status status = run_command(j, answer, err);
    return status || *answer != FAC_REDUCE_YES ? status : fac_onnx_save(g, o.output, NULL, err);
}

/* ---- the verb ---- */

static int report(const job *j, const fac_graph *g, const fac_reduce_stat *s) {
    const char *why = stopped ? "stopped" : "--max-runs";
    if (s->minimal) why = "no single step is left";
    if (!o.json) {
        const int in = fac_graph_inputs(g), out = fac_graph_outputs(g),
                  params = fac_graph_params(g);
        printf("%s: %d of %d node%s, %d input%s, %d output%s, %d parameter%s; %d run%s, %d kept, "
               "%d timed out, %.1f s; %s\n",
               o.output, s->nodes, s->at_first, plural(s->at_first), in, plural(in), out,
               plural(out), params, plural(params), s->runs, plural(s->runs), s->kept, j->timeouts,
               now() - j->begin, why);
        return EXIT_OK;
    }
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema_version", 1);
    cJSON_AddStringToObject(root, "file", o.output);
    cJSON_AddNumberToObject(root, "nodes_before", s->at_first);
    cJSON_AddNumberToObject(root, "nodes", s->nodes);
    cJSON_AddNumberToObject(root, "inputs", fac_graph_inputs(g));
    cJSON_AddNumberToObject(root, "outputs", fac_graph_outputs(g));
    cJSON_AddNumberToObject(root, "params", fac_graph_params(g));
    cJSON_AddNumberToObject(root, "runs", s->runs);
    cJSON_AddNumberToObject(root, "kept", s->kept);
    cJSON_AddNumberToObject(root, "timeouts", j->timeouts);
    cJSON_AddNumberToObject(root, "unwritable", j->unsaved);
    json_number(root, "seconds", now() - j->begin, 6);
    cJSON_AddBoolToObject(root, "minimal", s->minimal);
    return json_print(root);
}

static int work(job *j, const char *path) {
    model m = { 0 };
    fac_error err = { 0 };
    fac_graph *small = NULL;
    fac_reduce_stat stat = { 0 };
    int code = model_load(path, o.weights, &o.shapes, 0, &m);
    if (code) return code;
    const fac_reduce_opts opts = {
        .check = check, .self = j, .max_runs = (int)o.max_runs, .seed = (uint64_t)o.seed
    };
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    j->begin = now();
    const fac_status status = fac_reduce(m.graph, &opts, &small, &stat, &err);
    if (!o.quiet && !o.json && isatty(STDERR_FILENO)) clear_line(stderr);
    code = status ? fail(&err) : report(j, small, &stat);
    fac_graph_free(small);
    model_free(&m);
    if (!(stopped && !code)) return code;
    return stopped == SIGINT ? EXIT_INTERRUPTED : EXIT_TERMINATED;
}

static int run(list args) {
    const verb *self = verb_find("reduce");
    job j = { 0 };
    const int wrong = arguments_fit(self, args, 1, 1, "which model?");
    if (wrong) return wrong;
    if (!o.check) return usage_error(self, "--check says what must stay true");
    if (!o.output) o.output = "reduced.onnx";
    j.trial = malloc(strlen(o.output) + 16);
    if (j.trial) sprintf(j.trial, "%s.try.onnx", o.output);
    j.command = j.trial ? with_path(o.check, j.trial) : NULL;
    int code = j.command ? output_check(j.trial) : fail_text("out of memory");
    if (!code) {
        code = work(&j, args.at[0]);
        unlink(j.trial);
    }
    free(j.trial);
    free(j.command);
    return code;
}

const verb verb_reduce = {
    .name = "reduce",
    .summary = "shrink a model as long as a command succeeds",
    .usage = "facula reduce MODEL --check CMD [-o OUT] [options]",
    .options = options,
    .examples = "reduce model.onnx --check '! facula run {} --random' -o small.onnx",
    .run = run,
    .more = "Nodes, inputs, outputs and attributes are taken away, sizes shrunk and weights "
            "simplified, in smaller\nand smaller steps, until no single step is left that keeps "
            "CMD's exit status 0.  OUT is the best model\nso far whenever the search is stopped."
};
