/* How attention on wgmma is cut, and what that costs: see attention.h. */
#include "backends/gpu/nvidia/attention/attention.h"
#include "backends/gpu/nvidia/speed.h"

/* Found by measuring on an H200.  Narrow blocks are used up faster than memory answers: more of
 * them are on their way. */
fac_nv_attention_cut fac_nv_attention_cut_of(const fac_nv_attention *a,
                                             fac_nv_attention_kernel kernel) {
    const bool narrow = a->d + a->e <= 128, tf32 = fac_nv_tf32(a);
    const int stages = narrow && a->maps ? 4 : 2;
    if (a->mode == FAC_NV_3XTF32) return (fac_nv_attention_cut){ narrow ? 64 : 32, 2, 1, 1 };
    const int groups = narrow ? 3 : 2;
    if (kernel == FAC_NV_FORWARD)
        return (fac_nv_attention_cut){ tf32 ? 64 : 128, groups, stages, 1 };
    if (tf32 && !narrow) return (fac_nv_attention_cut){ 32, 2, 1, 1 };
    return (fac_nv_attention_cut){ 64, 2, stages, 1 };
}

/* A unit takes its tiles one after the other. */
double fac_nv_attention_seconds(const fac_gpu_limits *l, const fac_nv_attention *a,
                                const fac_nv_attention_cut *cut, size_t work) {
    const fac_nv_attention_speed *s = &fac_nv_attention_speeds;
    const int64_t tiles = a->B * a->H * fac_gpu_parts(a->Q, 64 * cut->groups);
    const double keys = (double)(fac_gpu_parts(a->T, cut->block) * cut->block);
    const double scores = 64 * cut->groups * (a->causal ? (keys + cut->block) / 2 : keys);
    const double unit = s->share * fac_nv_rate(l, a->mode) / l->units;
    double turn = s->tile + scores * (a->d + a->e) / unit;
    if (a->mask.type != FAC_NONE) turn += s->masked * scores;
    const double all = s->begin + (double)fac_gpu_parts(tiles, l->units) * turn;
    return a->maps ? all : all + 2 * s->pack + (double)work / fac_nv_speeds.attention_memory;
}

int64_t fac_nv_images_pieces(const fac_nv_attention *a, const fac_nv_images *m) {
    const int panel = 128 / fac_nv_number(a);
    const int parts = a->mode == FAC_NV_3XTF32 ? 2 : 1;
    return 8 * parts *
           (m->transposed ? (int64_t)m->wide * (m->tile / panel)
                          : (int64_t)m->tile * fac_gpu_parts(m->wide, panel));
}

fac_nv_images fac_nv_images_of(const fac_nv_attention *a, const fac_nv_heads *from, int tile,
                               int64_t tiles, bool transposed, size_t *work) {
    fac_nv_images m = { *from, tile, (int)fac_gpu_parts(from->size, 16) * 16, tiles, transposed,
                        *work, 0 };
    m.bytes = (size_t)(a->B * from->heads) * (size_t)(tiles * fac_nv_images_pieces(a, &m)) * 16;
    *work += m.bytes;
    return m;
}
