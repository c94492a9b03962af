/* The weight of one layer as bytes: see facula/quantize.h. */
#include "base/error.h"
#include "op_list.h"
#include "quantize/quantize.h"

/* Where the channels of a weight are counted. */
static int64_t axis_of(const fac_node *n) {
    const bool last =
        FAC_IS(n, matmul) || (FAC_IS(n, gemm) && !((const fac_gemm_opts *)n->attrs)->trans_b);
    return last ? 1 : 0;
}

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
