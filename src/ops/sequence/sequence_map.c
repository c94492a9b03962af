/* SequenceMap: the body's nodes once for each element. */
#include "base/error.h"
#include "graph/graph_internal.h"
#include "graph/onnx_flow.h"
#include "graph/list.h"

static bool lengths_fit(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], int count) {
    for (int i = 0; i < n->nin; i++) {
        if (in[i] && (!fac_is_list(in[i]) ||
                      (!fac_list_is_nothing(in[i]) && fac_list_count(in[i]) == count)))
            continue;
        fac_fail_graph(g, FAC_E_FORMAT,
                       "SequenceMap: its input %d is no sequence of %d elements, and no tensor", i,
                       count);
        return false;
    }
    return true;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_value *list = fac_list_in(n, g, in, 0);
    const int count = list ? fac_list_count(list) : 0;
    if (!list || !lengths_fit(n, g, in, count)) return;
    const size_t each = (size_t)n->nin + (size_t)n->nout;
    fac_value **all = fac_arena_alloc(&g->arena, each * ((size_t)count + 1) + 1, sizeof *all);
    if (!all) {
        fac_fail_graph(g, FAC_E_NOMEM, "no memory for a sequence of %d", count);
        return;
    }
    fac_value **args = all + (size_t)n->nout * (size_t)count, **made = args + n->nin;
    for (int k = 0; k < count; k++) {
        for (int i = 0; i < n->nin; i++)
            args[i] = fac_is_list(in[i]) ? fac_list_item(in[i], k) : in[i];
        fac_onnx_body_with(n, "body", n->nin, args, n->nout, made);
        if (g->error.status) return;
        for (int j = 0; j < n->nout; j++) all[j * count + k] = made[j];
    }
    if (!count) fac_onnx_body_inputs(n, "body");
    for (int j = 0; j < n->nout; j++)
        out[j] = fac_list_new(g, count, all + (size_t)j * (size_t)count);
}

static const fac_onnx_attr names[] = { { "body", NULL }, { 0 } };
const fac_onnx fac_reads_sequence_map[] = { { "", "SequenceMap", 17, 0, names, load, 1 }, { 0 } };
