/* facula diff: how two models differ in structure. */
#include <math.h>
#include <string.h>
#include "json.h"

static struct {
    const char *weights;
    list shapes;
    long top;
    bool names, order, structure, json;
} o = { .top = 100 };
static const option options[] = {
    { "--names", OPTION_FLAG, &o.names, NULL, "count other names as differences, and list them" },
    { "--order", OPTION_FLAG, &o.order, NULL,
      "count another order of execution as a difference, and list it" },
    { "--structure", OPTION_FLAG, &o.structure, NULL, "do not compare the contents of parameters" },
    { "--top", OPTION_INT, &o.top, "N", "how many lines to print; default 100", OPTION_TALLY },
    { "--shape", OPTION_LIST, &o.shapes, "NAME=DIMS",
      "sizes of an input of both models: x=1x3x224x224; may be repeated" },
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME" },
    LINK_ROOT_OPTION,
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

enum { EXIT_DIFFERENT = 1, EXIT_WRONG = 2 };

static const char *const things[] = { "input", "parameter", "node", "output" };
static const char *const words[] = { "added", "removed", "changed", "rewired", "renamed", "moved" };

static bool shown(const fac_change *c) {
    return (c->kind != FAC_RENAMED || o.names) && (c->kind != FAC_MOVED || o.order);
}

/* ---- lines ---- */

static void print_change(const fac_change *c) {
    static const char signs[] = "+-~~~~";
    static const char *const colours[] = { "32", "31", "33", "36", "34", "34" };
    style(stdout, colours[c->kind]);
    printf("%c %-9s  ", signs[c->kind], things[c->of]);
    if (c->a && c->b && strcmp(c->a, c->b))
        printf("%s -> %s", c->a, c->b);
    else
        printf("%s", c->b ? c->b : c->a);
    if (*c->text || c->kind == FAC_MOVED)
        printf(":  %s%s", c->text, c->kind == FAC_MOVED ? "runs at another place" : "");
    style(stdout, "0");
    putchar('\n');
}

/* "3 nodes added, 1 changed" */
static void print_counts(const int *counts, const char *one, const char *many, bool *any) {
    for (int k = 0; k < FAC_CHANGE_KINDS; k++) {
        if (!counts[k]) continue;
        if (*any) printf(", ");
        printf("%d %s %s", counts[k], counts[k] == 1 ? one : many, words[k]);
        *any = true;
    }
}

static void print_summary(const fac_diff_totals *t) {
    bool any = false;
    const int other = t->nodes[FAC_RENAMED] + t->leaves[FAC_RENAMED] + t->nodes[FAC_MOVED];
    style(stdout, t->same ? "32" : "31");
    printf("%s", t->same ? "the same" : "different");
    style(stdout, "0");
    printf("%s", other && t->same ? " but for: " : ": ");
    print_counts(t->nodes, "node", "nodes", &any);
    print_counts(t->leaves, "input, output or parameter", "inputs, outputs and parameters", &any);
    if (t->sizes)
        printf("%s%d results of other sizes because of that", any ? ", " : "", t->sizes),
            any = true;
    printf("%s%d node%s, %d parameter%s", any ? "; " : "", t->nodes_a, plural(t->nodes_a),
           t->params_a, plural(t->params_a));
    if (t->nodes_a != t->nodes_b || t->params_a != t->params_b)
        printf(" against %d and %d", t->nodes_b, t->params_b);
    putchar('\n');
}

static void print_all(const fac_differences *d, const fac_diff_totals *t) {
    const fac_change *c;
    long lines = 0;
    for (int i = 0; (c = fac_differences_get(d, i)); i++)
        if (shown(c) && lines++ < o.top) print_change(c);
    if (lines > o.top) printf("and %ld more (--top N)\n", lines - o.top);
    print_summary(t);
}

/* ---- JSON ---- */

static void json_text(cJSON *to, const char *key, const char *text) {
    if (text)
        cJSON_AddStringToObject(to, key, text);
    else
        cJSON_AddNullToObject(to, key);
}

static cJSON *json_change(const fac_change *c) {
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "of", things[c->of]);
    cJSON_AddStringToObject(j, "kind", words[c->kind]);
    json_text(j, "a", c->a);
    json_text(j, "b", c->b);
    cJSON_AddStringToObject(j, "text", c->text);
    if (c->share > 0) json_number(j, "share", c->share, 9);
    if (c->share > 0 && isfinite(c->largest)) json_number(j, "largest", c->largest, 9);
    return j;
}

static cJSON *json_counts(const int *counts) {
    cJSON *j = cJSON_CreateObject();
    for (int k = 0; k < FAC_CHANGE_KINDS; k++) cJSON_AddNumberToObject(j, words[k], counts[k]);
    return j;
}

static int json_all(const fac_differences *d, const fac_diff_totals *t, list args) {
    cJSON *root = cJSON_CreateObject();
    const fac_change *c;
    cJSON_AddNumberToObject(root, "schema_version", 1);
    cJSON_AddStringToObject(root, "a", args.at[0]);
    cJSON_AddStringToObject(root, "b", args.at[1]);
    cJSON_AddBoolToObject(root, "same", t->same);
    cJSON_AddItemToObject(root, "nodes", json_counts(t->nodes));
    cJSON_AddItemToObject(root, "leaves", json_counts(t->leaves));
    cJSON_AddNumberToObject(root, "other_sizes", t->sizes);
    cJSON *all = cJSON_AddArrayToObject(root, "changes");
    for (int i = 0; (c = fac_differences_get(d, i)); i++) cJSON_AddItemToArray(all, json_change(c));
    return json_print(root);
}

/* ---- the verb ---- */

/* 1 is an answer here, so whatever goes wrong is 2. */
static int compare(list args) {
    fac_error err = { 0 };
    model a = { 0 }, b = { 0 };
    fac_differences *d = NULL;
    const fac_diff_opts opts = { o.names, o.order, o.structure };
    int code = model_load(args.at[0], o.weights, &o.shapes, 0, &a);
    if (!code) code = model_load(args.at[1], o.weights, &o.shapes, 0, &b);
    if (!code && fac_diff(a.graph, b.graph, &opts, &d, &err)) code = fail(&err);
    if (!code) {
        const fac_diff_totals t = fac_differences_totals(d);
        if (o.json)
            code = json_all(d, &t, args);
        else
            print_all(d, &t);
        if (code)
            code = EXIT_WRONG;
        else
            code = t.same ? EXIT_OK : EXIT_DIFFERENT;
    } else {
        code = EXIT_WRONG;
    }
    fac_differences_free(d);
    model_free(&a);
    model_free(&b);
    return code;
}

static int run(list args) {
    const verb *self = verb_find("diff");
    const int wrong = arguments_fit(self, args, 2, 2, "which two models?");
    if (wrong) return wrong;
    return compare(args);
}

const verb verb_diff = {
    .name = "diff",
    .summary = "show how two models differ in structure",
    .usage = "facula diff A B [options]",
    .options = options,
    .examples = "diff before.onnx after.onnx\ndiff before.onnx after.onnx --names --structure",
    .run = run,
    .more =
        "Nodes are paired by what they compute, the parameters they read, their names and their "
        "neighbours.\nWhat merely follows from another change is not listed.  Changes of names or "
        "of order alone are\nstated in the last line and are no difference, unless --names or "
        "--order asks for them.  Whether two\nmodels are the same function is a question for "
        "`facula verify`.\n\nExit code: 0 the same, 1 different, 2 something went wrong."
};
