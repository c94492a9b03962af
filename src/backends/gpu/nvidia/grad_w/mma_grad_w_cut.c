/* How gradients by weights are cut for nv_mma_grad_w.cl: see mma_grad_w.h. */
#include "backends/gpu/nvidia/grad_w/mma_grad_w.h"
#include "backends/gpu/nvidia/speed.h"
#include "backends/gpu/speed.h"
#include "base/clamp.h"

size_t fac_mma_grad_w_work(const fac_nv_grad_w *q, int64_t splits) {
    return (size_t)(splits * q->g.K * q->C * fac_nv_grad_w_taps(q)) * sizeof(float);
}

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
    return fac_nv_grad_w_halves(q) ? sixteens : floats;
}

int fac_mma_grad_w_variants(void) { return 2 * KINDS; }

static int items_of(const fac_mma_grad_w_kind *k) {
    return 32 * (k->rows / k->warp_rows) * (k->columns / k->warp_columns);
}

/* Groups for one or two rounds on the device. */
static bool cut(const fac_gpu_limits *l, const fac_mma_unit *u, const fac_nv_grad_w *q, int kind,
                int rounds, fac_mma_grad_w_cut *c) {
    const fac_mma_grad_w_kind *k = &kinds_of(q)[kind];
    const fac_conv_geom *g = &q->g;
    const int64_t pixels = g->N * g->O * g->P * g->Q, all = fac_nv_grad_w_taps(q) * q->C;
    const size_t step = (size_t)((k->rows + k->columns) * k->pixels) *
                        (fac_nv_grad_w_halves(q) ? 2 : 4),
                 most = u->local / step;
    *c = (fac_mma_grad_w_cut){ .k = *k,
                               .items = items_of(k),
                               .stages = most < STAGES ? (int)most : STAGES,
                               .tiles_m = fac_gpu_parts(q->K, k->rows),
                               .tiles_n = fac_gpu_parts(all, k->columns) };
    if (c->stages < 2 || pixels >= INT32_MAX / 2) return false;
    const int room = fac_mma_room(u, c->items, (size_t)c->stages * step, k->registers);
    const int64_t tiles = c->tiles_m * c->tiles_n * g->groups, slots = (int64_t)l->units * room;
    if (!room) return false;
    int64_t splits = rounds * slots / tiles, least = fac_gpu_parts(pixels, 8 * k->pixels);
    splits = fac_clamp(splits, 1, least);
    c->each = fac_gpu_parts(fac_gpu_parts(pixels, splits), k->pixels) * k->pixels;
    c->splits = fac_gpu_parts(pixels, c->each);
    const double busy_share = room * c->items < 256 ? fac_nv_grad_w_speeds.mma_idle : 1;
    const double rate = fac_mma_rate(u, q->mode) / (double)slots * k->share * busy_share;
    const double each = (double)k->rows * (double)k->columns * (double)k->pixels / rate;
    const double waves = (double)fac_gpu_parts(tiles * c->splits, slots);
    const double busy =
        waves * ((double)(c->each / k->pixels) * each + fac_nv_grad_w_speeds.mma_wave);
    const double read =
        (double)(g->N * g->D * g->H * g->W) * (double)g->C + (double)pixels * (double)g->K;
    const double images = (fac_nv_grad_w_halves(q) ? 2.0 : 4.0) * read;
    const double memory = images / (fac_nv_grad_w_speeds.mma_memory * fac_gpu_bandwidth(l));
    c->seconds = fac_nv_grad_w_speeds.launch + (busy > memory ? busy : memory) +
                 (double)fac_mma_grad_w_work(q, c->splits) / fac_gpu_bandwidth(l);
    return fac_mma_grad_w_work(q, c->splits) < (size_t)1 << 31;
}

bool fac_mma_grad_w_choose(const fac_gpu_limits *l, const fac_mma_unit *u, const fac_nv_grad_w *q,
                           int variant, fac_mma_grad_w_cut *out) {
    bool found = false;
    if (variant > 2 * KINDS || q->few) return false;
    const int end = variant ? variant : 2 * KINDS;
    for (int i = variant ? variant - 1 : 0; i < end; i++) {
        fac_mma_grad_w_cut c;
        if (!cut(l, u, q, i / 2, 1 + i % 2, &c) || (found && c.seconds >= out->seconds)) continue;
        *out = c;
        found = true;
    }
    return found;
}
