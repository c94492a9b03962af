/* facula: one command, a file per verb. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "cli.h"
#include "files.h"
#include "json_memory.h"
#include "man.h"

/* All verbs, in the order of the overview. */
/* clang-format off */
#define VERBS(X) \
    X(run) X(listen) X(train) X(evaluate) X(predict) X(plot) X(bench) \
    X(profile) X(peaks) X(tune) X(export) X(conformance) X(show) \
    X(summary) X(inspect) X(report) X(tile) X(verify) X(edit) \
    X(activations) X(diff) X(reduce) X(generate) X(chat) X(tokenize) \
    X(perplexity) X(embed) X(quantize) X(serve) X(studio) X(pack) \
    X(op) X(zoo) X(devices) X(version) X(completion) X(help_)
/* clang-format on */

#define DECLARED(name) extern const verb verb_##name;
VERBS(DECLARED)
#define LISTED(name) &verb_##name,
const verb *const verbs[] = { VERBS(LISTED) NULL };

const verb *verb_find(const char *name) {
    for (const verb *const *v = verbs; *v; v++)
        if (!strcmp((*v)->name, name)) return *v;
    return NULL;
}

static void overview(FILE *to) {
    fprintf(to,
            "facula %s: trains, runs, inspects and rewrites neural networks\n\nusage: facula VERB "
            "[arguments]\n\n",
            FACULA_VERSION);
    for (const verb *const *v = verbs; *v; v++)
        fprintf(to, "  %-12s %s\n", (*v)->name, (*v)->summary);
    fprintf(to, "\n`facula help VERB` tells more.  Exit codes: 0 done, 1 failed, 2 wrong usage,\n"
                "130 and 143 stopped by Ctrl-C or SIGTERM.\n");
}

static bool as_man;
static const option help_options[] = {
    { "--man", OPTION_FLAG, &as_man, NULL,
      "print a page of the manual instead, in the language of man(7)" },
    { 0 }
};

static int help(list args) {
    const int wrong = arguments_fit(verb_find("help"), args, 0, 1, "");
    if (wrong) return wrong;
    if (args.n == 0) {
        if (as_man)
            man_overview();
        else
            overview(stdout);
        return EXIT_OK;
    }
    const verb *v = verb_find(args.at[0]);
    if (!v) return usage_error(NULL, "there is no verb \"%s\"", args.at[0]);
    if (as_man)
        man_verb(v);
    else
        verb_help(v, stdout);
    return EXIT_OK;
}

const verb verb_help_ = { .name = "help",
                          .summary = "explain a verb and its options",
                          .usage = "facula help [VERB]",
                          .options = help_options,
                          .examples = "help train\nhelp --man run | man -l -",
                          .run = help };

static int started(const verb *v, list args) {
    if (link_root && !is_folder(link_root))
        return usage_error(v, "--link-root %s: there is no such folder", link_root);
    int code = files_check(v, args);
    if (!code) code = v->run(args);
    return !code && json_lost() ? fail_text("out of memory") : code;
}

static int work(int argc, char **argv) {
    if (argc < 2) {
        overview(stderr);
        return EXIT_USAGE;
    }
    json_start();
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) name = "help";
    if (!strcmp(name, "--version")) name = "version";
    const verb *v = verb_find(name);
    if (!v) return usage_error(NULL, "there is no verb \"%s\"", name);
    list args = { 0 };
    int code = options_parse(v, argc - 2, argv + 2, &args);
    if (code < 0) code = started(v, args);
    free(args.at);
    return code;
}

int main(int argc, char **argv) {
    out_begin();
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error as a full disk is */
    return out_end(work(argc, argv));
}
