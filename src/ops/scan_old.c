/* ONNX's Scan of opset 8: its first input may give lengths, all others have a batch in front of
 * what opset 9 has. There is a scan for each element of the batch. */
#include "graph/build.h"
#include "graph/onnx_flow.h"
#include "ops/scan.h"

enum { MOST_BATCH = 1 << 10 };

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const ins[], fac_value *y[]) {
    const int formal = fac_onnx_body_inputs(n, "body");
    fac_scan_opts o = { .slices = fac_scan_slices(n, formal) };
    int64_t back = 0;
    if (formal < 0 || !fac_scan_directions(n, g, "directions", &back)) return;
    o.states = formal - o.slices;
    o.in_back = (unsigned)back;
    const fac_dims *d = n->nin > 1 && ins[n->nin - 1] ? &ins[n->nin - 1]->type.dims : NULL;
    const int64_t count = d && d->n ? d->d[0] : 0;
    if (n->nin != formal + 1 || ins[0] || count < 1 || count > MOST_BATCH) {
        fac_fail_graph(g, FAC_E_UNSUPPORTED,
                       "Scan of opset 8 with lengths, or whose batch is not a known 1 to %d",
                       (int)MOST_BATCH);
        return;
    }
    const size_t outs = (size_t)n->nout;
    fac_value **x =
        fac_arena_alloc(&g->arena, (size_t)formal + outs * ((size_t)count + 1), sizeof *x);
    if (!x) {
        fac_fail_graph(g, FAC_E_NOMEM, "no memory for a batch of scans");
        return;
    }
    fac_value **one = x + formal, **rows = one + outs;
    for (int64_t b = 0; b < count && !g->error.status; b++) {
        for (int i = 0; i < formal; i++)
            x[i] = ins[i + 1] ? fac_gather(ins[i + 1], fac_number(g, FAC_I64, (double)b), 0) : NULL;
        fac_scan_load(n, g, &o, formal, x, one);
        for (size_t k = 0; k < outs && !g->error.status; k++)
            rows[k * (size_t)count + (size_t)b] = fac_unsqueeze(one[k], fac_shape(0));
    }
    for (size_t k = 0; k < outs && !g->error.status; k++)
        y[k] = fac_concat(rows + k * (size_t)count, (int)count, 0);
}

static const fac_onnx_attr names[] = {
    { "body", NULL }, { "num_scan_inputs", NULL }, { "directions", NULL }, { 0 }
};
const fac_onnx fac_reads_scan_old[] = { { "", "Scan", 8, 8, names, load, 0 }, { 0 } };
