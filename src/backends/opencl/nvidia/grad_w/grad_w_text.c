/* The texts of nv_conv_grad_w.cl and what goes with it: see grad_w.h. */
#include "backends/opencl/nvidia/grad_w/grad_w.h"
#include "base/optional.h"
#include "cl_nv_common.h"
#include "cl_nv_conv_grad_w.h"
#include "cl_nv_conv_grad_w_few.h"
#include "cl_nv_conv_grad_w_maps.h"
#include "cl_nv_conv_grad_w_sum.h"
#include "cl_nv_conv_grad_w_taps.h"
#include "cl_nv_conv_grad_w_tiles.h"
#include "cl_nv_maps.h"

enum { PROMOTE = 4 };

static bool split(const fac_nv_grad_w *q) { return q->mode == FAC_NV_3XTF32; }

/* What 65,536 registers allow a group of so many items. */
const char *fac_nv_grad_w_options(const fac_nv_grad_w_cut *c) {
    const int items = fac_nv_grad_w_items(c);
    return items > 768   ? "-cl-nv-maxrregcount=72"
           : items > 640 ? "-cl-nv-maxrregcount=80"
           : items > 512 ? "-cl-nv-maxrregcount=96"
           : items > 384 ? "-cl-nv-maxrregcount=128"
                         : "-cl-nv-maxrregcount=168";
}

static void few_sizes(const fac_nv_grad_w *q, const fac_nv_grad_w_cut *c, fac_text *to) {
    const fac_conv_geom *g = &q->g;
    fac_text_print(to,
                   "#define GROUPS %d\n#define BAND %d\n#define SEGMENT %d\n#define LINE "
                   "%d\n#define BANDS %d\n#define SEGMENTS %d\n",
                   c->columns, c->band, c->segment, c->line, (int)(c->tall / c->broad),
                   (int)c->broad);
    fac_text_print(to,
                   "#define CHANNELS %d\n#define TAPS_H %d\n#define TAPS_W %d\n#define DOWN "
                   "%d\n#define ACROSS %d\n"
                   "#define FAR_H %d\n#define FAR_W %d\n#define X_COLUMN %d\n",
                   (int)q->C, (int)g->R, (int)g->S, (int)g->stride[1], (int)g->stride[2],
                   (int)g->dilation[1], (int)g->dilation[2], (int)q->x[2]);
}

static void result_text(const fac_nv_grad_w *q, fac_text *to) {
    static const char *const store[] = { "p[i] = (v)", "fac_store_bf16(p, i, v)",
                                         "fac_store_f16(p, i, v)" };
    fac_text_print(to, "#define RESULT %s\n#define STORE(p, i, v) %s\n",
                   fac_nv_grad_w_halves(q) ? "ushort" : "float",
                   store[q->dtype == FAC_BF16  ? 1
                         : q->dtype == FAC_F16 ? 2
                                               : 0]);
}

void fac_nv_grad_w_text(const fac_nv_grad_w *q, const fac_nv_grad_w_cut *c, fac_text *to) {
    const bool bf16 = q->mode == FAC_NV_BF16;
    const char *type = bf16 ? "bf16" : "f16";
    int n = c->taps ? 3 * c->chunk : c->columns;
    if (c->few) n = 64;
    fac_text_add(to, fac_kernel_nv_common);
    fac_nv_wgmma_text(to, n, bf16 ? FAC_NV_KIND_BF16 : FAC_NV_KIND_F16,
                      (c->few ? FAC_NV_A_REGISTERS : FAC_NV_A_TRANSPOSED) | FAC_NV_B_TRANSPOSED);
    fac_text_print(to, "#define MULTIPLY wgmma_%s_n%d_%s_tb\n#define PACK nv_pack_%s\n", type, n,
                   c->few ? "rs" : "ss_ta", type);
    const bool halves = fac_nv_grad_w_halves(q);
    fac_text_print(to, "#define MEM %s\n", halves ? "ushort" : "float");
    fac_text_print(to, "#define TERMS %d\n", split(q) ? 3 : 1);
    if (halves) fac_text_add(to, "#define HALVES\n");
    if (!halves && !bf16) fac_text_add(to, "#define SCALED\n");
    fac_text_print(to, "#define STAGES %d\n#define PROMOTE %d\n#define SUMMED %d\n", c->stages,
                   PROMOTE, n / 2);
    fac_text_print(
        to, "#define MULTIPLIERS %d\n#define FILLERS %d\n#define WIDE %d\n#define DEEP %d\n%s%s",
        fac_nv_grad_w_multipliers(c), c->fillers,
        c->taps  ? 16
        : c->few ? 64
                 : 128,
        c->taps ? 9 : 1, fac_text_if(c->joined, "#define JOINED\n#define PATIENCE 2000000\n"),
        fac_text_if(c->few, "#define FEW\n"));
    result_text(q, to);
    if (c->few)
        few_sizes(q, c, to);
    else if (c->taps)
        fac_text_print(to, "#define CHUNK %d\n#define LOCAL %d\n#define AHEAD %d\n", c->chunk,
                       FAC_NV_GRAD_W_LOCAL, c->ahead);
    else
        fac_text_print(to,
                       "#define COLUMNS %d\n#define CHUNKS %d\n#define STAGE %d\n#define AHEAD "
                       "%d\n#define IN_ITEMS\n",
                       c->columns, 2 + c->columns / 64, fac_nv_grad_w_stage(q, c), c->ahead);
    if (c->maps)
        fac_text_print(to, "#define MAPS %d\n", c->maps), fac_text_add(to, fac_kernel_nv_maps);
    fac_text_add(to, fac_kernel_nv_conv_grad_w);
    if (c->maps) fac_text_add(to, fac_kernel_nv_conv_grad_w_maps);
    fac_text_add(to, c->few    ? fac_kernel_nv_conv_grad_w_few
                     : c->taps ? fac_kernel_nv_conv_grad_w_taps
                               : fac_kernel_nv_conv_grad_w_tiles);
}

void fac_nv_grad_w_sum_text(const fac_nv_grad_w *q, fac_text *to) {
    fac_text_add(to, fac_kernel_nv_common);
    result_text(q, to);
    fac_text_add(to, fac_kernel_nv_conv_grad_w_sum);
}
