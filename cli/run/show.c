/* facula show: the text of a model's graph, which reads back. */
#include <string.h>
#include "cli.h"

static struct { const char *weights, *memory; list shapes; } o;
static const option options[] = {
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME" },
    LINK_ROOT_OPTION,
    { "--shape", OPTION_LIST, &o.shapes, "NAME=DIMS", "sizes of an input" },
    { "--memory-limit", OPTION_TEXT, &o.memory, "SIZE", "memory this process may take, such as 2G" },
    { 0 } };

static int run(list args) {
    model m = { 0 };
    fac_error err = { 0 };
    if (args.n != 1) return usage_error(verb_find("show"), "which model?");
    int code = memory_limit(o.memory);
    if (!code) code = model_load(args.at[0], o.weights, &o.shapes, 0, &m);
    if (!code && fac_graph_write(m.graph, stdout, &err)) code = fail(&err);
    model_free(&m);
    return code;
}

const verb verb_show = { .name = "show", .summary = "the graph of a model as text", .usage = "facula show MODEL [options]", .options = options, .run = run,
                         .more = "One node a line.  Saved as FILE.txt it is a model again: `facula run FILE.txt`." };
