/* What leaves the sandboxes: an expression with its gradients, or a network, as a graph, as files
 * and as commands.  Expressions are f64 on the page and f32 here, as networks are and as every
 * runtime knows them. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "studio/export.h"
#include "studio/sandbox.h"
#include "studio/studio.h"

typedef struct sandbox_export {
    const char *name; /* of the question */
    fac_status (*build)(const cJSON *what, fac_graph **out, fac_error *err);
    void (*commands)(const cJSON *what, const fac_graph *g, fac_text *to);
} sandbox_export;

/* ---- commands ---- */

static void run_random(const cJSON *what, const fac_graph *g, fac_text *to) {
    (void)what, (void)g;
    fac_text_add(to, "facula show model.onnx\nfacula run model.onnx --random\n");
}

/* The numbers of the page as arguments of net.py; "--" stands between two inputs. */
static void run_numbers(const cJSON *what, const fac_graph *g, fac_text *to) {
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(what, "values"), *x;
    run_random(what, g, to);
    fac_text_add(to, "python net.py");
    for (int k = 0; k < fac_graph_inputs(g); k++) {
        const char *name = fac_value_name(fac_graph_input(g, k));
        const cJSON *of = cJSON_GetObjectItemCaseSensitive(all, name);
        if (k) fac_text_add(to, " --");
        cJSON_ArrayForEach(x, cJSON_GetObjectItemCaseSensitive(of, "values")) {
            if (!cJSON_IsNumber(x)) continue;
            fac_text_add(to, " ");
            fac_json_put_number(to, x->valuedouble);
        }
    }
    fac_text_add(to, "\n");
}

/* Two inputs and two classes are those of the toy sets. */
static void train_layers(const cJSON *what, const fac_graph *g, fac_text *to) {
    const char *layers = fac_json_string_of(what, "layers");
    int64_t in = 2, out = 2;
    const bool sizes = !fac_json_int(what, "inputs", 2, 2, &in, NULL) &&
                       !fac_json_int(what, "outputs", 2, 2, &out, NULL);
    if (layers && sizes)
        fac_text_print(to, "facula train toy:xor --model mlp:%s --out run\n", layers);
    run_random(what, g, to);
}

/* ---- files ---- */

static const sandbox_export exports[] = {
    { "curve", fac_sandbox_curve_graph, run_random },
    { "graph", fac_sandbox_expression_graph, run_numbers },
    { "modules", fac_sandbox_modules_graph, train_layers },
};

static const sandbox_export *find(const char *name) {
    for (size_t k = 0; name && k < sizeof exports / sizeof *exports; k++)
        if (!strcmp(exports[k].name, name)) return &exports[k];
    return NULL;
}

static fac_status write_file(const sandbox_export *x, const cJSON *what, const fac_graph *g,
                             const char *file, fac_text *to, const char **type, fac_error *err) {
    *type = "text/plain; charset=utf-8";
    if (!strcmp(file, "graph.txt")) return fac_sandbox_text(g, to, err);
    if (strcmp(file, "command.txt")) return fac_export_file(g, file, to, type, err);
    x->commands(what, g, to);
    return FAC_OK;
}

fac_status fac_sandbox_file(const char *name, const cJSON *what, fac_text *to, const char **type,
                            fac_error *err) {
    const sandbox_export *x = find(name);
    const char *file = fac_json_string_of(what, "file");
    fac_graph *g;
    if (!x || !file) return fac_raise(err, FAC_E_ARGUMENT, "there is no such file to make");
    FAC_TRY(x->build(what, &g, err));
    const fac_status status = write_file(x, what, g, file, to, type, err);
    fac_graph_free(g);
    return status;
}
