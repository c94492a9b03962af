/* attention/warps: attention on mma.sync, made for many short sequences, where attention/wgmma
 * waits for its tiles one after the other: see attention.h and nv_attention_warps.cl. */
#include <stdio.h>
#include "backends/opencl/nvidia/attention/attention.h"
#include "opencl_solvers.h"
#include "backends/problem.h"
#include "backends/opencl/nvidia/unit/mma.h"
#include "base/error.h"
#include "cl_nv_attention_softmax.h"
#include "cl_nv_attention_tiles.h"
#include "cl_nv_attention_warps.h"
#include "cl_nv_common.h"
#include "op_list.h"

void fac_nv_attention_warps_text(const fac_nv_attention *a, const fac_nv_attention_warps_cut *cut,
                                 bool lse, fac_text *to) {
    fac_nv_attention_types(a, to);
    fac_text_print(to,
                   "#define D %d\n#define E %d\n#define BLOCK %d\n#define WARPS %d\n"
                   "#define STAGES %d\n#define AHEAD %d\n",
                   a->d, a->e, cut->block, cut->warps, cut->stages, cut->ahead);
    fac_text_print(to, "#define RAGGED %d\n",
                   a->causal || fac_gpu_parts(a->T, FAC_NV_SLAB) * FAC_NV_SLAB % cut->block != 0);
    if (a->mask.type != FAC_NONE) fac_text_print(to, "#define MASK_ROWS %d\n", fac_nv_mask_rows(a));
    fac_nv_attention_forms(a, to);
    if (a->q.aligned && a->k.aligned && a->v.aligned) fac_text_add(to, "#define ALIGNED\n");
    if (cut->keep_q) fac_text_add(to, "#define KEEP_Q\n");
    if (lse) fac_text_add(to, "#define LSE\n");
    fac_text_add(to, fac_kernel_nv_common);
    fac_text_add(to, fac_kernel_nv_attention_tiles);
    fac_text_add(to, fac_kernel_nv_attention_softmax);
    fac_text_add(to, fac_kernel_nv_attention_warps);
}

void fac_nv_attention_warps_numbers(const fac_nv_attention *a,
                                    const fac_nv_attention_warps_cut *cut, fac_cl_call *c) {
    const size_t items = (size_t)(32 * cut->warps);
    const size_t tiles = (size_t)fac_gpu_parts(a->Q, FAC_NV_SLAB * cut->warps);
    fac_nv_attention_numbers(a, 0, c);
    fac_cl_call_number(c, (int64_t)tiles * a->B * a->H);
    c->range = (fac_cl_range){ 3, { items * tiles, (size_t)a->H, (size_t)a->B }, { items, 1, 1 } };
}

/* ---- the solver ---- */

typedef struct plan {
    fac_nv_attention a;
    fac_nv_attention_warps_cut cut;
} plan;

static bool read(fac_opencl *o, fac_problem *p, plan *r) {
    if (!fac_nv_attention_forward(p, 0, &r->a)) return false;
    if (r->a.mask.type != FAC_NONE && r->a.mask.key != 1 && r->a.T > 1) return false;
    return fac_nv_attention_warps_cut_of(&r->a, p->variant, fac_mma_unit_of(o).local,
                                         o->limits.units, &r->cut);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    plan r;
    if (!fac_cl_has_path(o, FAC_CL_MMA) || !read(o, p, &r)) return false;
    fac_lay_in_order(&p->in[FAC_NV_Q], &p->out[0]);
    if (!read(o, p, &r)) return false;
    *FAC_DRAFT(offer, plan) = r;
    offer->variants = FAC_NV_ATTENTION_WARPS_VARIANTS;
    const fac_mma_unit unit = fac_mma_unit_of(o);
    offer->seconds = fac_nv_attention_warps_seconds(&unit, &r.a, &r.cut);
    return true;
}

static fac_status add(fac_opencl *o, const fac_problem *p, fac_cl_plan *to, fac_error *err) {
    const plan r = *(const plan *)p->draft;
    const fac_nv_attention *a = &r.a;
    const bool lse = p->out[FAC_NV_LSE].type.dtype != FAC_NONE;
    fac_cl_call *c = NULL;
    fac_text text = { 0 };
    char options[40];
    snprintf(options, sizeof options, "-cl-nv-maxrregcount=%d", r.cut.registers);
    fac_nv_attention_warps_text(a, &r.cut, lse, &text);
    const fac_status status = fac_cl_call_text(o, to, &text, options, "attention", &c, err);
    fac_text_free(&text);
    FAC_TRY(status);
    fac_cl_call_in(c, p, FAC_NV_Q);
    fac_cl_call_in(c, p, FAC_NV_K);
    fac_cl_call_in(c, p, FAC_NV_V);
    fac_nv_attention_mask_buffer(a, p, FAC_NV_MASK, c);
    fac_cl_call_out(c, p, 0);
    fac_cl_call_out(c, p, lse ? FAC_NV_LSE : 0);
    fac_nv_attention_warps_numbers(a, &r.cut, c);
    return FAC_OK;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    return fac_cl_plan_make(d, p, 1, add, out, err);
}

const fac_solver fac_cl_attention_warps = { .name = "attention/warps",
                                            .op = &fac_op_attention,
                                            .rank = 640,
                                            .offer = offer,
                                            .make = make,
                                            .done = fac_cl_plan_done,
                                            .run = fac_cl_plan_run };
