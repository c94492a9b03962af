/* The sandbox of modules: a chain of layers, or the text of a graph, as a table of parameters. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/nn/mlp.h"
#include "facula/nn.h"
#include "graph/format.h"
#include "studio/sandbox/sandbox.h"

enum { TEXT = 32 << 10, PARAMETERS = 64 << 20 };

static fac_status read_text(const char *text, fac_graph **out, fac_error *err) {
    const size_t n = strlen(text);
    if (n > TEXT)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "the text of a graph must not be longer than %d bytes here", TEXT);
    FILE *f = fmemopen((void *)(uintptr_t)text, n, "r");
    if (!f) return fac_raise_memory(err, "a text");
    const fac_status status = fac_graph_read_within(f, PARAMETERS, out, err);
    fclose(f);
    return status;
}

static fac_status build_layers(const char *layers, int64_t inputs, int64_t outputs, fac_graph **out,
                               fac_error *err) {
    fac_mlp m;
    FAC_TRY(fac_mlp_parse(layers, &m, err));
    fac_graph *g = fac_graph_new();
    if (!g) return fac_raise_memory(err, "a graph");
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), inputs));
    fac_output(g, "y", fac_nn_mlp(x, &m, (int)outputs, NULL));
    const fac_status status = fac_graph_check(g, err);
    if (status)
        fac_graph_free(g);
    else
        *out = g;
    return status;
}

static void write_params(const fac_graph *g, fac_text *to) {
    fac_json_put_key(to, "params");
    fac_text_add(to, "[");
    for (int k = 0; k < fac_graph_params(g); k++) {
        const fac_value *v = fac_graph_param(g, k);
        const fac_dims d = fac_value_type(v).dims;
        fac_text_add(to, k ? ",{" : "{");
        fac_json_put_pair_text(to, "name", fac_value_name(v));
        fac_sandbox_put_dims(to, "shape", &d);
        fac_json_put_pair(to, "count", (double)fac_dims_count(&d));
        fac_json_put_pair_text(to, "dtype", fac_dtype_get(fac_value_type(v).dtype)->name);
        fac_json_put_pair_bool(to, "trains", fac_value_trains(v));
        fac_text_add(to, "}");
    }
    fac_text_add(to, "]");
}

fac_status fac_sandbox_text(const fac_graph *g, fac_text *to, fac_error *err) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    fac_status status = f ? fac_graph_write(g, f, err) : fac_raise_memory(err, "a text");
    if (f && fclose(f) && !status) status = fac_raise_memory(err, "a text");
    if (!status) fac_text_add(to, text);
    fac_release(text);
    return status;
}

/* The graph as text, which the user can change and send again. */
static fac_status write_text(const fac_graph *g, fac_text *to, fac_error *err) {
    fac_text t = { 0 };
    const fac_status status = fac_sandbox_text(g, &t, err);
    if (!status) fac_json_put_pair_text(to, "text", t.n ? t.s : "");
    to->failed |= t.failed;
    fac_text_free(&t);
    return status;
}

fac_status fac_sandbox_modules_graph(const cJSON *what, fac_graph **out, fac_error *err) {
    const char *layers = fac_json_string_of(what, "layers"),
               *text = fac_json_string_of(what, "text");
    int64_t inputs = 2, outputs = 2;
    FAC_TRY(fac_json_int(what, "inputs", 1, 4096, &inputs, err));
    FAC_TRY(fac_json_int(what, "outputs", 1, 4096, &outputs, err));
    if (!layers && (!text || !*text))
        return fac_raise(err, FAC_E_ARGUMENT,
                         "give layers, such as \"16,16,tanh\", or the text of a graph");
    return layers ? build_layers(layers, inputs, outputs, out, err) : read_text(text, out, err);
}

fac_status fac_sandbox_modules(const cJSON *what, fac_text *to, fac_error *err) {
    fac_graph *g;
    FAC_TRY(fac_sandbox_modules_graph(what, &g, err));
    write_params(g, to);
    const fac_status status = write_text(g, to, err);
    fac_graph_free(g);
    return status;
}
