/* A transposed convolution as convolutions at stride 1, one for each phase of its stride:
 *
 *   y[z] = sum over taps r of x[i] w[r],  z = i stride + r dilation - pad
 *
 * For z = j stride + phase only taps with r dilation = phase + pad (mod stride) take part, every
 * q-th tap, with q = stride / gcd(stride, dilation), and tap r sees x[j + (phase + pad - r
 * dilation) / stride].  So nothing overlaps, no product meets zeros between the elements of x, and
 * each phase is a convolution.  Their results are put between each other dim by dim: stacked after
 * the dim, which becomes one with it, and what is past the end cut off. */
#include "ops/conv_transpose.h"
#include "graph/attr.h"
#include "rewrite/tile.h"

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }
static int64_t modulo(int64_t a, int64_t b) { return (a % b + b) % b; }

fac_tile_phases fac_tile_phases_of(const fac_node *n, int dim, int *rank) {
    fac_conv_geom g;
    if (!fac_conv_transpose_geometry(n, &g)) return (fac_tile_phases){ 0 };
    const int k = 3 - g.rank + dim;
    *rank = g.rank;
    return (fac_tile_phases){ g.stride[k],
                              g.dilation[k],
                              g.pad[k],
                              g.kernel[k],
                              g.out[k],
                              g.in[k],
                              (g.in[k] + g.stride[k] - 1) / g.stride[k] };
}

fac_tile_taps fac_tile_phase(const fac_tile_phases *p, int64_t phase) {
    const int64_t q = p->stride / gcd(p->stride, p->dilation);
    for (int64_t r = 0; r < q && r < p->kernel; r++) {
        const int64_t ahead = phase + p->pad - r * p->dilation;
        if (modulo(ahead, p->stride)) continue;
        const int64_t taps = (p->kernel - r + q - 1) / q, back = q * p->dilation / p->stride;
        const fac_tile_window seen = { taps, ahead / p->stride, -back, 1, p->positions };
        return (fac_tile_taps){ seen, r, q };
    }
    return (fac_tile_taps){ { 0, 0, 0, 1, p->positions }, 0, 1 };
}

/* Zeros in front of and after x, so that every tap of every phase sees some element. */
static void margins(const fac_tile_phases *p, int64_t *before, int64_t *after) {
    *before = *after = 0;
    for (int64_t phase = 0; phase < p->stride; phase++) {
        const fac_tile_window w = fac_tile_phase(p, phase).seen;
        if (!w.taps) continue;
        const int64_t low = w.first + (w.taps - 1) * w.step, high = w.first + p->positions - p->in;
        if (-low > *before) *before = -low;
        if (high > *after) *after = high;
    }
}

/* No weight meets these: the bias alone. */
static fac_value *empty_phase(fac_value *x, fac_value *b, const fac_dims *dims) {
    fac_dims ones = { .n = dims->n, .d = { 1, dims->d[1], 1, 1, 1 } };
    return fac_expand(b ? fac_reshape_sizes(b, ones) : fac_number(x->graph, x->type.dtype, 0),
                      *dims);
}

enum { MOST = 3 };
typedef struct job {
    fac_tiler *t;
    fac_tile_sweep sweep;
    fac_tile_phases line[MOST];
    fac_tile_taps taps[MOST];
    fac_dims y;
} job;

/* The phases along dim and those after it; the phases of the dims before are chosen. */
static fac_value *along(job *j, int dim) {
    fac_dims d = j->y;
    if (dim == MOST || dim == j->sweep.rank) {
        int64_t taps = 1;
        for (int k = 0; k < dim; k++) {
            d.d[2 + k] = j->line[k].positions;
            taps *= j->taps[k].seen.taps;
        }
        j->sweep.taps = j->taps;
        return taps ? fac_reshape_sizes(fac_tile_swept(j->t, &j->sweep), d)
                    : empty_phase(j->sweep.x, j->sweep.b, &d);
    }
    const fac_tile_phases *p = &j->line[dim];
    fac_value **part = fac_arena_alloc(&j->t->to->arena, (size_t)p->stride, sizeof *part);
    if (!part)
        return fac_graph_raise(j->t->to, FAC_E_NOMEM,
                               "no memory for the phases of a transposed convolution");
    for (int k = 0; k < dim; k++) d.d[2 + k] = j->line[k].positions;
    d.d[2 + dim] = p->positions;
    fac_dims apart = d; /* ..., positions, 1, ... */
    apart.n++;
    for (int k = apart.n - 1; k > 3 + dim; k--) apart.d[k] = apart.d[k - 1];
    apart.d[3 + dim] = 1;
    for (int64_t phase = 0; phase < p->stride; phase++) {
        j->taps[dim] = fac_tile_phase(p, phase);
        part[phase] = along(j, dim + 1);
        if (p->stride > 1) part[phase] = fac_reshape_sizes(part[phase], apart);
    }
    if (p->stride == 1) return part[0];
    d.d[2 + dim] = p->positions * p->stride;
    fac_value *y = fac_reshape_sizes(fac_concat(part, (int)p->stride, 3 + dim), d);
    return d.d[2 + dim] > p->out ? fac_slice(y, 2 + dim, 0, p->out, 1) : y;
}

fac_value *fac_tile_conv_transpose_node(fac_tiler *t, const fac_node *n, fac_value *const in[]) {
    fac_conv_geom g;
    int64_t before[3], after[3];
    int rank;
    if (!fac_conv_transpose_geometry(n, &g)) return NULL;
    job j = { .t = t, .y = n->out[0]->type.dims };
    for (int k = 0; k < g.rank; k++) {
        j.line[k] = fac_tile_phases_of(n, k, &rank);
        margins(&j.line[k], &before[k], &after[k]);
    }
    j.sweep = (fac_tile_sweep){ g.rank,         g.N,
                                g.groups,       g.C / g.groups,
                                g.K / g.groups, true,
                                NULL,           fac_tile_padded(in[0], g.rank, before, after),
                                in[1],          in[2] };
    for (int k = 0; k < g.rank; k++) j.line[k].pad += before[k] * g.stride[k + 3 - g.rank];
    return along(&j, 0);
}
