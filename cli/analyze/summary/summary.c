/* facula summary: what a model holds and costs, layer by layer, without running it. */
#include <string.h>
#include "analyze/bits.h"
#include "json.h"
#include "analyze/summary/summary.h"

static struct {
    const char *weights, *columns, *convention, *memory;
    list shapes;
    long depth, batch;
    bool json, table, names;
} o = { .depth = 3, .batch = 1 };
static const option options[] = {
    { "--depth", OPTION_INT, &o.depth, "N", "how many levels of modules to print; default 3",
      OPTION_COUNT },
    { "--columns", OPTION_TEXT, &o.columns, "A,B,...",
      "which columns, of kind, in, out, kernel, params, trainable, macs, share, memory, weights, "
      "bits, intensity" },
    { "--table", OPTION_FLAG, &o.table, NULL,
      "print the table that torchinfo prints: classes, shapes, sizes" },
    { "--names", OPTION_FLAG, &o.names, NULL,
      "with --table: print names of modules after their classes" },
    { "--convention", OPTION_TEXT, &o.convention, "NAME",
      "whose way of counting multiply-adds: core (default), torchinfo, ptflops, ptflops-modules, "
      "ptflops-aten, fvcore, thop or onnx-tool; all: a table of them" },
    { "--batch", OPTION_INT, &o.batch, "N", "size of the open first dim of the inputs; default 1",
      OPTION_COUNT },
    { "--shape", OPTION_LIST, &o.shapes, "NAME=DIMS",
      "sizes of an input: x=1x3x224x224; may be repeated" },
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME" },
    LINK_ROOT_OPTION,
    { "--memory-limit", OPTION_TEXT, &o.memory, "SIZE",
      "most memory that this process may take, such as 2G" },
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

/* ---- by kind ---- */

static void kinds_print(const fac_analysis *a, fac_convention c, double total) {
    fac_kind_row kinds[FAC_KINDS];
    char params[48], macs[48], part[16];
    const int n = fac_analysis_kinds(a, kinds, FAC_KINDS), widths[] = { -18, 6, 15, 17, 8 };
    putchar('\n');
    table_row(stdout, widths, 5, "kind", "layers", "parameters", "multiply-adds", "share");
    for (int k = 0; k < n; k++) {
        char layers[16];
        if (kinds[k].params <= 0 && kinds[k].count[c] <= 0) continue;
        snprintf(layers, sizeof layers, "%d", kinds[k].layers);
        snprintf(part, sizeof part, "%.2f %%", total > 0 ? 100 * kinds[k].count[c] / total : 0);
        table_row(stdout, widths, 5, kinds[k].kind, layers,
                  digits_text(kinds[k].params, params, sizeof params),
                  digits_text(kinds[k].count[c], macs, sizeof macs), part);
    }
}

/* ---- totals ---- */

static void totals_print(const fac_analysis *a, fac_convention c) {
    const fac_totals t = fac_analysis_totals(a);
    const fac_layer *top = fac_analysis_layer(a, t.peak_layer);
    char x[64], y[64], z[64];
    const double counted = fac_analysis_count(a, c);
    printf("\nparameters     %s", digits_text(t.params, x, sizeof x));
    if (t.buffers > 0) printf(", and %s in buffers", digits_text(t.buffers, x, sizeof x));
    printf("\nmultiply-adds  %s (%s)%s%s; %s FLOP; other operations %s\n",
           digits_text(counted, x, sizeof x), count_text(counted, y, sizeof y), c ? " as " : "",
           c ? fac_convention_name(c) : "", count_text(2 * counted, z, sizeof z),
           count_text(t.other, (char[32]){ 0 }, 32));
    printf("weights        %s: %s B of parameters", bytes_text(t.weights, x, sizeof x),
           digits_text(t.param_bytes, y, sizeof y));
    if (t.buffers > 0) printf(", %s B of buffers", digits_text(t.buffer_bytes, y, sizeof y));
    printf("\nresults        %s in all (%s B); ", bytes_text(t.activations, x, sizeof x),
           digits_text(t.activations, y, sizeof y));
    printf("at most %s (%s B) alive at once", bytes_text(t.peak, x, sizeof x),
           digits_text(t.peak, y, sizeof y));
    if (top) printf(", in %s", top->name);
    printf("\nmemory         %s with the weights; no order of the layers needs less than %s\n",
           bytes_text(t.peak + t.weights, x, sizeof x),
           bytes_text(t.bound + t.weights, y, sizeof y));
    bits_print(a);
}

static cJSON *json_of(const fac_analysis *a, int i, fac_convention c) {
    const fac_layer *l = fac_analysis_layer(a, i);
    cJSON *j = json_layer(l);
    cJSON_AddItemToObject(j, "output", json_type(fac_analysis_graph(a), &l->out));
    json_number(j, "params", l->params, 17);
    json_number(j, "buffers", l->buffers, 17);
    json_number(j, "shared_params", l->shared, 17);
    json_number(j, "macs", fac_layer_count(a, i, c), 17);
    json_number(j, "other_ops", l->other, 17);
    json_number(j, "read_bytes", l->read, 17);
    json_number(j, "written_bytes", l->written, 17);
    json_number(j, "weight_bytes", l->weights, 17);
    json_number(j, "alive_bytes", l->alive, 17);
    json_layer_facts(j, fac_analysis_graph(a), l);
    return j;
}

static cJSON *json_idle(const fac_analysis *a) {
    cJSON *all = cJSON_CreateArray();
    const fac_idle *idle;
    for (int i = 0; (idle = fac_analysis_idle(a, i)); i++) {
        cJSON *j = cJSON_CreateObject();
        cJSON_AddStringToObject(j, "module", idle->module);
        if (idle->kind) cJSON_AddStringToObject(j, "kind", idle->kind);
        cJSON_AddNumberToObject(j, "before", idle->before);
        cJSON_AddItemToObject(j, "output", json_type(fac_analysis_graph(a), &idle->out));
        cJSON_AddItemToArray(all, j);
    }
    return all;
}

static cJSON *json_kinds(const fac_analysis *a, fac_convention c) {
    fac_kind_row kinds[FAC_KINDS];
    const int n = fac_analysis_kinds(a, kinds, FAC_KINDS);
    cJSON *all = cJSON_CreateArray();
    for (int k = 0; k < n; k++) {
        cJSON *j = cJSON_CreateObject();
        cJSON_AddStringToObject(j, "kind", kinds[k].kind);
        cJSON_AddNumberToObject(j, "layers", kinds[k].layers);
        json_number(j, "params", kinds[k].params, 17);
        json_number(j, "macs", kinds[k].count[c], 17);
        cJSON_AddItemToArray(all, j);
    }
    return all;
}

static int print_json(const fac_analysis *a, const char *name, fac_convention c, bool all) {
    const fac_totals t = fac_analysis_totals(a);
    cJSON *root = cJSON_CreateObject(), *layers = cJSON_CreateArray();
    cJSON_AddNumberToObject(root, "schema_version", JSON_SCHEMA);
    cJSON_AddStringToObject(root, "model", name);
    cJSON_AddStringToObject(root, "convention", fac_convention_name(c));
    json_number(root, "params", t.params, 17);
    json_number(root, "buffers", t.buffers, 17);
    json_number(root, "macs", fac_analysis_count(a, c), 17);
    json_number(root, "other_ops", t.other, 17);
    json_number(root, "weight_bytes", t.weights, 17);
    json_number(root, "param_bytes", t.param_bytes, 17);
    json_number(root, "buffer_bytes", t.buffer_bytes, 17);
    json_number(root, "activation_bytes", t.activations, 17);
    json_number(root, "input_bytes", t.inputs, 17);
    json_number(root, "shape_tensor_bytes", t.shapes, 17);
    json_number(root, "peak_bytes", t.peak, 17);
    json_number(root, "bound_bytes", t.bound, 17);
    json_bits(root, &t);
    if (fac_analysis_open(a)) cJSON_AddStringToObject(root, "unknown", fac_analysis_open(a));
    if (fac_analysis_decided(a)) cJSON_AddStringToObject(root, "decided", fac_analysis_decided(a));
    if (all) {
        cJSON *counts = cJSON_AddObjectToObject(root, "conventions");
        for (int k = 0; k < FAC_CONVENTIONS; k++)
            json_number(counts, fac_convention_name((fac_convention)k),
                        fac_analysis_count(a, (fac_convention)k), 17);
    }
    cJSON_AddItemToObject(root, "kinds", json_kinds(a, c));
    for (int i = 0; fac_analysis_layer(a, i); i++) cJSON_AddItemToArray(layers, json_of(a, i, c));
    cJSON_AddItemToObject(root, "layers", layers);
    cJSON_AddItemToObject(root, "idle", json_idle(a));
    return json_print(root);
}

static fac_status put_line(void *self, const char *line, fac_error *err) {
    (void)self, (void)err;
    puts(line);
    return FAC_OK;
}

static int print_table(const fac_analysis *a) {
    fac_error err = { 0 };
    return fac_analysis_table(a, (int)o.depth, o.names, put_line, NULL, &err) ? fail(&err)
                                                                              : EXIT_OK;
}

static int report(const fac_analysis *a, const char *name, fac_convention c, bool all,
                  const int *columns, int n) {
    if (o.json) return print_json(a, name, c, all);
    if (o.table) return print_table(a);
    fac_error err = { 0 };
    fac_tree *tree;
    if (fac_analysis_tree(a, c, &tree, &err)) return fail(&err);
    tree_print(a, fac_tree_root(tree), o.depth, columns, n);
    fac_tree_free(tree);
    if (fac_analysis_open(a))
        printf("\nsizes are unknown (and count 0): %s\n", fac_analysis_open(a));
    if (fac_analysis_decided(a))
        printf("\nthese sizes decide which branch of %s is taken: --shape gives others\n",
               fac_analysis_decided(a));
    kinds_print(a, c, fac_analysis_count(a, c));
    totals_print(a, c);
    if (all) conventions_print(a);
    return EXIT_OK;
}

static int run(list args) {
    const verb *self = verb_find("summary");
    model m = { 0 };
    fac_error err = { 0 };
    fac_convention c = FAC_COUNT_CORE;
    fac_analysis *a = NULL;
    int columns[16], n = 0;
    const bool all = o.convention && !strcmp(o.convention, "all");
    const int wrong = arguments_fit(self, args, 1, 1, "which model?");
    if (wrong) return wrong;
    if (o.convention && !all && !fac_convention_find(o.convention, &c))
        return usage_error(self,
                           "--convention: there is no \"%s\"; there are core, torchinfo, ptflops, "
                           "ptflops-modules, ptflops-aten, fvcore, thop, "
                           "onnx-tool and all",
                           o.convention);
    if (o.names && !o.table) return usage_error(self, "--names goes with --table");
    if (!tree_columns(o.columns ? o.columns : "kind,out,params,macs,memory", columns, &n))
        return EXIT_USAGE;
    int code = memory_limit(o.memory);
    if (!code) code = model_look(args.at[0], o.weights, &o.shapes, 0, &m);
    if (!code)
        code = batch_fits(m.graph, fac_graph_inputs(m.graph) > 0,
                          option_given(&o.batch) ? o.batch : 0);
    if (!code && fac_analyze(m.graph, o.batch, &a, &err)) code = fail(&err);
    if (!code) code = report(a, args.at[0], c, all, columns, n);
    fac_analysis_free(a);
    model_free(&m);
    return code;
}

const verb verb_summary = {
    .name = "summary",
    .summary = "print parameters, multiply-adds and memory of a model",
    .usage = "facula summary MODEL [options]",
    .options = options,
    .examples = "summary model.onnx\nsummary zoo:resnet50 --batch 8 --table\nsummary model.onnx "
                "--convention all",
    .run = run,
    .more = "MODEL is zoo:NAME, FILE.onnx, or FILE.txt as `facula show` writes it.  Modules are "
            "found by the\nscopes of the graph and by the names that PyTorch's exporter gives.  "
            "One multiply-add is two\nfloating-point operations; the bias of a product counts as "
            "another operation.  --convention all\nprints what seven other counters say of the "
            "same model, and why."
};
