/* The functions of kernels that multiply by wgmma: one asm statement for each shape, kind and place
 * of the operands.  They are written rather than kept as text since a shape of 64 x 256 names 128
 * registers. */
#include "backends/opencl/nvidia/unit/nvidia.h"
#include "base/optional.h"

static const char *const names[] = { "tf32", "bf16", "f16" };

static void add_list(fac_text *to, int first, int count) {
    fac_text_add(to, "{");
    for (int i = 0; i < count; i++) fac_text_print(to, "%s%%%d", i ? "," : "", first + i);
    fac_text_add(to, "}");
}

void fac_nv_wgmma_text(fac_text *to, int n, fac_nv_kind kind, int how) {
    const char *name = names[kind];
    const int sums = n / 2, terms = kind == FAC_NV_KIND_TF32 ? 8 : 16;
    const bool registers = how & FAC_NV_A_REGISTERS, transposed_a = how & FAC_NV_A_TRANSPOSED,
               transposed_b = how & FAC_NV_B_TRANSPOSED;
    const bool first = how & FAC_NV_FIRST;
    fac_text_add(to, "#define SM90A \"" FAC_NV_MARK "\"\n");
    fac_text_print(to, "INLINE void wgmma_%s_n%d_%s%s%s%s(float *d, %s, ulong b) {\n", name, n,
                   registers ? "rs" : "ss", fac_text_if(transposed_a, "_ta"),
                   fac_text_if(transposed_b, "_tb"), fac_text_if(first, "_first"),
                   registers ? "const uint *a" : "ulong a");
    fac_text_print(to, "    asm volatile(\"{\\n.reg .pred add;\\nsetp.eq.u32 add, 0, %d;\\n\"\n",
                   first);
    fac_text_print(to, "        SM90A \"wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s.%s ", n,
                   terms, name, name);
    add_list(to, 0, sums);
    fac_text_add(to, ", ");
    if (registers)
        add_list(to, sums, 4);
    else
        fac_text_print(to, "%%%d", sums);
    fac_text_print(to, ", %%%d, add, 1, 1", sums + (registers ? 4 : 1));
    if (kind != FAC_NV_KIND_TF32 && !registers) fac_text_print(to, ", %d", transposed_a);
    if (kind != FAC_NV_KIND_TF32) fac_text_print(to, ", %d", transposed_b);
    fac_text_add(to, ";\\n}\\n\"\n        : ");
    for (int i = 0; i < sums; i++) fac_text_print(to, "%s\"+f\"(d[%d])", i ? "," : "", i);
    fac_text_add(to, " : ");
    if (registers)
        for (int i = 0; i < 4; i++) fac_text_print(to, "\"r\"(a[%d]), ", i);
    else
        fac_text_add(to, "\"l\"(a), ");
    fac_text_add(to, "\"l\"(b));\n}\n");
}

void fac_nv_wgmma_wait_text(fac_text *to, int n, int left) {
    fac_text_print(to, "INLINE void wgmma_wait%d_n%d(float *d) {\n", left, n);
    fac_text_print(
        to, "    asm volatile(SM90A \"wgmma.wait_group.sync.aligned %d;\\n\"\n        : ", left);
    for (int i = 0; i < n / 2; i++) fac_text_print(to, "%s\"+f\"(d[%d])", i ? "," : "", i);
    fac_text_add(to, " :: \"memory\");\n}\n");
}
