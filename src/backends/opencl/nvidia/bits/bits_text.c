/* The texts of nv_bits.cl's kernels, letters before them. */
#include "backends/opencl/nvidia/bits/bits.h"
#include "backends/opencl/nvidia/unit/nvidia.h"
#include "cl_bit_levels.h"
#include "cl_nv_bits.h"
#include "cl_nv_bits_end.h"
#include "cl_nv_bits_mma.h"
#include "cl_nv_bits_pack.h"
#include "cl_nv_bits_probe.h"
#include "cl_nv_bits_product.h"
#include "cl_nv_bits_unit.h"
#include "cl_nv_bits_wgmma.h"
#include "cl_nv_common.h"

static bool is_there(const fac_operand *x) { return x->type.dtype != FAC_NONE; }

static void write_tile(const fac_nv_bits *s, fac_text *to) {
    const fac_nv_bits_tile *t = &s->t;
    fac_text_print(to,
                   "#define MS %d\n#define NS %d\n#define WARPS_M %d\n#define WARPS_N %d\n"
                   "#define STAGES %d\n#define G %d\n#define ROWS_M %d\n#define TEAM %d\n"
                   "#define PLANES %d\n#define OF_WEIGHTS %d\n",
                   t->ms, t->ns, t->warps_m, t->warps_n, t->stages, t->copied, s->unit->rows,
                   s->unit->team, s->c.planes, s->c.of_weights);
    if (s->c.sign) fac_text_add(to, "#define SIGNS\n");
}

static void write_codes(const fac_problem *p, const fac_nv_bits *s, fac_text *to) {
    const fac_conv_basis_attrs *a = p->node->attrs;
    fac_text_print(to, "#define CODES\n#define Y_PLANES %d\n", s->y_planes);
    if (!is_there(&p->in[FAC_CB_Y_BASIS])) fac_text_add(to, "#define Y_SIGNS\n");
    if (is_there(&p->in[FAC_CB_Z])) fac_text_add(to, "#define Z\n");
    if (s->y) fac_text_add(to, "#define Y\n");
    if (a->y_relu) fac_text_add(to, "#define Y_RELU\n");
    if (a->q_relu) fac_text_add(to, "#define Q_RELU\n");
    if (!s->limits) return;
    fac_text_add(to, "#define LIMITS\n#define TIMES {");
    for (int j = 0; j < s->c.planes; j++) fac_text_print(to, "%s%d", j ? ", " : "", s->times[j]);
    fac_text_add(to, "}\n");
}

void fac_nv_bits_text(const fac_problem *p, const fac_nv_bits *s, fac_text *to) {
    write_tile(s, to);
    if (!s->c.x_codes) fac_text_add(to, "#define X_FLOATS\n");
    if (s->c.K % 2 == 0) fac_text_add(to, "#define PAIRS\n");
    if (is_there(&p->in[FAC_CB_B])) fac_text_add(to, "#define HAS_B\n");
    if (is_there(&p->in[FAC_CB_SCALE])) fac_text_add(to, "#define HAS_SCALE\n");
    if (s->c.codes) write_codes(p, s, to);
    fac_text_add(to, fac_kernel_nv_bits);
    s->unit->write(s, to);
    fac_text_print(to, "%s%s%s", fac_kernel_bit_levels, fac_kernel_nv_bits_end,
                   fac_kernel_nv_bits_product);
}

void fac_nv_bits_pack_text(const fac_nv_bits *s, fac_text *to) {
    write_tile(s, to);
    fac_text_print(to, "%s%s", fac_kernel_nv_bits, fac_kernel_nv_bits_pack);
}

void fac_nv_bits_mma_text(const fac_nv_bits *s, fac_text *to) {
    (void)s;
    fac_text_print(to, "%s%s%s", fac_kernel_nv_common, fac_kernel_nv_bits_unit,
                   fac_kernel_nv_bits_mma);
}

/* ---- wgmma: a statement names all registers of the sums ---- */

static void add_sums(fac_text *to, int sums, const char *each) {
    for (int i = 0; i < sums; i++) {
        if (i) fac_text_add(to, ", ");
        fac_text_print(to, each, i);
    }
}

static void add_wait(fac_text *to, int sums, int left) {
    fac_text_print(to,
                   "INLINE void wgmma_wait%d(int *d) {\n"
                   "    asm volatile(SM90A \"wgmma.wait_group.sync.aligned %d;\\n\" : ",
                   left, left);
    add_sums(to, sums, "\"+r\"(d[%d])");
    fac_text_add(to, " :: \"memory\");\n}\n");
}

/* wgmma_bits(d, a, b) for 8 n columns, and waits for sums of so many. */
static void add_wgmma(fac_text *to, int n, int sums) {
    fac_text_print(to,
                   "#define SM90A \"" FAC_NV_MARK "\"\n"
                   "INLINE void wgmma_bits(int *d, ulong a, ulong b) {\n"
                   "    asm volatile(\"{\\n.reg .pred add;\\nsetp.eq.u32 add, 0, 0;\\n\"\n"
                   "        SM90A \"wgmma.mma_async.sync.aligned.m64n%dk256.s32.b1.b1.and.popc {",
                   8 * n);
    add_sums(to, 4 * n, "%%%d");
    fac_text_print(to, "}, %%%d, %%%d, add;\\n}\\n\" : ", 4 * n, 4 * n + 1);
    add_sums(to, 4 * n, "\"+r\"(d[%d])");
    fac_text_add(to, " : \"l\"(a), \"l\"(b));\n}\n");
    add_wait(to, sums, 0);
    add_wait(to, sums, 1);
}

void fac_nv_bits_wgmma_text(const fac_nv_bits *s, fac_text *to) {
    fac_text_print(to, "%s%s", fac_kernel_nv_common, fac_kernel_nv_bits_unit);
    add_wgmma(to, s->t.ns, 4 * s->t.ns * s->t.ms);
    fac_text_add(to, fac_kernel_nv_bits_wgmma);
}

void fac_nv_bits_probe_text(fac_text *to) {
    fac_text_print(to, "%s#define WGMMA\n", fac_kernel_nv_common);
    add_wgmma(to, 1, 4);
    fac_text_add(to, fac_kernel_nv_bits_probe);
}
