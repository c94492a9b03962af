/* facula inspect: what is in a model: operators, sizes, traffic, memory. */
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "inspect.h"
#include "analyze/summary/summary.h"

static struct {
    const char *weights, *sort, *memory;
    list shapes, at;
    long batch, top;
    bool plan, onnx, verbose, json;
} o = { .batch = 1, .top = 20 };

static const option options[] = {
    { "--batch", OPTION_INT, &o.batch, "N", "size of the open first dim of the inputs; default 1",
      OPTION_COUNT },
    { "--shape", OPTION_LIST, &o.shapes, "NAME=DIMS",
      "sizes of an input: x=1x3x224x224; may be repeated" },
    { "--top", OPTION_INT, &o.top, "N",
      "how many layers to print, and values alive at the peak; default 20", OPTION_TALLY },
    { "--sort", OPTION_TEXT, &o.sort, "BY",
      "sort layers by order (default), macs, bytes, weights or params" },
    { "--at", OPTION_LIST, &o.at, "NAME",
      "only these layers: their names in any view, modules, op:conv2d or kind:Conv2d; '*' stands "
      "for any text" },
    { "--plan", OPTION_FLAG, &o.plan, NULL,
      "also print where each value lies in the plan's arena, and when" },
    { "--onnx", OPTION_FLAG, &o.onnx, NULL,
      "print the operators of an ONNX file as it spells them, also those that facula does not "
      "know" },
    { "--verbose", OPTION_FLAG, &o.verbose, NULL,
      "with --onnx: also print each node, with shapes and bytes of all that it reads and writes" },
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME" },
    LINK_ROOT_OPTION,
    { "--memory-limit", OPTION_TEXT, &o.memory, "SIZE",
      "most memory that this process may take, such as 2G" },
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

/* ---- layers ---- */

static double in_order(const fac_layer *l) {
    (void)l;
    return 0;
}
static double by_macs(const fac_layer *l) { return l->macs; }
static double by_bytes(const fac_layer *l) { return l->read + l->written + l->weights; }
static double by_weights(const fac_layer *l) { return l->weights; }
static double by_params(const fac_layer *l) { return l->params; }
static const struct {
    const char *name;
    double (*of)(const fac_layer *l);
} sorts[] = { { "order", in_order },
              { "macs", by_macs },
              { "bytes", by_bytes },
              { "weights", by_weights },
              { "params", by_params } };

typedef struct place {
    double by;
    int layer;
} place;
static int larger_first(const void *x, const void *y) {
    const place *a = x, *b = y;
    return a->by != b->by ? (a->by < b->by) - (a->by > b->by) : a->layer - b->layer;
}

static bool asked_for(const fac_analysis *a, int i) {
    bool is = !o.at.n;
    for (int k = 0; k < o.at.n && !is; k++) is = fac_analysis_selects(a, i, o.at.at[k]);
    return is;
}

/* *n: how many. */
static place *sorted(const fac_analysis *a, double (*of)(const fac_layer *l), int *n) {
    place *p = calloc((size_t)fac_analysis_totals(a).layers + 1, sizeof *p);
    *n = 0;
    for (int i = 0; p && fac_analysis_layer(a, i); i++)
        if (asked_for(a, i)) p[(*n)++] = (place){ of(fac_analysis_layer(a, i)), i };
    if (p) qsort(p, (size_t)*n, sizeof *p, larger_first);
    return p;
}

/* A name that means no layer is a mistake. */
static int check_names(const fac_analysis *a) {
    for (int k = 0; k < o.at.n; k++) {
        int i = 0;
        while (fac_analysis_layer(a, i) && !fac_analysis_selects(a, i, o.at.at[k])) i++;
        if (fac_analysis_layer(a, i)) continue;
        return fail_text("--at: there is no layer \"%s\"", o.at.at[k]);
    }
    return EXIT_OK;
}

static int name_width(const fac_analysis *a, const place *order, int n, long top) {
    enum { LEAST = 16, MOST = 44 };
    int width = LEAST;
    for (int k = 0; k < n && k < top; k++) {
        const int length = (int)strlen(layer_name(fac_analysis_layer(a, order[k].layer)));
        if (length > width) width = length;
    }
    return width < MOST ? width : MOST;
}

/* text, or that there is none where a layer multiplies nothing. */
static const char *if_counted(const fac_layer *l, const char *text) {
    return l->macs > 0 ? text : "--";
}

static void layers_print(const fac_analysis *a, const place *order, int n, long top) {
    const fac_totals t = fac_analysis_totals(a);
    const int wide = name_width(a, order, n, top),
              widths[] = { -wide, -16, 16, 10, 10, 10, 10, 8, 8 };
    char out[96], r[32], w[32], p[32], m[32], x[16], s[16];
    putchar('\n');
    table_row(stdout, widths, 9, "layer", "op", "output", "read", "written", "weights", "MACs",
              "MAC/byte", "share");
    for (int k = 0; k < n && k < top; k++) {
        const fac_layer *l = fac_analysis_layer(a, order[k].layer);
        const double bytes = by_bytes(l);
        snprintf(x, sizeof x, "%.1f", bytes > 0 ? l->macs / bytes : 0);
        snprintf(s, sizeof s, "%.2f %%", t.macs > 0 ? 100 * l->macs / t.macs : 0);
        type_dims(fac_analysis_graph(a), &l->out, out, sizeof out);
        table_row(stdout, widths, 9, end_of(layer_name(l), wide), l->op, out,
                  bytes_text(l->read, r, sizeof r), bytes_text(l->written, w, sizeof w),
                  l->weights > 0 ? bytes_text(l->weights, p, sizeof p) : "--",
                  if_counted(l, count_text(l->macs, m, sizeof m)), if_counted(l, x),
                  if_counted(l, s));
    }
    if (n > top) printf("and %ld more (--top N)\n", n - top);
    printf("\nmemory traffic when nothing stays in a cache: %s read, %s written, %s of weights; "
           "%.1f multiply-adds a byte\n",
           bytes_text(t.read, r, sizeof r), bytes_text(t.written, w, sizeof w),
           bytes_text(t.weights, p, sizeof p),
           t.read + t.written + t.weights > 0 ? t.macs / (t.read + t.written + t.weights) : 0);
    printf("exactly        %s B written, ", digits_text(t.written, out, sizeof out));
    printf("%s B with the inputs, ", digits_text(t.written + t.inputs, out, sizeof out));
    printf("%s B with the inputs and %.0f B of shape tensors; ",
           digits_text(t.written + t.inputs + t.shapes, out, sizeof out), t.shapes);
    printf("%s B of weights\n", digits_text(t.weights, out, sizeof out));
    bits_print(a);
}

static cJSON *layers_json(const fac_analysis *a) {
    const fac_totals t = fac_analysis_totals(a);
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; fac_analysis_layer(a, i); i++) {
        const fac_layer *l = fac_analysis_layer(a, i);
        if (!asked_for(a, i)) continue;
        cJSON *j = json_layer(l);
        cJSON_AddStringToObject(j, "attributes", l->attrs);
        cJSON_AddItemToObject(j, "output", json_type(fac_analysis_graph(a), &l->out));
        json_number(j, "read_bytes", l->read, 17);
        json_number(j, "written_bytes", l->written, 17);
        json_number(j, "weight_bytes", l->weights, 17);
        json_number(j, "macs", l->macs, 17);
        json_number(j, "intensity", by_bytes(l) > 0 ? l->macs / by_bytes(l) : 0, 6);
        json_number(j, "share", t.macs > 0 ? l->macs / t.macs : 0, 6);
        json_layer_facts(j, fac_analysis_graph(a), l);
        cJSON_AddItemToArray(all, j);
    }
    return all;
}

static cJSON *totals_json(const fac_analysis *a) {
    const fac_totals t = fac_analysis_totals(a);
    cJSON *j = cJSON_CreateObject();
    cJSON_AddNumberToObject(j, "layers", t.layers);
    json_number(j, "params", t.params, 17);
    json_number(j, "macs", t.macs, 17);
    json_number(j, "read_bytes", t.read, 17);
    json_number(j, "written_bytes", t.written, 17);
    json_number(j, "weight_bytes", t.weights, 17);
    json_number(j, "buffers", t.buffers, 17);
    json_number(j, "param_bytes", t.param_bytes, 17);
    json_number(j, "buffer_bytes", t.buffer_bytes, 17);
    json_number(j, "input_bytes", t.inputs, 17);
    json_number(j, "shape_tensor_bytes", t.shapes, 17);
    json_number(j, "written_and_input_bytes", t.written + t.inputs, 17);
    json_number(j, "written_and_shape_tensor_bytes", t.written + t.shapes, 17);
    json_bits(j, &t);
    return j;
}

/* ---- the cover ---- */

static void ports_print(const char *what, const fac_graph *g, int n,
                        fac_value *(*get)(const fac_graph *g, int i), bool output) {
    for (int i = 0; i < n; i++) {
        const fac_type t = fac_value_type(get(g, i));
        char text[128];
        printf("%-13s %s %s[%s]\n", i ? "" : what,
               output ? fac_graph_output_name(g, i) : fac_value_name(get(g, i)),
               fac_dtype_get(t.dtype)->name, dims_text(g, &t.dims, text, sizeof text));
    }
}

int file_print(const char *path) {
    fac_onnx_about about;
    fac_error err = { 0 };
    if (!ends_with(path, ".onnx")) return EXIT_OK;
    if (fac_onnx_read_about(path, &about, &err)) return fail(&err);
    printf("%-13s IR %lld, opsets %s; by %s; %lld node%s, %lld initializer%s, %lld "
           "function%s\n",
           "file", (long long)about.ir, about.opsets, *about.producer ? about.producer : "nobody",
           (long long)about.nodes, plural((double)about.nodes), (long long)about.initializers,
           plural((double)about.initializers), (long long)about.functions,
           plural((double)about.functions));
    return EXIT_OK;
}

static int cover_print(const fac_analysis *a, const model *m, const char *path) {
    const int code = file_print(path);
    if (code) return code;
    ports_print("inputs", m->graph, fac_graph_inputs(m->graph), fac_graph_input, false);
    ports_print("outputs", m->graph, fac_graph_outputs(m->graph), fac_graph_output, true);
    if (fac_analysis_open(a))
        printf("%-13s sizes that depend on contents (they count 0): %s\n", "unknown",
               fac_analysis_open(a));
    putchar('\n');
    return EXIT_OK;
}

static cJSON *ports_json(const fac_graph *g, int n, fac_value *(*get)(const fac_graph *g, int i),
                         bool output) {
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; i < n; i++) {
        const fac_type t = fac_value_type(get(g, i));
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name",
                                output ? fac_graph_output_name(g, i) : fac_value_name(get(g, i)));
        cJSON_AddStringToObject(one, "dtype", fac_dtype_get(t.dtype)->name);
        cJSON_AddItemToObject(one, "shape", json_shape(g, &t.dims));
        cJSON_AddItemToArray(all, one);
    }
    return all;
}

int file_json(cJSON *root, const char *path) {
    fac_onnx_about about;
    const bool from_file = ends_with(path, ".onnx");
    fac_error err = { 0 };
    cJSON_AddStringToObject(root, "model", path);
    if (from_file && fac_onnx_read_about(path, &about, &err)) return fail(&err);
    if (from_file) {
        cJSON *file = cJSON_AddObjectToObject(root, "file");
        cJSON_AddNumberToObject(file, "ir", (double)about.ir);
        cJSON_AddStringToObject(file, "opsets", about.opsets);
        cJSON_AddStringToObject(file, "producer", about.producer);
        cJSON_AddNumberToObject(file, "nodes", (double)about.nodes);
        cJSON_AddNumberToObject(file, "initializers", (double)about.initializers);
        cJSON_AddNumberToObject(file, "functions", (double)about.functions);
    }
    return EXIT_OK;
}

static int cover_json(cJSON *root, const fac_analysis *a, const model *m, const char *path) {
    const int code = file_json(root, path);
    if (code) return code;
    if (fac_analysis_open(a)) cJSON_AddStringToObject(root, "unknown", fac_analysis_open(a));
    cJSON_AddItemToObject(root, "inputs",
                          ports_json(m->graph, fac_graph_inputs(m->graph), fac_graph_input, false));
    cJSON_AddItemToObject(
        root, "outputs", ports_json(m->graph, fac_graph_outputs(m->graph), fac_graph_output, true));
    return EXIT_OK;
}

static int print_json(const fac_analysis *a, const model *m, const fac_memory_facts *f,
                      const char *path, long top) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema_version", JSON_SCHEMA);
    const int code = cover_json(root, a, m, path);
    if (code) {
        cJSON_Delete(root);
        return code;
    }
    cJSON_AddItemToObject(root, "totals", totals_json(a));
    cJSON_AddItemToObject(root, "operators", ops_json(a));
    cJSON_AddItemToObject(root, "layers", layers_json(a));
    cJSON_AddItemToObject(root, "memory", memory_json(a, f, top));
    return json_print(root);
}

static int print(const fac_analysis *a, const model *m, const fac_memory_facts *f, const char *path,
                 double (*of)(const fac_layer *l), long top) {
    int n;
    place *order = sorted(a, of, &n);
    if (!order) return fail_text("out of memory");
    int code = cover_print(a, m, path);
    if (!code) code = ops_print(a);
    if (!code) {
        layers_print(a, order, n, top);
        code = memory_print(a, f, top);
    }
    if (!code && o.plan && f->planned) memory_places(f);
    free(order);
    return code;
}

static int report(const fac_analysis *a, const model *m, const char *path,
                  double (*of)(const fac_layer *l)) {
    fac_memory_facts f = { 0 };
    int code = check_names(a);
    if (code) return code;
    code = memory_find(a, m, &o.shapes, o.batch, &f);
    if (!code) code = o.json ? print_json(a, m, &f, path, o.top) : print(a, m, &f, path, of, o.top);
    fac_memory_facts_free(&f);
    return code;
}

static int run(list args) {
    const verb *self = verb_find("inspect");
    model m = { 0 };
    fac_error err = { 0 };
    fac_analysis *a = NULL;
    size_t k = 0;
    const int wrong = arguments_fit(self, args, 1, 1, "which model?");
    if (wrong) return wrong;
    while (o.sort && k < sizeof sorts / sizeof *sorts && strcmp(sorts[k].name, o.sort)) k++;
    if (k == sizeof sorts / sizeof *sorts)
        return usage_error(self, "--sort is by order, macs, bytes, weights or params, not \"%s\"",
                           o.sort);
    if (o.verbose && !o.onnx) return usage_error(self, "--verbose goes with --onnx");
    int code = memory_limit(o.memory);
    if (!code && o.onnx) return inspect_onnx(args.at[0], o.verbose, o.json);
    if (!code) code = model_look(args.at[0], o.weights, &o.shapes, 0, &m);
    if (!code)
        code = batch_fits(m.graph, fac_graph_inputs(m.graph) > 0,
                          option_given(&o.batch) ? o.batch : 0);
    if (!code && fac_analyze(m.graph, o.batch, &a, &err)) code = fail(&err);
    if (!code) code = report(a, &m, args.at[0], sorts[k].of);
    fac_analysis_free(a);
    model_free(&m);
    return code;
}

const verb verb_inspect = {
    .name = "inspect",
    .summary = "print operators, memory traffic and peak memory of a model",
    .usage = "facula inspect MODEL [options]",
    .options = options,
    .examples = "inspect model.onnx --sort macs --top 10\ninspect model.onnx --onnx --verbose",
    .run = run,
    .more = "MODEL is zoo:NAME, FILE.onnx, or FILE.txt as `facula show` writes it.  Memory is "
            "printed twice: what\nthe layers need in their order with an ideal allocator, and what "
            "the cpu's plan takes.\n\nAn operator that facula does not know is listed with what "
            "the file declares of it.  --onnx lists\nall operators as the file spells them, with "
            "every attribute and ONNX's defaults."
};
