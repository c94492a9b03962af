/* Kernels of products, made and launched: see gemm.h. */
#include <stddef.h>
#include <limits.h>
#include <string.h>
#include "backends/opencl/product/gemm.h"
#include "backends/opencl/device/probe.h"
#include "base/error.h"
#include "tensor/tensor_internal.h"
#include "cl_gemm_common.h"
#include "cl_gemm_sum.h"
#include "cl_gemm_thin.h"
#include "cl_gemm_tile.h"
#include "cl_gemm_vector.h"

static void add_flags(const fac_gpu_product *r, fac_text *to) {
    if (r->right != FAC_GPU_MATRIX)
        fac_text_print(to, "#define %s\n", r->right == FAC_GPU_TAPS ? "TAPS" : "PATCHES");
    if (r->split_k) fac_text_add(to, "#define SPLIT_K\n");
    if (r->deep) fac_text_add(to, "#define DEEP\n");
    if (r->places) fac_text_add(to, "#define PLACES\n");
    if (r->panel) fac_text_add(to, "#define PANELS\n");
}

/* Columns side by side may be of several images. */
static bool is_far(const fac_gpu_product *r, int columns) {
    const double images = (double)columns / (double)r->s.inner_n + 2;
    return images * (double)r->s.b.outer > INT_MAX;
}

static void add_tile(const fac_gpu_product *r, const fac_gpu_tile *t, fac_text *to) {
    if (t->splits > 1) fac_text_add(to, "#define PARTIAL\n");
    if (t->blocks) fac_text_add(to, "#define BLOCKS\n");
    if (t->way == FAC_GPU_THIN) {
        fac_text_print(to,
                       "#define MR %d\n#define CN %d\n#define V %d\n#define L %d\n#define ITEMS "
                       "%d\n#define ACROSS %d\n"
                       "#define AHEAD %d\n",
                       t->TM, t->RN, t->VB, t->lanes, t->items, t->items / t->lanes, t->ahead);
        if (t->b_along_n) fac_text_add(to, "#define ALONG_N\n");
        if (t->aligned) fac_text_add(to, "#define ALIGNED\n");
        if (r->b_f16) fac_text_add(to, "#define B_F16\n");
        return;
    }
    if (t->way == FAC_GPU_VECTOR) {
        fac_text_print(
            to, "#define MB %d\n#define MR %d\n#define NV %d\n#define VW %d\n#define KC %d\n",
            t->TM, t->RM, t->RN, t->VB, t->TK);
        if (r->right == FAC_GPU_PATCHES)
            fac_text_print(to, "#define REACH %s\n", is_far(r, t->RN * t->VB) ? "long" : "int");
        return;
    }
    fac_text_print(to,
                   "#define TM %d\n#define TN %d\n#define TK %d\n#define RM %d\n#define RN %d\n",
                   t->TM, t->TN, t->TK, t->RM, t->RN);
    fac_text_print(
        to,
        "#define VA %d\n#define VB %d\n#define VY %d\n#define A_ALONG_M %d\n#define B_ALONG_N %d\n",
        t->VA, t->VB, t->VY, t->a_along_m, t->b_along_n);
}

static const char *const kernels[FAC_GPU_WAYS] = { fac_kernel_gemm_tile, fac_kernel_gemm_vector,
                                                   fac_kernel_gemm_thin };

static fac_status build(fac_opencl *o, const fac_gpu_product *r, const fac_gpu_tile *t, bool sum,
                        fac_cl_kernel *out, fac_error *err) {
    fac_text text = { 0 }, options = { 0 };
    fac_gpu_product p = *r;
    p.half =
        !sum && t->way == FAC_GPU_TILED && r->dtype == FAC_F16 && fac_cl_has_path(o, FAC_CL_HALF);
    fac_text_add(&options, fac_cl_options(r));
    bool good = sum || !r->quads || fac_cl_dot_text(o, &text, &options);
    if (!sum && t->way == FAC_GPU_THIN) fac_cl_exchange_text(o, &text, &options);
    good &= fac_cl_finish_text(&p, o->limits.fp64, !sum && t->splits > 1, &text);
    add_flags(r, &text);
    if (!sum) add_tile(r, t, &text);
    if (!sum && t->once && fac_cl_has_path(o, FAC_CL_MMA))
        fac_text_add(&text, "#define ONCE\n"); /* which is inline PTX */
    fac_text_add(&text, fac_kernel_gemm_common);
    fac_text_add(&text, sum ? fac_kernel_gemm_sum : kernels[t->way]);
    const char *name = sum ? "sum_parts" : "product";
    fac_status status = good && !text.failed && !options.failed
                            ? fac_cl_kernel_new(o, text.s, options.s, name, out, err)
                            : fac_raise_memory(err, "the text of a kernel");
    fac_text_free(&options);
    fac_text_free(&text);
    return status;
}

static void describe(const fac_gpu_product *r, const fac_gpu_tile *t, fac_cl_gemm *out) {
    memset(out, 0, sizeof *out);
    out->tile = *t;
    out->element = (size_t)fac_dtype_get(r->dtype)->block_bytes;
    out->element_b = r->b_f16 ? sizeof(cl_half) : out->element;
    out->result = (size_t)fac_dtype_get(r->result)->block_bytes;
    out->sums = fac_gpu_sum_bytes(r->dtype);
    out->extras = r->extras;
    out->right = r->right;
    out->places = r->places;
    for (int i = 0; i < r->extras; i++)
        out->extra[i] = (size_t)fac_dtype_get(r->extra_dtype[i])->block_bytes;
}

fac_status fac_cl_gemm_make(fac_opencl *o, const fac_gpu_product *r, const fac_gpu_tile *t,
                            fac_cl_gemm *out, fac_error *err) {
    describe(r, t, out);
    fac_status status = build(o, r, t, false, &out->product, err);
    if (!status && t->splits > 1) status = build(o, r, t, true, &out->sum, err);
    if (status) fac_cl_gemm_free(o, out);
    return status;
}

fac_status fac_cl_sum_make(fac_opencl *o, const fac_gpu_product *r, bool kernel, fac_cl_gemm *out,
                           fac_error *err) {
    const fac_gpu_tile none = { 0 };
    describe(r, &none, out);
    return kernel ? build(o, r, &none, true, &out->sum, err) : FAC_OK;
}

void fac_cl_gemm_free(fac_opencl *o, fac_cl_gemm *g) {
    fac_cl_kernel_free(o, &g->product);
    fac_cl_kernel_free(o, &g->sum);
}

static size_t groups_of(int64_t n, int each) { return (size_t)((n + each - 1) / each); }

static fac_cl_range range_of(const fac_gpu_tile *t, const fac_gpu_shape *s) {
    const size_t batch = (size_t)(s->batch * t->splits);
    if (t->way == FAC_GPU_THIN)
        return (fac_cl_range){ 3,
                               { (size_t)t->items * groups_of(s->N, t->TN), 1, batch },
                               { (size_t)t->items, 1, 1 } };
    if (t->way == FAC_GPU_VECTOR)
        return (fac_cl_range){ 3,
                               { groups_of(s->M, t->TM), groups_of(s->N, t->RN * t->VB), batch },
                               { 1, 1, 1 } };
    const size_t items = (size_t)(t->TM / t->RM * (t->TN / t->RN));
    return (fac_cl_range){ 3,
                           { items * groups_of(s->M, t->TM), groups_of(s->N, t->TN), batch },
                           { items, 1, 1 } };
}

enum { ARGS = 8 + FAC_GPU_EXTRAS };

static int add_extras(const fac_cl_gemm *g, const fac_cl_operands *x, fac_cl_arg *args, int n) {
    if (g->places) args[n++] = fac_cl_arg_span(x->places);
    for (int i = 0; i < g->extras; i++) args[n++] = fac_cl_arg_span(x->e[i]);
    return n;
}

fac_gpu_shape fac_cl_placed(const fac_cl_gemm *g, const fac_gpu_shape *shape,
                            const fac_cl_operands *x) {
    fac_gpu_shape s = *shape;
    if (x->work.memory) s.parts = (int64_t)(fac_cl_at(x->work) / g->sums);
    if (x->taps.memory) s.taps += (int64_t)(fac_cl_at(x->taps) / sizeof(cl_int4));
    if (x->pixels.memory) s.pixels += (int64_t)(fac_cl_at(x->pixels) / sizeof(cl_int4));
    if (x->places.memory) s.places += (int64_t)(fac_cl_at(x->places) / sizeof(cl_int));
    if (x->a.memory) s.a.at += (int64_t)(fac_cl_at(x->a) / g->element);
    if (x->b.memory) s.b.at += (int64_t)(fac_cl_at(x->b) / g->element_b);
    s.y.at += (int64_t)(fac_cl_at(x->y) / g->result);
    for (int i = 0; i < g->extras; i++) s.e[i].at += (int64_t)(fac_cl_at(x->e[i]) / g->extra[i]);
    return s;
}

fac_cl_arg fac_cl_shape_arg(const fac_cl_gemm *g, const fac_gpu_shape *s) {
    return fac_cl_arg_value(s, offsetof(fac_gpu_shape, e) +
                                   (size_t)(g->extras ? g->extras : 1) * sizeof *s->e);
}

fac_status fac_cl_sum_run(fac_opencl *o, const fac_cl_gemm *g, const fac_gpu_shape *shape,
                          const fac_cl_operands *x, fac_error *err) {
    const fac_gpu_shape s = fac_cl_placed(g, shape, x);
    fac_cl_arg args[ARGS] = { fac_cl_shape_arg(g, &s), fac_cl_arg_span(x->work),
                              fac_cl_arg_span(x->y) };
    const int n = add_extras(g, x, args, 3);
    const size_t count = (size_t)(s.batch * s.M * s.N), most = (size_t)o->limits.units * 2048;
    const fac_cl_range range = { 1,
                                 { count < most ? count : most },
                                 { o->limits.group < 256 ? o->limits.group : 256 } };
    return fac_cl_launch(o, &g->sum, &range, n, args, err);
}

fac_status fac_cl_gemm_run(fac_opencl *o, const fac_cl_gemm *g, const fac_gpu_shape *shape,
                           const fac_cl_operands *x, fac_error *err) {
    const fac_gpu_tile *t = &g->tile;
    const bool split = t->splits > 1;
    fac_gpu_shape s = *shape;
    s.splits = t->splits;
    s.each_k = split ? t->each_k : s.K;
    const fac_gpu_shape whole = fac_cl_placed(g, &s, x);
    fac_cl_arg args[ARGS] = { fac_cl_shape_arg(g, &whole), fac_cl_arg_span(x->a),
                              fac_cl_arg_span(x->b), fac_cl_arg_span(split ? x->work : x->y) };
    int n = 4;
    if (g->right != FAC_GPU_MATRIX) {
        args[n++] = fac_cl_arg_span(x->taps);
        args[n++] = fac_cl_arg_span(x->pixels);
    }
    n = add_extras(g, x, args, n);
    const fac_cl_range range = range_of(t, &whole);
    FAC_TRY(fac_cl_launch(o, &g->product, &range, n, args, err));
    return split ? fac_cl_sum_run(o, g, &s, x, err) : FAC_OK;
}
