/* conv/wgmma: convolutions forward and by x on sm_90's matrix units, of any window, stride,
 * dilation and padding; see nv_conv_rows.cl.  Weights are packed once; where they change in
 * the run, as a step of it.  conv/mma is the same on mma.sync: nv_mma_conv.cl, cut by
 * mma_tiles.c; conv/warps for few pixels: nv_conv_warps.cl, conv_warps.h. */
#include "backends/draft.h"
#include "backends/gpu/nvidia/divide.h"
#include "backends/opencl/nvidia/conv/conv_rows.h"
#include "backends/opencl/nvidia/conv/conv_warps.h"
#include "backends/opencl/nvidia/unit/pack.h"
#include "backends/gpu/nvidia/speed.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/tensor_internal.h"
#include "cl_nv_common.h"
#include "cl_nv_conv_look.h"
#include "cl_nv_conv_rows.h"
#include "cl_nv_conv_rows_pool.h"
#include "cl_nv_conv_warps.h"
#include "cl_nv_mma_conv.h"
#include "cl_nv_moments.h"
#include "cl_nv_warp_products.h"

enum { VERSION = 2, OPTIONS = 96 };

/* As the kernel has it. */
typedef struct look {
    int64_t x, w, work, counters;
    int32_t image, step[3], channel, in[3], out[3], origin[3], stride[3], far[3], taps[3];
    uint32_t multiplier[3], shift[3];
    int32_t pixels, rows, channels, row_tiles, k_tiles, each_k, all_taps, zero;
} look;

typedef struct moments {
    int64_t at, channels;
} moments;

static size_t bytes_of(fac_dtype t) { return (size_t)fac_dtype_get(t)->block_bytes; }
static int items_of(const fac_nv_conv *c, const fac_nv_tile *t) {
    const fac_mma_tile m = fac_mma_conv_tile(c, t);
    if (t->warps) return 32 * t->warps;
    return t->warp_rows ? fac_mma_items(&m) : 128 * t->c.teams;
}
static int64_t columns_of(const fac_nv_rows *r) {
    return (int64_t)r->c.groups * fac_nv_row_tiles(&r->c, &r->t.k);
}

/* ---- kernels ---- */

static void add_product(const fac_nv_conv *c, const fac_nv_tile *t, fac_text *to) {
    const fac_mma_tile m = fac_mma_conv_tile(c, t);
    if (t->warps)
        fac_nv_warps_text(c, t, to);
    else if (t->warp_rows)
        fac_mma_tiles_text(&m, to);
    if (t->warps || t->warp_rows) return;
    static const char *const names[] = { "tf32", "tf32", "bf16", "f16" };
    static const fac_nv_kind kinds[] = { FAC_NV_KIND_TF32, FAC_NV_KIND_TF32, FAC_NV_KIND_BF16,
                                         FAC_NV_KIND_F16 };
    fac_nv_wgmma_text(to, t->c.columns, kinds[c->mode], FAC_NV_A_REGISTERS);
    fac_text_print(to, "#define MULTIPLY wgmma_%s_n%d_rs\n", names[c->mode], t->c.columns);
}

static bool write_text(const fac_opencl *o, const fac_nv_conv *c, const fac_nv_tile *t,
                       fac_text *to) {
    const bool x16 = c->r.dtype != FAC_F32;
    fac_text_add(to, fac_kernel_nv_common);
    add_product(c, t, to);
    const bool good = fac_nv_epilogue_text(&c->r, &c->ends, o->limits.fp64, to);
    fac_text_print(to,
                   "#define BN %d\n#define BK %d\n#define TEAMS %d\n#define STAGES %d\n#define "
                   "STAGE %d\n#define PROMOTE %d\n",
                   t->c.columns, t->k.terms, t->c.teams, t->c.stages, fac_nv_tile_bytes(&t->k),
                   t->promote);
    fac_text_print(to, "#define PARTS %d\n#define XMEM %s\n", c->mode == FAC_NV_3XTF32 ? 2 : 1,
                   x16 ? "ushort" : "float");
    if (x16) fac_text_add(to, "#define X16\n#define X_AS_FLOAT(x) ");
    if (x16)
        fac_text_add(to, c->r.dtype == FAC_BF16 ? "as_float((uint)(x) << 16)\n" : "half_of(x)\n");
    if (fac_nv_is_half(c->mode))
        fac_text_print(to, "#define HALF\n#define PACK2 nv_pack_%s\n",
                       c->mode == FAC_NV_F16 ? "f16" : "bf16");
    if (c->r.result != FAC_F32) fac_text_add(to, "#define RESULT16\n");
    if (t->c.ahead) fac_text_add(to, "#define AHEAD\n");
    if (c->few)
        fac_text_print(to, "#define FEW %d\n", (int)c->channels);
    else if (c->channels % t->k.terms)
        fac_text_add(to, "#define RAGGED\n");
    if (t->splits > 1) fac_text_add(to, "#define SPLIT\n");
    if (c->g.rank > 2) fac_text_add(to, "#define DEEP\n");
    if (c->pooled) fac_text_add(to, "#define POOL\n");
    fac_text_print(to, "#define BM %d\n#define ITEMS %d\n", fac_nv_tile_rows(t), items_of(c, t));
    fac_text_add(to, fac_kernel_nv_conv_look);
    if (c->moments)
        fac_text_add(to,
                     "#define MOMENTS\n#define MOMENTS_MEET(id) barrier(CLK_LOCAL_MEM_FENCE)\n");
    if (c->sums) fac_text_add(to, "#define NORM\n");
    if (c->sums) fac_nv_norm_text(c, to);
    if (c->moments) fac_text_add(to, fac_kernel_nv_moments);
    if (c->pooled) fac_text_add(to, fac_kernel_nv_conv_rows_pool);
    if (t->warps) fac_text_print(to, "#define NAME(x) x\n%s", fac_kernel_nv_warp_products);
    fac_text_add(to, t->warps       ? fac_kernel_nv_conv_warps
                     : t->warp_rows ? fac_kernel_nv_mma_conv
                                    : fac_kernel_nv_conv_rows);
    return good && !to->failed;
}

static void write_options(const fac_nv_conv *c, const fac_nv_tile *t, char *to) {
    const int n = snprintf(to, OPTIONS, "%s", fac_cl_options(&c->r));
    if (t->c.registers)
        snprintf(to + n, (size_t)(OPTIONS - n), " -cl-nv-maxrregcount=%d", t->c.registers);
}

bool fac_nv_rows_text(const fac_opencl *o, const fac_nv_conv *c, const fac_nv_tile *t,
                      fac_text *to) {
    char options[OPTIONS];
    write_options(c, t, options);
    fac_text_print(to, "// %s\n", options);
    return write_text(o, c, t, to);
}

static fac_status make_counters(fac_device *d, fac_nv_rows *r, fac_error *err) {
    const fac_nv_phase f = fac_nv_phase_of(&r->c, 0);
    const size_t tiles = (size_t)(fac_gpu_parts(f.pixels, fac_nv_tile_rows(&r->t)) * columns_of(r));
    if (r->t.splits < 2) return FAC_OK;
    uint32_t *zeros = fac_alloc(tiles, sizeof *zeros);
    if (!zeros) return fac_raise_memory(err, "%zu counters", tiles);
    fac_status status = fac_device_alloc(d, tiles * sizeof *zeros, &r->counters.memory, err);
    r->counted = status ? 0 : tiles * sizeof *zeros;
    if (!status) status = d->backend->write(d, r->counters, zeros, r->counted, err);
    fac_release(zeros);
    return status;
}

fac_status fac_nv_rows_make(fac_device *d, fac_nv_rows *r, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    char options[OPTIONS];
    fac_text text = { 0 };
    FAC_TRY(make_counters(d, r, err));
    write_options(&r->c, &r->t, options);
    fac_status status = write_text(o, &r->c, &r->t, &text)
                            ? fac_cl_kernel_new(o, text.s, options, "conv_rows", &r->kernel, err)
                            : fac_raise_memory(err, "the text of a kernel");
    fac_text_free(&text);
    return status;
}

void fac_nv_rows_free(fac_device *d, fac_nv_rows *r) {
    fac_cl_kernel_free(fac_opencl_of(d), &r->kernel);
    fac_device_release(d, r->counters.memory, r->counted);
}

/* ---- runs ---- */

static look look_of(const fac_nv_rows *r, const fac_nv_phase *f) {
    const fac_nv_conv *c = &r->c;
    const fac_nv_place *x = &c->x;
    look s = { .x = x->at,
               .image = x->image,
               .step = { x->depth, x->row, x->column },
               .channel = x->channel,
               .pixels = (int32_t)f->pixels,
               .rows = c->rows,
               .channels = c->channels,
               .row_tiles = fac_nv_row_tiles(c, &r->t.k),
               .k_tiles = fac_nv_k_tiles(c, &r->t.k, f),
               .each_k = r->t.each_k,
               .all_taps = f->taps };
    for (int d = 0; d < 3; d++) {
        const fac_nv_axis *a = &f->axis[d];
        const int32_t out = c->pooled && d > 0 ? a->out / 2 : a->out;
        const fac_nv_divisor by = fac_nv_divide_wide((uint32_t)(out ? out : 1));
        s.in[d] = a->in;
        s.out[d] = out;
        s.origin[d] = a->origin;
        s.stride[d] = a->stride;
        s.far[d] = a->far;
        s.taps[d] = a->taps;
        s.multiplier[d] = by.multiplier;
        s.shift[d] = by.shift;
    }
    return s;
}

static fac_status run_phase(fac_opencl *o, const fac_nv_rows *r, const fac_nv_phase *f, fac_span x,
                            fac_span w, fac_span y, const fac_span *in, fac_span work,
                            fac_error *err) {
    const fac_gpu_product *p = &r->c.r;
    look s = look_of(r, f);
    fac_nv_ends e = fac_nv_phase_ends(&r->c, f);
    s.x += (int64_t)(fac_cl_at(x) / bytes_of(p->dtype));
    s.w = (int64_t)fac_cl_at(w);
    e.p[0].at += (int64_t)(fac_cl_at(y) / bytes_of(p->result));
    fac_cl_arg args[9 + FAC_GPU_EXTRAS] = { fac_cl_arg_value(&s, sizeof s),
                                            fac_cl_arg_value(&e, fac_nv_ends_bytes(p)),
                                            fac_cl_arg_span(x), fac_cl_arg_span(w),
                                            fac_cl_arg_span(y) };
    moments left = { 0, (int64_t)r->c.groups * r->c.rows };
    int n = 5;
    if (r->t.splits > 1) {
        s.work = (int64_t)(fac_cl_at(work) / sizeof(float));
        s.counters = (int64_t)(fac_cl_at(r->counters) / sizeof(uint32_t));
        args[n++] = fac_cl_arg_span(work);
        args[n++] = fac_cl_arg_span(r->counters);
    }
    if (r->c.moments) {
        left.at = (int64_t)((fac_cl_at(work) + fac_nv_tile_work(&r->c, &r->t)) / sizeof(float));
        args[n++] = fac_cl_arg_span(work);
        args[n++] = fac_cl_arg_value(&left, sizeof left);
    }
    for (int i = 0; i < p->extras; i++) {
        const fac_span extra = in[p->input[i]];
        e.p[1 + i].at += (int64_t)(fac_cl_at(extra) / bytes_of(p->extra_dtype[i]));
        args[n++] = fac_cl_arg_span(extra);
    }
    const size_t items = (size_t)items_of(&r->c, &r->t);
    const fac_cl_range range = { 3,
                                 { items * (size_t)columns_of(r),
                                   (size_t)fac_gpu_parts(f->pixels, fac_nv_tile_rows(&r->t)),
                                   (size_t)r->t.splits },
                                 { items, 1, 1 } };
    return fac_cl_launch(o, &r->kernel, &range, n, args, err);
}

fac_status fac_nv_rows_run(fac_opencl *o, const fac_nv_rows *r, int64_t images, fac_span x,
                           fac_span w, fac_span y, const fac_span *in, fac_span work,
                           fac_error *err) {
    for (int i = 0; i < r->c.phases; i++) {
        fac_nv_phase f = fac_nv_phase_of(&r->c, i);
        const fac_span packed = { w.memory, w.at + fac_nv_packed_at(&r->c, &r->t.k, i) };
        f.pixels = f.pixels / r->c.g.N * images;
        if (f.pixels) FAC_TRY(run_phase(o, r, &f, x, packed, y, in, work, err));
    }
    return FAC_OK;
}

/* ---- the solver ---- */

typedef struct plan {
    fac_nv_rows r;
    fac_cl_kernel pack, moments;
} plan;

static fac_nv_moments moments_of(const fac_nv_conv *c) {
    const fac_nv_phase f = fac_nv_phase_of(c, 0);
    return (fac_nv_moments){ fac_gpu_parts(f.pixels, FAC_NV_PART_ROWS),
                             (int64_t)c->groups * c->rows };
}

typedef enum kernel_of { WGMMA, MMA, WARPS } kernel_of;

static bool choose(fac_opencl *o, const fac_nv_conv *c, int variant, kernel_of k, fac_nv_tile *t) {
    if (k == MMA) {
        const fac_mma_unit unit = fac_mma_unit_of(o);
        return fac_mma_conv_choose(&unit, c, variant, t);
    }
    return k == WARPS ? fac_nv_warps_choose(&o->limits, c, variant, t)
                      : fac_nv_tile_choose(&o->limits, c, variant, t);
}

static int variants(const fac_nv_conv *c, kernel_of k) {
    return k == MMA     ? fac_mma_conv_variants(c)
           : k == WARPS ? fac_nv_warps_variants(c)
                        : fac_nv_tile_variants(c);
}

/* What make() goes on with. */
typedef struct draft {
    fac_nv_conv c;
    fac_nv_tile t;
} draft;

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const kernel_of k = *(const kernel_of *)p->solver->how;
    fac_opencl *o = fac_opencl_of(d);
    fac_nv_conv c;
    fac_nv_tile t;
    if (!fac_cl_has_path(o, k == WGMMA ? FAC_CL_WGMMA : FAC_CL_MMA) || !fac_nv_conv_read(o, p, &c))
        return false;
    if ((c.pooled && k != WGMMA) || (c.moments && (k != WGMMA || c.phases > 1))) return false;
    if (!choose(o, &c, p->variant, k, &t)) return false;
    const fac_nv_moments m = moments_of(&c);
    offer->work = fac_nv_tile_work(&c, &t) + (c.moments ? fac_nv_moments_bytes(&m) : 0);
    offer->packed[1] = fac_nv_packed_bytes(&c, &t.k);
    if (offer->work > (size_t)1 << 30 || !offer->packed[1]) return false;
    const bool fitted = k == WGMMA && c.mode == FAC_NV_TF32;
    const double moved =
        fac_nv_conv_bytes(p) / (fitted ? fac_nv_speeds.memory : fac_nv_speeds.memory_unfitted);
    offer->seconds = fac_nv_both(t.seconds, moved, fitted ? 2 : INFINITY);
    offer->seconds += fac_nv_speeds.rows_launch + fac_nv_speeds.launch * (c.phases - 1) +
                      c.moments * fac_nv_speeds.joining;
    if (p->in[1].time == FAC_RUN)
        offer->seconds +=
            fac_nv_speeds.pack_launch + 2 * (double)offer->packed[1] / fac_nv_speeds.pack;
    if (k == MMA) offer->seconds *= fac_mma_handicap(o);
    offer->version = VERSION;
    offer->variants = variants(&c, k);
    *FAC_DRAFT(offer, draft) = (draft){ c, t };
    return true;
}

static void done(fac_device *d, void *arg) {
    plan *q = arg;
    if (!q) return;
    fac_nv_rows_free(d, &q->r);
    fac_cl_kernel_free(fac_opencl_of(d), &q->pack);
    fac_cl_kernel_free(fac_opencl_of(d), &q->moments);
    fac_release(q);
}

static fac_status build(fac_device *d, const fac_problem *p, plan *q, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    const draft *settled = p->draft;
    q->r.c = settled->c;
    q->r.t = settled->t;
    FAC_TRY(fac_nv_pack_make(o, &q->r.c, &q->r.t.k, &q->pack, err));
    const fac_nv_moments m = moments_of(&q->r.c);
    if (q->r.c.moments) FAC_TRY(fac_nv_moments_make(o, &q->r.c, &m, &q->moments, err));
    return fac_nv_rows_make(d, &q->r, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    fac_status status = build(d, p, q, err);
    return fac_solver_made(status, d, q, done, out);
}

static uint64_t pack_key(const void *arg, int input) {
    const plan *q = arg;
    return fac_nv_pack_key(&q->r.c, &q->r.t.k, input);
}

fac_nv_weights fac_nv_rows_weights(const void *arg) {
    const plan *q = arg;
    return (fac_nv_weights){ &q->r.c, &q->r.c, &q->r.t.k };
}

static fac_status pack(const void *arg, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *q = arg;
    (void)input;
    return fac_nv_pack_run(fac_opencl_of(d), &q->r.c, &q->r.t.k, &q->pack, from, to, err);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *q = arg;
    fac_opencl *o = fac_opencl_of(d);
    FAC_TRY(fac_nv_rows_run(o, &q->r, q->r.c.g.N, in[0], in[1], out[0], in, work, err));
    if (!q->r.c.moments) return FAC_OK;
    const fac_nv_moments m = moments_of(&q->r.c);
    const fac_span from = { work.memory, work.at + fac_nv_tile_work(&q->r.c, &q->r.t) };
    return fac_nv_moments_run(o, &q->r.c, &m, &q->moments, from, in, out, err);
}

const fac_solver fac_cl_conv_wgmma = { .name = "conv/wgmma",
                                       .rank = 460,
                                       .how = &(const kernel_of){ WGMMA },
                                       .offer = offer,
                                       .make = make,
                                       .done = done,
                                       .pack_key = pack_key,
                                       .pack = pack,
                                       .run = run };
const fac_solver fac_cl_conv_mma = { .name = "conv/mma",
                                     .rank = 500,
                                     .how = &(const kernel_of){ MMA },
                                     .offer = offer,
                                     .make = make,
                                     .done = done,
                                     .pack_key = pack_key,
                                     .pack = pack,
                                     .run = run };
const fac_solver fac_cl_conv_warps = { .name = "conv/warps",
                                       .rank = 520,
                                       .how = &(const kernel_of){ WARPS },
                                       .offer = offer,
                                       .make = make,
                                       .done = done,
                                       .pack_key = pack_key,
                                       .pack = pack,
                                       .run = run };
