/* Weights that a scheme leaves as floats, as bytes: see facula/quantize.h. */
#include "base/error.h"
#include "op_list.h"
#include "passes/single.h"
#include "quantize/quantize.h"

typedef struct work {
    int changed;
    fac_error wrong;
} work;

/* Where the channels of a weight are counted. */
static int64_t axis_of(const fac_node *n) {
    const bool last =
        FAC_IS(n, matmul) || (FAC_IS(n, gemm) && !((const fac_gemm_opts *)n->attrs)->trans_b);
    return last ? 1 : 0;
}

/* ---- weights that have few levels as they are: facula pack and the planner make bits of them ----
 */

enum { FEW = 16 };

/* Whether a row has at most FEW numbers, each of them twice in the mean. */
static bool has_levels(const fac_rows *w, int64_t r) {
    float seen[FEW];
    int64_t n = 0;
    for (int64_t k = 0; k < w->terms; k++) {
        const float x = w->at[r * w->row_step + k * w->term_step];
        int64_t i = 0;
        while (i < n && seen[i] != x) i++;
        if (i < n) continue;
        if (n == FEW) return false;
        seen[n++] = x;
    }
    return 2 * n <= w->terms;
}

static bool is_leveled(const fac_node *n, fac_error *err) {
    fac_rows w;
    bool all = true;
    if (fac_rows_of(n, &w, err)) return true;
    for (int64_t r = 0; r < w.rows && all; r++) all = has_levels(&w, r);
    fac_rows_free(&w);
    return all;
}

/* ---- bytes ---- */

static fac_value *state_of(fac_graph *to, fac_tensor *t, const char *name, const char *ending) {
    const char *full = fac_arena_print(&to->arena, "%s.%s", name, ending);
    const char *fresh = full ? fac_graph_fresh(to, full) : NULL;
    return fresh ? fac_state(to, fresh, t)
                 : fac_graph_raise(to, FAC_E_NOMEM, "no memory for a name");
}

fac_value *fac_byte_weight(const fac_node *n, fac_graph *to, const char *name, double *sqnr,
                           fac_error *err) {
    static const fac_integers plain = { 0 };
    fac_bytes_weight w;
    if (fac_bytes_weight_new(&plain, n, NULL, false, &w, err)) return NULL;
    fac_value *q = state_of(to, w.q, name, "int8"), *scale = state_of(to, w.scale, name, "scale");
    if (sqnr) *sqnr = w.sqnr;
    fac_bytes_weight_free(&w);
    return fac_dequantize_linear(q, scale, NULL, &(fac_dequantize_opts){ .axis = axis_of(n) });
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    work *k = self;
    if (to->error.status || k->wrong.status || n->nin > 3) return false;
    if (!fac_is_weighted(n) || !fac_used_once(n->in[1])) return false;
    if (is_leveled(n, &k->wrong)) return false;
    const char *name = n->in[1]->name ? n->in[1]->name : "weight";
    fac_value *w = fac_byte_weight(n, to, name, NULL, &k->wrong);
    if (!w) return false;
    fac_value *with[3] = { in[0], w, n->nin > 2 ? in[2] : NULL };
    fac_node_copy(to, n, with, out);
    k->changed++;
    return true;
}

fac_status fac_graph_byte_weights(const fac_graph *model, int *changed, fac_graph **out,
                                  fac_error *err) {
    work k = { 0 };
    FAC_TRY(fac_graph_usable(model, "fac_graph_byte_weights", err));
    fac_graph *quiet = fac_graph_inference(model);
    if (!quiet) return fac_raise_memory(err, "a copy of the model");
    fac_graph *g = fac_graph_rebuild(quiet, &(fac_rebuild){ .self = &k, .visit = visit }, NULL);
    fac_graph_free(quiet);
    fac_status status = g ? fac_graph_check(g, err) : fac_raise_memory(err, "a copy of the model");
    if (!status && k.wrong.status) status = fac_raise(err, k.wrong.status, "%s", k.wrong.text);
    if (status) {
        fac_graph_free(g);
        return status;
    }
    fac_graph_sweep(g);
    if (changed) *changed = k.changed;
    *out = g;
    return FAC_OK;
}
