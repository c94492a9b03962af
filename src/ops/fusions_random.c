/* ONNX's random operators.  The noise of a node is that of its `seed` and of its place among such
 * nodes, and the same in each run and on each device; no runtime gives the numbers of another. */
#include <math.h>
#include <string.h>
#include "graph/graph_internal.h"
#include "ops/fusions.h"

const fac_onnx_attr fac_names_random[] = {
    { "dtype", NULL }, { "seed", NULL },        { "shape", NULL },
    { "low", NULL },   { "high", NULL },        { "mean", NULL },
    { "scale", NULL }, { "sample_size", NULL }, { 0 }
};

static fac_value *counter_of(const fac_onnx_node *n, fac_graph *g) {
    const double seed = fac_onnx_real(n, "seed", 0);
    return fac_number(g, FAC_I64, isfinite(seed) && fabs(seed) < 1e15 ? trunc(seed) : 0);
}

/* ---- written again ----
 * As long as the counter is a constant: a state that steers noise has no operator. */

static bool seed_of(const fac_value *counter, double *to) {
    fac_contents c;
    if (counter->leaf != FAC_CONST || !fac_known(counter, &c) || c.n != 1) return false;
    *to = (double)c.v[0];
    return true;
}

static void put(const fac_onnx_writer *w, const fac_node *n, const char *type, const char *x,
                double seed) {
    fac_onnx_put(w, type, 1, &x, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_dtype(w, "dtype", n->out[0]->type.dtype);
    fac_onnx_put_real(w, "seed", seed);
}

static bool save_like(const fac_onnx_writer *w, const fac_node *n, const char *type) {
    double seed;
    if (!seed_of(n->in[0], &seed)) return false;
    const char *shape = fac_onnx_list_of(w, n->in[1]);
    put(w, n, type, fac_onnx_put(w, "ConstantOfShape", 1, &shape, NULL), seed);
    return true;
}
bool fac_save_uniform(const fac_onnx_writer *w, const fac_node *n) {
    return save_like(w, n, "RandomUniformLike");
}
bool fac_save_normal(const fac_onnx_writer *w, const fac_node *n) {
    return save_like(w, n, "RandomNormalLike");
}
bool fac_save_bernoulli(const fac_onnx_writer *w, const fac_node *n) {
    double seed;
    if (!seed_of(n->in[1], &seed)) return false;
    put(w, n, "Bernoulli", fac_onnx_name(w, n->in[0]), seed);
    return true;
}

/* ---- read ---- */

/* RandomUniform and RandomNormal have `shape`, those that are called Like an input. */
static fac_value *like_of(const fac_onnx_node *n, fac_value *const x[]) {
    return strstr(n->type, "Like") ? x[0] : NULL;
}

static fac_value *shape_of(const fac_onnx_node *n, fac_graph *g, fac_value *const x[]) {
    fac_value *like = like_of(n, x);
    return like ? fac_shape_of(like) : fac_ints(g, fac_onnx_ints(n, "shape"));
}

static fac_dtype type_of(const fac_onnx_node *n, fac_value *const x[]) {
    const fac_value *like = like_of(n, x);
    const fac_dtype own = like ? like->type.dtype : FAC_F32;
    return fac_onnx_dtype(n, "dtype", fac_dtype_get(own)->kind == 'f' ? own : FAC_F32);
}

static fac_value *stretched(fac_value *v, double by, double from) {
    fac_graph *g = v->graph;
    const fac_dtype t = v->type.dtype;
    if (by != 1) v = fac_mul(v, fac_number(g, t, by));
    return from != 0 ? fac_add(v, fac_number(g, t, from)) : v;
}

void fac_load_uniform(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const double low = fac_onnx_real(n, "low", 0), high = fac_onnx_real(n, "high", 1);
    const int64_t stream = g->streams++;
    fac_value *u = fac_uniform(counter_of(n, g), stream, shape_of(n, g, x), type_of(n, x));
    y[0] = stretched(u, high - low, low);
}

void fac_load_normal(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    const double mean = fac_onnx_real(n, "mean", 0), scale = fac_onnx_real(n, "scale", 1);
    const int64_t stream = g->streams++;
    fac_value *u = fac_normal(counter_of(n, g), stream, shape_of(n, g, x), type_of(n, x));
    y[0] = stretched(u, scale, mean);
}

void fac_load_bernoulli(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                        fac_value *y[]) {
    const int64_t stream = g->streams++;
    fac_value *yes = fac_bernoulli(x[0], counter_of(n, g), stream);
    y[0] = fac_cast(yes, fac_onnx_dtype(n, "dtype", x[0]->type.dtype));
}

/* x B,C: logarithms of weights; y B,sample_size: the first class whose cumulative probability is
 * beyond a number in [0, 1). */
void fac_load_multinomial(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                          fac_value *y[]) {
    const int64_t size = fac_onnx_int(n, "sample_size", 1), stream = g->streams++;
    const fac_dtype t = fac_onnx_dtype(n, "dtype", FAC_I32);
    if (x[0]->type.dims.n != 2 || size < 0) {
        y[0] = fac_fail_graph(g, FAC_E_SHAPE,
                              "Multinomial: x must be batch, classes, and the sample "
                              "size not negative");
        return;
    }
    fac_value *p = fac_cum_sum(fac_softmax(fac_cast(x[0], FAC_F32), 1), 1, false, false);
    fac_value *parts[] = { fac_slice(fac_shape_of(x[0]), 0, 0, 1, 1),
                           fac_ints(g, fac_shape(size)) };
    fac_value *u = fac_uniform(counter_of(n, g), stream, fac_concat(parts, 2, 0), FAC_F32);
    /* the last class is what is left, whatever the sum rounds to */
    fac_value *before = fac_unsqueeze(fac_slice(p, 1, 0, -1, 1), fac_shape(1));
    fac_value *beyond = fac_greater_or_equal(fac_unsqueeze(u, fac_shape(2)), before);
    y[0] = fac_cast(fac_sum(fac_cast(beyond, FAC_I64), fac_shape(2), false), t);
}
