/* Exports of the sandboxes: an expression with its gradients, or a network, as a graph, as files
 * and as commands.  Expressions are f64 on the page but f32 here, which every runtime supports. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "studio/server/export.h"
#include "studio/sandbox/sandbox.h"
#include "studio/server/studio.h"

typedef struct sandbox_export {
    const char *name; /* of the question */
    fac_status (*build)(const cJSON *what, fac_graph **out, fac_error *err);
    fac_status (*commands)(const cJSON *what, const fac_graph *g, fac_text *to, fac_error *err);
} sandbox_export;

/* ---- commands ---- */

static fac_status run_random(const cJSON *what, const fac_graph *g, fac_text *to, fac_error *err) {
    (void)what, (void)g, (void)err;
    fac_text_add(to, "facula show model.onnx\nfacula run model.onnx --random\n");
    return FAC_OK;
}

static fac_status run_numbers(const cJSON *what, const fac_graph *g, fac_text *to, fac_error *err) {
    FAC_TRY(run_random(what, g, to, err));
    fac_text_add(to, "python net.py");
    FAC_TRY(fac_sandbox_put_numbers(what, g, to, err));
    fac_text_add(to, "\n");
    return FAC_OK;
}

/* Networks with two inputs and two classes can be trained on the toy sets. */
static fac_status train_layers(const cJSON *what, const fac_graph *g, fac_text *to,
                               fac_error *err) {
    const char *layers = fac_json_string_of(what, "layers");
    int64_t in = 2, out = 2;
    const bool sizes = !fac_json_int(what, "inputs", 2, 2, &in, NULL) &&
                       !fac_json_int(what, "outputs", 2, 2, &out, NULL);
    if (layers && sizes)
        fac_text_print(to, "facula train toy:xor --model mlp:%s --out run\n", layers);
    return run_random(what, g, to, err);
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
    return x->commands(what, g, to, err);
}

fac_status fac_sandbox_file(const char *name, const cJSON *what, fac_text *to, const char **type,
                            fac_error *err) {
    const sandbox_export *x = find(name);
    const char *file = fac_json_string_of(what, "file");
    fac_graph *g;
    if (!x || !file) return fac_raise(err, FAC_E_ARGUMENT, "unknown file");
    FAC_TRY(x->build(what, &g, err));
    const fac_status status = write_file(x, what, g, file, to, type, err);
    fac_graph_free(g);
    return status;
}
