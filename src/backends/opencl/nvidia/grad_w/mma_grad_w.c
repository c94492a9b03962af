/* conv/mma_grad_w: gradients of two- and three-dimensional convolutions by their weights on
 * mma.sync: nv_mma_grad_w.cl leaves parts of the sums, which the kernel of
 * conv/wgmma_grad_w adds (grad_w.h). */
#include "backends/gpu/nvidia/divide.h"
#include "backends/opencl/product/gemm.h"
#include "backends/opencl/nvidia/conv/conv.h"
#include "backends/opencl/nvidia/unit/mma.h"
#include "backends/opencl/nvidia/grad_w/grad_w.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "cl_nv_common.h"
#include "cl_nv_mma_grad_w.h"

enum { VERSION = 1 };

void fac_mma_grad_w_text(const fac_nv_grad_w *q, const fac_mma_grad_w_cut *c, fac_text *to) {
    int kind = 0;
    if (q->mode == FAC_NV_BF16) kind = 1;
    if (q->mode == FAC_NV_F16) kind = 2;
    fac_text_add(to, fac_kernel_nv_common);
    fac_text_print(to, "#define MEM %s\n#define HALVES %d\n#define KIND %d\n",
                   fac_nv_grad_w_halves(q) ? "ushort" : "float", fac_nv_grad_w_halves(q), kind);
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
    const fac_mma_unit unit = fac_mma_unit_of(o);
    if (!fac_mma_grad_w_choose(&o->limits, &unit, &q, p->variant, &c)) return false;
    *offer = (fac_offer){ .seconds = c.seconds * fac_mma_handicap(o),
                          .work = fac_mma_grad_w_work(&q, c.splits),
                          .variants = fac_mma_grad_w_variants(),
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
