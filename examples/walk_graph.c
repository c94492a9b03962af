/* Every node of a model, with what it reads and makes: walk_graph [MODEL.onnx | zoo name]
 *
 * Two ways to the same list.  fac_analyze gives layers for people: names, kinds, sizes bound,
 * weights told from data.  Below it is the graph itself: nodes in the order of execution
 * (facula/op.h), each with its inputs and outputs, and every value with its readers.  Of a file
 * with operators that are not facula's, fac_onnx_load with .opaque gives what is known. */
#include <facula/facula.h>
#include <facula/op.h>
#include <stdio.h>
#include <string.h>

static int report(const fac_error *err) {
    fprintf(stderr, "walk_graph: %s\n", err->text);
    return 1;
}

/* An ONNX file, or a network of the zoo by its name. */
static fac_status load(const char *what, fac_graph **out, fac_error *err) {
    if (!strstr(what, ".onnx")) return fac_zoo_new(what, NULL, 0, out, err);
    return fac_onnx_load(what, &(fac_onnx_opts){ .opaque = true }, out, err);
}

/* "float 1x64x56x56" */
static void print_type(const fac_type *t) {
    printf("%s ", t->dtype == FAC_NONE ? "unknown" : fac_dtype_get(t->dtype)->name);
    for (int k = 0; k < t->dims.n; k++) printf(k ? "x%lld" : "%lld", (long long)t->dims.d[k]);
}

static void print_layer(const fac_layer *l) {
    printf("%s (%s)%s%s\n", l->name, l->kind, *l->node ? "  in the file: " : "", l->node);
    for (int k = 0; k < l->nin; k++) {
        printf("  %-8s %-28s ", fac_role_name(l->inputs[k].role), l->inputs[k].name);
        print_type(&l->inputs[k].type);
        printf(", %.0f bytes\n", l->inputs[k].bytes);
    }
    for (int k = 0; k < l->nout; k++) {
        printf("  %-8s %-28s ", "output", l->outputs[k].name);
        print_type(&l->outputs[k].type);
        printf(", %.0f bytes\n", l->outputs[k].bytes);
    }
}

/* The first node of the graph: from any output back to the front. */
static const fac_node *first_node(const fac_graph *g) {
    const fac_value *y = fac_graph_output(g, 0);
    const fac_node *n = y ? y->node : NULL;
    while (n && n->prev) n = n->prev;
    return n;
}

/* Nodes of the graph itself, also those that only compute sizes, and the readers of their results.
 */
static void print_nodes(const fac_graph *g) {
    int nodes = 0, readers = 0;
    for (const fac_node *n = first_node(g); n; n = n->next, nodes++)
        for (const fac_use *u = n->out[0]->uses; u; u = u->next) readers++;
    printf("\n%d nodes in the graph, their first results are read %d times\n", nodes, readers);
}

int main(int argc, char **argv) {
    fac_error err = { FAC_OK, "" };
    fac_graph *g = NULL;
    fac_analysis *a = NULL;
    fac_status status = load(argc > 1 ? argv[1] : "lenet", &g, &err);
    if (!status) status = fac_analyze(g, 1, &a, &err);
    for (int i = 0; !status && fac_analysis_layer(a, i); i++) print_layer(fac_analysis_layer(a, i));
    if (!status) print_nodes(fac_analysis_graph(a));
    fac_analysis_free(a);
    fac_graph_free(g);
    return status ? report(&err) : 0;
}
