/* The texts of nv_matmul.cl and nv_matmul_pack.cl: see matmul.h. */
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/nvidia/product/matmul.h"
#include "backends/opencl/nvidia/unit/mma.h"
#include "base/optional.h"
#include "cl_gemm_common.h"
#include "cl_nv_common.h"
#include "cl_nv_epilogue.h"
#include "cl_nv_matmul.h"
#include "cl_nv_matmul_jobs.h"
#include "cl_nv_matmul_pack.h"
#include "cl_nv_mma_matmul.h"

enum { PROMOTE = 4 }; /* k-tiles of 32 terms that the units may add up by themselves */

static fac_nv_kind kind_of(fac_nv_mode m) {
    return m == FAC_NV_BF16  ? FAC_NV_KIND_BF16
           : m == FAC_NV_F16 ? FAC_NV_KIND_F16
                             : FAC_NV_KIND_TF32;
}

static void add_instruction(const fac_nv_matmul *m, fac_text *to) {
    static const char *const names[] = { "tf32", "bf16", "f16" };
    const fac_nv_kind kind = kind_of(m->mode);
    const bool columns = m->p.from == FAC_NV_COLUMNS, tf32 = kind == FAC_NV_KIND_TF32,
               ta = columns && !tf32;
    const bool registers = m->mode == FAC_NV_3XTF32 || (columns && tf32),
               tb = m->q.from == FAC_NV_COLUMNS;
    int how = registers ? FAC_NV_A_REGISTERS : 0;
    if (ta) how |= FAC_NV_A_TRANSPOSED;
    if (tb) how |= FAC_NV_B_TRANSPOSED;
    fac_nv_wgmma_text(to, m->cut.columns, kind, how);
    fac_text_print(to, "#define WGMMA(d, a, b) wgmma_%s_n%d_%s%s%s(d, a, b)\n", names[kind],
                   m->cut.columns, registers ? "rs" : "ss", fac_text_if(ta, "_ta"),
                   fac_text_if(tb, "_tb"));
}

static bool add_results(const fac_nv_matmul *m, bool fp64, fac_text *to) {
    if (m->parts > 1) fac_text_add(to, "#define PARTS\n");
    if (!m->fours) {
        fac_text_add(to, "#define EXTRA_ARGS");
        for (int i = 0; i < m->r.extras; i++) fac_text_print(to, " , e%d", i);
        fac_text_add(to, "\n");
        return fac_cl_finish_text(&m->r, fp64, false, to);
    }
    fac_text_add(to, "#define FOURS\n");
    return fac_nv_epilogue_text(&m->r, &m->ends, fp64, to);
}

static void add_mma(const fac_nv_matmul *m, fac_text *to) {
    const bool floats = m->mode == FAC_NV_TF32;
    const fac_mma_tile t = { .rows = m->cut.rows,
                             .columns = m->cut.columns,
                             .warp_rows = m->warp_rows,
                             .warp_columns = m->warp_columns,
                             .a_row = m->row_bytes,
                             .b_row = m->row_bytes,
                             .mode = m->mode,
                             .round_a = floats && m->p.from != FAC_NV_IMAGES,
                             .round_b = floats && m->q.from != FAC_NV_IMAGES };
    fac_mma_tiles_text(&t, to);
    fac_text_print(
        to,
        "#define ITEMS %d\n#define WORKERS ITEMS\n#define RESULT_ROWS MS\n#define RESULT_STEP 16\n"
        "#define RESULT_COLUMNS WN\n",
        fac_mma_items(&t));
}

bool fac_nv_matmul_text(const fac_nv_matmul *m, bool fp64, fac_text *to) {
    fac_text_add(to, fac_kernel_nv_common);
    if (m->mma)
        add_mma(m, to);
    else
        add_instruction(m, to);
    const bool good = add_results(m, fp64, to);
    const bool half = fac_nv_terms(m) == 64;
    fac_text_print(to,
                   "#undef MEM\n#define MEM %s\n#define HALF %d\n#define TM %d\n#define TN "
                   "%d\n#define STAGES %d\n",
                   half ? "ushort" : "float", half, m->cut.rows, m->cut.columns, m->cut.stages);
    fac_text_print(to, "#define OWN %d\n#define ALONE %d\n", m->own, m->cut.groups == 1);
    fac_text_print(to,
                   "#define P_FROM %d\n#define Q_FROM %d\n#define SWAP %d\n#define SPLIT "
                   "%d\n#define PROMOTE %d\n",
                   m->p.from, m->q.from, m->swap, m->mode == FAC_NV_3XTF32, PROMOTE);
    fac_text_add(to, fac_kernel_gemm_common);
    if (!m->mma)
        fac_text_add(to, "#define WORKERS 256\n#define RESULT_ROWS (OWN ? TM / 64 : TM / 128)\n"
                         "#define RESULT_STEP 64\n#define RESULT_COLUMNS TN\n");
    fac_text_add(to, fac_kernel_nv_matmul_jobs);
    fac_text_add(to, m->mma ? fac_kernel_nv_mma_matmul : fac_kernel_nv_matmul);
    return good && !to->failed;
}

bool fac_nv_matmul_pack_text(const fac_nv_matmul *m, const fac_nv_side *s, fac_text *to) {
    const fac_dtype t = m->r.dtype;
    const char *name = t == FAC_F16 ? "f16" : "bf16";
    if (t == FAC_F32) name = "f32";
    fac_text_add(to, fac_kernel_nv_common);
    fac_text_add(to, fac_kernel_nv_epilogue);
    fac_text_print(to,
                   "#define MEM %s\n#define LOAD(p, i) nv_one_%s((p) + (i))\n#define LOAD4(v, p) "
                   "nv_four_%s(v, p)\n",
                   fac_cl_in_memory(t), name, name);
    fac_text_print(to, "#define PAIR(a, b) nv_pack_%s(a, b)\n",
                   m->mode == FAC_NV_F16 ? "f16" : "bf16");
    fac_text_print(
        to,
        "#define ROWS %d\n#define LINES %d\n#define PERMUTED %d\n#define MAKE %d\n#define ALONG_K "
        "%d\n#define FOURS %d\n",
        s->tile, fac_nv_matmul_lines(s->tile), s->permuted, s->make, s->along_k, s->fours);
    fac_text_add(to, fac_kernel_nv_matmul_pack);
    return !to->failed;
}
