/* Values known by a few numbers: mean(x^2), and for each axis mean(w x) with random weights w along
 * it.
 *
 * Two values of the same dims that hold equal numbers have equal means; that others have them too
 * would be a coincidence in each of rank + 1 numbers, and exchanging two elements changes one of
 * them.  All of it is computed by the network itself beside its own work, so that no value has to
 * be kept. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "facula/ops.h"
#include "report/verify/verify.h"
#include "tensor/tensor_internal.h"

static const uint64_t SEED = 0x70726f6265;

/* size numbers in [0.5, 1.5), along one axis of `rank`. */
static fac_value *weights(fac_graph *g, int axis, int rank, int64_t size) {
    fac_dims dims = { .n = rank };
    for (int k = 0; k < rank; k++) dims.d[k] = k == axis ? size : 1;
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    fac_status status = fac_tensor_new(NULL, FAC_F32, dims, &t, &err);
    float *w = status ? NULL : fac_tensor_memory(t);
    for (int64_t i = 0; w && i < size; i++)
        w[i] = 0.5f + (float)fac_random_uniform(SEED, (uint64_t)axis, (uint64_t)i);
    fac_value *v = status ? fac_graph_raise(g, status, "%s", err.text) : fac_const(g, t);
    fac_tensor_free(t);
    return v;
}

static void probe_value(fac_value *v, fac_value **to) {
    fac_graph *g = v->graph;
    const fac_dims one = fac_shape(1), *d = &v->type.dims;
    if (v->type.dtype != FAC_F32) v = fac_cast(v, FAC_F32);
    *to++ = fac_reshape(fac_mean(fac_mul(v, v), (fac_dims){ 0 }, false), one);
    for (int k = 0; k < d->n; k++) {
        fac_value *x = d->d[k] > 1 ? fac_mul(v, weights(g, k, d->n, d->d[k])) : v;
        *to++ = fac_reshape(fac_mean(x, (fac_dims){ 0 }, false), one);
    }
}

fac_graph *fac_probe(const fac_graph *g, fac_value *const v[], size_t n, int64_t *count) {
    fac_value **map = NULL, **parts = NULL;
    size_t total = 0, at = 0;
    for (size_t k = 0; k < n; k++) total += (size_t)fac_probe_size(v[k]);
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .keep_dead = true }, &map);
    if (!to) return NULL;
    parts = fac_alloc(total + 1, sizeof *parts);
    if (!parts) fac_graph_raise(to, FAC_E_NOMEM, "no memory to look at %zu values", n);
    for (size_t k = 0; k < n && !to->error.status; k++) {
        probe_value(map[v[k]->id], parts + at);
        at += (size_t)fac_probe_size(v[k]);
    }
    fac_forget_outputs(to);
    if (!to->error.status && total) fac_output(to, "probe", fac_concat(parts, (int)total, 0));
    fac_graph_sweep(to);
    fac_release(parts);
    *count = (int64_t)total;
    return to;
}

/* Differences are judged by the size of the values, the root of their mean square. */
bool fac_probe_equal(const double *a, const double *b, int rank, double room) {
    const double size = sqrt(fmax(a[0], 0));
    if (!(a[0] > 0) || !isfinite(a[0]) || !(fabs(a[0] - b[0]) <= 2 * room * a[0])) return false;
    for (int k = 1; k <= rank; k++)
        if (!(fabs(a[k] - b[k]) <= room * size)) return false;
    return true;
}
