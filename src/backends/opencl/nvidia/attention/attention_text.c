/* The texts of the kernels of attention, and how they are cut: see attention.h. */
#include <stdio.h>
#include "backends/opencl/nvidia/attention/attention.h"
#include "base/error.h"
#include "cl_nv_attention.h"
#include "cl_nv_attention_block.h"
#include "cl_nv_attention_delta.h"
#include "cl_nv_attention_grad.h"
#include "cl_nv_attention_grad_keys.h"
#include "cl_nv_attention_grad_queries.h"
#include "cl_nv_attention_softmax.h"
#include "cl_nv_attention_tiles.h"
#include "cl_nv_common.h"
#include "cl_nv_maps.h"

enum { PACKERS = 256 };

static const char *const names[] = {
    [FAC_NV_3XTF32] = "tf32", [FAC_NV_TF32] = "tf32", [FAC_NV_BF16] = "bf16", [FAC_NV_F16] = "f16"
};

/* ---- how ---- */

/* Registers of an item that multiplies, where four warps more give theirs away: 65,536 are there
 * for all.  The one that asks for operands of gradients needs 40 itself, unless two wide sums leave
 * it no more than 24. */
static int registers_of(const fac_nv_attention *a, fac_nv_attention_kernel kernel,
                        const fac_nv_attention_cut *cut) {
    if (cut->groups == 3) return 160;
    return kernel == FAC_NV_KEYS && a->d + a->e <= 192 ? 232 : 240;
}

void fac_nv_attention_range(const fac_opencl *o, const fac_nv_attention_cut *cut, int64_t rows,
                            int64_t heads, fac_cl_call *c) {
    const int64_t all = fac_gpu_parts(rows, 64 * cut->groups) * heads, units = o->limits.units;
    const size_t items = (size_t)(128 * (cut->groups + 1));
    fac_cl_call_number(c, all);
    fac_cl_call_items(c, items * (size_t)(all < units ? all : units), items);
}

/* ---- texts ---- */

static void define(fac_text *to, const char *name, int value) {
    fac_text_print(to, "#define %s %d\n", name, value);
}

void fac_nv_attention_types(const fac_nv_attention *a, fac_text *to) {
    const fac_dtype mask = a->mask.type == FAC_NONE ? FAC_F32 : a->mask.type;
    fac_text_print(to, "#define KIND %s\n#define X %s\n#define M %s\n", names[a->mode],
                   fac_cl_tag(a->dtype), fac_cl_tag(mask));
    if (mask == FAC_BOOL) fac_text_add(to, "#define BOOLS\n");
    if (a->dtype != FAC_F32) fac_text_add(to, "#define SAME\n");
    if (a->mode == FAC_NV_3XTF32) fac_text_add(to, "#define SPLIT\n");
}

void fac_nv_attention_forms(const fac_nv_attention *a, fac_text *to) {
    if (a->causal) fac_text_add(to, "#define CAUSAL\n");
    if (a->mask.type != FAC_NONE) fac_text_add(to, "#define MASKED\n");
    if (a->y.pairs) fac_text_add(to, "#define PAIRS\n");
    if (a->chunks) fac_text_add(to, "#define CHUNKS\n");
}

/* One product of the kernel as a macro NAME(d, a, b, i).  scores: of operands in local memory, step
 * i = 0 begins the sum.  Else with a in registers and b lying along its rows, which for TF32 means
 * transposed images; sums go on from block to block unless the numbers have two parts. */
static void add_product(const fac_nv_attention *a, const char *name, int n, bool scores,
                        fac_text *to) {
    static const fac_nv_kind kinds[] = { [FAC_NV_3XTF32] = FAC_NV_KIND_TF32,
                                         [FAC_NV_TF32] = FAC_NV_KIND_TF32,
                                         [FAC_NV_BF16] = FAC_NV_KIND_BF16,
                                         [FAC_NV_F16] = FAC_NV_KIND_F16 };
    const fac_nv_kind kind = kinds[a->mode];
    const bool transposed = !scores && kind != FAC_NV_KIND_TF32,
               begins = scores || a->mode == FAC_NV_3XTF32;
    int how = scores ? 0 : FAC_NV_A_REGISTERS;
    if (transposed) how |= FAC_NV_B_TRANSPOSED;
    char call[64];
    snprintf(call, sizeof call, "wgmma_%s_n%d_%s%s", names[a->mode], n, scores ? "ss" : "rs",
             transposed ? "_tb" : "");
    fac_nv_wgmma_text(to, n, kind, how);
    if (begins) fac_nv_wgmma_text(to, n, kind, how | FAC_NV_FIRST);
    if (begins)
        fac_text_print(to, "#define %s(d, a, b, i) ((i) ? %s(d, a, b) : %s_first(d, a, b))\n", name,
                       call, call);
    else
        fac_text_print(to, "#define %s(d, a, b, i) %s(d, a, b)\n", name, call);
}

/* WAITk_x(d) by name; shapes of one size share the function. */
static void add_waits(const char *name, int n, bool again, fac_text *to) {
    for (int left = 0; left < 2; left++) {
        if (!again) fac_nv_wgmma_wait_text(to, n, left);
        fac_text_print(to, "#define WAIT%d_%s(d) wgmma_wait%d_n%d(d)\n", left, name, left, n);
    }
}

static void add_sum(const fac_nv_attention *a, const char *name, int n, bool again, fac_text *to) {
    if (!again)
        add_product(a, name, n, false, to);
    else
        fac_text_print(to, "#define %s SUM_D\n", name);
}

void fac_nv_attention_text(const fac_nv_attention *a, fac_nv_attention_kernel kernel,
                           const fac_nv_attention_cut *cut, bool lse, fac_text *to) {
    static const char *const which[] = { "FORWARD", "DELTA", "KEYS", "QUERIES" };
    const bool forward = kernel == FAC_NV_FORWARD;
    fac_text_print(to, "#define %s\n", which[kernel]);
    fac_nv_attention_types(a, to);
    define(to, "D", a->d);
    define(to, "E", a->e);
    define(to, "BLOCK", cut->block);
    define(to, "GROUPS", cut->groups);
    define(to, "REGISTERS", registers_of(a, kernel, cut));
    define(to, "STAGES", cut->stages);
    define(to, "STAGES_T", cut->transposed_stages);
    define(to, "TILE", fac_nv_grad_tile(a));
    if (a->maps && kernel != FAC_NV_DELTA) define(to, "MAPS", a->maps);
    fac_nv_attention_forms(a, to);
    if (forward ? a->q.aligned : kernel == FAC_NV_DELTA && a->y.chunks)
        fac_text_add(to, "#define ALIGNED\n");
    if (lse) fac_text_add(to, "#define LSE\n");
    fac_text_add(to, fac_kernel_nv_common);
    if (kernel != FAC_NV_DELTA) {
        add_product(a, "SCORES", cut->block, true, to);
        add_waits("S", cut->block, false, to);
        if (!forward)
            add_sum(a, "SUM_D", a->d, false, to), add_waits("D", a->d, a->d == cut->block, to);
        if (kernel != FAC_NV_QUERIES) {
            add_sum(a, "SUM_E", a->e, !forward && a->e == a->d, to);
            add_waits("E", a->e, a->e == cut->block || (!forward && a->e == a->d), to);
        }
    }
    if (a->maps && kernel != FAC_NV_DELTA) fac_text_add(to, fac_kernel_nv_maps);
    fac_text_add(to, fac_kernel_nv_attention_tiles);
    if (forward) fac_text_add(to, fac_kernel_nv_attention_softmax);
    if (forward) fac_text_add(to, fac_kernel_nv_attention_block);
    if (forward) fac_text_add(to, fac_kernel_nv_attention);
    if (kernel == FAC_NV_DELTA) fac_text_add(to, fac_kernel_nv_attention_delta);
    if (kernel == FAC_NV_KEYS || kernel == FAC_NV_QUERIES)
        fac_text_add(to, fac_kernel_nv_attention_grad);
    if (kernel == FAC_NV_KEYS) fac_text_add(to, fac_kernel_nv_attention_grad_keys);
    if (kernel == FAC_NV_QUERIES) fac_text_add(to, fac_kernel_nv_attention_grad_queries);
}

/* ---- images ---- */

void fac_nv_images_text(const fac_nv_attention *a, const fac_nv_images *m, fac_text *to) {
    fac_text_add(to, "#define PACK\n");
    fac_nv_attention_types(a, to);
    define(to, "ROWS", m->tile);
    define(to, "SIZE", m->wide);
    if (m->transposed) fac_text_add(to, "#define TRANSPOSED\n");
    if (m->from.aligned) fac_text_add(to, "#define ALIGNED\n");
    fac_text_add(to, fac_kernel_nv_common);
    fac_text_add(to, fac_kernel_nv_attention_tiles);
}

fac_status fac_nv_images_add(fac_opencl *o, const fac_problem *p, fac_cl_plan *plan,
                             const fac_nv_attention *a, const fac_nv_images *m, int input,
                             fac_error *err) {
    fac_cl_call *c = NULL;
    fac_text text = { 0 };
    fac_nv_images_text(a, m, &text);
    const fac_status status = fac_cl_call_text(o, plan, &text, "", "pack", &c, err);
    fac_text_free(&text);
    FAC_TRY(status);
    fac_cl_call_in(c, p, input);
    fac_cl_call_work(c, m->at, 16);
    const int64_t numbers[] = { m->from.heads, m->from.rows, m->tiles, m->from.size };
    for (int k = 0; k < 4; k++) fac_cl_call_number(c, numbers[k]);
    fac_nv_heads_numbers(&m->from, c);
    const int64_t parts = a->mode == FAC_NV_3XTF32 ? 2 : 1; /* both by one item */
    const size_t items =
        (size_t)fac_gpu_parts(fac_nv_images_pieces(a, m) / parts, PACKERS) * PACKERS;
    c->range = (fac_cl_range){ 3,
                               { items, (size_t)m->tiles, (size_t)(a->B * m->from.heads) },
                               { PACKERS, 1, 1 } };
    return FAC_OK;
}
