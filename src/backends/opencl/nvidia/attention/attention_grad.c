/* attention_grad/wgmma: dq, dk and dv from q, k, v, y, dy and the log sum exp of each row of
 * scores, which are made again; see attention.h and nv_attention_grad.cl. */
#include "backends/opencl/nvidia/attention/attention.h"
#include "backends/gpu/nvidia/speed.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "op_list.h"

enum { Q, K, V, Y, DY, LSE, MASK };
enum {
    IMAGES = 7,
    LAUNCHES = IMAGES + 3,
    MAPS = 4,
    ROWS = 128
}; /* ROWS: of two groups, whole tiles of images */

typedef struct plan {
    fac_nv_attention a;
    fac_nv_heads dy, out[3];
    fac_nv_images q, k, v, y, q_transposed, k_transposed, y_transposed;
    size_t stats, maps, work;
    int64_t q_tiles, k_tiles;
    int tile;
} plan;

static void images(plan *r) {
    const fac_nv_attention *a = &r->a;
    r->q = fac_nv_images_of(a, &a->q, r->tile, r->q_tiles, false, &r->work);
    r->k = fac_nv_images_of(a, &a->k, r->tile, r->k_tiles, false, &r->work);
    r->v = fac_nv_images_of(a, &a->v, r->tile, r->k_tiles, false, &r->work);
    r->y = fac_nv_images_of(a, &r->dy, r->tile, r->q_tiles, false, &r->work);
    if (a->mode == FAC_NV_TF32) {
        r->q_transposed = fac_nv_images_of(a, &a->q, r->tile, r->q_tiles, true, &r->work);
        r->k_transposed = fac_nv_images_of(a, &a->k, r->tile, r->k_tiles, true, &r->work);
        r->y_transposed = fac_nv_images_of(a, &r->dy, r->tile, r->q_tiles, true, &r->work);
    }
}

static bool read(fac_opencl *o, fac_problem *p, plan *r) {
    fac_nv_heads_want(&p->in[DY]);
    if (!fac_nv_attention_read(p, MASK, &p->in[Y], fac_nv_maps_of(o), &r->a) ||
        r->a.mode == FAC_NV_3XTF32)
        return false;
    const fac_nv_attention *a = &r->a;
    if (a->T != a->k.rows) return false; /* keys after a short mask would need zeros */
    p->in[LSE].layout = fac_layout_plain(&p->in[LSE].type.dims);
    if (p->in[LSE].type.dtype != FAC_F32) return false;
    r->dy = fac_nv_heads_of(&p->in[DY], a->H);
    r->a.y.chunks = a->y.chunks && r->dy.chunks; /* of what delta reads */
    r->a.y.pairs = r->a.chunks = true;           /* of all outputs */
    for (int k = 0; k < 3; k++) {
        if (p->out[k].type.dtype == FAC_NONE) return false;
        fac_nv_heads_want(&p->out[k]);
        r->out[k] = fac_nv_heads_of(&p->out[k], k ? a->G : a->H);
        r->a.y.pairs = r->a.y.pairs && r->out[k].pairs;
        r->a.chunks = r->a.chunks && r->out[k].chunks;
    }
    r->tile = fac_nv_grad_tile(a);
    r->q_tiles = fac_gpu_parts(a->Q, ROWS) * (ROWS / r->tile);
    r->k_tiles = fac_gpu_parts(a->T, ROWS) * (ROWS / r->tile);
    r->work = 0;
    if (!fac_nv_heads_mapped(&r->dy)) r->a.maps = 0;
    if (!a->maps) images(r);
    r->maps = r->work;
    if (a->maps) r->work += fac_nv_maps_bytes(o, MAPS);
    r->stats = r->work;
    r->work += (size_t)(a->B * a->H) * (size_t)(r->q_tiles * r->tile) * 2 * sizeof(float);
    return r->q_tiles <= UINT16_MAX && r->k_tiles <= UINT16_MAX;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    plan r = { .work = 0 };
    if (!fac_cl_has_path(o, FAC_CL_WGMMA) || !read(o, p, &r)) return false;
    const fac_nv_attention *a = &r.a;
    const double scores = (double)(a->B * a->H) * (double)a->Q * (double)a->T / (a->causal ? 2 : 1);
    const double macs = scores * (double)(4 * a->D + 3 * a->E);
    offer->work = r.work;
    *FAC_DRAFT(offer, plan) = r;
    offer->seconds = LAUNCHES * fac_nv_speeds.launch +
                     macs / (0.5 * fac_nv_rate(&o->limits, a->mode)) +
                     (double)r.work / fac_nv_speeds.attention_memory;
    return true;
}

static fac_status add_call(fac_opencl *o, fac_cl_plan *to, const fac_nv_attention *a,
                           fac_nv_attention_kernel kernel, const fac_nv_attention_cut *cut,
                           const char *name, fac_cl_call **c, fac_error *err) {
    fac_text text = { 0 };
    fac_nv_attention_text(a, kernel, cut, false, &text);
    const fac_status status = fac_cl_call_text(o, to, &text, "", name, c, err);
    fac_text_free(&text);
    return status;
}

/* Eight items a row. */
static fac_status add_delta(fac_opencl *o, const fac_problem *p, fac_cl_plan *to, const plan *r,
                            fac_error *err) {
    enum { GROUP = 256, EACH = 8 };
    const fac_nv_attention *a = &r->a;
    const fac_nv_attention_cut cut = fac_nv_attention_cut_of(a, FAC_NV_DELTA);
    fac_cl_call *c = NULL;
    FAC_TRY(add_call(o, to, a, FAC_NV_DELTA, &cut, "delta", &c, err));
    fac_cl_call_in(c, p, Y);
    fac_cl_call_in(c, p, DY);
    fac_cl_call_in(c, p, LSE);
    fac_cl_call_work(c, r->stats, 2 * sizeof(float));
    const int64_t rows = r->q_tiles * r->tile, numbers[] = { a->H, a->Q, rows, a->E };
    for (int k = 0; k < 4; k++) fac_cl_call_number(c, numbers[k]);
    fac_nv_heads_numbers(&a->y, c);
    fac_nv_heads_numbers(&r->dy, c);
    c->range = (fac_cl_range){ 2, { (size_t)rows * EACH, (size_t)(a->B * a->H) }, { GROUP, 1 } };
    return FAC_OK;
}

/* dk and dv, or dq. */
static fac_status add_grad(fac_opencl *o, const fac_problem *p, fac_cl_plan *to, const plan *r,
                           bool keys, fac_error *err) {
    const fac_nv_attention *a = &r->a;
    const fac_nv_attention_kernel kernel = keys ? FAC_NV_KEYS : FAC_NV_QUERIES;
    const fac_nv_attention_cut cut = fac_nv_attention_cut_of(a, kernel);
    const fac_nv_images *const images[] = { &r->q, &r->k, &r->v, &r->y };
    fac_cl_call *c = NULL;
    FAC_TRY(add_call(o, to, a, kernel, &cut,
                     keys ? "attention_grad_keys" : "attention_grad_queries", &c, err));
    for (int k = 0; k < 4; k++) {
        if (a->maps)
            fac_cl_call_in(c, p, (const int[]){ Q, K, V, DY }[k]);
        else
            fac_cl_call_work(c, images[k]->at, 1);
    }
    if (keys)
        fac_cl_call_work(c, r->q_transposed.at, 1), fac_cl_call_work(c, r->y_transposed.at, 1);
    else
        fac_cl_call_work(c, r->k_transposed.at, 1);
    fac_cl_call_work(c, r->stats, 2 * sizeof(float));
    fac_nv_attention_mask_buffer(a, p, MASK, c);
    fac_cl_call_out(c, p, keys ? 1 : 0);
    if (keys) fac_cl_call_out(c, p, 2);
    fac_cl_call_work(c, r->maps, 1);
    const int64_t numbers[] = {
        a->H, a->H / a->G, a->Q, a->T, r->q_tiles, r->k_tiles, 0, a->D, a->E
    };
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
    fac_nv_heads_numbers(&r->out[keys ? 1 : 0], c);
    fac_nv_heads_numbers(&r->out[2], c);
    const fac_nv_heads *const heads[] = { &a->q, &a->k, &a->v, &r->dy };
    for (int k = 0; k < 4; k++) fac_nv_heads_numbers(heads[k], c);
    fac_nv_attention_mask_numbers(a, c);
    const int64_t each = keys ? a->G : a->H;
    fac_nv_attention_range(o, &cut, keys ? a->T : a->Q, a->B * each, c);
    return FAC_OK;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *to, fac_error *err) {
    const plan r = *(const plan *)p->draft;
    const fac_nv_images *const images[IMAGES] = {
        &r.q, &r.k, &r.v, &r.y, &r.q_transposed, &r.k_transposed, &r.y_transposed
    };
    static const int inputs[IMAGES] = { Q, K, V, DY, Q, K, DY };
    const int count = r.a.mode == FAC_NV_TF32 ? IMAGES : 4;
    for (int k = 0; k < count && !r.a.maps; k++)
        FAC_TRY(fac_nv_images_add(o, p, to, &r.a, images[k], inputs[k], err));
    FAC_TRY(add_delta(o, p, to, &r, err));
    FAC_TRY(add_grad(o, p, to, &r, true, err));
    return add_grad(o, p, to, &r, false, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, LAUNCHES, add, out, err);
}

const fac_solver fac_cl_attention_grad_wgmma = { .name = "attention_grad/wgmma",
                                                 .op = &fac_op_attention_grad,
                                                 .rank = 640,
                                                 .offer = offer,
                                                 .make = make,
                                                 .done = fac_cl_plan_done,
                                                 .run = fac_cl_plan_run };
