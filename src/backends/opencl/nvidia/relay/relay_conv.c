/* conv/relay and product/relay: convolutions of few pixels and linear layers of few rows as legs of
 * a relay (nv_relay_conv.cl).  A linear layer is a 1 x 1 convolution of images of one
 * pixel. */
#include <math.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/gpu/nvidia/divide.h"
#include "backends/opencl/nvidia/unit/pack.h"
#include "backends/opencl/nvidia/relay/relay.h"
#include "backends/gpu/nvidia/speed.h"
#include "opencl_solvers.h"
#include "base/memory.h"
#include "op_list.h"
#include "tensor/tensor_internal.h"

enum { VERSION = 1, TAPS = 32, ROW = 128, ROW_TRIPLE = 64 };

/* Pixels and channels of a tile, k-tiles at once; warps of a team, and how many tiles of a group's
 * block lie side by side. */
typedef struct cut {
    int pixels, columns, depth, team, across;
} cut;
static const cut cuts[] = { { 16, 16, 4, 8, 1 }, { 16, 16, 4, 4, 2 }, { 16, 16, 4, 4, 1 },
                            { 16, 16, 4, 2, 2 }, { 16, 16, 4, 1, 4 }, { 32, 32, 2, 8, 1 },
                            { 32, 32, 2, 4, 2 }, { 32, 32, 2, 4, 1 }, { 32, 32, 2, 2, 2 },
                            { 32, 32, 2, 1, 4 } };
enum { VARIANTS = sizeof cuts / sizeof *cuts };

typedef struct plan {
    fac_nv_leg_plan p; /* first */
    fac_nv_conv c;
    fac_nv_packing k;
    fac_cl_kernel pack;
} plan;

/* ---- what it takes ---- */

/* What is read by fours and small: a copy where it lies otherwise. */
static void settle(fac_operand *x) {
    if (x->type.dtype != FAC_NONE &&
        (x->layout.offset & 7 || !fac_layout_is_plain(&x->layout, &x->type.dims)))
        x->layout = fac_layout_plain(&x->type.dims);
}

/* x[rows, I] w[O, I]: images of one pixel. */
static bool read_linear(const fac_opencl *o, fac_problem *p, fac_nv_conv *c) {
    fac_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    memset(c, 0, sizeof *c);
    if (p->node->op != &fac_op_linear || x->type.dims.n != 2) return false;
    settle(x), settle(w), settle(y);
    for (int i = 2; i < p->nin; i++) settle(&p->in[i]);
    if (!fac_cl_product_start(o, p, 2, &c->r) ||
        !fac_nv_mode_of(c->r.dtype, p->precision, &c->mode))
        return false;
    const int64_t rows = x->type.dims.d[0], in = x->type.dims.d[1], out = y->type.dims.d[1];
    if (in % (c->r.dtype == FAC_F32 ? 4 : 8) || out % 4 || rows > 64 || in > 1 << 20 ||
        out > 1 << 20)
        return false;
    c->kind = FAC_GPU_FORWARD;
    c->phases = 1;
    c->groups = 1;
    c->rows = (int32_t)out;
    c->channels = (int32_t)in;
    c->g = (fac_conv_geom){ .rank = 2, .N = rows, .C = in, .K = out, .groups = 1 };
    for (int d = 0; d < 3; d++)
        c->g.in[d] = c->g.kernel[d] = c->g.out[d] = c->g.stride[d] = c->g.dilation[d] = 1;
    c->x = (fac_nv_place){ .at = x->layout.offset, .image = (int32_t)in, .channel = 1 };
    c->ends.p[0] = (fac_nv_place){ .at = y->layout.offset, .image = (int32_t)out, .channel = 1 };
    for (int i = 0; i < c->r.extras; i++) {
        fac_operand *e = &p->in[c->r.input[i]];
        const bool row = e->type.dims.n == 1 && e->type.dims.d[0] == out,
                   whole = fac_dims_equal(&e->type.dims, &y->type.dims);
        if ((!row && !whole) || (e->type.dtype != FAC_F32 && e->type.dtype != c->r.dtype))
            return false;
        c->ends.p[1 + i] = (fac_nv_place){ .at = e->layout.offset,
                                           .image = whole ? (int32_t)out : 0,
                                           .channel = 1 };
    }
    return true;
}

/* At most a bias, which is the same for all pixels, and an image of the result's size. */
static bool few_extras(const fac_nv_conv *c, int *bias, int *add) {
    *bias = c->r.biased ? 0 : -1;
    *add = -1;
    for (int i = c->r.biased; i < c->r.extras; i++) {
        if (*add >= 0) return false;
        *add = i;
    }
    if (*bias >= 0 && (fac_nv_run_of(&c->ends.p[1]) != FAC_NV_CHANNELS || (c->ends.p[1].at & 7)))
        return false;
    return *add < 0 ||
           (fac_nv_run_of(&c->ends.p[1 + *add]) == FAC_NV_FOURS &&
            c->ends.p[1 + *add].apart <= 1) ||
           fac_nv_run_of(&c->ends.p[1 + *add]) == FAC_NV_CHANNELS;
}

static bool read_problem(const fac_opencl *o, fac_problem *p, bool linear, fac_nv_conv *c) {
    int bias, add;
    if (!linear && p->node->op == &fac_op_conv2d) settle(&p->in[2]);
    if (!(linear ? read_linear(o, p, c) : fac_nv_conv_read(o, p, c))) return false;
    if (c->kind != FAC_GPU_FORWARD || c->moments || c->pooled || c->few || c->g.D != 1 ||
        c->g.T != 1 || c->g.O != 1)
        return false;
    if (c->mode == FAC_NV_BF16 && c->r.dtype == FAC_F32) return false;
    return c->r.alpha == 1 && c->r.beta == 1 && c->g.R * c->g.S <= TAPS &&
           few_extras(c, &bias, &add);
}

/* ---- how it is cut ---- */

/* lines, columns: tiles of pixels and of channels; a block is `down` x c.across of them, `wide`
 * blocks are side by side. */
typedef struct tiling {
    cut c;
    int down, lines, columns, wide, blocks, row_tiles, k_tiles;
    fac_nv_packing k;
    double seconds;
} tiling;

/* A unit goes through its blocks in turns; each takes a while to begin and to end, and its
 * multiplications.  Beside that its bytes come from the second cache, to each unit so many a
 * second, and weights from memory to all of them. */
static void estimate(const fac_opencl *o, tiling *t, int row) {
    const fac_nv_relay_speed *v = &fac_nv_relay_speeds;
    const double units = o->limits.units, turns = ceil(t->blocks / units),
                 each = ceil((double)t->k_tiles / t->c.team);
    const double bytes =
        (double)t->k_tiles * (t->down * t->c.pixels * row + t->c.across * fac_nv_tile_bytes(&t->k));
    const double weights = (double)t->columns * t->k_tiles * fac_nv_tile_bytes(&t->k);
    const double work =
        each * t->c.pixels * t->c.columns / 256 * (t->k.mode == FAC_NV_3XTF32 ? v->three : 1);
    const double ways =
        fmax(turns * bytes / v->unit_cache, weights / (v->memory * fac_gpu_bandwidth(&o->limits)));
    t->seconds = v->conv + turns * (v->turn + v->work * work) + ways;
}

static bool cut_into(const fac_opencl *o, const fac_nv_conv *c, const cut *k, tiling *t) {
    const fac_nv_phase f = fac_nv_phase_of(c, 0);
    const int bytes = c->r.dtype == FAC_F32 ? 4 : 2,
              row = c->mode == FAC_NV_3XTF32 ? ROW_TRIPLE : ROW;
    *t = (tiling){ .c = *k, .down = FAC_NV_RELAY_WARPS / k->team / k->across };
    t->k = (fac_nv_packing){
        .rows = k->columns, .terms = row / bytes, .mode = c->mode, .order = FAC_NV_IN_ORDER
    };
    t->row_tiles = fac_nv_row_tiles(c, &t->k);
    t->k_tiles = fac_nv_k_tiles(c, &t->k, &f);
    const double lines = (double)((f.pixels + k->pixels - 1) / k->pixels),
                 columns = (double)t->row_tiles * c->groups;
    if (lines * columns >= INT32_MAX) return false;
    t->lines = (int)lines;
    t->columns = (int)columns;
    t->wide = (t->columns + k->across - 1) / k->across;
    t->blocks = (t->lines + t->down - 1) / t->down * t->wide;
    estimate(o, t, row);
    return true;
}

/* The best by estimates, or the variant asked for. */
static bool choose(const fac_opencl *o, const fac_nv_conv *c, int variant, tiling *best) {
    bool found = false;
    for (int i = 0; i < VARIANTS; i++) {
        tiling t;
        if ((variant && variant != i + 1) || !cut_into(o, c, &cuts[i], &t)) continue;
        if (!found || t.seconds < best->seconds) *best = t;
        found = true;
    }
    return found;
}

/* What make() goes on with. */
typedef struct draft {
    fac_nv_conv c;
    tiling t;
} draft;

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const bool linear = *(const bool *)p->solver->how;
    fac_opencl *o = fac_opencl_of(d);
    fac_nv_conv c;
    tiling t;
    if (!fac_nv_relays(o) || !read_problem(o, p, linear, &c) || !choose(o, &c, p->variant, &t))
        return false;
    offer->packed[1] = fac_nv_packed_bytes(&c, &t.k);
    offer->seconds = t.seconds;
    if (p->in[1].time == FAC_RUN)
        offer->seconds +=
            fac_nv_relay_speeds.pack_launch + 2 * (double)offer->packed[1] / fac_nv_speeds.pack;
    offer->version = VERSION;
    offer->variants = VARIANTS;
    *FAC_DRAFT(offer, draft) = (draft){ c, t };
    return offer->packed[1] != 0;
}

/* ---- the plan ---- */

static int64_t bytes_of(fac_dtype t) { return fac_dtype_get(t)->block_bytes; }

static void place_extra(const fac_nv_conv *c, int extra, int which, fac_nv_leg_plan *p) {
    const fac_nv_place *at = &c->ends.p[1 + extra];
    const fac_dtype t = c->r.extra_dtype[extra];
    p->operand[which] = c->r.input[extra];
    p->leg.at[which] = at->at * bytes_of(t);
    if (which == FAC_NV_BIAS) {
        p->code.bias = t;
        return;
    }
    p->code.add = t;
    p->leg.add_step[0] = at->image;
    p->leg.add_step[1] = at->row;
    p->leg.add_step[2] = at->column;
}

static void write_leg(const fac_problem *p, const fac_nv_conv *c, const tiling *t,
                      fac_nv_leg_plan *to) {
    const fac_window h = fac_conv_window(&c->g, 1), w = fac_conv_window(&c->g, 2);
    const fac_nv_place *x = &c->x, *y = &c->ends.p[0];
    fac_nv_leg *l = &to->leg;
    int bias, add;
    few_extras(c, &bias, &add);
    to->code.kind = FAC_NV_LEG_CONV;
    to->code.pixels = t->c.pixels;
    to->code.columns = t->c.columns;
    to->code.depth = t->c.depth;
    to->code.row = t->k.terms * (int)bytes_of(c->r.dtype);
    to->code.mode = c->mode;
    to->code.window =
        c->g.R * c->g.S > 1 || c->g.pad[1] || c->g.pad[2] || c->g.pad_end[1] || c->g.pad_end[2];
    to->code.ragged = c->channels % t->k.terms;
    to->code.x = c->r.dtype;
    to->code.result = c->r.result;
    to->code.bias = to->code.add = FAC_F32;
    to->finish.biased = c->r.biased;
    to->finish.body = c->r.body;
    to->finish.rounded = c->r.dtype == FAC_F32 ? FAC_NONE : c->r.dtype;
    to->operand[FAC_NV_X] = 0;
    to->operand[FAC_NV_W] = 1;
    to->operand[FAC_NV_Y] = p->nin;
    to->operand[FAC_NV_BIAS] = to->operand[FAC_NV_ADD] = -1;
    fac_nv_leg_windows(l, &h, &w);
    l->at[FAC_NV_X] = x->at * bytes_of(c->r.dtype);
    l->at[FAC_NV_Y] = y->at * bytes_of(c->r.result);
    l->image = x->image;
    l->step[0] = x->row;
    l->step[1] = x->column;
    l->y_step[0] = y->image;
    l->y_step[1] = y->row;
    l->y_step[2] = y->column;
    l->y_channel = 1;
    /* weights are packed, which no relay does; a bias may be what a step of this one makes */
    l->early = bias < 0 || p->in[c->r.input[bias]].time != FAC_RUN;
    l->team = t->c.team;
    l->tiles = t->blocks;
    l->across = t->c.across;
    l->lines = t->lines;
    l->wide = t->wide;
    l->weights = (int32_t)(fac_nv_packed_bytes(c, &t->k) / 128);
    l->pixels = (int32_t)(c->g.N * c->g.P * c->g.Q);
    l->rows = c->rows;
    l->channels = c->channels;
    l->row_tiles = t->row_tiles;
    l->columns = t->columns;
    l->k_tiles = t->k_tiles;
    l->all_taps = (int32_t)(c->g.R * c->g.S);
    l->each = (t->k_tiles + t->c.team - 1) / t->c.team;
    const fac_nv_divisor by[] = { fac_nv_divide_wide((uint32_t)l->wide),
                                  fac_nv_divide_wide((uint32_t)l->all_taps) };
    l->by_columns[0] = by[0].multiplier;
    l->by_columns[1] = by[0].shift;
    l->by_taps[0] = by[1].multiplier;
    l->by_taps[1] = by[1].shift;
    for (int i = 0; i < l->all_taps; i++)
        l->tap[i] = (int32_t)(i / c->g.S * c->g.dilation[1] * x->row +
                              i % c->g.S * c->g.dilation[2] * x->column);
    if (bias >= 0) place_extra(c, bias, FAC_NV_BIAS, to);
    if (add >= 0) place_extra(c, add, FAC_NV_ADD, to);
}

static void done(fac_device *d, void *arg) {
    plan *q = arg;
    if (!q) return;
    fac_cl_kernel_free(fac_opencl_of(d), &q->pack);
    fac_release(q);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    const draft *settled = p->draft;
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    q->c = settled->c;
    q->k = settled->t.k;
    write_leg(p, &q->c, &settled->t, &q->p);
    const fac_status status = fac_nv_pack_make(o, &q->c, &q->k, &q->pack, err);
    return fac_solver_made(status, d, q, done, out);
}

static uint64_t pack_key(const void *arg, int input) {
    const plan *q = arg;
    return fac_nv_pack_key(&q->c, &q->k, input);
}

static fac_status pack(const void *arg, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *q = arg;
    (void)input;
    return fac_nv_pack_run(fac_opencl_of(d), &q->c, &q->k, &q->pack, from, to, err);
}

const fac_solver fac_cl_conv_relay = { .name = "conv/relay",
                                       .rank = 580,
                                       .how = &(const bool){ false },
                                       .offer = offer,
                                       .make = make,
                                       .done = done,
                                       .pack_key = pack_key,
                                       .pack = pack };
const fac_solver fac_cl_product_relay = { .name = "product/relay",
                                          .rank = 590,
                                          .how = &(const bool){ true },
                                          .offer = offer,
                                          .make = make,
                                          .done = done,
                                          .pack_key = pack_key,
                                          .pack = pack };
