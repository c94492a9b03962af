/* Weights as tiles for the matrix units, packed on the device: see conv.h. */
#include "backends/opencl/elementwise.h"
#include "backends/opencl/nvidia/conv.h"
#include "base/error.h"
#include "base/table.h"
#include "tensor/tensor_internal.h"
#include "cl_nv_pack.h"

/* As kernels/nv_pack.cl has it. */
typedef struct packing {
    int64_t from, to, group, row, channel;
    int32_t rows, channels, groups, row_tiles, k_tiles, taps, window[3], number[3], first[3], each[3], within, turned;
} packing;

static bool is_half(const fac_nv_packing *k) { return k->mode == FAC_NV_BF16 || k->mode == FAC_NV_F16; }
static int element_bytes(const fac_nv_packing *k) { return is_half(k) ? 2 : 4; }

int fac_nv_tile_bytes(const fac_nv_packing *k) {
    return k->rows * k->terms * element_bytes(k) * (k->mode == FAC_NV_3XTF32 ? 2 : 1);
}

int fac_nv_k_tiles(const fac_nv_conv *c, const fac_nv_packing *k, const fac_nv_phase *f) {
    if (k->few) return (FAC_NV_FEW * f->taps + k->terms - 1) / k->terms;
    return (c->channels + k->terms - 1) / k->terms * f->taps;
}

int fac_nv_row_tiles(const fac_nv_conv *c, const fac_nv_packing *k) { return (c->rows + k->rows - 1) / k->rows; }

size_t fac_nv_packed_at(const fac_nv_conv *c, const fac_nv_packing *k, int phase) {
    size_t tiles = 0;
    for (int i = 0; i < phase; i++) {
        const fac_nv_phase f = fac_nv_phase_of(c, i);
        tiles += (size_t)fac_nv_k_tiles(c, k, &f);
    }
    return tiles * (size_t)c->groups * (size_t)fac_nv_row_tiles(c, k) * (size_t)fac_nv_tile_bytes(k);
}

size_t fac_nv_packed_bytes(const fac_nv_conv *c, const fac_nv_packing *k) { return fac_nv_packed_at(c, k, c->phases); }

uint64_t fac_nv_pack_key(const fac_nv_conv *c, const fac_nv_packing *k, int input) {
    fac_hash h = fac_hash_int(fac_hash_start((uint64_t)input), (uint64_t)c->kind << 32 | (uint64_t)c->groups);
    h = fac_hash_int(h, (uint64_t)k->rows << 32 | (uint64_t)k->terms);
    h = fac_hash_int(h, (uint64_t)k->mode << 8 | (uint64_t)k->order << 1 | (uint64_t)k->few);
    for (int d = 0; d < 3 && c->kind == FAC_CL_GRAD_X; d++) {
        h = fac_hash_int(h, (uint64_t)c->g.stride[d]);
        h = fac_hash_int(h, (uint64_t)c->g.dilation[d] << 32 | (uint64_t)c->g.pad[d]);
    }
    return h.a;
}

bool fac_nv_pack_text(const fac_nv_conv *c, const fac_nv_packing *k, fac_text *to) {
    const bool half = c->r.dtype != FAC_F32;
    fac_text_print(to, "#define MEM %s\n#define ROWS %d\n#define TERMS %d\n#define ORDER %d\n", fac_cl_in_memory(c->r.dtype),
                   k->rows,
                   k->terms, (int)k->order);
    if (half) fac_text_print(to, "#define LOAD(p, i) fac_load_%s(p, i)\n", c->r.dtype == FAC_F16 ? "f16" : "bf16");
    else fac_text_add(to, "#define LOAD(p, i) (p)[i]\n");
    if (is_half(k))
        fac_text_print(to, "#define HALF\n#define PUT16(p, i, x) fac_store_%s(p, i, x)\n",
                       k->mode == FAC_NV_F16 ? "f16" : "bf16");
    fac_text_print(to, "#define PARTS %d\n", k->mode == FAC_NV_3XTF32 ? 2 : 1);
    fac_text_print(to, "#define LARGER %#.9gf\n", k->mode == FAC_NV_TF32 && k->order == FAC_NV_IN_ORDER ? (double)FAC_NV_CUT : 1.0);
    if (k->few) fac_text_add(to, "#define FEW\n");
    if (k->points) fac_text_add(to, "#define POINTS\n");
    fac_text_add(to, fac_cl_nv_pack);
    return !to->failed;
}

fac_status fac_nv_pack_make(fac_opencl *o, const fac_nv_conv *c, const fac_nv_packing *k, fac_cl_kernel *out, fac_error *err) {
    fac_text text = { 0 };
    fac_status status = fac_nv_pack_text(c, k, &text) ? fac_cl_kernel_new(o, text.s, "", "pack", out, err)
                                                      : fac_raise(err, FAC_E_NOMEM, "no memory for the text of a kernel");
    fac_text_free(&text);
    return status;
}

static fac_status launch(fac_opencl *o, const packing *s, const fac_nv_packing *k, const fac_cl_kernel *kernel, fac_span from,
                         fac_span to, fac_error *err) {
    const size_t tiles = (size_t)s->groups * (size_t)s->row_tiles * (size_t)s->k_tiles, units = tiles * (size_t)k->rows / 16;
    const size_t group = o->limits.group < 256 ? o->limits.group : 256, most = (size_t)o->limits.units * 64;
    const fac_cl_range range = { 1, { (units < most ? units : most) * group }, { group } };
    const fac_cl_arg args[] = { fac_cl_arg_value(s, sizeof *s), fac_cl_arg_span(from), fac_cl_arg_span(to) };
    return fac_cl_launch(o, kernel, &range, 3, args, err);
}

/* Steps of the weights; sizes of the tiles that c's product has. */
static packing describe(const fac_nv_conv *weights, const fac_nv_conv *c, const fac_nv_packing *k, fac_span from) {
    const fac_conv_geom *g = &weights->g;
    const int64_t taps = g->kernel[0] * g->kernel[1] * g->kernel[2], line = g->C / g->groups * taps;
    const bool turned = weights->kind == FAC_CL_GRAD_X;
    packing s = { .group = g->K / g->groups * line, .row = turned ? taps : line, .channel = turned ? line : taps, .rows = c->rows,
                  .channels = c->channels, .groups = c->groups, .row_tiles = fac_nv_row_tiles(c, k),
                  .within = (int32_t)g->groups, .turned = turned };
    s.from = (int64_t)(fac_cl_at(from) / (size_t)fac_dtype_get(weights->r.dtype)->block_bytes);
    for (int d = 0; d < 3; d++) s.window[d] = (int32_t)g->kernel[d];
    return s;
}

fac_status fac_nv_pack_run(fac_opencl *o, const fac_nv_conv *c, const fac_nv_packing *k, const fac_cl_kernel *kernel,
                           fac_span from, fac_span to, fac_error *err) {
    packing s = describe(c, c, k, from);
    for (int i = 0; i < c->phases; i++) {
        const fac_nv_phase f = fac_nv_phase_of(c, i);
        s.to = (int64_t)((fac_cl_at(to) + fac_nv_packed_at(c, k, i)) / (size_t)element_bytes(k));
        s.k_tiles = fac_nv_k_tiles(c, k, &f), s.taps = f.taps;
        for (int d = 0; d < 3; d++) s.number[d] = f.axis[d].taps, s.first[d] = f.axis[d].first, s.each[d] = f.axis[d].each;
        FAC_TRY(launch(o, &s, k, kernel, from, to, err));
    }
    return FAC_OK;
}

fac_status fac_nv_pack_points(fac_opencl *o, const fac_nv_conv *c, const fac_nv_conv *m, const fac_nv_packing *k,
                              const fac_cl_kernel *kernel, fac_span from, fac_span to, fac_error *err) {
    packing s = describe(c, m, k, from);
    const fac_nv_phase f = fac_nv_phase_of(m, 0);
    s.to = (int64_t)(fac_cl_at(to) / (size_t)element_bytes(k));
    s.k_tiles = fac_nv_k_tiles(m, k, &f), s.taps = 1;
    return launch(o, &s, k, kernel, from, to, err);
}
