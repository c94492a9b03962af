/* First values: torch.nn.init's distributions.  Each parameter has a random stream of its own,
 * numbered by its name: adding a layer changes no other layer's numbers. */
#include <fnmatch.h>
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "nn/nn_internal.h"
#include "tensor/mirror.h"

double fac_init_gain(const char *activation, double slope) {
    static const struct {
        const char *name;
        double gain;
    } gains[] = { { "linear", 1 },
                  { "sigmoid", 1 },
                  { "tanh", 5.0 / 3 },
                  { "relu", M_SQRT2 },
                  { "selu", 0.75 } };
    if (!strcmp(activation, "leaky_relu")) return sqrt(2 / (1 + slope * slope));
    for (size_t k = 0; k < sizeof gains / sizeof *gains; k++)
        if (!strcmp(activation, gains[k].name)) return gains[k].gain;
    return 0;
}

typedef struct stream {
    uint64_t seed, number;
} stream;

static double normal(const stream *s, uint64_t i) {
    return fac_random_normal(s->seed, s->number, i);
}

/* Elements of one kernel times channels in and out of a weight [out, in, ...]. */
typedef struct fans {
    double in, out;
} fans;

static fans fans_of(const fac_dims *d) {
    double window = 1;
    for (int k = 2; k < d->n; k++) window *= (double)d->d[k];
    return (fans){ (double)d->d[1] * window, (double)d->d[0] * window };
}

/* Everything that is uniform or normal, as that. */
static fac_init resolved(const fac_init *init, const fac_dims *dims) {
    fac_init r = *init;
    const bool kaiming = r.kind == FAC_INIT_KAIMING_UNIFORM || r.kind == FAC_INIT_KAIMING_NORMAL;
    double gain = kaiming ? M_SQRT2 : 1;
    if (r.gain != 0) gain = r.gain;
    if (r.std == 0) r.std = 1;
    if (r.kind < FAC_INIT_XAVIER_UNIFORM || r.kind > FAC_INIT_KAIMING_NORMAL) return r;
    const fans f = fans_of(dims);
    double std = gain * sqrt(2 / (f.in + f.out));
    if (kaiming) std = gain / sqrt(r.fan_out ? f.out : f.in);
    if (r.kind == FAC_INIT_XAVIER_NORMAL || r.kind == FAC_INIT_KAIMING_NORMAL)
        return (fac_init){ FAC_INIT_NORMAL, .std = std };
    return (fac_init){ FAC_INIT_UNIFORM, .low = -sqrt(3.0) * std, .high = sqrt(3.0) * std };
}

/* The inverse of the distribution function P of the standard normal: bisection, then Newton's
 * steps, each of which doubles the digits. */
static double normal_quantile(double p) {
    double low = -40, high = 40;
    for (int k = 0; k < 24; k++)
        *((0.5 * erfc(-(low + high) / 2 * M_SQRT1_2) < p) ? &low : &high) = (low + high) / 2;
    double x = (low + high) / 2;
    for (int k = 0; k < 3; k++) {
        const double density = exp(-x * x / 2) / sqrt(2 * M_PI);
        if (density > 0) x -= (0.5 * erfc(-x * M_SQRT1_2) - p) / density;
    }
    return x;
}

/* By inversion: uniform between P(low) and P(high), as torch draws. */
static void truncated(const fac_init *init, const stream *s, size_t n, float *to) {
    const bool usual = init->low == 0 && init->high == 0;
    const double low = usual ? -2 : init->low;
    const double high = usual ? 2 : init->high;
    const double from = 0.5 * erfc(-(low - init->mean) / init->std * M_SQRT1_2);
    const double till = 0.5 * erfc(-(high - init->mean) / init->std * M_SQRT1_2);
    for (size_t i = 0; i < n; i++) {
        const double u = fac_random_uniform(s->seed, s->number, i);
        to[i] = (float)fmin(
            fmax(init->mean + init->std * normal_quantile(from + (till - from) * u), low), high);
    }
}

/* Rows of a normal matrix made orthonormal by Gram and Schmidt; going over them twice removes what
 * rounding left (Giraud et al. 2005).  A matrix taller than wide: its transpose, so that columns
 * are. */
static fac_status orthogonal(const fac_init *init, const stream *s, const fac_dims *dims, float *to,
                             fac_error *err) {
    const size_t height = (size_t)dims->d[0], total = (size_t)fac_dims_count(dims),
                 width = total / height;
    const bool tall = height > width;
    const size_t rows = tall ? width : height;
    const size_t length = tall ? height : width;
    double *q = fac_alloc(total, sizeof *q);
    if (!q) return fac_raise_memory(err, "an orthogonal matrix of %zu elements", total);
    for (size_t i = 0; i < total; i++) q[i] = normal(s, i);
    for (size_t r = 0; r < rows; r++) {
        double *v = q + r * length, norm = 0;
        for (int pass = 0; pass < 2; pass++)
            for (size_t b = 0; b < r; b++) {
                const double *u = q + b * length;
                double dot = 0;
                for (size_t k = 0; k < length; k++) dot += u[k] * v[k];
                for (size_t k = 0; k < length; k++) v[k] -= dot * u[k];
            }
        for (size_t k = 0; k < length; k++) norm += v[k] * v[k];
        for (size_t k = 0; k < length; k++) v[k] /= sqrt(norm);
    }
    const double gain = init->gain != 0 ? init->gain : 1;
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < length; k++)
            to[tall ? k * width + r : r * width + k] = (float)(gain * q[r * length + k]);
    fac_release(q);
    return FAC_OK;
}

static fac_status draw(const fac_init *init, const stream *s, const fac_dims *dims, float *to,
                       fac_error *err) {
    const size_t n = (size_t)fac_dims_count(dims);
    const fac_init r = resolved(init, dims);
    if (!n) return FAC_OK;
    switch (r.kind) {
    case FAC_INIT_ORTHOGONAL:
        return orthogonal(&r, s, dims, to, err);
    case FAC_INIT_TRUNCATED_NORMAL:
        truncated(&r, s, n, to);
        break;
    case FAC_INIT_NORMAL:
        for (size_t i = 0; i < n; i++) to[i] = (float)(r.mean + r.std * normal(s, i));
        break;
    case FAC_INIT_UNIFORM:
        fac_random_fill(s->seed, s->number, (float)r.low, (float)r.high, n, to);
        break;
    default:
        for (size_t i = 0; i < n; i++) to[i] = (float)r.mean;
        break;
    }
    return FAC_OK;
}

/* ---- drawn on the first read: a model that is only counted, planned or given other weights never
 * pays for its own ---- */

typedef struct drawing {
    fac_init init;
    stream s;
    fac_type type;
} drawing;

static fac_status draw_late(void *self, void *to, size_t bytes, fac_error *err) {
    const drawing *d = self;
    if (d->type.dtype == FAC_F32) return draw(&d->init, &d->s, &d->type.dims, to, err);
    const size_t n = (size_t)fac_dims_count(&d->type.dims);
    float *values = fac_alloc(n + 1, sizeof *values);
    if (!values) return fac_raise_memory(err, "%zu random numbers (%zu bytes)", n, bytes);
    fac_status status = draw(&d->init, &d->s, &d->type.dims, values, err);
    if (!status) fac_convert(d->type.dtype, to, FAC_F32, values, n);
    fac_release(values);
    return status;
}

fac_status fac_init_tensor(const fac_init *init, uint64_t seed, const char *name, fac_type type,
                           fac_tensor **out, fac_error *err) {
    if (init->kind >= FAC_INIT_XAVIER_UNIFORM && type.dims.n < 2)
        return fac_raise(err, FAC_E_ARGUMENT,
                         "parameter %s has %d dims; this distribution needs at least two", name,
                         type.dims.n);
    drawing *d = fac_alloc(1, sizeof *d);
    if (!d)
        return fac_raise(err, FAC_E_NOMEM, "parameter %s: no memory for its first values", name);
    *d = (drawing){ *init, { seed, fac_hash_text(fac_hash_start(0), name).a }, type };
    fac_status status = fac_tensor_new_late(
        type, &(fac_late){ .make = draw_late, .release = fac_release, .self = d, .drawn = true },
        out, err);
    if (!status) return FAC_OK;
    fac_release(d);
    return fac_raise_in(err, status, "parameter %s", name);
}

static fac_status redraw(const fac_graph *g, const fac_value *p, const fac_init *init,
                         fac_error *err) {
    fac_tensor *t;
    FAC_TRY(fac_init_tensor(init, g->seed, p->name, p->type, &t, err));
    fac_status status = fac_storage_home(fac_tensor_storage(t), err);
    if (!status)
        status = fac_tensor_write(p->tensor, fac_tensor_data(t), fac_type_bytes(&p->type), err);
    fac_tensor_free(t);
    return status;
}

fac_status fac_nn_init(fac_graph *g, const char *pattern, const fac_init *init, fac_error *err) {
    int found = 0;
    FAC_TRY(fac_graph_usable(g, "fac_nn_init", err));
    if (init->kind == FAC_INIT_DEFAULT)
        return fac_raise(err, FAC_E_ARGUMENT, "%s: which distribution?", pattern);
    for (size_t i = 0; i < g->nparams; i++) {
        if (!fac_value_trains(g->params[i]) || fnmatch(pattern, g->params[i]->name, 0)) continue;
        FAC_TRY(redraw(g, g->params[i], init, err));
        found++;
    }
    return found ? FAC_OK : fac_raise(err, FAC_E_ARGUMENT, "no parameter is called %s", pattern);
}
