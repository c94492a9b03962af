/* A Loop that carries sequences or optionals: its body once for each iteration, as often as is
 * known when the file is read. */
#include "ops/sequence/loop_lists.h"
#include "base/error.h"
#include "facula/ops.h"
#include "graph/graph_internal.h"
#include "graph/onnx_flow.h"
#include "ops/flow.h"
#include "graph/list.h"

enum { MOST = 1 << 12 }; /* iterations that a graph holds one after the other */

bool fac_loop_has_lists(const fac_onnx_node *n, fac_value *const in[]) {
    for (int i = 0; i < n->nin; i++)
        if (fac_is_list(in[i])) return true;
    return false;
}

typedef struct unrolled {
    const fac_onnx_node *n;
    fac_graph *g;
    fac_value **args, **made, **rows; /* rows: of results that are collected, one after the other */
    int formal, results, carried;
} unrolled;

static bool begin(unrolled *u, fac_value *const in[], int64_t trips) {
    const size_t rows = (size_t)(u->results - u->carried) * (size_t)trips;
    u->args = fac_arena_alloc(&u->g->arena, (size_t)u->formal + (size_t)u->results + rows + 2,
                              sizeof *u->args);
    if (!u->args) return fac_fail_graph(u->g, FAC_E_NOMEM, "no memory for a loop"), false;
    u->made = u->args + u->formal;
    u->rows = u->made + u->results + 1;
    u->args[1] = u->n->nin > 1 && in[1] ? in[1] : fac_number(u->g, FAC_BOOL, 1);
    for (int i = 2; i < u->formal; i++) u->args[i] = in[i];
    return true;
}

/* One iteration; *again: another one may follow. */
static bool iterate(unrolled *u, int64_t k, int64_t trips, bool *again) {
    u->args[0] = fac_number(u->g, FAC_I64, (double)k);
    fac_onnx_body_with(u->n, "body", u->formal, u->args, u->results + 1, u->made);
    if (u->g->error.status) return false;
    if (!fac_flow_always(u->made[0], again))
        return fac_fail_graph(u->g, FAC_E_UNSUPPORTED,
                              "a Loop that carries sequences, and whose end data decides"),
               false;
    u->args[1] = u->made[0];
    for (int i = 0; i < u->carried; i++) u->args[2 + i] = u->made[1 + i];
    for (int j = u->carried; j < u->results; j++) {
        fac_value *row = u->made[1 + j];
        if (!row || fac_is_list(row))
            return fac_fail_graph(u->g, FAC_E_FORMAT, "a Loop that collects sequences"), false;
        u->rows[(j - u->carried) * trips + k] = fac_unsqueeze(row, fac_shape(0));
    }
    return true;
}

static void put(const unrolled *u, int64_t trips, int64_t done, fac_value *out[]) {
    for (int j = 0; j < u->n->nout; j++) {
        if (j < u->carried)
            out[j] = u->args[2 + j];
        else if (done)
            out[j] = fac_concat(u->rows + (j - u->carried) * trips, (int)done, 0);
        else
            fac_fail_graph(u->g, FAC_E_UNSUPPORTED,
                           "a Loop that carries sequences and collects rows, without an iteration");
    }
}

void fac_loop_lists(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[],
                    int formal) {
    const int results = fac_onnx_body_outputs(n, "body") - 1;
    unrolled u = { n, g, NULL, NULL, NULL, formal, results, formal - 2 };
    fac_contents c = { 0 };
    bool again = true;
    if ((in[0] && (!fac_known_numbers(in[0], &c) || c.n != 1 || c.v[0] > MOST)) ||
        (n->nin > 1 && in[1] && !fac_flow_always(in[1], &again))) {
        fac_fail_graph(
            g, FAC_E_UNSUPPORTED,
            "a Loop that carries sequences must have a trip count, of at most %d, and a condition "
            "that are known when the file is read",
            (int)MOST);
        return;
    }
    const int64_t given = in[0] ? c.v[0] : MOST;
    const int64_t trips = given > 0 ? given : 0;
    if (results < u.carried || results < n->nout || n->nin != formal) {
        fac_fail_graph(g, FAC_E_FORMAT, "Loop has %d inputs and %d outputs, its body %d and %d",
                       n->nin, n->nout, formal, results);
        return;
    }
    int64_t k = 0;
    bool ok = begin(&u, in, trips);
    for (; ok && again && k < trips; k++) ok = iterate(&u, k, trips, &again);
    if (ok && !in[0] && again)
        fac_fail_graph(g, FAC_E_UNSUPPORTED,
                       "a Loop that carries sequences does not end within %d iterations",
                       (int)MOST);
    else if (ok)
        put(&u, trips, k, out);
}
