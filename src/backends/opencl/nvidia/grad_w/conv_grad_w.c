/* conv/wgmma_grad_w: gradients of two-dimensional convolutions by their weights, in one launch or
 * two: parts of the sums, one for each share of the pixels, then their sum in a fixed order
 * (grad_w.h). */
#include "backends/gpu/nvidia/divide.h"
#include "backends/opencl/conv/conv.h"
#include "backends/opencl/nvidia/conv/conv.h"
#include "backends/opencl/nvidia/grad_w/grad_w.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "ops/conv_grad.h"

enum { VERSION = 6 };

/* Elements of an operand, from its first. */
static bool reaches(const fac_operand *x) {
    double reach = 0;
    for (int k = 0; k < x->type.dims.n; k++)
        reach += (double)x->type.dims.d[k] * (double)x->layout.stride[k];
    return reach < 2e9;
}

static void steps_of(const fac_operand *x, int64_t *step) {
    const int64_t *stride = x->layout.stride;
    const int n = x->type.dims.n;
    step[0] = stride[0];
    step[1] = stride[n - 2];
    step[2] = stride[n - 1];
    step[3] = n > 4 ? stride[2] : 0;
}

/* Channels side by side, whole vectors of 16 bytes at every pixel; asked for where they are not
 * there. */
static bool lay(fac_operand *x, int64_t vector, int64_t *step) {
    const fac_dims *d = &x->type.dims;
    fac_layout *l = &x->layout;
    bool good = !l->block && l->stride[1] == 1 && l->offset % vector == 0;
    for (int k = 0; k < d->n; k++)
        good &= k == 1 || d->d[k] == 1 || (l->stride[k] % vector == 0 && l->stride[k] >= 0);
    if (!good) *l = fac_layout_channels_last(d);
    l->halo = 0;
    steps_of(x, step);
    return reaches(x);
}

/* Few channels may lie anywhere. */
static bool lay_few(fac_operand *x, fac_nv_grad_w *q) {
    bool good = !x->layout.block;
    for (int k = 0; k < 4; k++) good &= x->layout.stride[k] >= 0;
    if (!good) x->layout = fac_layout_plain(&x->type.dims);
    x->layout.halo = 0;
    steps_of(x, q->x);
    q->x_channel = x->layout.stride[1];
    return reaches(x);
}

/* Pixels lie evenly apart, like rows of a matrix: step[2] is how far.  (A dim of one has any step.)
 */
static bool even(const fac_operand *x, int64_t *step) {
    const int64_t *d = x->type.dims.d, columns = d[3], rows = d[2], images = d[0];
    if (columns == 1 && rows > 1)
        step[2] = step[1];
    else if (columns == 1)
        step[2] = images > 1 ? step[0] : d[1];
    return step[2] > 0 && (rows == 1 || step[1] == columns * step[2]) &&
           (images == 1 || step[0] == rows * columns * step[2]);
}
/* Of 16 bits alone: f32 must be rounded on its way, and fillers that took it out of boxes were
 * slower on an H200 than those that ask for their own lines. */
static bool mapped(const fac_problem *p, fac_nv_grad_w *q) {
    const fac_conv_geom *g = &q->g;
    if (q->dtype == FAC_F32 || q->few || g->rank > 2 || g->groups > 1 || fac_nv_grad_w_taps(q) > 1)
        return false;
    if (g->stride[1] * g->stride[2] > 1 || g->P != g->H || g->Q != g->W || g->pad[1] || g->pad[2])
        return false;
    return even(&p->in[0], q->x) && even(&p->in[1], q->dy);
}

bool fac_nv_grad_w_read(fac_problem *p, int rank, int maps, fac_nv_grad_w *q) {
    const fac_op *op = p->node->op;
    *q = (fac_nv_grad_w){ 0 };
    if ((op != &fac_op_conv2d_grad_w && (rank < 3 || op != &fac_op_conv3d_grad_w)) ||
        p->node->body[0])
        return false;
    if (!fac_conv_grad_geometry(p->node, &q->g) ||
        !fac_nv_mode_of(p->in[0].type.dtype, p->precision, &q->mode))
        return false;
    const fac_conv_geom *g = &q->g;
    q->dtype = p->in[0].type.dtype;
    q->C = g->C / g->groups;
    q->K = g->K / g->groups;
    const int64_t vector = q->dtype == FAC_F32 ? 4 : 8;
    if (p->in[1].type.dtype != q->dtype || p->out[0].type.dtype != q->dtype) return false;
    if (!g->N || !g->O || !g->P || !g->Q || !q->C || q->K < 16 || q->K % vector) return false;
    q->few = q->C < 16 || q->C % vector;
    if (fac_nv_grad_w_taps(q) > 256 || (q->few && (g->rank > 2 || g->groups > 1 || q->C > 32)))
        return false;
    for (int k = 0; k < 3; k++)
        if (g->stride[k] > 64 || g->dilation[k] > 64 || g->pad[k] > 4096 || g->kernel[k] > 64 ||
            g->in[k] > 65536)
            return false;
    if (!(q->few ? lay_few(&p->in[0], q) : lay(&p->in[0], vector, q->x)) ||
        !lay(&p->in[1], vector, q->dy))
        return false;
    if (!fac_layout_is_plain(&p->out[0].layout, &p->out[0].type.dims))
        p->out[0].layout = fac_layout_plain(&p->out[0].type.dims);
    q->maps = maps && mapped(p, q) ? maps : 0;
    return true;
}

/* What make() goes on with. */
typedef struct draft {
    fac_nv_grad_w q;
    fac_nv_grad_w_cut c;
} draft;

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    fac_nv_grad_w q;
    fac_nv_grad_w_cut c;
    if (!fac_nv_grad_w_read(p, 2, fac_nv_maps_of(o), &q) || !fac_cl_has_path(o, FAC_CL_WGMMA))
        return false;
    if (!fac_nv_grad_w_choose(&o->limits, &q, p->variant, &c)) return false;
    *offer = (fac_offer){ .seconds = c.seconds,
                          .variants = FAC_NV_GRAD_W_VARIANTS,
                          .version = VERSION,
                          .work = fac_nv_grad_w_work(&q, &c) + fac_nv_grad_w_maps_bytes(&q, &c) };
    *FAC_DRAFT(offer, draft) = (draft){ q, c };
    return true;
}

/* As nv_conv_grad_w.cl has them. */
static void add_sizes(const fac_nv_grad_w *q, const fac_nv_grad_w_cut *c, fac_cl_call *call) {
    const fac_conv_geom *g = &q->g;
    /* of few channels, dw's rows are as they lie: channels of one tap */
    const int64_t taps = q->few ? 1 : g->R * g->S;
    const int64_t C = q->few ? q->C * g->R * g->S : q->C;
    const fac_nv_divisor tall = fac_nv_divide_wide((uint32_t)c->tall),
                         broad = fac_nv_divide_wide((uint32_t)c->broad);
    const int64_t sizes[] = { c->positions,
                              c->each,
                              g->H,
                              g->W,
                              g->P,
                              g->Q,
                              c->tall,
                              c->broad,
                              tall.multiplier,
                              tall.shift,
                              broad.multiplier,
                              broad.shift,
                              q->x[0],
                              q->x[1],
                              q->x[2],
                              q->dy[0],
                              q->dy[1],
                              q->dy[2],
                              C,
                              q->K,
                              g->stride[1],
                              g->stride[2],
                              g->pad[1],
                              g->pad[2],
                              g->dilation[1],
                              g->dilation[2],
                              taps,
                              g->S,
                              c->tiles_m,
                              c->tiles_n,
                              c->ring,
                              c->lead,
                              g->groups,
                              c->transposed,
                              q->x_channel,
                              c->splits,
                              fac_nv_grad_w_pitch(q) };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) fac_cl_call_number(call, sizes[i]);
}

fac_status fac_nv_grad_w_add_sum(fac_opencl *o, const fac_problem *p, const fac_nv_grad_w *q,
                                 int64_t splits, fac_cl_plan *plan, fac_error *err) {
    const fac_nv_grad_w_cut cut = { .splits = splits };
    const int64_t taps = fac_nv_grad_w_taps(q), block = fac_nv_grad_w_block(&cut, taps);
    const int64_t sizes[] = { q->g.K * q->C * taps, splits, q->C, taps, block };
    fac_cl_call *call;
    fac_text sum = { 0 };
    fac_nv_grad_w_sum_text(q, &sum);
    const fac_status status = fac_cl_call_text(o, plan, &sum, "", "grad_w_sum", &call, err);
    fac_text_free(&sum);
    FAC_TRY(status);
    fac_cl_call_items(call, (size_t)(q->g.K * ((q->C + block - 1) / block) * 256), 256);
    fac_cl_call_work(call, 0, sizeof(float));
    fac_cl_call_out(call, p, 0);
    for (int i = 0; i < 5; i++) fac_cl_call_number(call, sizes[i]);
    return FAC_OK;
}

/* What the groups of a tile tell each other (nv_conv_grad_w.cl): a word for each tile, a
 * flag for each group; zero at first. */
static fac_status add_words(fac_opencl *o, const fac_nv_grad_w *q, const fac_nv_grad_w_cut *c,
                            fac_cl_plan *plan, fac_error *err) {
    const size_t tiles = (size_t)(c->tiles_m * c->tiles_n * q->g.groups);
    const size_t bytes = tiles * sizeof(uint64_t) + tiles * (size_t)c->splits * sizeof(uint32_t);
    void *zeros = fac_alloc(bytes, 1);
    if (!zeros)
        return fac_raise(err, FAC_E_NOMEM, "conv/wgmma_grad_w: counters of %zu tiles", tiles);
    const fac_status status = fac_cl_plan_table(o, plan, zeros, bytes, err);
    fac_release(zeros);
    return status;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan, fac_error *err) {
    const draft *settled = p->draft;
    const fac_nv_grad_w q = settled->q;
    const fac_nv_grad_w_cut c = settled->c;
    fac_cl_call *call;
    fac_text text = { 0 };
    FAC_TRY(add_words(o, &q, &c, plan, err));
    fac_nv_grad_w_text(&q, &c, &text);
    fac_status status =
        fac_cl_call_text(o, plan, &text, fac_nv_grad_w_options(&c), "grad_w", &call, err);
    fac_text_free(&text);
    FAC_TRY(status);
    const size_t items = (size_t)fac_nv_grad_w_items(&c);
    call->range = (fac_cl_range){
        2, { items * (size_t)(c.tiles_m * c.tiles_n * q.g.groups), (size_t)c.splits }, { items, 1 }
    };
    fac_cl_call_in(call, p, 0);
    fac_cl_call_in(call, p, 1);
    fac_cl_call_work(call, 0, sizeof(float));
    fac_cl_call_out(call, p, 0);
    fac_cl_call_table(call, sizeof(uint64_t));
    if (c.maps) fac_cl_call_work(call, fac_nv_grad_w_work(&q, &c), 1);
    add_sizes(&q, &c, call);
    return c.joined ? FAC_OK : fac_nv_grad_w_add_sum(o, p, &q, c.splits, plan, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **plan, fac_error *err) {
    return fac_cl_plan_make(d, p, 2, add, plan, err);
}

const fac_solver fac_cl_conv_wgmma_grad_w = { .name = "conv/wgmma_grad_w",
                                              .rank = 480,
                                              .offer = offer,
                                              .make = make,
                                              .done = fac_cl_plan_done,
                                              .run = fac_cl_plan_run };
