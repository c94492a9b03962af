/* facula edit: a model out of a model. */
#include <stdlib.h>
#include <string.h>
#include "json.h"

static struct {
    const char *output, *weights, *dtype, *memory;
    list shapes, inputs, outputs, names;
    long batch, opset;
    bool simplify, reorder, json;
} o;
static const option options[] = {
    { "-o", OPTION_TEXT, &o.output, "FILE.onnx", "where to" },
    { "--input", OPTION_LIST, &o.inputs, "NAME", "begin at this value: with --output, the part between (may be repeated)" },
    { "--output", OPTION_LIST, &o.outputs, "NAME", "end at this value (may be repeated)" },
    { "--rename", OPTION_LIST, &o.names, "OLD=NEW", "an input, output, parameter or value by another name (may be repeated)" },
    { "--batch", OPTION_INT, &o.batch, "N", "bind the open first dim, and 1 to all other open dims" },
    { "--shape", OPTION_LIST, &o.shapes, "NAME=DIMS", "sizes of an input: x=1x3x224x224" },
    { "--simplify", OPTION_FLAG, &o.simplify, NULL, "fold constants, drop what changes nothing, make equal nodes one" },
    { "--dtype", OPTION_TEXT, &o.dtype, "TYPE", "floats as f32, f16, bf16 or f64" },
    { "--reorder", OPTION_FLAG, &o.reorder, NULL, "nodes in an order that needs less memory (binds all sizes)" },
    { "--opset", OPTION_INT, &o.opset, "N", "of FILE.onnx: 13 to 26; default 18, or the next one that has every op" },
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME" },
    { "--memory-limit", OPTION_TEXT, &o.memory, "SIZE", "memory this process may take, such as 2G" },
    { "--json", OPTION_FLAG, &o.json, NULL, "for machines" },
    { 0 } };

/* What comes next in place of what there was; the first error stops the rest. */
static int step(fac_graph **g, fac_graph *next, fac_status status, const fac_error *err) {
    if (status) return fail(err);
    fac_graph_free(*g);
    *g = next;
    return EXIT_OK;
}

static int rename_all(fac_graph **g) {
    fac_error err = { 0 };
    int code = EXIT_OK;
    for (int k = 0; k < o.names.n && !code; k++) {
        const char *equals = strchr(o.names.at[k], '=');
        fac_graph *next = NULL;
        if (!equals || equals == o.names.at[k]) return fail_text("--rename needs OLD=NEW, not \"%s\"", o.names.at[k]);
        char *old = strndup(o.names.at[k], (size_t)(equals - o.names.at[k]));
        if (!old) return fail_text("out of memory");
        const fac_status status = fac_graph_rename(*g, old, equals + 1, &next, &err);
        code = step(g, next, status, &err);
        free(old);
    }
    return code;
}

static int edit(fac_graph **g) {
    fac_error err = { 0 };
    fac_graph *next = NULL;
    fac_dtype dtype = o.dtype ? fac_dtype_find(o.dtype) : FAC_NONE;
    fac_status status;
    int code = EXIT_OK;
    if (o.dtype && dtype == FAC_NONE)
        return fail_text("--dtype: there is no type \"%s\"; there are f32, f16, bf16, f64", o.dtype);
    if (o.outputs.n) {
        status = fac_graph_extract(*g, o.inputs.n, o.inputs.at, o.outputs.n, o.outputs.at, &next, &err);
        code = step(g, next, status, &err);
    }
    if (!code && o.batch > 0) status = fac_graph_sized(*g, o.batch, &next, &err), code = step(g, next, status, &err);
    if (!code && o.simplify) status = fac_graph_simplified(*g, &next, &err), code = step(g, next, status, &err);
    if (!code && o.dtype) status = fac_graph_floats(*g, dtype, &next, &err), code = step(g, next, status, &err);
    if (!code && o.reorder) status = fac_graph_reordered(*g, o.batch, &next, &err), code = step(g, next, status, &err);
    return code ? code : rename_all(g);
}

static int write_model(const fac_graph *g) {
    fac_error err = { 0 };
    fac_onnx_saved saved = { 0 };
    char bytes[32];
    if (fac_onnx_save(g, o.output, &(fac_onnx_save_opts){ .opset = (int)o.opset, .saved = &saved }, &err)) return fail(&err);
    if (o.json) {
        cJSON *root = cJSON_CreateObject();
        cJSON_AddStringToObject(root, "file", o.output);
        cJSON_AddNumberToObject(root, "opset", saved.opset);
        cJSON_AddNumberToObject(root, "nodes", saved.nodes);
        cJSON_AddNumberToObject(root, "bytes", (double)saved.bytes);
        return json_print(root);
    }
    printf("%s: opset %d, %d nodes, %d tensors, %s\n", o.output, saved.opset, saved.nodes, saved.tensors,
           bytes_text((double)saved.bytes, bytes, sizeof bytes));
    return EXIT_OK;
}

static int run(list args) {
    const verb *self = verb_find("edit");
    model m = { 0 };
    if (args.n != 1) return usage_error(self, "which model?");
    if (!o.output) return usage_error(self, "-o FILE.onnx: where to?");
    if (o.inputs.n && !o.outputs.n) return usage_error(self, "--input without --output: where does the part end?");
    if (o.batch < 0 || o.opset < 0) return usage_error(self, "--batch and --opset are positive");
    int code = memory_limit(o.memory);
    if (!code) code = model_load(args.at[0], o.weights, &o.shapes, 0, &m);
    fac_graph *g = code ? NULL : fac_graph_inference(m.graph);
    if (!code && !g) code = fail_text("out of memory");
    if (!code) code = edit(&g);
    if (!code) code = write_model(g);
    fac_graph_free(g);
    model_free(&m);
    return code;
}

const verb verb_edit = {
    .name = "edit", .summary = "a model out of a model: a part of it, other types, sizes, names, order",
    .usage = "facula edit MODEL -o OUT.onnx [options]",
    .options = options, .run = run,
    .more = "Done in this order: the part between values, sizes, simplify, dtype, order, names.  Values are called as in the file; `facula\n"
            "show` lists them.  `facula verify MODEL OUT.onnx` compares the result with what there was." };
