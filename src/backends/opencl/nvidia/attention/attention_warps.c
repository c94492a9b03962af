/* attention/warps: attention on mma.sync, made for many short sequences, where attention/wgmma
 * waits for its tiles one after the other: see attention.h and nv_attention_warps.cl. */
#include <stdio.h>
#include "backends/opencl/nvidia/attention/attention.h"
#include "opencl_solvers.h"
#include "backends/problem.h"
#include "backends/opencl/nvidia/unit/mma.h"
#include "backends/gpu/nvidia/speed.h"
#include "base/error.h"
#include "cl_nv_attention_softmax.h"
#include "cl_nv_attention_tiles.h"
#include "cl_nv_attention_warps.h"
#include "cl_nv_common.h"
#include "op_list.h"

enum { SLAB = 16, MOST_WARPS = 8, VARIANTS = 8, KIB = 1024 };

/* ---- how ---- */

/* Bytes of a row of so many numbers in local memory. */
static int row_bytes(const fac_nv_attention *a, int wide) {
    return wide * (fac_nv_tf32(a) ? 4 : 2) + 16;
}

/* As many as there can be while all units have groups, since each group brings the keys; of these,
 * as few as possible without queries. */
static int warps_of(const fac_nv_attention *a, int units) {
    const int64_t slabs = fac_nv_up(a->Q, SLAB), each = a->B * a->H * slabs / units;
    const int most = each > MOST_WARPS ? MOST_WARPS : (int)each;
    int best = most > 2 ? most : 2;
    if (slabs <= best) return (int)slabs;
    for (int w = best - 1; w > best / 2; w--)
        if (fac_nv_up(slabs, w) * w < fac_nv_up(slabs, best) * best) best = w;
    return best;
}

/* Bytes of a group's queries. */
static size_t bytes_of_queries(const fac_nv_attention *a, const fac_nv_attention_warps_cut *cut) {
    return (size_t)(SLAB * cut->warps * row_bytes(a, a->d));
}

/* Rows of the mask that a warp reads: one where all queries have the same. */
static int mask_rows(const fac_nv_attention *a) { return a->mask.row ? SLAB : 1; }

/* Bytes of a block of keys. */
static size_t bytes_of_block(const fac_nv_attention *a, const fac_nv_attention_warps_cut *cut) {
    size_t bytes = (size_t)(cut->block * (row_bytes(a, a->d) + row_bytes(a, a->e)));
    if (a->mask.type != FAC_NONE)
        bytes += (size_t)(cut->warps * mask_rows(a)) *
                 ((size_t)cut->block * fac_dtype_get(a->mask.type)->block_bytes + 16);
    return bytes;
}

bool fac_nv_attention_warps_cut_of(const fac_nv_attention *a, int variant, size_t local, int units,
                                   fac_nv_attention_warps_cut *cut) {
    enum { LONGEST = 64, SHORTER = 32, MOST_STAGES = 4, AIM = 72 * KIB };
    const bool split = a->mode == FAC_NV_3XTF32;
    const int64_t keys = fac_nv_up(a->T, SLAB) * SLAB;
    const int most = split || a->e > 96 ? SHORTER : LONGEST;
    cut->warps = variant ? variant : warps_of(a, units);
    cut->registers = a->d + a->e <= 128 ? 128 : 168;
    if (a->d + a->e <= 64) cut->registers = 96;
    cut->keep_q = !split && a->d * fac_nv_number(a) <= 128;
    cut->block = keys < most ? (int)keys : most;
    for (; cut->block >= SLAB; cut->block = cut->block / 2 / SLAB * SLAB) {
        const int64_t blocks = fac_nv_up(a->T, cut->block);
        const size_t stage = bytes_of_block(a, cut);
        const size_t least = bytes_of_queries(a, cut), aim = local < AIM ? local : AIM;
        cut->stages = blocks < 2 ? 1 : 2;
        while (cut->stages < blocks && cut->stages < MOST_STAGES &&
               least + (size_t)(cut->stages + 1) * stage <= aim)
            cut->stages++;
        cut->ahead = cut->stages < blocks ? cut->stages - 1 : cut->stages;
        cut->local = least + (size_t)cut->stages * stage;
        if (cut->local <= local) break;
    }
    return variant <= VARIANTS && cut->block >= SLAB;
}

void fac_nv_attention_warps_text(const fac_nv_attention *a, const fac_nv_attention_warps_cut *cut,
                                 bool lse, fac_text *to) {
    fac_nv_attention_types(a, to);
    fac_text_print(to,
                   "#define D %d\n#define E %d\n#define BLOCK %d\n#define WARPS %d\n"
                   "#define STAGES %d\n#define AHEAD %d\n",
                   a->d, a->e, cut->block, cut->warps, cut->stages, cut->ahead);
    fac_text_print(to, "#define RAGGED %d\n",
                   a->causal || fac_nv_up(a->T, SLAB) * SLAB % cut->block != 0);
    if (a->mask.type != FAC_NONE) fac_text_print(to, "#define MASK_ROWS %d\n", mask_rows(a));
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
    const size_t tiles = (size_t)fac_nv_up(a->Q, SLAB * cut->warps);
    fac_nv_attention_numbers(a, 0, c);
    fac_cl_call_number(c, (int64_t)tiles * a->B * a->H);
    c->range = (fac_cl_range){ 3, { items * tiles, (size_t)a->H, (size_t)a->B }, { items, 1, 1 } };
}

/* A warp waits for what it reads and multiplies; the products of all warps of a unit share it. */
double fac_nv_attention_warps_seconds(fac_opencl *o, const fac_nv_attention *a,
                                      const fac_nv_attention_warps_cut *cut) {
    const fac_nv_attention_speed *s = &fac_nv_attention_speeds;
    const fac_mma_unit unit = fac_mma_unit_of(o);
    const int units = o->limits.units,
              room = fac_mma_room(&unit, 32 * cut->warps, cut->local, cut->registers);
    const double groups = (double)(a->B * a->H * fac_nv_up(a->Q, SLAB * cut->warps));
    const double keys = (double)fac_nv_up(a->T, SLAB), seen = a->causal ? (keys + 1) / 2 : keys;
    const double rounds = groups / (units * (room > 1 ? room : 1));
    const double macs = groups * cut->warps * seen * (SLAB * SLAB * (a->d + a->e));
    return s->warps_begin + (rounds > 1 ? rounds : 1) * seen * s->wait +
           macs / (s->warps_share * fac_mma_rate(&unit, a->mode));
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
    offer->variants = VARIANTS;
    offer->seconds = fac_nv_attention_warps_seconds(o, &r.a, &r.cut);
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
