/* The outputs of all convolutions, as PyTorch's forward hooks give them.
 * hooks [MODEL.onnx | zoo name [PATTERN]]
 *
 * A hook of a program is called with each node after it ran; it reads results, and may put others
 * in their place.  Nodes are chosen by the words that every verb takes ("kind:Conv2d", "op:relu", a
 * module, a name with *).  For statistics of tensors there is fac_activations_*, which needs no
 * hook of your own. */
#include <facula/backend.h>
#include <facula/facula.h>
#include <facula/op.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct seen {
    const fac_analysis *a;
    const char *pattern;
    int tensors;
} seen;

static int report(const fac_error *err) {
    fprintf(stderr, "hooks: %s\n", err->text);
    return 1;
}

/* An ONNX file, or a network of the zoo by its name. */
static fac_status load(const char *what, fac_graph **out, fac_error *err) {
    return strstr(what, ".onnx") ? fac_onnx_load(what, NULL, out, err)
                                 : fac_zoo_new(what, NULL, 0, out, err);
}

/* Is the node one of the layers that were asked for?  Both have the same name. */
static bool wanted(const seen *s, const char *name) {
    for (int i = 0; fac_analysis_layer(s->a, i); i++)
        if (!strcmp(fac_analysis_layer(s->a, i)->name, name))
            return fac_analysis_selects(s->a, i, s->pattern);
    return false;
}

static void print_numbers(const char *name, const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    float x[4] = { 0 };
    printf("%-32s ", name);
    for (int k = 0; k < type.dims.n; k++) printf(k ? "x%lld" : "%lld", (long long)type.dims.d[k]);
    const float *from = fac_tensor_data(t);
    for (int64_t k = 0; from && k < 4 && k < fac_dims_count(&type.dims); k++) x[k] = from[k];
    printf("  %.4f %.4f %.4f %.4f ...\n", (double)x[0], (double)x[1], (double)x[2], (double)x[3]);
}

static fac_status see(void *self, fac_hooked *h, fac_error *err) {
    seen *s = self;
    const fac_tensor *y = NULL;
    if (!wanted(s, fac_hooked_name(h))) return FAC_OK;
    const fac_status status = fac_hooked_output(h, 0, &y, err);
    if (status || !y) return status;
    print_numbers(fac_hooked_name(h), y);
    s->tensors++;
    return FAC_OK;
}

/* Zeros for the first input of a model, with 1 for what is open. */
static fac_status zeros(const fac_graph *g, fac_tensor **out, fac_error *err) {
    fac_type t = fac_value_type(fac_graph_input(g, 0));
    for (int k = 0; k < t.dims.n; k++)
        if (t.dims.d[k] < 0) t.dims.d[k] = 1;
    return fac_tensor_new(NULL, t.dtype, t.dims, out, err);
}

static fac_status run(fac_graph *g, seen *s, fac_error *err) {
    fac_device *cpu = NULL;
    fac_program *p = NULL;
    fac_tensor *x = NULL, *y = NULL;
    const fac_program_opts opts = { .hook = see, .hook_self = s };
    fac_status status = fac_device_open("cpu", NULL, &cpu, err);
    if (!status) status = fac_program_new(g, cpu, &opts, &p, err);
    if (!status) status = zeros(g, &x, err);
    if (!status) status = fac_program_run(p, &x, &y, err);
    fac_tensor_free(y);
    fac_tensor_free(x);
    fac_program_free(p);
    fac_device_free(cpu);
    return status;
}

int main(int argc, char **argv) {
    fac_error err = { FAC_OK, "" };
    fac_graph *model = NULL, *g = NULL;
    fac_analysis *a = NULL;
    seen s = { .pattern = argc > 2 ? argv[2] : "kind:Conv2d" };
    fac_status status = load(argc > 1 ? argv[1] : "lenet", &model, &err);
    if (!status && !(g = fac_graph_inference(model))) status = FAC_E_NOMEM;
    if (!status) status = fac_analyze(g, 1, &a, &err);
    s.a = a;
    if (!status) status = run(g, &s, &err);
    if (!status) printf("%d tensors\n", s.tensors);
    fac_analysis_free(a);
    fac_graph_free(g);
    fac_graph_free(model);
    if (status) return report(&err);
    return s.tensors ? 0 : 1;
}
