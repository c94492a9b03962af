/* SpecAugment (Park et al. 2019): a stretch of time and a band of frequencies of a picture of sound
 * become its mean.  The numbers are functions of (counter, stream, sample) alone, as those of
 * dropout, so a training that is resumed draws the same. */
#include "graph/graph_internal.h"
#include "ops/cost.h"
#include "facula/ops.h"

#if FAC_INTERFACE
/* Inference: y = x.  `time` and `bands` are what training would mask at most. */
fac_value *fac_mask_spectrum(fac_value *x, double time, double bands);
/* Training: x B,...,M,T.  Of each sample a stretch of up to `time` T columns and of up to `bands` M
 * rows becomes the mean of the sample; both parts are in [0, 1).  counter: an integer scalar, as
 * fac_dropout_train has it.  fac_graph_inference turns it into the form above. */
fac_value *fac_mask_spectrum_train(fac_value *x, double time, double bands, fac_value *counter);
#endif

typedef struct attrs {
    double time, bands;
    int64_t stream;
    bool training;
} attrs;
static const fac_attr table[] = {
    { "time", FAC_A_REAL, offsetof(attrs, time), 0, 0, 0, 1, NULL, "part of the time, at most" },
    { "bands", FAC_A_REAL, offsetof(attrs, bands), 0, 0, 0, 1, NULL, "part of the rows, at most" },
    { "stream", FAC_A_INT, offsetof(attrs, stream), 0, 0, 0, 0, NULL,
      "which of the noises of a counter" },
    { "training", FAC_A_FLAG, offsetof(attrs, training), 0, 0, 0, 0, NULL, "mask, by the counter" },
    { 0 }
};
static const fac_port ports[] = { { "x", FAC_FLOATS, 0 },
                                  { "counter", FAC_INTS, FAC_OPTIONAL },
                                  { 0 } };

static bool infer(fac_node *n) {
    const attrs *a = n->attrs;
    if (n->in[0]->type.dims.n < 3) return fac_fail(n, FAC_E_SHAPE, "x must be B,...,M,T");
    if (!(a->time >= 0 && a->time < 1 && a->bands >= 0 && a->bands < 1))
        return fac_fail(n, FAC_E_ARGUMENT, "time and bands are parts, in 0..1");
    if (a->training && (!n->in[1] || n->in[1]->type.dims.n != 0))
        return fac_fail(n, FAC_E_SHAPE, "training needs a counter, an integer scalar");
    n->out[0]->type = n->in[0]->type;
    return true;
}

/* [B,1,...,1]: number k of each sample, in [0, 1). */
static fac_value *drawn(const fac_node *n, int k) {
    enum { DRAWS = 4 };
    fac_value *x = n->in[0], *batch = fac_slice(fac_shape_of(x), 0, 0, 1, 1);
    fac_value *shape =
        fac_concat((fac_value *[]){ batch, fac_ints(n->graph, fac_shape(DRAWS)) }, 2, 0);
    fac_value *u = fac_uniform(n->in[1], ((const attrs *)n->attrs)->stream, shape, FAC_F32);
    fac_dims ones = { .n = x->type.dims.n };
    for (int d = 0; d < ones.n; d++) ones.d[d] = d ? 1 : -1;
    return fac_reshape(fac_slice(u, 1, k, k + 1, 1), ones);
}

/* Where the places of this axis lie in a stretch of up to `part` of them. */
static fac_value *stretch(const fac_node *n, int axis, double part, int first) {
    fac_graph *g = n->graph;
    fac_value *sizes = fac_slice(fac_shape_of(n->in[0]), 0, axis, axis + 1, 1);
    fac_value *size = fac_reshape(sizes, (fac_dims){ 0 }), *real = fac_cast(size, FAC_F32);
    fac_value *length =
        fac_floor(fac_mul(fac_mul(drawn(n, first), fac_number(g, FAC_F32, part)), real));
    fac_value *start = fac_floor(fac_mul(drawn(n, first + 1), fac_sub(real, length)));
    fac_value *places =
        fac_cast(fac_arange(fac_number(g, FAC_I64, 0), size, fac_number(g, FAC_I64, 1)), FAC_F32);
    fac_dims along = { .n = n->in[0]->type.dims.n };
    for (int d = 0; d < along.n; d++) along.d[d] = d == axis ? -1 : 1;
    places = fac_reshape(places, along);
    return fac_and(fac_greater_or_equal(places, start), fac_less(places, fac_add(start, length)));
}

static void expand(const fac_node *n, fac_value *y[]) {
    const attrs *a = n->attrs;
    fac_value *x = n->in[0];
    const int rank = x->type.dims.n;
    y[0] = x;
    if (!a->training) return;
    fac_dims all = { .n = rank - 1 };
    for (int d = 1; d < rank; d++) all.d[d - 1] = d;
    fac_value *masked = fac_or(stretch(n, rank - 1, a->time, 0), stretch(n, rank - 2, a->bands, 2));
    y[0] = fac_where(masked, fac_mean(x, all, true), x);
}

static void define(const fac_node *n, fac_value *y[]) {
    if (!((const attrs *)n->attrs)->training) y[0] = n->in[0];
}

static void cost(const fac_node *n, fac_cost *to) { fac_cost_each(n, 0, to); }

static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *x = fac_onnx_name(w, n->in[0]);
    if (((const attrs *)n->attrs)->training) return false;
    return fac_onnx_put(w, "Identity", 1, &x, fac_onnx_name(w, n->out[0])) != NULL;
}

static const fac_case cases[] = {
    { "mask_spectrum(f32[2,1,5,7]) time=0.3 bands=0.2", -1, 1, 0 },
    { "mask_spectrum(f32[3,1,9,20], i64[]) time=0.5 bands=0.4 stream=3 training", -2, 2, 1e-6 },
    { "mask_spectrum(f32[3,4,6], i64[]) time=0.9 training", -2, 2, 1e-6 },
    { "mask_spectrum(f16[2,1,6,8], i64[]) time=0.5 bands=0.5 training", -2, 2, 2e-3 },
    { "mask_spectrum(f32[0,1,6,8], i64[]) time=0.5 training", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_mask_spectrum = {
    .name = "mask_spectrum",
    .doc = "pictures of sound, parts of which training would mask",
    .in = ports,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .expand = expand,
    .define = define,
    .cost = cost,
    .save = save,
    .cases = cases,
    .mixed = FAC_MIXED_FOLLOWS,
    .images = FAC_IMAGES_FIRST,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_mask_spectrum(fac_value *x, double time, double bands) {
    return fac_emit(&fac_op_mask_spectrum, &(attrs){ .time = time, .bands = bands }, 1, &x);
}
fac_value *fac_mask_spectrum_train(fac_value *x, double time, double bands, fac_value *counter) {
    const attrs a = { time, bands, x->graph->streams++, true };
    return fac_emit(&fac_op_mask_spectrum, &a, 2, (fac_value *[]){ x, counter });
}
