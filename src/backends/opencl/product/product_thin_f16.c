/* product/thin_f16: few rows times a matrix that does not change, where TF32 is allowed: the matrix
 * is kept in f16, which has as many bits as TF32, each of its columns scaled by a power of two.
 * Such a product is as long as the matrix' way from memory, which is half as long then; the rows
 * stay what they are, so that errors are below those of TF32's own products. */
#include "backends/draft.h"
#include "backends/opencl/product/gemm.h"
#include "backends/gpu/speed.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/tensor_internal.h"
#include "cl_gemm_pack_f16.h"

enum { ITEMS = 64, EIGHT = 8 };

/* As gemm_pack_f16.cl has it. */
typedef struct packing {
    int64_t N, K, padded, from, to, row, column;
} packing;

typedef struct plan {
    fac_gpu_product r;
    int64_t row, column; /* steps of the matrix as it is packed from */
    fac_cl_gemm g;
    fac_cl_kernel pack;
} plan;

static bool read(const fac_opencl *o, const fac_problem *p, plan *q) {
    fac_gpu_shape *s = &q->r.s;
    if (!o->limits.gpu) return false;
    if (p->precision != FAC_PRECISION_HIGH && p->precision != FAC_PRECISION_MEDIUM) return false;
    if (!fac_cl_product_read(o, p, &q->r) || q->r.dtype != FAC_F32 || s->batch != 1 || !s->K ||
        p->variant)
        return false;
    q->row = s->b.row;
    q->column = s->b.column;
    q->r.b_f16 = true;
    s->b = (fac_gpu_matrix){ .row = 1, .column = (s->K + EIGHT - 1) / EIGHT * EIGHT };
    return true;
}

/* What make() goes on with. */
typedef struct draft {
    plan q;
    fac_gpu_tile t;
} draft;

static bool offer(fac_device *d, fac_problem *p, fac_offer *offer) {
    fac_opencl *o = fac_opencl_of(d);
    plan q = { .row = 0 };
    fac_gpu_tile t;
    for (int i = 0; i < p->nin; i++) /* blocks are not for matrices, and what is packed is plain */
        if (i == 1 || p->in[i].layout.block)
            p->in[i].layout = fac_layout_plain(&p->in[i].type.dims);
    if (!read(o, p, &q) || !fac_gpu_tile_choose(&o->limits, &q.r, FAC_GPU_THIN, &t)) return false;
    offer->seconds = t.seconds;
    offer->version = FAC_GPU_TILE_VERSION;
    if (p->in[1].time == FAC_RUN)
        offer->seconds += fac_gpu_costs.second_launch + 1.5 *
                                                            (double)fac_type_bytes(&p->in[1].type) /
                                                            fac_gpu_bandwidth(&o->limits);
    *FAC_DRAFT(offer, draft) = (draft){ q, t };
    offer->work = fac_gpu_tile_work(&t, &q.r);
    offer->packed[1] =
        (size_t)(q.r.s.N * (q.r.s.b.column * (int64_t)sizeof(cl_half) + (int64_t)sizeof(cl_float)));
    return true;
}

static void done(fac_device *d, void *arg) {
    plan *q = arg;
    if (q) fac_cl_gemm_free(fac_opencl_of(d), &q->g);
    if (q) fac_cl_kernel_free(fac_opencl_of(d), &q->pack);
    fac_release(q);
}

static fac_status make_pack(fac_opencl *o, plan *q, fac_error *err) {
    fac_text text = { 0 };
    fac_text_print(&text, "#define ITEMS %d\n%s", ITEMS, fac_kernel_gemm_pack_f16);
    fac_status status = text.failed ? fac_raise_memory(err, "the text of a kernel")
                                    : fac_cl_kernel_new(o, text.s, "", "pack", &q->pack, err);
    fac_text_free(&text);
    return status;
}

static fac_status make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    fac_opencl *o = fac_opencl_of(d);
    const draft *settled = p->draft;
    plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    *q = settled->q;
    fac_status status = make_pack(o, q, err);
    if (!status) status = fac_cl_gemm_make(o, &q->r, &settled->t, &q->g, err);
    return fac_solver_made(status, d, q, done, out);
}

static uint64_t pack_key(const void *arg, int input) {
    const plan *q = arg;
    return fac_hash_int(fac_hash_int(fac_hash_start((uint64_t)input), (uint64_t)q->row),
                        (uint64_t)q->column)
        .a;
}

static fac_status pack(const void *arg, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err) {
    const plan *q = arg;
    fac_opencl *o = fac_opencl_of(d);
    const fac_gpu_shape *s = &q->r.s;
    const packing a = { s->N,
                        s->K,
                        s->b.column,
                        (int64_t)(fac_cl_at(from) / sizeof(cl_float)),
                        (int64_t)(fac_cl_at(to) / sizeof(cl_half)),
                        q->row,
                        q->column };
    const int64_t most = (int64_t)o->limits.units * 32, groups = s->N < most ? s->N : most;
    const fac_cl_range range = { 1, { (size_t)groups * ITEMS }, { ITEMS } };
    const fac_cl_arg args[] = { fac_cl_arg_value(&a, sizeof a), fac_cl_arg_span(from),
                                fac_cl_arg_span(to) };
    (void)input;
    return fac_cl_launch(o, &q->pack, &range, 3, args, err);
}

static fac_status run(const void *arg, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err) {
    const plan *q = arg;
    fac_cl_operands x = { .a = in[0], .b = in[1], .y = out[0], .work = work };
    for (int i = 0; i < q->r.extras; i++) x.e[i] = in[q->r.input[i]];
    return fac_cl_gemm_run(fac_opencl_of(d), &q->g, &q->r.s, &x, err);
}

const fac_solver fac_cl_product_thin_f16 = { .name = "product/thin_f16",
                                             .rank = 420,
                                             .offer = offer,
                                             .make = make,
                                             .done = done,
                                             .pack_key = pack_key,
                                             .pack = pack,
                                             .run = run };
