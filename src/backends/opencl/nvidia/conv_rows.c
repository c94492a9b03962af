/* conv/wgmma: convolutions forward and by x on sm_90's matrix units, of any window, stride, dilation and padding; see
 * kernels/nv_conv_rows.cl.  Weights are packed once; where they change in the run, as a step of it.
 *
 * Tiles are chosen by an estimate: rounds of tiles over the units at the share of the units' rate that so many teams reach, never
 * faster than the bytes that must be moved.  Few tiles are split along the sum, and added in a fixed order. */
#include <string.h>
#include "backends/opencl/nvidia/conv.h"
#include "backends/opencl/solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/table.h"
#include "tensor/tensor_internal.h"
#include "cl_nv_common.h"
#include "cl_nv_conv_rows.h"

enum { VERSION = 1, TAPS = 32, TAPS_FEW = 256, LOCAL_BYTES = 232448, REGISTERS = 65536, SPLITS = 32 };

/* columns, teams of 64 rows, bytes of a row of weights, stages, the next operand made ahead, most registers (0: as many as it
 * takes), few channels; share of the rate that it reaches where tiles abound. */
typedef struct candidate { int BN, teams, row, stages; bool ahead; int registers; bool few, split; double share; } candidate;

static const candidate single[] = {                         /* one product: TF32, BF16, F16 */
    { 256, 2, 128, 4, true, 0, false, false, 0.80 },    { 128, 4, 128, 6, false, 128, false, false, 0.72 },
    { 128, 2, 128, 5, false, 128, false, true, 0.70 },  { 128, 2, 128, 6, true, 0, false, true, 0.70 },
    { 64, 4, 128, 6, false, 128, false, false, 0.55 },  { 64, 2, 128, 4, false, 0, false, true, 0.55 },
    { 64, 1, 128, 5, true, 0, false, true, 0.50 },      { 128, 1, 128, 5, true, 0, false, true, 0.50 },
    { 64, 2, 64, 4, false, 0, true, false, 0.3 },       { 64, 4, 64, 4, false, 128, true, false, 0.3 },
    { 128, 2, 64, 4, true, 0, false, true, 0.6 },       { 64, 2, 64, 4, true, 0, false, true, 0.5 },        { 0 } };
static const candidate triple[] = {                         /* three products: 3XTF32 */
    { 128, 2, 64, 5, true, 0, false, true, 0.75 },      { 128, 2, 64, 5, false, 0, false, true, 0.7 },
    { 64, 2, 64, 6, true, 0, false, true, 0.7 },        { 64, 2, 64, 6, false, 0, false, true, 0.65 },
    { 64, 4, 64, 6, false, 128, false, false, 0.65 },   { 64, 2, 128, 4, false, 0, false, true, 0.65 },
    { 64, 1, 128, 4, false, 0, false, true, 0.6 },      { 64, 1, 64, 6, true, 0, false, true, 0.6 },
    { 64, 2, 64, 4, false, 0, true, false, 0.4 },       { 64, 4, 64, 4, false, 128, true, false, 0.4 },     { 0 } };

typedef struct tile {
    candidate      c;
    fac_nv_packing k;
    int            promote, splits, each_k;                 /* of the phase that has most to do */
    double         seconds;
} tile;

/* As the kernel has it. */
typedef struct look {
    int64_t  x, w, work, counters;
    int32_t  image, step[3], channel, in[3], out[3], origin[3], stride[3], far[3], taps[3];
    uint32_t multiplier[3], shift[3];
    int32_t  pixels, rows, channels, row_tiles, k_tiles, each_k, all_taps;
} look;

typedef struct plan {
    fac_nv_conv   c;
    tile          t;
    fac_cl_kernel kernel, pack;
    fac_span      counters;
    size_t        counted;                                  /* bytes */
} plan;

static const candidate *candidates(const fac_nv_conv *c) { return c->mode == FAC_NV_3XTF32 ? triple : single; }
static bool is_half(const fac_nv_conv *c) { return c->mode == FAC_NV_BF16 || c->mode == FAC_NV_F16; }
static int parts(int64_t n, int64_t each) { return (int)((n + each - 1) / each); }

/* ---- tiles ----------------------------------------------------------------------------------------------------------- */

/* Registers of an item, about: sums (twice when promoted), operands, addresses. */
static int registers_of(const tile *t, const fac_nv_conv *c) {
    const int raw = t->k.terms / 2, made = t->c.ahead ? 2 : 1, low = c->mode == FAC_NV_3XTF32 ? 2 : 1;
    const int all = t->c.BN / 2 * (t->promote ? 2 : 1) + 2 * raw + made * low * raw + 40;
    return t->c.registers && all > t->c.registers ? t->c.registers : all;
}

/* How many groups a unit has room for. */
static int resident(const tile *t, const fac_nv_conv *c) {
    const int items = 128 * t->c.teams, local = t->c.stages * fac_nv_tile_bytes(&t->k) + 2048;
    int n = LOCAL_BYTES / local, by_registers = REGISTERS / (items * ((registers_of(t, c) + 7) / 8 * 8));
    if (by_registers < n) n = by_registers;
    return n < 1 ? 1 : n * items > 2048 ? 2048 / items : n;
}

/* Seconds of one phase in so many splits; each_k is set. */
static double estimate(const fac_opencl *o, const fac_nv_conv *c, const fac_nv_phase *f, int splits, tile *t) {
    const int BM = 64 * t->c.teams, k_tiles = fac_nv_k_tiles(c, &t->k, f), room = resident(t, c), units = (int)o->limits.units;
    const double tiles = (double)parts(f->pixels, BM) * fac_nv_row_tiles(c, &t->k) * c->groups;
    t->each_k = k_tiles ? parts(k_tiles, splits) : 1;
    const double count = tiles * (k_tiles ? parts(k_tiles, t->each_k) : 1);
    const double rounds = (double)parts((int64_t)count, units), at_once = rounds < room ? rounds : room;
    const double teams = at_once * t->c.teams, busy = teams >= 4 ? 1 : teams >= 2 ? (t->c.ahead ? 0.95 : 0.8) : t->c.ahead ? 0.6 : 0.45;
    const double unit = fac_nv_rate(o, c->mode) / units * t->c.share * busy * (t->promote ? 0.85 : 1);
    const double product = (double)BM * t->c.BN * t->k.terms / unit, wait = (t->c.ahead ? 0.25e-6 : 0.4e-6) / at_once;
    double seconds = 1.5e-6 + rounds * (t->each_k * (product > wait ? product : wait) + 0.7e-6 / at_once);
    if (splits > 1) seconds += 1e-6 + 8.0 * count * BM * t->c.BN / 3e12;
    return seconds;
}

static bool fits(const fac_nv_conv *c, const candidate *k, tile *t) {
    const int bytes = is_half(c) ? 2 : 4, most = k->row / bytes;
    t->c = *k;
    if (k->few != c->few || (k->BN > 64 && c->rows <= k->BN / 2)) return false;
    t->k = (fac_nv_packing){ .rows = k->BN, .terms = most, .mode = c->mode, .few = c->few, .order = FAC_NV_BY_FOURS };
    if (c->few) return true;
    if (c->r.dtype != FAC_F32) t->k.order = FAC_NV_BY_EIGHTS;
    if (c->r.dtype == FAC_F32 && is_half(c)) t->k.terms = 32;           /* more would not fit the registers */
    const int least = is_half(c) ? 32 : 16;
    if (t->k.terms > least && c->channels % t->k.terms) t->k.terms = least;
    return c->channels % t->k.terms == 0 && t->c.stages * fac_nv_tile_bytes(&t->k) + 2048 <= LOCAL_BYTES;
}

static void consider(const fac_opencl *o, const fac_nv_conv *c, const candidate *k, tile *best) {
    tile t = { 0 };
    double most = -1;
    fac_nv_phase heavy = { 0 };
    if (!fits(c, k, &t)) return;
    for (int i = 0; i < c->phases; i++) {
        const fac_nv_phase f = fac_nv_phase_of(c, i);
        const double work = (double)f.pixels * (1 + f.taps);
        if (f.taps > (c->few ? TAPS_FEW : TAPS)) return;
        if (work > most) most = work, heavy = f;
    }
    if (c->mode == FAC_NV_3XTF32 && (double)heavy.taps * (c->few ? FAC_NV_FEW : c->channels) >= c->promote_from)
        t.promote = FAC_NV_PROMOTE_TERMS / t.k.terms;
    const int k_tiles = fac_nv_k_tiles(c, &t.k, &heavy);
    for (int splits = 1; splits <= (k->split && c->phases == 1 ? SPLITS : 1); splits += splits < 8 ? 1 : splits < 16 ? 2 : 4) {
        if (splits > 1 && k_tiles < 4 * splits) break;
        t.seconds = 0;
        for (int i = 0; i < c->phases; i++) {
            const fac_nv_phase f = fac_nv_phase_of(c, i);
            t.seconds += estimate(o, c, &f, splits, &t);
        }
        t.splits = k_tiles ? parts(k_tiles, t.each_k) : 1;
        if (!best->c.BN || t.seconds < best->seconds) *best = t;
    }
}

static bool choose(const fac_opencl *o, const fac_nv_conv *c, int variant, tile *t) {
    const candidate *all = candidates(c);
    memset(t, 0, sizeof *t);
    for (int k = 0; all[k].BN; k++)
        if (!variant || variant == k + 1) consider(o, c, &all[k], t);
    return t->c.BN != 0;
}

static int64_t row_groups(const fac_nv_conv *c, const tile *t) { return (int64_t)c->groups * fac_nv_row_tiles(c, &t->k); }

static size_t work_of(const fac_nv_conv *c, const tile *t) {
    const fac_nv_phase f = fac_nv_phase_of(c, 0);
    if (t->splits < 2) return 0;
    return (size_t)(parts(f.pixels, 64 * t->c.teams) * row_groups(c, t)) * (size_t)t->splits * (size_t)(64 * t->c.teams * t->c.BN) * 4;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    fac_nv_conv c;
    tile t;
    if (!fac_cl_has_path(o, FAC_CL_WGMMA) || !fac_nv_conv_read(o, p, &c) || !choose(o, &c, p->variant, &t)) return false;
    if (work_of(&c, &t) > (size_t)1 << 30) return false;
    const double moved = fac_nv_conv_bytes(p) / 3.6e12;
    offer->seconds = (t.seconds > moved ? t.seconds : moved) + 2e-6 * c.phases;
    offer->work = work_of(&c, &t);
    offer->packed[1] = fac_nv_packed_bytes(&c, &t.k);
    if (p->in[1].time == FAC_RUN) offer->seconds += 4e-6 + 2 * (double)offer->packed[1] / 2e12;
    offer->version = VERSION;
    while (candidates(&c)[offer->variants].BN) offer->variants++;
    return offer->packed[1] > 0;
}

/* ---- plans ----------------------------------------------------------------------------------------------------------- */

static void add_product(const fac_nv_conv *c, const tile *t, fac_text *to) {
    static const char *const names[] = { "tf32", "tf32", "bf16", "f16" };
    static const fac_nv_kind kinds[] = { FAC_NV_KIND_TF32, FAC_NV_KIND_TF32, FAC_NV_KIND_BF16, FAC_NV_KIND_F16 };
    fac_nv_wgmma_text(to, t->c.BN, kinds[c->mode], FAC_NV_A_REGISTERS);
    fac_text_print(to, "#define MULTIPLY wgmma_%s_n%d_rs\n", names[c->mode], t->c.BN);
}

static bool write_text(const fac_opencl *o, const fac_nv_conv *c, const tile *t, fac_text *to) {
    fac_text_add(to, fac_cl_nv_common);
    add_product(c, t, to);
    const bool good = fac_nv_epilogue_text(&c->r, &c->ends, o->limits.fp64, to);
    fac_text_print(to, "#define BN %d\n#define BK %d\n#define TEAMS %d\n#define STAGES %d\n#define STAGE %d\n#define PROMOTE %d\n",
                   t->c.BN, t->k.terms, t->c.teams, t->c.stages, fac_nv_tile_bytes(&t->k), t->promote);
    fac_text_print(to, "#define PARTS %d\n#define XMEM %s\n", c->mode == FAC_NV_3XTF32 ? 2 : 1,
                   c->r.dtype == FAC_F32 ? "float" : "ushort");
    if (c->r.dtype != FAC_F32)
        fac_text_print(to, "#define X16\n#define X_AS_FLOAT(x) %s\n", c->r.dtype == FAC_BF16 ? "as_float((uint)(x) << 16)" : "half_of(x)");
    if (is_half(c)) fac_text_print(to, "#define HALF\n#define PACK2 nv_pack_%s\n", c->mode == FAC_NV_F16 ? "f16" : "bf16");
    if (t->c.ahead) fac_text_add(to, "#define AHEAD\n");
    if (c->few) fac_text_print(to, "#define FEW %d\n", (int)c->channels);
    if (t->splits > 1) fac_text_add(to, "#define SPLIT\n");
    if (c->g.rank > 2) fac_text_add(to, "#define DEEP\n");
    fac_text_add(to, fac_cl_nv_conv_rows);
    return good && !to->failed;
}

enum { OPTIONS = 96 };
static void write_options(const fac_nv_conv *c, const tile *t, char *to) {
    const int n = snprintf(to, OPTIONS, "%s", fac_cl_options(&c->r));
    if (t->c.registers) snprintf(to + n, (size_t)(OPTIONS - n), " -cl-nv-maxrregcount=%d", t->c.registers);
}

bool fac_nv_conv_rows_text(const fac_opencl *o, fac_problem *p, fac_text *to) {
    fac_nv_conv c;
    tile t;
    char options[OPTIONS];
    if (!fac_nv_conv_read(o, p, &c) || !choose(o, &c, p->variant, &t)) return false;
    write_options(&c, &t, options);
    fac_text_print(to, "// %s\n", options);
    return write_text(o, &c, &t, to);
}

static fac_status make_kernel(fac_opencl *o, plan *q, fac_error *err) {
    char options[OPTIONS];
    fac_text text = { 0 };
    write_options(&q->c, &q->t, options);
    fac_status status = write_text(o, &q->c, &q->t, &text) ? fac_cl_kernel_new(o, text.s, options, "conv_rows", &q->kernel, err)
                                                           : fac_raise(err, FAC_E_NOMEM, "no memory for the text of a kernel");
    fac_text_free(&text);
    return status;
}

/* How many groups of a split tile are done, for each tile: zero between runs. */
static fac_status make_counters(fac_device *d, plan *q, fac_error *err) {
    const fac_nv_phase f = fac_nv_phase_of(&q->c, 0);
    const size_t tiles = (size_t)(parts(f.pixels, 64 * q->t.c.teams) * row_groups(&q->c, &q->t));
    if (q->t.splits < 2) return FAC_OK;
    uint32_t *zeros = fac_alloc(tiles, sizeof *zeros);
    if (!zeros) return fac_raise(err, FAC_E_NOMEM, "no memory for %zu counters", tiles);
    fac_status status = fac_device_alloc(d, tiles * sizeof *zeros, &q->counters.memory, err);
    q->counted = status ? 0 : tiles * sizeof *zeros;
    if (!status) status = d->backend->write(d, q->counters, zeros, q->counted, err);
    fac_release(zeros);
    return status;
}

static void done(fac_device *d, void *arg) {
    plan *q = arg;
    if (!q) return;
    fac_cl_kernel_free(fac_opencl_of(d), &q->kernel);
    fac_cl_kernel_free(fac_opencl_of(d), &q->pack);
    fac_device_release(d, q->counters.memory, q->counted);
    fac_release(q);
}

static fac_status build(fac_device *d, const fac_problem *p, plan *q, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    fac_problem settled = *p;               /* its layouts are those that the offer asked for, so none is changed */
    if (!fac_nv_conv_read(o, &settled, &q->c) || !choose(o, &q->c, p->variant, &q->t))
        return fac_raise(err, FAC_E_INTERNAL, "%s: not the problem that was offered for", p->node->op->name);
    FAC_TRY(make_counters(d, q, err));
    FAC_TRY(fac_nv_pack_make(o, &q->c, &q->t.k, &q->pack, err));
    return make_kernel(o, q, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_alloc(1, sizeof *q);
    if (!q) return fac_raise(err, FAC_E_NOMEM, "%s: no memory for a plan", p->node->op->name);
    fac_status status = build(d, p, q, err);
    if (status) done(d, q);
    else *out = q;
    return status;
}

static uint64_t pack_key(const void *arg, int input) {
    const plan *q = arg;
    return fac_nv_pack_key(&q->c, &q->t.k, input);
}

static fac_status pack(const void *arg, fac_device *d, int input, fac_span from, fac_span to, fac_error *err) {
    const plan *q = arg;
    (void)input;
    return fac_nv_pack_run(fac_opencl_of(d), &q->c, &q->t.k, &q->pack, from, to, err);
}

static look look_of(const plan *q, const fac_nv_phase *f) {
    const fac_nv_conv *c = &q->c;
    const fac_nv_place *x = &c->x;
    look s = { .x = x->at, .image = x->image, .step = { x->depth, x->row, x->column }, .channel = x->channel,
               .pixels = (int32_t)f->pixels, .rows = c->rows, .channels = c->channels, .row_tiles = fac_nv_row_tiles(c, &q->t.k),
               .k_tiles = fac_nv_k_tiles(c, &q->t.k, f), .each_k = q->t.each_k, .all_taps = f->taps };
    for (int d = 0; d < 3; d++) {
        const fac_nv_axis *a = &f->axis[d];
        const fac_nv_quotient by = fac_nv_quotient_of((uint32_t)(a->out ? a->out : 1));
        s.in[d] = a->in, s.out[d] = a->out, s.origin[d] = a->origin, s.stride[d] = a->stride, s.far[d] = a->far, s.taps[d] = a->taps;
        s.multiplier[d] = by.multiplier, s.shift[d] = by.shift;
    }
    return s;
}

static fac_status run_phase(const plan *q, fac_opencl *o, int phase, const fac_span *in, fac_span out, fac_span work,
                            fac_error *err) {
    const fac_nv_conv *c = &q->c;
    const fac_cl_product *r = &c->r;
    const fac_nv_phase f = fac_nv_phase_of(c, phase);
    look s = look_of(q, &f);
    fac_nv_ends e = fac_nv_phase_ends(c, &f);
    if (!f.pixels) return FAC_OK;
    s.x += (int64_t)(fac_cl_at(in[0]) / (size_t)fac_dtype_get(r->dtype)->block_bytes);
    s.w += (int64_t)(fac_cl_at(in[1]) + fac_nv_packed_at(c, &q->t.k, phase));
    e.p[0].at += (int64_t)(fac_cl_at(out) / (size_t)fac_dtype_get(r->result)->block_bytes);
    fac_cl_arg args[7 + FAC_CL_EXTRAS] = { fac_cl_arg_value(&s, sizeof s), fac_cl_arg_value(&e, fac_nv_ends_bytes(r)),
                                           fac_cl_arg_span(in[0]), fac_cl_arg_span(in[1]), fac_cl_arg_span(out) };
    int n = 5;
    if (q->t.splits > 1) {
        s.work = (int64_t)(fac_cl_at(work) / sizeof(float)), s.counters = (int64_t)(fac_cl_at(q->counters) / sizeof(uint32_t));
        args[n++] = fac_cl_arg_span(work), args[n++] = fac_cl_arg_span(q->counters);
    }
    for (int i = 0; i < r->extras; i++) {
        const fac_span x = in[r->input[i]];
        e.p[1 + i].at += (int64_t)(fac_cl_at(x) / (size_t)fac_dtype_get(r->extra_dtype[i])->block_bytes);
        args[n++] = fac_cl_arg_span(x);
    }
    const size_t items = (size_t)(128 * q->t.c.teams);
    const fac_cl_range range = { 3, { items * (size_t)row_groups(c, &q->t), (size_t)parts(f.pixels, 64 * q->t.c.teams),
                                      (size_t)q->t.splits }, { items, 1, 1 } };
    return fac_cl_launch(o, &q->kernel, &range, n, args, err);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out, fac_span work, fac_error *err) {
    const plan *q = arg;
    for (int i = 0; i < q->c.phases; i++) FAC_TRY(run_phase(q, fac_opencl_of(d), i, in, out[0], work, err));
    return FAC_OK;
}

const fac_solver fac_cl_conv_wgmma = {
    .name = "conv/wgmma", .offer = offer, .make = make, .done = done, .pack_key = pack_key, .pack = pack, .run = run };
