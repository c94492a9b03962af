/* Schemes by name, and what they make of a layer: see facula/quantize.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "nn/low_bits/low_bits.h"

enum { FLOATS = 32, BITS = 4, ABC_BASES = 8 };
static const double normal_quartile = 0.6745; /* LQ-Nets: of the standard normal distribution */

/* ---- names ---- */

static const struct {
    const char *name;
    fac_quantizer kind;
    int most;
} families[] = { { "lq", FAC_Q_LQ, BITS },
                 { "dorefa", FAC_Q_DOREFA, BITS },
                 { "lsq", FAC_Q_LSQ, 8 },
                 { "abc", FAC_Q_ABC, ABC_BASES } };
enum { FAMILIES = sizeof families / sizeof *families };

static const struct {
    const char *name;
    fac_scheme is;
} singles[] = { { "bnn", { FAC_Q_SIGN, FAC_Q_SIGN, 1, 1, FAC_SIGN_CLIP, true, false } },
                { "xnor", { FAC_Q_SCALED, FAC_Q_SIGN, 1, 1, FAC_SIGN_CLIP, true, false } },
                { "bwn", { FAC_Q_SCALED, FAC_Q_NONE, 1, FLOATS, FAC_SIGN_CLIP, false, false } },
                { "bireal", { FAC_Q_SCALED, FAC_Q_SIGN, 1, 1, FAC_SIGN_APPROX, true, false } },
                { "reactnet", { FAC_Q_SCALED, FAC_Q_SIGN, 1, 1, FAC_SIGN_APPROX, true, true } } };
enum { SINGLES = sizeof singles / sizeof *singles };

static bool in_range(int bits, int most) { return (bits >= 1 && bits <= most) || bits == FLOATS; }

static const char *parse_bits(const char *text, int family, fac_scheme *to) {
    int w, a, end = 0;
    if (sscanf(text, "w%2da%2d%n", &w, &a, &end) != 2 || text[end])
        return "expected wWaA after the colon, such as lq:w1a2";
    const int most = families[family].most;
    if (!in_range(w, most) || !in_range(a, most))
        return "bits are out of range (lq and dorefa: 1 to 4, "
               "lsq and abc: 1 to 8; 32: floats)";
    if (families[family].kind == FAC_Q_LSQ && w == 1) return "lsq has no weights of one bit";
    const fac_quantizer kind = families[family].kind;
    const fac_quantizer weights = w == FLOATS ? FAC_Q_NONE : kind;
    const fac_quantizer inputs = a == FLOATS ? FAC_Q_NONE : kind;
    *to = (fac_scheme){ weights, inputs, w, a, FAC_SIGN_CLIP, false, false };
    return NULL;
}

const char *fac_scheme_parse(const char *text, fac_scheme *to) {
    for (int k = 0; k < SINGLES; k++)
        if (!strcmp(text, singles[k].name)) {
            *to = singles[k].is;
            return NULL;
        }
    const size_t n = strcspn(text, ":");
    for (int k = 0; k < SINGLES && text[n]; k++)
        if (strlen(singles[k].name) == n && !strncmp(text, singles[k].name, n))
            return "bnn, xnor, bwn, bireal and reactnet have no bits to choose: the name alone";
    for (int k = 0; k < FAMILIES && text[n]; k++)
        if (strlen(families[k].name) == n && !strncmp(text, families[k].name, n))
            return parse_bits(text + n + 1, k, to);
    return "there is no such scheme (lq:wWaA, dorefa:wWaA, lsq:wWaA, abc:wWaA, bnn, xnor, bwn, "
           "bireal, "
           "reactnet)";
}

const char *fac_quantizing_wrong(const char *text) {
    fac_scheme s;
    const char *equals = strrchr(text, '=');
    return fac_scheme_parse(equals ? equals + 1 : text, &s);
}

/* ---- parameters ---- */

/* Number i is first[i], with two dims row i is full of first[i]. */
static fac_status fill(fac_tensor *t, const double first[], fac_error *err) {
    const fac_dims d = fac_tensor_type(t).dims;
    const size_t n = (size_t)fac_dims_count(&d), each = d.n > 1 ? (size_t)d.d[1] : 1;
    float *to = fac_alloc(n + 1, sizeof *to);
    if (!to) return fac_raise_memory(err, "%zu numbers", n);
    for (size_t i = 0; i < n; i++) to[i] = (float)first[i / each];
    const fac_status status = fac_tensor_write(t, to, n * sizeof *to, err);
    fac_release(to);
    return status;
}

/* A leaf "<layer>.<name>". */
static fac_value *leaf(fac_graph *g, fac_leaf kind, const char *layer, const char *name,
                       fac_dims dims, const double first[]) {
    char full[256];
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    fac_value *v = g->poison;
    if (g->error.status) return v;
    snprintf(full, sizeof full, "%s.%s", layer, name);
    fac_status status = fac_tensor_new(NULL, FAC_F32, dims, &t, &err);
    if (!status) status = fill(t, first, &err);
    if (status)
        fac_graph_raise(g, status, "%s: %s", full, err.text);
    else
        v = kind == FAC_STATE ? fac_state(g, full, t) : fac_param(g, full, t);
    fac_tensor_free(t);
    return v;
}

/* The numbers of a weight as f32; NULL: it has none here. */
static const float *numbers_of(const fac_tensor *t, int64_t *n) {
    if (!t || fac_tensor_type(t).dtype != FAC_F32) return NULL;
    const fac_dims d = fac_tensor_type(t).dims;
    *n = fac_dims_count(&d);
    return *n > 0 ? fac_tensor_data((fac_tensor *)(uintptr_t)t) : NULL;
}

/* The standard deviation and the mean of |w|. */
static void spread_of(const fac_tensor *t, double *std, double *mean) {
    int64_t n = 0;
    const float *w = numbers_of(t, &n);
    double squares = 0, sum = 0, size = 0;
    for (int64_t i = 0; w && i < n; i++) {
        sum += w[i];
        size += fabs((double)w[i]);
        squares += (double)w[i] * w[i];
    }
    *std = n && w ? sqrt(squares / (double)n - sum * sum / (double)n / (double)n) : 0.1;
    *mean = n && w ? size / (double)n : 0.1;
}

/* ---- a layer ---- */

/* v_j = 0.6745 std / 2^(K-1) 2^j; He et al.'s sqrt(2 / n) is the std of weights that are drawn
 * so. */
static fac_value *lq_weight(int bits, const char *layer, fac_value *w, double std) {
    double first[BITS];
    for (int j = 0; j < bits; j++) first[j] = normal_quartile * std * ldexp(1, j - bits + 1);
    fac_value *v =
        leaf(w->graph, FAC_STATE, layer, "weight.basis", fac_shape(bits, w->type.dims.d[0]), first);
    return fac_quantize_lq(w, v, NULL);
}

fac_value *fac_scheme_weight(const fac_scheme *s, const char *layer, fac_value *w,
                             const fac_tensor *now) {
    double std, mean, first;
    if (w->graph->error.status) return w->graph->poison;
    spread_of(now, &std, &mean);
    switch (s->weights) {
    case FAC_Q_LQ:
        return lq_weight(s->weight_bits, layer, w, std > 0 ? std : 1);
    case FAC_Q_DOREFA:
        return fac_quantize_dorefa_weight(w, s->weight_bits);
    case FAC_Q_ABC:
        return fac_quantize_abc_weight(w, s->weight_bits);
    case FAC_Q_SIGN:
        return fac_binarize_through(w, s->path);
    case FAC_Q_SCALED:
        return fac_binarize_scaled(w, s->path);
    case FAC_Q_LSQ:
        first = 2 * (mean > 0 ? mean : 1) / sqrt(ldexp(1, s->weight_bits - 1) - 1);
        return fac_quantize_lsq(
            w, leaf(w->graph, FAC_PARAM, layer, "weight.step", fac_shape(1), &first),
            s->weight_bits, false);
    default:
        return w;
    }
}

/* v_j = 0.6745 2 / (2^K - 1) 2^j */
static fac_value *lq_input(int bits, const char *layer, fac_value *x) {
    const fac_basis_opts positive = { .positive = true };
    double first[BITS];
    for (int j = 0; j < bits; j++)
        first[j] = normal_quartile * 2 / (ldexp(1, bits) - 1) * ldexp(1, j);
    fac_value *v = leaf(x->graph, FAC_STATE, layer, "input.basis", fac_shape(bits), first);
    return fac_quantize_lq(x, v, &positive);
}

/* Thresholds evenly within what a batch norm and a relu make, and scales that add up to 1. */
static fac_value *abc_input(int bases, const char *layer, fac_value *x) {
    double shift[ABC_BASES], scale[ABC_BASES];
    for (int i = 0; i < bases; i++) {
        shift[i] = 0.5 - (i + 0.5) / bases;
        scale[i] = 1.0 / bases;
    }
    fac_value *v = leaf(x->graph, FAC_PARAM, layer, "input.shift", fac_shape(bases), shift);
    return fac_quantize_abc(
        x, v, leaf(x->graph, FAC_PARAM, layer, "input.scale", fac_shape(bases), scale));
}

/* One number for each channel of x, so that it broadcasts. */
static fac_value *channels(fac_value *x, const char *layer, const char *name, double first) {
    const fac_dims *d = &x->type.dims;
    const int axis = d->n == 2 || d->n == 4 ? 1 : d->n - 1;
    fac_dims row = { .n = d->n - axis };
    for (int k = 0; k < row.n; k++) row.d[k] = 1;
    row.d[0] = d->d[axis];
    if (row.d[0] < 0)
        return fac_graph_raise(x->graph, FAC_E_SHAPE,
                               "%s: the channels of its input are not "
                               "known",
                               layer);
    fac_value *v = leaf(x->graph, FAC_PARAM, layer, name, fac_shape(1, row.d[0]), &first);
    return fac_reshape_sizes(v, row);
}

fac_value *fac_scheme_input(const fac_scheme *s, const char *layer, fac_value *x) {
    if (x->graph->error.status) return x->graph->poison;
    double first = 2 * 0.4 / sqrt(ldexp(1, s->input_bits < 9 ? s->input_bits : 8) - 1);
    switch (s->inputs) {
    case FAC_Q_LQ:
        return lq_input(s->input_bits, layer, x);
    case FAC_Q_DOREFA:
        return fac_quantize_dorefa(x, s->input_bits);
    case FAC_Q_ABC:
        return abc_input(s->input_bits, layer, x);
    case FAC_Q_LSQ:
        return fac_quantize_lsq(
            x, leaf(x->graph, FAC_PARAM, layer, "input.step", fac_shape(1), &first), s->input_bits,
            true);
    case FAC_Q_SIGN:
        if (s->shifted) x = fac_add(x, channels(x, layer, "input.shift", 0));
        return fac_binarize_through(x, s->path);
    default:
        return x;
    }
}

/* ReActNet's RPReLU: prelu(x + g) + z, each of a channel. */
fac_value *fac_scheme_relu(const fac_scheme *s, const char *layer, fac_value *x) {
    if (!s->signs || !s->shifted || x->graph->error.status) return x;
    fac_value *moved = fac_add(x, channels(x, layer, "act.before", 0));
    fac_value *bent = fac_prelu(moved, channels(x, layer, "act.slope", 0.25));
    return fac_add(bent, channels(x, layer, "act.after", 0));
}
