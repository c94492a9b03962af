/* See map.h. */
#include "ops/map.h"
#include "ops/cost.h"

void fac_cost_map(const fac_node *n, fac_cost *cost) {
    fac_cost_bytes(n, cost);
    cost->macs = 0;
    cost->other = fac_cost_count(n->out[0]);
}

fac_value *fac_map_chain(const fac_onnx_node *n, fac_value *const in[],
                         fac_value *(*op)(fac_value *, fac_value *)) {
    fac_value *y = in[0];
    for (int i = 1; i < n->nin; i++) y = op(y, in[i]);
    return y;
}
