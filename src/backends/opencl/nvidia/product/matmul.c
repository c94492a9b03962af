/* product/wgmma: matmul, linear and gemm of f32, bf16 and f16 on NVIDIA's wgmma; product/mma: on
 * mma.sync.  See matmul.h. */
#include <stddef.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/opencl/nvidia/product/matmul.h"
#include "backends/opencl/nvidia/unit/mma.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/table.h"
#include "tensor/tensor_internal.h"

enum { VERSION = 1, ITEMS = 384, PACKERS = 256 };

/* As the kernels have them. */
typedef struct tiling {
    int64_t p_at, q_at, p_step, q_step, p_z[FAC_GPU_BATCH], q_z[FAC_GPU_BATCH];
    int32_t rows, columns, row_tiles, column_tiles, k_tiles, each, band, all, parts, unused;
    int64_t parts_at, counters_at;
} tiling;
typedef struct packing {
    int64_t at, row, term, z[FAC_GPU_BATCH], to;
    int32_t size[FAC_GPU_BATCH], rows, terms, k_tiles, blocks;
} packing;

typedef struct plan {
    fac_nv_matmul m;
    fac_cl_gemm g;                  /* sizes of elements */
    fac_cl_kernel product, pack[2]; /* pack: of p, of q */
    fac_span counters; /* of the parts of each tile that are done; zero between launches */
} plan;

static bool read(fac_opencl *o, fac_problem *p, bool mma, fac_nv_matmul *m) {
    fac_gpu_product r;
    bool before_run[2];
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].layout.block) p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
    for (int i = 0; i < 2; i++) {
        before_run[i] = p->in[i].time != FAC_RUN;
        if (before_run[i])
            p->in[i].layout = fac_layout_plain(&p->in[i].type.dims); /* what pack() reads */
    }
    if (!fac_cl_product_read(o, p, &r)) return false;
    if (!mma) return fac_nv_matmul_read(&o->limits, &r, p->precision, before_run, p->variant, m);
    const fac_mma_unit unit = fac_mma_unit_of(o);
    return fac_mma_matmul_read(&unit, &r, p->precision, before_run, p->variant, m);
}

static int variants_of_mma(fac_opencl *o, const fac_nv_matmul *m) {
    const fac_mma_unit unit = fac_mma_unit_of(o);
    return fac_mma_matmul_variants(&unit, m);
}

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    const bool mma = *(const bool *)p->solver->how;
    fac_opencl *o = fac_opencl_of(d);
    fac_nv_matmul m;
    if (!fac_cl_has_path(o, mma ? FAC_CL_MMA : FAC_CL_WGMMA) || !read(o, p, mma, &m)) return false;
    offer->seconds = m.seconds * (mma ? fac_mma_handicap(o) : 1);
    offer->work = m.work;
    *FAC_DRAFT(offer, fac_nv_matmul) = m;
    if (m.p.packed) offer->packed[m.p.input] = m.p.bytes;
    if (m.q.packed) offer->packed[m.q.input] = m.q.bytes;
    offer->variants = mma ? variants_of_mma(o, &m) : fac_nv_matmul_variants(&m);
    offer->version = VERSION;
    return true;
}

static size_t counter_bytes(const fac_nv_matmul *m) {
    return m->parts > 1 ? (size_t)m->tiles * sizeof(uint32_t) : 0;
}

static void done(fac_device *d, void *arg) {
    fac_opencl *o = fac_opencl_of(d);
    plan *q = arg;
    if (!q) return;
    fac_cl_gemm_free(o, &q->g);
    fac_cl_kernel_free(o, &q->product);
    for (int i = 0; i < 2; i++) fac_cl_kernel_free(o, &q->pack[i]);
    fac_device_release(d, q->counters.memory, counter_bytes(&q->m));
    fac_release(q);
}

static fac_status kernel_of(fac_opencl *o, bool good, fac_text *text, const char *options,
                            const char *name, fac_cl_kernel *to, fac_error *err) {
    fac_status status = good ? fac_cl_kernel_new(o, text->s, options, name, to, err)
                             : fac_raise_memory(err, "the text of a kernel");
    fac_text_free(text);
    return status;
}

static fac_status build(fac_opencl *o, const fac_problem *p, plan *q, fac_error *err) {
    q->m = *(const fac_nv_matmul *)p->draft;
    const fac_nv_matmul *m = &q->m;
    const fac_nv_side *const sides[] = { &m->p, &m->q };
    const char *options = fac_cl_options(&m->r);
    fac_text text = { 0 };
    FAC_TRY(fac_cl_sum_make(o, &m->r, false, &q->g, err));
    if (m->parts > 1) {
        FAC_TRY(fac_device_alloc(&o->device, counter_bytes(m), &q->counters.memory, err));
        FAC_TRY(o->device.backend->zero(&o->device, q->counters, counter_bytes(m), err));
    }
    for (int i = 0; i < 2; i++) {
        if (sides[i]->from != FAC_NV_IMAGES) continue;
        const bool good = fac_nv_matmul_pack_text(m, sides[i], &text);
        FAC_TRY(kernel_of(o, good, &text, options, "pack", &q->pack[i], err));
    }
    const bool good = fac_nv_matmul_text(m, o->limits.fp64, &text);
    return kernel_of(o, good, &text, options, "product", &q->product, err);
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    fac_status status = build(fac_opencl_of(d), p, q, err);
    return fac_solver_made(status, d, q, done, out);
}

/* ---- images ---- */

static uint64_t pack_key(const void *arg, int input) {
    const plan *q = arg;
    const fac_nv_side *s = q->m.p.input == input ? &q->m.p : &q->m.q;
    fac_hash h = fac_hash_int(fac_hash_start((uint64_t)input),
                              (uint64_t)s->tile << 32 | (uint64_t)s->make << 8 | s->permuted);
    h = fac_hash_int(h, (uint64_t)q->m.mode << 32 | (uint64_t)q->m.r.dtype);
    h = fac_hash_int(fac_hash_int(h, (uint64_t)s->row), (uint64_t)s->term);
    for (int k = 0; k < FAC_GPU_BATCH; k++)
        h = fac_hash_int(fac_hash_int(h, (uint64_t)s->z[k]), (uint64_t)s->size[k]);
    return h.a;
}

static fac_status make_images(fac_opencl *o, const plan *q, const fac_nv_side *s, fac_span from,
                              fac_span to, fac_error *err) {
    const fac_nv_matmul *m = &q->m;
    packing w = { .at = s->at + (int64_t)(fac_cl_at(from) / q->g.element),
                  .row = s->row,
                  .term = s->term,
                  .to = (int64_t)(fac_cl_at(to) / 16),
                  .rows = (int32_t)s->rows,
                  .terms = (int32_t)m->r.s.K,
                  .k_tiles = (int32_t)m->k_tiles,
                  .blocks = (int32_t)s->blocks };
    const size_t lines = (size_t)fac_nv_matmul_lines(s->tile);
    size_t matrices = 1;
    for (int k = 0; k < FAC_GPU_BATCH; k++) {
        w.z[k] = s->z[k];
        w.size[k] = (int32_t)s->size[k];
        matrices *= (size_t)s->size[k];
    }
    const fac_cl_range range = { 3,
                                 { (size_t)m->k_tiles * PACKERS,
                                   (size_t)(s->blocks * s->tile) / lines, matrices },
                                 { PACKERS, 1, 1 } };
    const fac_cl_arg args[] = { fac_cl_arg_value(&w, sizeof w), fac_cl_arg_span(from),
                                fac_cl_arg_span(to) };
    return fac_cl_launch(o, &q->pack[s == &m->q], &range, 3, args, err);
}

static fac_status pack(const void *arg, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *q = arg;
    return make_images(fac_opencl_of(d), q, q->m.p.input == input ? &q->m.p : &q->m.q, from, to,
                       err);
}

/* ---- a run ---- */

/* Where the kernel finds an operand, in its elements: the matrix where it lies, or images.  Returns
 * the span that they are in. */
static fac_span find(const plan *q, const fac_nv_side *s, fac_span in, fac_span work, int64_t *at,
                     int64_t *step, int64_t *z) {
    const size_t element = fac_nv_terms(&q->m) == 64 ? 2 : 4;
    if (s->from != FAC_NV_IMAGES) {
        *at = s->at + (int64_t)(fac_cl_at(in) / element);
        *step = s->from == FAC_NV_ROWS ? s->row : s->term;
        memcpy(z, s->z, sizeof s->z);
        return in;
    }
    if (!s->packed) in = (fac_span){ work.memory, work.at + s->place };
    *at = (int64_t)(fac_cl_at(in) / element);
    int64_t each = (int64_t)(s->matrix / element);
    for (int k = FAC_GPU_BATCH - 1; k >= 0; k--) {
        z[k] = s->size[k] > 1 ? each : 0;
        each *= s->size[k];
    }
    return in;
}

static fac_status launch(fac_opencl *o, const plan *q, fac_span p, fac_span b, fac_span work,
                         const tiling *w, const fac_gpu_shape *s, const fac_cl_operands *x,
                         fac_error *err) {
    const fac_nv_matmul *m = &q->m;
    const int extras = m->r.extras;
    fac_nv_ends ends = m->ends;
    fac_cl_arg args[8 + FAC_GPU_EXTRAS];
    int n = 0;
    args[n++] = fac_cl_arg_value(s, offsetof(fac_gpu_shape, e) +
                                        (size_t)(extras ? extras : 1) * sizeof *s->e);
    args[n++] = fac_cl_arg_value(w, sizeof *w);
    if (m->fours) {
        ends.p[0].at = s->y.at;
        for (int i = 0; i < extras; i++) ends.p[1 + i].at = s->e[i].at;
        args[n++] = fac_cl_arg_value(&ends, fac_nv_ends_bytes(&m->r));
    }
    args[n++] = fac_cl_arg_span(p);
    args[n++] = fac_cl_arg_span(b);
    args[n++] = fac_cl_arg_span(x->y);
    if (m->parts > 1) {
        args[n++] = fac_cl_arg_span(work);
        args[n++] = fac_cl_arg_span(q->counters);
    }
    for (int i = 0; i < extras; i++) args[n++] = fac_cl_arg_span(x->e[i]);
    /* on wgmma groups stay and take one job after the other */
    const size_t slots = (size_t)o->limits.units * (size_t)m->cut.groups, jobs = (size_t)w->all,
                 groups = m->mma || jobs < slots ? jobs : slots,
                 items = m->mma ? (size_t)fac_mma_matmul_items(m) : ITEMS;
    const fac_cl_range range = { 1, { groups * items }, { items } };
    return fac_cl_launch(o, &q->product, &range, n, args, err);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *q = arg;
    const fac_nv_matmul *m = &q->m;
    fac_opencl *o = fac_opencl_of(d);
    const fac_nv_side *const sides[] = { &m->p, &m->q };
    for (int i = 0; i < 2; i++)
        if (sides[i]->from == FAC_NV_IMAGES && !sides[i]->packed)
            FAC_TRY(make_images(o, q, sides[i], in[sides[i]->input],
                                (fac_span){ work.memory, work.at + sides[i]->place }, err));
    fac_cl_operands x = { .y = out[0] };
    for (int i = 0; i < m->r.extras; i++) x.e[i] = in[m->r.input[i]];
    const fac_gpu_shape s = fac_cl_placed(&q->g, &m->r.s, &x);
    tiling w = { .rows = (int32_t)m->p.rows,
                 .columns = (int32_t)m->q.rows,
                 .row_tiles = (int32_t)m->row_tiles,
                 .column_tiles = (int32_t)m->column_tiles,
                 .k_tiles = (int32_t)m->k_tiles,
                 .each = (int32_t)m->each,
                 .band = (int32_t)m->band,
                 .all = (int32_t)(m->tiles * m->parts),
                 .parts = (int32_t)m->parts };
    if (m->parts > 1) {
        w.parts_at = (int64_t)((fac_cl_at(work) + m->parts_at) / sizeof(float));
        w.counters_at = (int64_t)(fac_cl_at(q->counters) / sizeof(uint32_t));
    }
    const fac_span p = find(q, &m->p, in[m->p.input], work, &w.p_at, &w.p_step, w.p_z),
                   b = find(q, &m->q, in[m->q.input], work, &w.q_at, &w.q_step, w.q_z);
    return launch(o, q, p, b, work, &w, &s, &x, err);
}

const fac_solver fac_cl_matmul_wgmma = { .name = "product/wgmma",
                                         .rank = 360,
                                         .how = &(const bool){ false },
                                         .offer = offer,
                                         .make = make,
                                         .done = done,
                                         .pack_key = pack_key,
                                         .pack = pack,
                                         .run = run };
const fac_solver fac_cl_matmul_mma = { .name = "product/mma",
                                       .rank = 370,
                                       .how = &(const bool){ true },
                                       .offer = offer,
                                       .make = make,
                                       .done = done,
                                       .pack_key = pack_key,
                                       .pack = pack,
                                       .run = run };
