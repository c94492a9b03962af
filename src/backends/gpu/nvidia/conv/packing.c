/* Sizes of weights as tiles for the matrix units: see conv.h. */
#include "backends/gpu/nvidia/conv/conv.h"
#include "base/table.h"

int fac_nv_element_bytes(const fac_nv_packing *k) { return fac_nv_is_half(k->mode) ? 2 : 4; }

int fac_nv_tile_bytes(const fac_nv_packing *k) {
    return k->rows * k->terms * fac_nv_element_bytes(k) * (k->mode == FAC_NV_3XTF32 ? 2 : 1);
}

int fac_nv_k_tiles(const fac_nv_conv *c, const fac_nv_packing *k, const fac_nv_phase *f) {
    if (k->few) return (FAC_NV_FEW * f->taps + k->terms - 1) / k->terms;
    return (c->channels + k->terms - 1) / k->terms * f->taps;
}

int fac_nv_row_tiles(const fac_nv_conv *c, const fac_nv_packing *k) {
    return (c->rows + k->rows - 1) / k->rows;
}

size_t fac_nv_packed_at(const fac_nv_conv *c, const fac_nv_packing *k, int phase) {
    size_t tiles = 0;
    for (int i = 0; i < phase; i++) {
        const fac_nv_phase f = fac_nv_phase_of(c, i);
        tiles += (size_t)fac_nv_k_tiles(c, k, &f);
    }
    return tiles * (size_t)c->groups * (size_t)fac_nv_row_tiles(c, k) *
           (size_t)fac_nv_tile_bytes(k);
}

size_t fac_nv_packed_bytes(const fac_nv_conv *c, const fac_nv_packing *k) {
    return fac_nv_packed_at(c, k, c->phases);
}

uint64_t fac_nv_pack_key(const fac_nv_conv *c, const fac_nv_packing *k, int input) {
    fac_hash h = fac_hash_int(fac_hash_start((uint64_t)input),
                              (uint64_t)c->kind << 32 | (uint64_t)c->groups);
    h = fac_hash_int(h, (uint64_t)k->rows << 32 | (uint64_t)k->terms);
    h = fac_hash_int(h, (uint64_t)k->mode << 8 | (uint64_t)k->order << 2 | (uint64_t)k->whole << 1 |
                            (uint64_t)k->few);
    h = fac_hash_int(h, (uint64_t)k->run);
    for (int d = 0; d < 3 && c->kind == FAC_GPU_GRAD_X; d++) {
        h = fac_hash_int(h, (uint64_t)c->g.stride[d]);
        h = fac_hash_int(h, (uint64_t)c->g.dilation[d] << 32 | (uint64_t)c->g.pad[d]);
    }
    return h.a;
}
