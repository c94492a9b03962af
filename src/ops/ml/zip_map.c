/* ai.onnx.ml's ZipMap: a list of maps, one for each row, from the classes to the row's scores. Here
 * it is the table of scores itself; the note "keys.<output>" of the graph has the classes, in the
 * order of the columns. */
#include "base/error.h"
#include "base/text.h"
#include "graph/graph_internal.h"
#include "ops/ml/ml.h"

static void note_keys(const fac_onnx_node *n, fac_graph *g, fac_ml_ints ints, fac_ml_texts texts) {
    fac_text t = { 0 };
    for (int k = 0; k < ints.n; k++)
        fac_text_print(&t, "%s%lld", k ? "\n" : "", (long long)ints.v[k]);
    for (int k = 0; k < texts.n; k++) fac_text_print(&t, "%s%s", k ? "\n" : "", texts.v[k]);
    const char *key = fac_arena_print(&g->arena, "keys.%s", fac_onnx_output(n, 0));
    if (!key || t.failed)
        fac_fail_graph(g, FAC_E_NOMEM, "no memory for the keys of a map");
    else
        fac_graph_set_note(g, key, t.s);
    fac_text_free(&t);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_ml_ints ints = fac_ml_ints_of(n, g, "classlabels_int64s");
    const fac_ml_texts texts = fac_ml_texts_of(n, g, "classlabels_strings");
    const int keys = ints.n > 0 ? ints.n : texts.n;
    fac_value *x = in[0]->type.dims.n == 1 ? fac_unsqueeze(in[0], fac_shape(0)) : in[0];
    const int64_t columns = x->type.dims.n == 2 ? x->type.dims.d[1] : keys;
    if (keys <= 0 || (columns >= 0 && columns != keys)) {
        fac_fail_graph(g, FAC_E_FORMAT, "ZipMap has %d keys for %lld columns", keys < 0 ? 0 : keys,
                       (long long)columns);
        return;
    }
    note_keys(n, g, ints, texts);
    out[0] = fac_identity(x);
}

const fac_onnx fac_reads_zip_map[] = { { FAC_ML, "ZipMap", 1, 0, NULL, load, 1 }, { 0 } };
