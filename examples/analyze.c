/* Memory and multiply-adds of every node of a model: analyze [MODEL.onnx | zoo name [VALUE...]]
 *
 * What a course lab asks for by hand (count the multiply-adds of a convolution, the bytes that it
 * moves, the memory that a forward pass needs) is read from the library.  With the names of values
 * after the model, only the part that makes them is analysed: a piece of a model is a model. */
#include <facula/facula.h>
#include <stdio.h>
#include <string.h>

static int report(const fac_error *err) {
    fprintf(stderr, "analyze: %s\n", err->text);
    return 1;
}

/* "2x64x56x56" */
static const char *shape_text(const fac_dims *d, char *to, size_t size) {
    size_t used = 0;
    to[0] = 0;
    for (int k = 0; k < d->n && used < size; k++)
        used += (size_t)snprintf(to + used, size - used, k ? "x%lld" : "%lld", (long long)d->d[k]);
    return to;
}

static void print_nodes(const fac_analysis *a) {
    char in[64], out[64];
    printf("%-28s %-14s %16s %16s %10s %12s %9s %9s %9s %7s\n", "layer", "kind", "in", "out",
           "parameters", "MACs", "read kB", "write kB", "alive kB", "MAC/B");
    for (int i = 0; fac_analysis_layer(a, i); i++) {
        const fac_layer *l = fac_analysis_layer(a, i);
        const double bytes = l->read + l->written + l->weights;
        printf("%-28.28s %-14.14s %16s %16s %10.0f %12.0f %9.1f %9.1f %9.1f %7.2f\n", l->name,
               l->kind, shape_text(&l->in.dims, in, sizeof in),
               shape_text(&l->out.dims, out, sizeof out), l->params, l->macs,
               (l->read + l->weights) / 1e3, l->written / 1e3, l->alive / 1e3,
               bytes > 0 ? l->macs / bytes : 0);
    }
}

static void print_totals(const fac_analysis *a) {
    const fac_totals t = fac_analysis_totals(a);
    const fac_layer *worst = fac_analysis_layer(a, t.peak_layer);
    printf("\n%d nodes, %.0f parameters (%.2f MB), %.0f multiply-adds\n", t.layers, t.params,
           t.weights / 1e6, t.macs);
    printf("all results together: %.2f MB; alive at once: %.2f MB, in %s\n", t.activations / 1e6,
           t.peak / 1e6, worst ? worst->name : "none");
}

/* An ONNX file, or a network of the zoo by its name. */
static fac_status load(const char *what, fac_graph **out, fac_error *err) {
    return strstr(what, ".onnx") ? fac_onnx_load(what, NULL, out, err)
                                 : fac_zoo_new(what, NULL, 0, out, err);
}

int main(int argc, char **argv) {
    fac_error err = { FAC_OK, "" };
    fac_graph *model = NULL, *part = NULL;
    fac_analysis *a = NULL;
    int code = 0;
    const char *const *names = (const char *const *)argv + 2;
    if (load(argc > 1 ? argv[1] : "lenet", &model, &err) ||
        (argc > 2 && fac_graph_extract(model, 0, NULL, argc - 2, names, &part, &err)) ||
        fac_analyze(part ? part : model, 1, &a, &err)) {
        code = report(&err);
    } else {
        print_nodes(a);
        print_totals(a);
    }
    fac_analysis_free(a);
    fac_graph_free(part);
    fac_graph_free(model);
    return code;
}
