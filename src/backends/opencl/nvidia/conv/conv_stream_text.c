/* The text of conv/wgmma_stream's kernel: what it is told by definitions, and what it is put
 * together from. */
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/nvidia/conv/conv_stream.h"
#include "cl_nv_common.h"
#include "cl_nv_conv_stream.h"
#include "cl_nv_conv_stream_end.h"
#include "cl_nv_conv_stream_pool.h"
#include "cl_nv_conv_stream_product.h"
#include "cl_nv_conv_stream_use.h"
#include "cl_nv_maps.h"
#include "cl_nv_moments.h"

enum { SUMMED = 4 };

static void add_memory(fac_dtype t, fac_text *to) {
    if (t == FAC_F32) {
        fac_text_add(to, "#define LOCAL_PUT4(p, v) *(local float4 *)(p) = (float4)((v)[0], (v)[1], "
                         "(v)[2], (v)[3])\n"
                         "INLINE void local_get4(float *v, local const float *p) {\n"
                         "    const float4 x = *(local const float4 *)p;\n"
                         "    v[0] = x.s0, v[1] = x.s1, v[2] = x.s2, v[3] = x.s3;\n}\n");
    } else {
        const bool bf16 = t == FAC_BF16;
        const char *name = bf16 ? "bf16" : "f16";
        fac_text_print(to,
                       "#define LOCAL_PUT4(p, v) "
                       "*(local uint2 *)(p) = (uint2)(nv_pack_%s((v)[0], (v)[1]), "
                       "nv_pack_%s((v)[2], (v)[3]))\n",
                       name, name);
        fac_text_add(to, "INLINE void local_get4(float *v, local const ushort *p) {\n"
                         "    const uint2 x = *(local const uint2 *)p;\n");
        fac_text_add(
            to, bf16 ? "    v[0] = as_float(x.s0 << 16), v[1] = as_float(x.s0 & 0xffff0000u);\n"
                       "    v[2] = as_float(x.s1 << 16), v[3] = as_float(x.s1 & 0xffff0000u);\n}\n"
                     : "    nv_two_f16(v, x.s0);\n    nv_two_f16(v + 2, x.s1);\n}\n");
    }
    fac_text_add(to, "#define LOCAL_GET4(v, p) local_get4(v, p)\n");
}

bool fac_nv_stream_text(const fac_nv_stream *q, bool fp64, fac_text *to) {
    const fac_nv_stream_tile *t = &q->t;
    const bool bf16 = q->c.mode == FAC_NV_BF16;
    fac_nv_kind kind = bf16 ? FAC_NV_KIND_BF16 : FAC_NV_KIND_F16;
    const char *name = bf16 ? "bf16" : "f16";
    if (q->c.r.dtype == FAC_F32) {
        kind = FAC_NV_KIND_TF32;
        name = "tf32";
    }
    const bool wide = t->rows * t->bn >= 256;
    fac_text_add(to, fac_kernel_nv_common);
    if (!fac_nv_epilogue_text(&q->c.r, &q->c.ends, fp64, to)) return false;
    fac_nv_wgmma_text(to, t->bn, kind, 0);
    fac_nv_wgmma_wait_text(to, t->bn, 0);
    fac_text_print(to,
                   "#define WGMMA(d, a, b) wgmma_%s_n%d_ss(d, a, b)\n#define WGMMA_WAIT(d) "
                   "wgmma_wait0_n%d(d)\n",
                   name, t->bn, t->bn);
    fac_text_print(to, "#define SPLIT %d\n#define SUMMED %d\n#define NEAR %d\n",
                   q->c.mode == FAC_NV_3XTF32, SUMMED, !t->halo && q->windows);
    fac_text_print(to, "#define MEM %s\n#define BYTES %d\n", fac_cl_in_memory(q->c.r.dtype),
                   q->bytes);
    fac_text_print(to, "#define CONSUMERS %d\n#define TEAM %d\n#define ROWS %d\n#define BN %d\n",
                   t->consumers, t->team, t->rows, t->bn);
    fac_text_print(to, "#define AROWS %d\n#define SA %d\n#define SB %d\n#define HALO %d\n",
                   t->a_rows, t->sa, t->sb, t->halo);
    fac_text_print(to, "#define MAPPED %d\n", q->maps > 0);
    if (q->maps) fac_text_print(to, "#define MAPS %d\n", q->maps);
    if (q->maps) fac_text_add(to, fac_kernel_nv_maps);
    fac_text_print(to, "#define SLOTS %d\n#define ADDED %d\n#define AHEAD %d\n", t->slots,
                   t->slots ? q->added : 0,
                   t->slots || q->c.sums || q->c.mode == FAC_NV_3XTF32 ? 1
                   : wide                                              ? 2
                                                                       : 4);
    if (t->slots && q->added) fac_text_print(to, "#define ADDED_FROM e%d\n", q->added - 1);
    if (t->slots) add_memory(q->c.r.result, to);
    const bool foreseen = !t->slots && !q->c.pooled && fac_nv_foresee_text(&q->c, to);
    fac_text_print(to, "#define FORESEEN %d\n", foreseen);
    fac_text_print(to, "#define MOMENTS %d\n#define KEEPS %d\n#define POOL %d\n#define PHASES %d\n",
                   q->c.moments, q->kept, q->c.pooled, q->joined ? q->c.phases : 1);
    if (q->c.moments) fac_text_add(to, "#define MOMENTS_MEET(id) nv_meet(id, 128)\n");
    if (q->c.sums) fac_text_add(to, "#define NORM\n");
    if (q->c.sums) fac_nv_norm_text(&q->c, to);
    if (q->c.sums) fac_text_print(to, "#define EPSILON %.17g\n", q->c.norm.epsilon);
    if (q->c.moments) fac_text_add(to, fac_kernel_nv_moments);
    fac_text_add(to, fac_kernel_nv_conv_stream);
    if (q->c.pooled) fac_text_add(to, fac_kernel_nv_conv_stream_pool);
    if (q->kept) fac_text_add(to, fac_kernel_nv_conv_stream_end);
    fac_text_add(to, fac_kernel_nv_conv_stream_product);
    fac_text_add(to, fac_kernel_nv_conv_stream_use);
    return !to->failed;
}
