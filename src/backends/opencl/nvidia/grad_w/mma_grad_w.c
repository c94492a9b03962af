/* conv/mma_grad_w: gradients of two- and three-dimensional convolutions by their weights on
 * mma.sync: nv_mma_grad_w.cl leaves parts of the sums, which the kernel of
 * conv/wgmma_grad_w adds (grad_w.h). */
#include "backends/gpu/nvidia/divide.h"
#include "backends/opencl/product/gemm.h"
#include "backends/opencl/nvidia/conv/conv.h"
#include "backends/opencl/nvidia/unit/mma.h"
#include "backends/opencl/nvidia/grad_w/mma_grad_w.h"
#include "backends/gpu/nvidia/speed.h"
#include "opencl_solvers.h"
#include "base/clamp.h"
#include "base/error.h"
#include "cl_nv_common.h"
#include "cl_nv_mma_grad_w.h"

enum { VERSION = 1 };

static int64_t parts(int64_t n, int64_t each) { return (n + each - 1) / each; }
static bool halves(const fac_nv_grad_w *q) { return q->dtype != FAC_F32; }

/* ---- cuts ---- */

static const fac_mma_grad_w_kind floats[] = { { 128, 128, 64, 64, 16, 220, 0.52 },
                                              { 128, 128, 64, 32, 16, 128, 0.50 },
                                              { 64, 128, 32, 64, 16, 128, 0.46 },
                                              { 64, 64, 32, 32, 32, 96, 0.36 },
                                              { 64, 64, 32, 32, 16, 96, 0.34 } };
static const fac_mma_grad_w_kind three[] = { { 64, 128, 32, 64, 16, 200, 0.60 },
                                             { 64, 64, 32, 32, 32, 128, 0.55 },
                                             { 128, 64, 32, 32, 16, 128, 0.58 },
                                             { 128, 128, 32, 64, 16, 200, 0.60 },
                                             { 64, 64, 32, 32, 16, 128, 0.50 } };
static const fac_mma_grad_w_kind sixteens[] = { { 128, 128, 64, 64, 32, 220, 0.50 },
                                                { 128, 128, 64, 32, 32, 128, 0.48 },
                                                { 64, 128, 32, 64, 32, 128, 0.42 },
                                                { 128, 64, 32, 32, 32, 96, 0.40 },
                                                { 64, 64, 32, 32, 32, 96, 0.30 } };
enum { KINDS = 5, STAGES = 4 };

static const fac_mma_grad_w_kind *kinds_of(const fac_nv_grad_w *q) {
    if (q->mode == FAC_NV_3XTF32) return three;
    return halves(q) ? sixteens : floats;
}

int fac_mma_grad_w_variants(void) { return 2 * KINDS; }

static size_t work_of(const fac_nv_grad_w *q, int64_t splits) {
    return (size_t)(splits * q->g.K * q->C * fac_nv_grad_w_taps(q)) * sizeof(float);
}

static int items_of(const fac_mma_grad_w_kind *k) {
    return 32 * (k->rows / k->warp_rows) * (k->columns / k->warp_columns);
}

/* Groups for one or two rounds on the device. */
static bool cut(fac_opencl *o, const fac_nv_grad_w *q, int kind, int rounds,
                fac_mma_grad_w_cut *c) {
    const fac_mma_grad_w_kind *k = &kinds_of(q)[kind];
    const fac_conv_geom *g = &q->g;
    const int64_t pixels = g->N * g->O * g->P * g->Q, all = fac_nv_grad_w_taps(q) * q->C;
    const fac_mma_unit unit = fac_mma_unit_of(o);
    const size_t step = (size_t)((k->rows + k->columns) * k->pixels) * (halves(q) ? 2 : 4),
                 most = unit.local / step;
    *c = (fac_mma_grad_w_cut){ .k = *k,
                               .items = items_of(k),
                               .stages = most < STAGES ? (int)most : STAGES,
                               .tiles_m = parts(q->K, k->rows),
                               .tiles_n = parts(all, k->columns) };
    if (c->stages < 2 || pixels >= INT32_MAX / 2) return false;
    const int room = fac_mma_room(&unit, c->items, (size_t)c->stages * step, k->registers);
    const int64_t tiles = c->tiles_m * c->tiles_n * g->groups,
                  slots = (int64_t)o->limits.units * room;
    if (!room) return false;
    int64_t splits = rounds * slots / tiles, least = parts(pixels, 8 * k->pixels);
    splits = fac_clamp(splits, 1, least);
    c->each = parts(parts(pixels, splits), k->pixels) * k->pixels;
    c->splits = parts(pixels, c->each);
    const double busy_share = room * c->items < 256 ? fac_nv_grad_w_speeds.mma_idle : 1;
    const double rate = fac_mma_rate(&unit, q->mode) / (double)slots * k->share * busy_share;
    const double each = (double)k->rows * (double)k->columns * (double)k->pixels / rate;
    const double waves = (double)parts(tiles * c->splits, slots);
    const double busy =
        waves * ((double)(c->each / k->pixels) * each + fac_nv_grad_w_speeds.mma_wave);
    const double read =
        (double)(g->N * g->D * g->H * g->W) * (double)g->C + (double)pixels * (double)g->K;
    const double images = (halves(q) ? 2.0 : 4.0) * read;
    const double memory =
        images / (fac_nv_grad_w_speeds.mma_memory * fac_gpu_bandwidth(&o->limits));
    c->seconds = fac_nv_grad_w_speeds.launch + (busy > memory ? busy : memory) +
                 (double)work_of(q, c->splits) / fac_gpu_bandwidth(&o->limits);
    return work_of(q, c->splits) < (size_t)1 << 31;
}

bool fac_mma_grad_w_choose(fac_opencl *o, const fac_nv_grad_w *q, int variant,
                           fac_mma_grad_w_cut *out) {
    bool found = false;
    if (variant > 2 * KINDS || q->few) return false;
    for (int i = variant ? variant - 1 : 0; i < (variant ? variant : 2 * KINDS); i++) {
        fac_mma_grad_w_cut c;
        if (!cut(o, q, i / 2, 1 + i % 2, &c) || (found && c.seconds >= out->seconds)) continue;
        *out = c;
        found = true;
    }
    return found;
}

void fac_mma_grad_w_text(const fac_nv_grad_w *q, const fac_mma_grad_w_cut *c, fac_text *to) {
    const int kind = q->mode == FAC_NV_BF16 ? 1 : q->mode == FAC_NV_F16 ? 2 : 0;
    fac_text_add(to, fac_kernel_nv_common);
    fac_text_print(to, "#define MEM %s\n#define HALVES %d\n#define KIND %d\n",
                   halves(q) ? "ushort" : "float", halves(q), kind);
    if (q->mode == FAC_NV_3XTF32) fac_text_add(to, "#define SPLIT3\n");
    if (q->g.rank > 2) fac_text_add(to, "#define DEEP\n");
    fac_text_print(to, "#define BM %d\n#define BN %d\n#define WM %d\n#define WN %d\n", c->k.rows,
                   c->k.columns, c->k.warp_rows, c->k.warp_columns);
    fac_text_print(to, "#define PIXELS %d\n#define STAGES %d\n#define ITEMS %d\n", c->k.pixels,
                   c->stages, c->items);
    fac_text_add(to, fac_kernel_nv_mma_grad_w);
}

/* ---- the solver ---- */

/* What make() goes on with. */
typedef struct draft {
    fac_nv_grad_w q;
    fac_mma_grad_w_cut c;
} draft;

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    fac_nv_grad_w q;
    fac_mma_grad_w_cut c;
    if (!fac_cl_has_path(o, FAC_CL_MMA) || !fac_nv_grad_w_read(p, 3, 0, &q)) return false;
    if (!fac_mma_grad_w_choose(o, &q, p->variant, &c)) return false;
    *offer = (fac_offer){ .seconds = c.seconds * fac_mma_handicap(o),
                          .work = work_of(&q, c.splits),
                          .variants = 2 * KINDS,
                          .version = VERSION };
    *FAC_DRAFT(offer, draft) = (draft){ q, c };
    return true;
}

/* As nv_mma_grad_w.cl has them. */
static void add_sizes(const fac_nv_grad_w *q, const fac_mma_grad_w_cut *c, fac_cl_call *call) {
    const fac_conv_geom *g = &q->g;
    const fac_nv_divisor high = fac_nv_divide_wide((uint32_t)g->P),
                         wide = fac_nv_divide_wide((uint32_t)g->Q),
                         deep = fac_nv_divide_wide((uint32_t)g->O);
    const int64_t sizes[] = { g->N * g->O * g->P * g->Q,
                              c->each,
                              g->H,
                              g->W,
                              g->P,
                              g->Q,
                              high.multiplier,
                              high.shift,
                              wide.multiplier,
                              wide.shift,
                              q->x[0],
                              q->x[1],
                              q->x[2],
                              q->dy[0],
                              q->dy[1],
                              q->dy[2],
                              q->C,
                              q->K,
                              g->groups,
                              g->stride[1],
                              g->stride[2],
                              g->pad[1],
                              g->pad[2],
                              g->dilation[1],
                              g->dilation[2],
                              fac_nv_grad_w_taps(q),
                              g->S,
                              c->tiles_m,
                              c->tiles_n,
                              g->D,
                              g->O,
                              deep.multiplier,
                              deep.shift,
                              q->x[3],
                              q->dy[3],
                              g->stride[0],
                              g->pad[0],
                              g->dilation[0],
                              g->R * g->S };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) fac_cl_call_number(call, sizes[i]);
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const draft *settled = p->draft;
    const fac_nv_grad_w q = settled->q;
    const fac_mma_grad_w_cut c = settled->c;
    fac_cl_call *call;
    fac_text text = { 0 };
    fac_mma_grad_w_text(&q, &c, &text);
    fac_status status = fac_cl_call_text(o, plan, &text, "", "grad_w", &call, err);
    fac_text_free(&text);
    FAC_TRY(status);
    const size_t items = (size_t)c.items;
    call->range = (fac_cl_range){
        2, { items * (size_t)(c.tiles_m * c.tiles_n * q.g.groups), (size_t)c.splits }, { items, 1 }
    };
    fac_cl_call_in(call, p, 0);
    fac_cl_call_in(call, p, 1);
    fac_cl_call_work(call, 0, sizeof(float));
    add_sizes(&q, &c, call);
    return fac_nv_grad_w_add_sum(o, p, &q, c.splits, plan, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **plan, fac_error *err) {
    return fac_cl_plan_make(d, p, 2, add, plan, err);
}

const fac_solver fac_cl_conv_mma_grad_w = { .name = "conv/mma_grad_w",
                                            .rank = 510,
                                            .offer = offer,
                                            .make = make,
                                            .done = fac_cl_plan_done,
                                            .run = fac_cl_plan_run };
