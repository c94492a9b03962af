/* Weights as tiles for the matrix units, packed on the device: see conv.h. */
#include "backends/gpu/nvidia/divide.h"
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/nvidia/unit/pack.h"
#include "base/error.h"
#include "base/table.h"
#include "tensor/tensor_internal.h"
#include "cl_nv_pack.h"

enum {
    ITEMS = 256,
    PAD = 4,
    TAPS = 64,
    ROWS_BITS = 3
}; /* PAD, TAPS: as nvidia/unit/nv_pack.cl has them */

/* ---- the kernel ---- */

/* Floats of local memory: 16 rows of 32 terms (64 of 16 bits) of 3 x 3 taps. */
static int stage_of(fac_nv_mode mode) { return fac_nv_is_half(mode) ? 9600 : 4800; }

bool fac_nv_packs_text(fac_dtype type, fac_nv_mode mode, int sources, fac_text *to) {
    const char *memory = fac_cl_in_memory(type);
    fac_text_print(to, "#define MEM %s\n#define STAGE %d\n#define PARTS %d\n", memory,
                   stage_of(mode), mode == FAC_NV_3XTF32 ? 2 : 1);
    if (type == FAC_F32)
        fac_text_add(to,
                     "#define LOAD(p, i) (p)[i]\n#define LOAD4(p) *(global const float4 *)(p)\n");
    else if (type == FAC_F16)
        fac_text_add(to, "#define LOAD(p, i) fac_load_f16(p, i)\n#define LOAD4(p) vload_half4(0, "
                         "(global const half *)(p))\n");
    else
        fac_text_add(to, "#define LOAD(p, i) fac_load_bf16(p, i)\n#define LOAD4(p) four(*(global "
                         "const ushort4 *)(p))\n"
                         "static float4 four(ushort4 x) {\n    return (float4)(fac_from_bf16(x.x), "
                         "fac_from_bf16(x.y), "
                         "fac_from_bf16(x.z), fac_from_bf16(x.w));\n}\n");
    if (fac_nv_is_half(mode))
        fac_text_print(to, "#define HALF\n#define BITS(x) fac_bits_%s(x)\n",
                       mode == FAC_NV_F16 ? "f16" : "bf16");
    if (sources) {
        fac_text_print(to, "#define SOURCES %d\n#define PARAMETERS", sources);
        for (int i = 0; i < sources; i++) fac_text_print(to, ", global const %s *x%d", memory, i);
        fac_text_add(to, "\n#define PICK(k) switch (k) {");
        for (int i = 1; i < sources; i++)
            fac_text_print(to, " case %d: x = x%d + p.at[%d]; break;", i, i, i);
        fac_text_add(to, " default: x = x0 + p.at[0]; }\n");
    }
    fac_text_add(to, fac_kernel_nv_pack);
    return !to->failed;
}

bool fac_nv_pack_text(const fac_nv_conv *c, const fac_nv_packing *k, fac_text *to) {
    return fac_nv_packs_text(c->r.dtype, k->mode, 0, to);
}

fac_status fac_nv_pack_make(fac_opencl *o, const fac_nv_conv *c, const fac_nv_packing *k,
                            fac_cl_kernel *out, fac_error *err) {
    fac_text text = { 0 };
    fac_status status = fac_nv_pack_text(c, k, &text)
                            ? fac_cl_kernel_new(o, text.s, "", "pack", out, err)
                            : fac_raise_memory(err, "the text of a kernel");
    fac_text_free(&text);
    return status;
}

/* ---- a phase ---- */

int fac_nv_pack_phases(const fac_nv_weights *w) { return w->k->points ? 1 : w->product->phases; }

size_t fac_nv_pack_items(const fac_opencl *o) {
    size_t items = ITEMS;
    while (items > o->limits.group) items /= 2;
    return items;
}

size_t fac_nv_pack_units(const fac_nv_weights *w, const fac_nv_pack *s) {
    const int groups = s->within ? s->within : w->product->groups;
    return s->k_tiles ? (size_t)groups * (size_t)s->row_tiles * (size_t)s->slabs * (size_t)s->blocks
                      : 0;
}

static float larger_by(const fac_nv_packing *k) {
    const bool cut = k->mode == FAC_NV_TF32 && k->order == FAC_NV_IN_ORDER;
    if (k->whole) return 0;
    if (cut) return (float)(1 + FAC_NV_CUT);
    return k->mode == FAC_NV_3XTF32 ? (float)(1 + FAC_NV_LOST * k->run) : 1;
}

/* As many rows as the stage has room for, or single k-tiles without it. */
static void cut_units(fac_nv_pack *s, const fac_nv_packing *k) {
    const int terms = k->terms, room = stage_of(k->mode);
    int bits = 4 + ROWS_BITS;
    for (; bits >= 4; bits--) {
        const int64_t rows = INT64_C(1) << bits, run = (s->flipped ? rows : terms) * s->window,
                      runs = s->flipped ? terms : rows;
        if (k->few || s->taps > TAPS || k->rows % rows || runs * (run + PAD) > room) continue;
        const fac_nv_divisor by = fac_nv_divide((uint32_t)run / 4);
        s->staged = 1;
        s->runs = (int32_t)runs;
        s->run = (int32_t)run;
        s->multiplier = by.multiplier;
        s->shift = by.shift;
        break;
    }
    s->row_bits = s->staged ? bits : 4;
    s->slabs = k->rows >> s->row_bits;
    s->blocks = s->staged ? (s->channels + terms - 1) / terms : s->k_tiles;
}

fac_nv_pack fac_nv_pack_phase(const fac_nv_weights *w, int phase, size_t to) {
    const fac_conv_geom *g = &w->weights->g;
    const fac_nv_conv *c = w->product;
    const fac_nv_packing *k = w->k;
    const fac_nv_phase f = fac_nv_phase_of(c, phase);
    const int64_t taps = g->kernel[0] * g->kernel[1] * g->kernel[2], line = g->C / g->groups * taps;
    fac_nv_pack s = { .to = (int64_t)((to + fac_nv_packed_at(c, k, phase)) /
                                      (size_t)fac_nv_element_bytes(k)),
                      .group = g->K / g->groups * line,
                      .line = (int32_t)line,
                      .window = (int32_t)taps,
                      .flipped = w->weights->kind == FAC_GPU_GRAD_X,
                      .rows = c->rows,
                      .channels = c->channels,
                      .row_tiles = fac_nv_row_tiles(c, k),
                      .k_tiles = fac_nv_k_tiles(c, k, &f),
                      .taps = f.taps,
                      .tile_rows = k->rows,
                      .order = (int32_t)k->order,
                      .few = k->few,
                      .larger = larger_by(k),
                      .within = k->points ? (int32_t)g->groups : 0 };
    while (1 << s.term_bits < k->terms) s.term_bits++;
    for (int d = 0; d < 3; d++) {
        s.number[d] = f.axis[d].taps;
        s.first_tap[d] = f.axis[d].first;
        s.each[d] = f.axis[d].each;
    }
    s.size[0] = (int32_t)g->kernel[1];
    s.size[1] = (int32_t)g->kernel[2];
    cut_units(&s, k);
    return s;
}

/* ---- a launch for each ---- */

static fac_status launch(fac_opencl *o, const fac_nv_weights *w, const fac_cl_kernel *kernel,
                         fac_span from, fac_span to, fac_error *err) {
    const int64_t at =
        (int64_t)(fac_cl_at(from) / (size_t)fac_dtype_get(w->weights->r.dtype)->block_bytes);
    const size_t items = fac_nv_pack_items(o);
    for (int i = 0; i < fac_nv_pack_phases(w); i++) {
        const fac_nv_pack s = fac_nv_pack_phase(w, i, fac_cl_at(to));
        const fac_cl_range range = { 1, { fac_nv_pack_units(w, &s) * items }, { items } };
        const fac_cl_arg args[] = { fac_cl_arg_value(&s, sizeof s),
                                    fac_cl_arg_value(&at, sizeof at), fac_cl_arg_span(from),
                                    fac_cl_arg_span(to) };
        FAC_TRY(fac_cl_launch(o, kernel, &range, 4, args, err));
    }
    return FAC_OK;
}

fac_status fac_nv_pack_run(fac_opencl *o, const fac_nv_conv *c, const fac_nv_packing *k,
                           const fac_cl_kernel *kernel, fac_span from, fac_span to,
                           fac_error *err) {
    return launch(o, &(fac_nv_weights){ c, c, k }, kernel, from, to, err);
}

fac_status fac_nv_pack_points(fac_opencl *o, const fac_nv_conv *c, const fac_nv_conv *m,
                              const fac_nv_packing *k, const fac_cl_kernel *kernel, fac_span from,
                              fac_span to, fac_error *err) {
    return launch(o, &(fac_nv_weights){ c, m, k }, kernel, from, to, err);
}
