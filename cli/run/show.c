/* facula show: the text of a model's graph, which reads back. */
#include <string.h>
#include "cli.h"

static struct {
    const char *weights, *after;
    list shapes;
    device_options device;
} o;
static const option options[] = { { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME" },
                                  LINK_ROOT_OPTION,
                                  { "--shape", OPTION_LIST, &o.shapes, "NAME=DIMS",
                                    "sizes of an input: x=1x3x224x224; may be repeated" },
                                  { "--after", OPTION_TEXT, &o.after, "PASS",
                                    "print the planner's graph after this pass instead" },
                                  DEVICE_OPTIONS(o.device),
                                  { 0 } };

static int no_such_pass(void) {
    fac_pass_info p;
    char names[1000] = "";
    for (int i = 0; fac_pass_info_of(i, &p); i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", p.name);
    }
    return usage_error(verb_find("show"), "--after: no pass \"%s\", but %s", o.after, names);
}

static bool is_pass(const char *name) {
    fac_pass_info p;
    for (int i = 0; fac_pass_info_of(i, &p); i++)
        if (!strcmp(p.name, name)) return true;
    return false;
}

/* The graph of its program on the device, instead of the model's own. */
static int plan_until(model *m) {
    fac_error err = { 0 };
    fac_device *device = NULL;
    fac_graph *after = NULL;
    int code = device_open(&o.device, &device);
    if (!code && fac_graph_after(m->graph, device, NULL, o.after, &after, &err)) code = fail(&err);
    if (!code && fac_graph_write(after, stdout, &err)) code = fail(&err);
    fac_graph_free(after);
    fac_device_free(device);
    return code;
}

static int run(list args) {
    model m = { 0 };
    fac_error err = { 0 };
    const int wrong = arguments_fit(verb_find("show"), args, 1, 1, "which model?");
    if (wrong) return wrong;
    if (o.after && !is_pass(o.after)) return no_such_pass();
    int code =
        o.after ? EXIT_OK : options_idle(verb_find("show"), device_names, "goes with --after PASS");
    if (!code) code = memory_limit(o.device.memory_limit);
    if (!code) code = model_load(args.at[0], o.weights, &o.shapes, 0, &m);
    if (!code && o.after)
        code = plan_until(&m);
    else if (!code && fac_graph_write(m.graph, stdout, &err))
        code = fail(&err);
    model_free(&m);
    return code;
}

const verb verb_show = {
    .name = "show",
    .summary = "print the graph of a model as text",
    .usage = "facula show MODEL [options]",
    .options = options,
    .examples = "show model.onnx > model.txt\nshow zoo:resnet50 --after sweep --isa avx2",
    .run = run,
    .more = "Each line is a node.  Saved as FILE.txt the text is a model again: `facula run "
            "FILE.txt`.\n\n--after PASS prints what the planner makes of the graph for a device, "
            "where all open sizes are 1.\nThe passes go from settle and simplify to sweep; a name "
            "that is none of them prints the list."
};
