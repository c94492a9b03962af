/* What the solvers of bits read of a problem, and how they cut it. */
#include <limits.h>
#include "backends/problem.h"
#include "backends/opencl/nvidia/bits/bits.h"
#include "backends/gpu/nvidia/speed.h"
#include "op_list.h"
#include "tensor/tensor_internal.h"

enum { COORDINATES = 1 << 15, TAPS = 1 << 12, LARGEST = INT_MAX / 2, CHANNELS = 32 };
/* Of a unit's rate, by tiles that leave registers; of a round, that units wait at the end. */
#define SMALL_SHARE 0.7
#define LAST_ROUND 0.3
enum { TABLE_BYTES = 64 << 20, LOCAL = 160 << 10, SMALL_LOCAL = 96 << 10, LEAST_LOCAL = 46 << 10 };

/* Codes by whole numbers, where all planes of pixels count as often as whole numbers say. */
static bool find_times(const fac_problem *p, fac_nv_bits *s) {
    float u[FAC_BASIS_BITS];
    int unit;
    s->times[0] = 1;
    if (!fac_has_in(p, FAC_CB_LIMITS) || s->y) return false;
    if (s->c.planes == 1) return true;
    const fac_value *basis = p->node->in[FAC_CB_X_BASIS];
    if (basis->leaf != FAC_CONST || !basis->tensor) return false;
    if (fac_tensor_read(basis->tensor, u, (size_t)s->c.planes * sizeof *u, NULL)) return false;
    return fac_basis_multiples(u, s->c.planes, s->times, &unit);
}

static int copied_of(int64_t words) {
    if (words % 4 == 0) return 4;
    return words % 2 == 0 ? 2 : 1;
}

/* What is read `together` at once begins at a multiple of that: a slice that begins elsewhere is
 * copied. */
static void align(fac_operand *x, int64_t together) {
    if (x->type.dtype != FAC_NONE && x->layout.offset % together)
        x->layout = fac_layout_plain(&x->type.dims);
}

static bool read(const fac_opencl *o, fac_problem *p, fac_nv_bits *s) {
    if (p->node->body[0] || !fac_cl_bits_read(o, p, &s->c)) return false;
    static const int by_channel[] = { FAC_CB_B, FAC_CB_W_BASIS, FAC_CB_SCALE, FAC_CB_LIMITS };
    for (size_t k = 0; k < sizeof by_channel / sizeof *by_channel; k++)
        if (by_channel[k] < p->nin && s->c.K % 2 == 0) align(&p->in[by_channel[k]], 2);
    if (s->c.x_codes) align(&p->in[FAC_CB_X], copied_of(s->c.words));
    const fac_conv_geom *g = &s->c.g;
    s->pixels = g->N * g->P * g->Q;
    s->y_planes = 1;
    if (s->c.codes) {
        s->y = p->out[1].type.dtype != FAC_NONE;
        if (fac_has_in(p, FAC_CB_Y_BASIS)) s->y_planes = (int)p->in[FAC_CB_Y_BASIS].type.dims.d[0];
        s->limits = find_times(p, s);
        if (g->groups > 1 && s->c.K % FAC_WORD_BITS) return false; /* a word of two groups */
    }
    for (int d = 1; d <= 2; d++)
        if (g->in[d] + g->pad[d] >= COORDINATES || g->kernel[d] * g->dilation[d] >= COORDINATES ||
            g->out[d] * g->stride[d] >= COORDINATES)
            return false;
    return s->pixels * s->c.planes < LARGEST && g->R * g->S < TAPS &&
           (double)g->K * (double)s->c.of_weights * (double)(g->R * g->S * s->c.words) < LARGEST;
}

/* ---- cutting ---- */

/* The first ones have the most products for what they copy. */
static const fac_nv_bits_cut mma_cuts[] = {
    { 4, 8, 2, 2 }, { 4, 8, 2, 4 }, { 4, 8, 4, 2 }, { 2, 8, 2, 2 }, { 2, 4, 2, 2 }
};
static const fac_nv_bits_cut wgmma_cuts[] = { { 1, 32, 2, 1 }, { 2, 16, 2, 1 }, { 2, 16, 1, 1 },
                                              { 1, 16, 2, 1 }, { 1, 16, 1, 1 }, { 1, 8, 2, 1 } };
#define CUTS(of) .cuts = of, .ncuts = sizeof of / sizeof *of

const fac_nv_bits_unit fac_nv_bits_mma = { .path = FAC_CL_MMA_B1,
                                           .rows = 16,
                                           .team = 32,
                                           .most = 32,
                                           CUTS(mma_cuts),
                                           .rate = 5e13,
                                           .write = fac_nv_bits_mma_text };
const fac_nv_bits_unit fac_nv_bits_wgmma = { .path = FAC_CL_WGMMA_B1,
                                             .rows = 64,
                                             .team = 128,
                                             .most = 32,
                                             .lag = 1,
                                             CUTS(wgmma_cuts),
                                             .rate = 7e13,
                                             .write = fac_nv_bits_wgmma_text };

static int whole(int blocks, int planes) {
    if (blocks < planes) return planes;
    return blocks / planes * planes;
}

static size_t local_of(fac_opencl *o, const fac_nv_bits_unit *unit) {
    if (unit->path == FAC_CL_PATHS || fac_cl_has_path(o, FAC_CL_LOCAL_163)) return LOCAL;
    return fac_cl_has_path(o, FAC_CL_LOCAL_99) ? SMALL_LOCAL : LEAST_LOCAL;
}

/* What a group has besides tiles. */
static size_t local_with(const fac_nv_bits *s, int stages) {
    const size_t tile = (size_t)(fac_nv_bits_rows(s) + fac_nv_bits_columns(s)) * FAC_NV_BITS_ROW;
    return (size_t)stages * tile + (size_t)fac_nv_bits_items(s) * 16;
}

/* Blocks of 8 columns of a warp: of all planes, two or four such for halves or whole words. */
static int columns_of(int blocks, int planes) {
    const int each = whole(blocks, planes) / planes;
    return planes * (each >= 4 ? each / 4 * 4 : 2);
}

/* A cut of the unit, as far as it is one for the problem. */
static bool cut(fac_opencl *o, int number, fac_nv_bits *s) {
    const fac_nv_bits_unit *unit = s->unit;
    const fac_nv_bits_cut *c = &unit->cuts[number];
    const fac_conv_geom *g = &s->c.g;
    fac_nv_bits_tile *t = &s->t;
    *t = (fac_nv_bits_tile){ .ms = whole(c->m, s->c.planes),
                             .ns = columns_of(c->n, s->c.of_weights),
                             .warps_m = c->warps_m,
                             .warps_n = c->warps_n,
                             .stages = 4,
                             .copied = copied_of(s->c.words) };
    while (t->stages > 2 + unit->lag && local_with(s, t->stages) > local_of(o, unit)) t->stages--;
    if (local_with(s, t->stages) > local_of(o, unit)) return false;
    const int rows = fac_nv_bits_rows(s), columns = fac_nv_bits_columns(s),
              items = fac_nv_bits_items(s), down = items * t->copied / FAC_NV_BITS_WORDS;
    const int channels = columns / s->c.of_weights;
    if (rows % down || down % 8 || channels % CHANNELS) return false;
    if (t->ms * t->ns > unit->most) return false;
    const int64_t words = g->R * g->S * s->c.words;
    s->k_tiles = (words + FAC_NV_BITS_WORDS - 1) / FAC_NV_BITS_WORDS;
    s->group_tiles = (s->c.K + channels - 1) / channels;
    s->row_tiles = (s->pixels + rows / s->c.planes - 1) / (rows / s->c.planes);
    s->inside =
        (size_t)(g->groups * s->group_tiles * s->k_tiles) * (size_t)columns * FAC_NV_BITS_ROW;
    s->packed = s->inside;
    if (!s->c.sign) return true;
    const double kinds = (double)(g->R + 1) * (double)(g->R + 1) * (double)(g->S + 1) *
                         (double)(g->S + 1) * (double)(s->c.of_weights * g->K);
    if (kinds * 4 > TABLE_BYTES) return false;
    s->packed += (size_t)kinds * sizeof(int32_t);
    return true;
}

double fac_nv_bits_seconds(const fac_opencl *o, const fac_nv_bits *s) {
    const double tiles = (double)(s->c.g.groups * s->group_tiles) * (double)s->row_tiles;
    const double pairs = 2.0 * fac_nv_bits_rows(s) * fac_nv_bits_columns(s);
    const double bits = (double)s->k_tiles * FAC_NV_BITS_WORDS * FAC_WORD_BITS;
    const double small = s->t.ms * s->t.ns < s->unit->most ? SMALL_SHARE : 1;
    const double rounds = tiles / o->limits.units;
    const double full = rounds < 1 ? 1 : rounds + LAST_ROUND;
    return full * (pairs * bits / (small * s->unit->rate) + fac_nv_speeds.tile);
}

bool fac_nv_bits_choose(fac_opencl *o, fac_problem *p, const fac_nv_bits_unit *unit,
                        fac_nv_bits *s) {
    fac_nv_bits best = { .unit = NULL };
    *s = (fac_nv_bits){ .unit = unit };
    if (!read(o, p, s)) return false;
    if (p->variant) return p->variant <= unit->ncuts && cut(o, p->variant - 1, s);
    for (int k = 0; k < unit->ncuts; k++) {
        if (!cut(o, k, s)) continue;
        if (!best.unit || fac_nv_bits_seconds(o, s) < fac_nv_bits_seconds(o, &best)) best = *s;
    }
    *s = best;
    return best.unit != NULL;
}
