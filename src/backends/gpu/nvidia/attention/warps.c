/* How attention on mma.sync is cut, and what that costs: see attention.h. */
#include "backends/gpu/nvidia/attention/attention.h"
#include "backends/gpu/nvidia/speed.h"
#include "tensor/tensor_internal.h"

enum { MOST_WARPS = 8, KIB = 1024 };

/* Bytes of a row of so many numbers in local memory. */
static int row_bytes(const fac_nv_attention *a, int wide) {
    return wide * (fac_nv_tf32(a) ? 4 : 2) + 16;
}

/* As many as there can be while all units have groups, since each group brings the keys; of these,
 * as few as possible without queries. */
static int warps_of(const fac_nv_attention *a, int units) {
    const int64_t slabs = fac_gpu_parts(a->Q, FAC_NV_SLAB), each = a->B * a->H * slabs / units;
    const int most = each > MOST_WARPS ? MOST_WARPS : (int)each;
    int best = most > 2 ? most : 2;
    if (slabs <= best) return (int)slabs;
    for (int w = best - 1; w > best / 2; w--)
        if (fac_gpu_parts(slabs, w) * w < fac_gpu_parts(slabs, best) * best) best = w;
    return best;
}

/* Bytes of a group's queries. */
static size_t bytes_of_queries(const fac_nv_attention *a, const fac_nv_attention_warps_cut *cut) {
    return (size_t)(FAC_NV_SLAB * cut->warps * row_bytes(a, a->d));
}

/* Bytes of a block of keys. */
static size_t bytes_of_block(const fac_nv_attention *a, const fac_nv_attention_warps_cut *cut) {
    size_t bytes = (size_t)(cut->block * (row_bytes(a, a->d) + row_bytes(a, a->e)));
    if (a->mask.type != FAC_NONE)
        bytes += (size_t)(cut->warps * fac_nv_mask_rows(a)) *
                 ((size_t)cut->block * fac_dtype_get(a->mask.type)->block_bytes + 16);
    return bytes;
}

bool fac_nv_attention_warps_cut_of(const fac_nv_attention *a, int variant, size_t local, int units,
                                   fac_nv_attention_warps_cut *cut) {
    enum { LONGEST = 64, SHORTER = 32, MOST_STAGES = 4, AIM = 72 * KIB };
    const bool split = a->mode == FAC_NV_3XTF32;
    const int64_t keys = fac_gpu_parts(a->T, FAC_NV_SLAB) * FAC_NV_SLAB;
    const int most = split || a->e > 96 ? SHORTER : LONGEST;
    cut->warps = variant ? variant : warps_of(a, units);
    cut->registers = a->d + a->e <= 128 ? 128 : 168;
    if (a->d + a->e <= 64) cut->registers = 96;
    cut->keep_q = !split && a->d * fac_nv_number(a) <= 128;
    cut->block = keys < most ? (int)keys : most;
    for (; cut->block >= FAC_NV_SLAB; cut->block = cut->block / 2 / FAC_NV_SLAB * FAC_NV_SLAB) {
        const int64_t blocks = fac_gpu_parts(a->T, cut->block);
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
    return variant <= FAC_NV_ATTENTION_WARPS_VARIANTS && cut->block >= FAC_NV_SLAB;
}

/* A warp waits for what it reads and multiplies; the products of all warps of a unit share it. */
double fac_nv_attention_warps_seconds(const fac_mma_unit *u, const fac_nv_attention *a,
                                      const fac_nv_attention_warps_cut *cut) {
    const fac_nv_attention_speed *s = &fac_nv_attention_speeds;
    const int units = u->units, room = fac_mma_room(u, 32 * cut->warps, cut->local, cut->registers);
    const double groups = (double)(a->B * a->H * fac_gpu_parts(a->Q, FAC_NV_SLAB * cut->warps));
    const double keys = (double)fac_gpu_parts(a->T, FAC_NV_SLAB),
                 seen = a->causal ? (keys + 1) / 2 : keys;
    const double rounds = groups / (units * (room > 1 ? room : 1));
    const double macs = groups * cut->warps * seen * (FAC_NV_SLAB * FAC_NV_SLAB * (a->d + a->e));
    return s->warps_begin + (rounds > 1 ? rounds : 1) * seen * s->wait +
           macs / (s->warps_share * fac_mma_rate(u, a->mode));
}
