/* Layers without parameters, each in a scope of its own. */
#include "graph/graph_internal.h"
#include "nn/zoo/zoo_internal.h"

void fac_zoo_class(fac_value *x, const char *path, const char *name) {
    fac_graph_push(x->graph, path);
    fac_graph_set_class(x->graph, x->graph->scope ? x->graph->scope : "", name);
    fac_graph_pop(x->graph);
}

fac_value *fac_zoo_relu(fac_value *x, const char *name) {
    fac_graph_push(x->graph, name);
    x = fac_relu(x);
    fac_graph_pop(x->graph);
    return x;
}

fac_value *fac_zoo_relu6(fac_value *x, const char *name) {
    fac_graph_push(x->graph, name);
    x = fac_relu6(x);
    fac_graph_pop(x->graph);
    return x;
}

fac_value *fac_zoo_max_pool(fac_value *x, const char *name, int64_t kernel,
                            const fac_pool2d_opts *opts) {
    fac_graph_push(x->graph, name);
    x = fac_max_pool2d(x, kernel, kernel, opts);
    fac_graph_pop(x->graph);
    return x;
}

fac_value *fac_zoo_adaptive_avg_pool(fac_value *x, const char *name, int64_t side) {
    const fac_dims *d = &x->type.dims;
    fac_graph_push(x->graph, name);
    if (side == 1) {
        x = fac_mean(x, fac_shape(2, 3), false);
    } else if (d->n == 4 && d->d[2] > 0 && d->d[3] > 0 && d->d[2] % side == 0 &&
               d->d[3] % side == 0) {
        const int64_t h = d->d[2] / side, w = d->d[3] / side;
        x = fac_avg_pool2d(x, h, w, &(fac_pool2d_opts){ .stride = { h, w } });
    } else {
        x = fac_fail_graph(x->graph, FAC_E_SHAPE,
                           "planes that are no multiple of %lld x %lld are not pooled to that size",
                           (long long)side, (long long)side);
    }
    fac_graph_pop(x->graph);
    return x;
}
