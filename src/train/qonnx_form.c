/* A network of few bits in QONNX's operators: see facula/quantize.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/quantize.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "ops/basis.h"
#include "ops/constant.h"
#include "ops/qonnx.h"
#include "train/train_internal.h"

typedef struct work {
    int changed;
} work;

/* ---- weights: a sum of planes of +-1, each times a scale for each filter ---- */

/* A parameter "<name>.<ending><j>" of these numbers. */
static fac_value *kept(fac_graph *g, const char *name, const char *ending, int64_t j, fac_dims d,
                       const float *numbers) {
    char full[220];
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    snprintf(full, sizeof full, "%.180s.%s%d", name, ending, (int)j);
    const char *fresh = fac_graph_fresh(g, full);
    fac_status status = fresh ? fac_tensor_new(NULL, FAC_F32, d, &t, &err) : FAC_E_NOMEM;
    if (!status)
        status = fac_tensor_write(t, numbers, (size_t)fac_dims_count(&d) * sizeof *numbers, &err);
    fac_value *v =
        status ? fac_graph_raise(g, status, "%s: %s", full, err.text) : fac_param(g, fresh, t);
    fac_tensor_free(t);
    return v;
}

static void signs_of(const uint8_t *bits, int64_t channels, int64_t each, float *to) {
    const int64_t bytes = (each + 7) / 8;
    for (int64_t i = 0; i < channels * each; i++) {
        const int64_t c = i / each, k = i % each;
        to[i] = bits[c * bytes + k / 8] >> k % 8 & 1 ? 1 : -1;
    }
}

static fac_value *sum_of_planes(fac_graph *g, const char *name, const fac_dims *d,
                                const uint8_t *bits, const float *levels, int64_t planes,
                                float *room) {
    const int64_t channels = d->d[0], each = fac_dims_count(d) / channels;
    fac_dims row = { .n = d->n };
    fac_value *sum = NULL;
    for (int k = 0; k < d->n; k++) row.d[k] = k ? 1 : channels;
    for (int64_t j = 0; j < planes; j++) {
        signs_of(bits + j * channels * ((each + 7) / 8), channels, each, room);
        fac_value *in[] = { kept(g, name, "plane", j, *d, room),
                            kept(g, name, "scale", j, row, levels + j * channels) };
        fac_value *part = fac_emit(&fac_op_bipolar_quant, NULL, 2, in);
        sum = sum ? fac_add(sum, part) : part;
    }
    return sum;
}

/* "conv1.weight" of "conv1.weight.bits". */
static const char *name_of(const fac_value *bits, char *to, size_t size) {
    snprintf(to, size, "%s", bits->name ? bits->name : "weight");
    char *dot = strrchr(to, '.');
    if (dot && !strcmp(dot, ".bits")) *dot = 0;
    return to;
}

static bool put_weight(fac_graph *g, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    const fac_dims *b = &n->in[0]->type.dims, *d = &n->out[0]->type.dims;
    char name[200];
    if (!n->in[0]->tensor || !n->in[1]->tensor || n->out[0]->type.dtype != FAC_F32) return false;
    if (fac_dims_count(d) < 1) return false;
    const size_t size = (size_t)fac_dims_count(b), levels = (size_t)(b->d[0] * b->d[1]);
    float *room = fac_alloc((size_t)fac_dims_count(d) + levels, sizeof *room);
    uint8_t *bits = fac_alloc(size, 1);
    if (!room || !bits) fac_graph_raise(g, FAC_E_NOMEM, "no memory for planes of a weight");
    const bool read = room && bits && !fac_tensor_read(n->in[0]->tensor, bits, size, NULL) &&
                      !fac_tensor_read(n->in[1]->tensor, room, levels * sizeof *room, NULL);
    if (read)
        out[0] = sum_of_planes(g, name_of(n->in[0], name, sizeof name), d, bits, room, b->d[0],
                               room + levels);
    fac_release(room);
    fac_release(bits);
    (void)in;
    return read;
}

/* ---- activations: counts of thresholds, evenly or one by one ---- */

/* x > t is x >= the next number after t. */
static double at_least(double t) { return (double)nextafterf((float)t, INFINITY); }

static fac_value *thresholds(fac_value *x, const double *t, int n, double scale, double bias) {
    double above[FAC_BASIS_LEVELS];
    for (int k = 0; k < n; k++) above[k] = at_least(t[k]);
    const fac_multi_threshold_attrs a = { scale, bias };
    fac_value *in[] = { x, fac_constant(x->graph, FAC_F32, fac_shape(1, n), above) };
    return fac_emit(&fac_op_multi_threshold, &a, 2, in);
}

static bool is_even(const fac_basis *b) {
    const double step = b->level[1] - b->level[0], most = fabs(b->level[b->levels - 1]);
    for (int k = 1; k + 1 < b->levels; k++)
        if (fabs(b->level[k + 1] - b->level[k] - step) > 1e-7 * most) return false;
    return step > 0;
}

static bool put_levels(const fac_node *n, fac_value *const in[], fac_value *out[]) {
    const fac_basis_opts *o = n->attrs;
    const fac_dims *d = &n->in[1]->type.dims;
    float v[FAC_BASIS_BITS];
    double wide[FAC_BASIS_BITS];
    fac_basis b;
    if (!n->in[1]->tensor || d->n != 1 || !o->positive || n->in[0]->type.dtype != FAC_F32 ||
        n->in[0]->type.dims.n < 2)
        return false;
    if (fac_tensor_read(n->in[1]->tensor, v, (size_t)d->d[0] * sizeof *v, NULL)) return false;
    for (int j = 0; j < d->d[0]; j++) wide[j] = v[j];
    fac_basis_of(wide, 1, (int)d->d[0], true, true, &b);
    if (is_even(&b)) {
        out[0] = thresholds(in[0], b.threshold, b.levels - 1, b.level[1] - b.level[0], b.level[0]);
        return true;
    }
    fac_value *sum = NULL;
    for (int k = 0; k + 1 < b.levels; k++) {
        const double step = b.level[k + 1] - b.level[k];
        fac_value *part = thresholds(in[0], &b.threshold[k], 1, step, k ? 0 : b.level[0]);
        sum = sum ? fac_add(sum, part) : part;
    }
    out[0] = sum;
    return true;
}

/* ---- LSQ: round(clip(x / s, least, most)) s ---- */

/* How many bits; 0: not the range of integers. */
static int bits_of(double least, double most, bool *is_signed) {
    *is_signed = least < 0;
    for (int bits = 1; bits <= 8; bits++) {
        const double low = *is_signed ? -ldexp(1, bits - 1) : 0;
        const double high = ldexp(1, *is_signed ? bits - 1 : bits) - 1;
        if (least == low && most == high) return bits;
    }
    return 0;
}

static bool put_steps(const fac_node *n, fac_value *const in[], fac_value *out[]) {
    double least, most;
    bool is_signed;
    const fac_node *round = n->in[0]->node;
    const fac_node *clip = round && FAC_IS(round, round) ? round->in[0]->node : NULL;
    const fac_node *div = clip && FAC_IS(clip, clip) ? clip->in[0]->node : NULL;
    if (!div || !FAC_IS(div, div) || div->in[1] != n->in[1]) return false;
    if (fac_dims_count(&n->in[1]->type.dims) != 1 || !fac_train_number(clip->in[1], &least) ||
        !fac_train_number(clip->in[2], &most))
        return false;
    const int bits = bits_of(least, most, &is_signed);
    if (!bits) return false;
    fac_value *x = in[0]->node->in[0]->node->in[0]->node->in[0];
    fac_value *with[] = { x, in[1], fac_number(x->graph, FAC_F32, 0),
                          fac_number(x->graph, FAC_F32, bits) };
    out[0] = fac_emit(&fac_op_int_quant, &(fac_int_quant_attrs){ is_signed, false }, 4, with);
    return true;
}

/* ---- the graph ---- */

static bool put_sign(fac_value *const in[], fac_value *out[]) {
    if (in[0]->type.dtype != FAC_F32) return false;
    fac_value *with[] = { in[0], fac_number(in[0]->graph, FAC_F32, 1) };
    out[0] = fac_emit(&fac_op_bipolar_quant, NULL, 2, with);
    return true;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    work *k = self;
    bool done = false;
    if (to->error.status) return false;
    if (FAC_IS(n, unpack_basis))
        done = put_weight(to, n, in, out);
    else if (FAC_IS(n, quantize_basis))
        done = put_levels(n, in, out);
    else if (FAC_IS(n, binarize))
        done = put_sign(in, out);
    else if (FAC_IS(n, mul))
        done = put_steps(n, in, out);
    k->changed += done;
    return done;
}

static fac_status known_form(const fac_graph *model, fac_graph **out, fac_error *err) {
    fac_graph *known = NULL, *quiet = fac_graph_inference(model);
    int layers;
    fac_status status = quiet ? fac_train_recognize(quiet, &known, err)
                              : fac_raise_memory(err, "a copy of the model");
    if (!status) status = fac_train_packed(known, &layers, out, err);
    fac_graph_free(known);
    fac_graph_free(quiet);
    return status;
}

fac_status fac_graph_qonnx(const fac_graph *model, fac_graph **out, fac_error *err) {
    fac_graph *known;
    work k = { 0 };
    FAC_TRY(fac_graph_usable(model, "fac_graph_qonnx", err));
    FAC_TRY(known_form(model, &known, err));
    fac_graph *g = fac_graph_rebuild(known, &(fac_rebuild){ .self = &k, .visit = visit }, NULL);
    fac_graph_free(known);
    fac_status status = g ? fac_graph_check(g, err) : fac_raise_memory(err, "a copy of the model");
    if (!status && !k.changed)
        status = fac_raise(err, FAC_E_ARGUMENT,
                           "nothing is quantized to few bits: QONNX says of "
                           "this model what ONNX says");
    if (!status) fac_graph_sweep(g);
    if (status)
        fac_graph_free(g);
    else
        *out = g;
    return status;
}
