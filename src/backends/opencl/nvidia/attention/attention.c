/* attention/wgmma: softmax(scale q k^T + mask) v in one pass, see attention.h and
 * nv_attention.cl. */
#include "backends/opencl/nvidia/attention/attention.h"
#include "opencl_solvers.h"
#include "backends/problem.h"
#include "base/error.h"
#include "op_list.h"

enum { LAUNCHES = 3, MAPS = 3 };

typedef struct plan {
    fac_nv_attention a;
    fac_nv_attention_cut cut;
    fac_nv_images k, v;
    size_t work;
} plan;

static bool read(fac_opencl *o, fac_problem *p, plan *r) {
    if (!fac_nv_attention_forward(p, fac_nv_maps_of(o), &r->a)) return false;
    const fac_nv_attention *a = &r->a;
    const int block = (r->cut = fac_nv_attention_cut_of(a, FAC_NV_FORWARD)).block;
    const int64_t tiles = fac_gpu_parts(a->T, block);
    r->work = 0;
    if (a->maps) {
        r->work = fac_nv_maps_bytes(o, MAPS);
        return true;
    }
    r->k = fac_nv_images_of(a, &a->k, block, tiles, false, &r->work);
    r->v = fac_nv_images_of(a, &a->v, block, tiles, fac_nv_tf32(a), &r->work);
    return tiles <= UINT16_MAX;
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    plan r = { .work = 0 };
    if (!fac_cl_has_path(o, FAC_CL_WGMMA) || !read(o, p, &r)) return false;
    fac_lay_in_order(&p->in[FAC_NV_Q], &p->out[0]);
    if (!read(o, p, &r)) return false;
    offer->work = r.work;
    *FAC_DRAFT(offer, plan) = r;
    offer->seconds = fac_nv_attention_seconds(&o->limits, &r.a, &r.cut, r.work);
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *to, fac_error *err) {
    const plan r = *(const plan *)p->draft;
    fac_cl_call *c = NULL;
    fac_text text = { 0 };
    const fac_nv_attention *a = &r.a;
    const bool lse = p->out[FAC_NV_LSE].type.dtype != FAC_NONE;
    if (!a->maps) {
        FAC_TRY(fac_nv_images_add(o, p, to, a, &r.k, FAC_NV_K, err));
        FAC_TRY(fac_nv_images_add(o, p, to, a, &r.v, FAC_NV_V, err));
    }
    fac_nv_attention_text(a, FAC_NV_FORWARD, &r.cut, lse, &text);
    const fac_status status = fac_cl_call_text(o, to, &text, "", "attention", &c, err);
    fac_text_free(&text);
    FAC_TRY(status);
    fac_cl_call_in(c, p, FAC_NV_Q);
    if (a->maps)
        fac_cl_call_in(c, p, FAC_NV_K), fac_cl_call_in(c, p, FAC_NV_V);
    else
        fac_cl_call_work(c, r.k.at, 1), fac_cl_call_work(c, r.v.at, 1);
    fac_nv_attention_mask_buffer(a, p, FAC_NV_MASK, c);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_out(c, p, lse ? FAC_NV_LSE : 0);
    fac_cl_call_work(c, 0, 1); /* maps */
    fac_nv_attention_numbers(a, r.k.tiles, c);
    fac_nv_attention_range(o, &r.cut, a->Q, a->B * a->H, c);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, LAUNCHES, add, out, err);
}

const fac_solver fac_cl_attention_wgmma = { .name = "attention/wgmma",
                                            .op = &fac_op_attention,
                                            .rank = 630,
                                            .offer = offer,
                                            .make = make,
                                            .done = fac_cl_plan_done,
                                            .run = fac_cl_plan_run };
