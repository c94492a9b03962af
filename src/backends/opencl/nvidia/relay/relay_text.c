/* The text of a relay's kernel: see relay.h.  Each code is a template of its own letters, in turn
 * defined and forgotten. */
#include <string.h>
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/nvidia/relay/relay.h"
#include "base/optional.h"
#include "cl_nv_common.h"
#include "cl_nv_epilogue.h"
#include "cl_nv_relay.h"
#include "cl_nv_relay_conv.h"
#include "cl_nv_relay_depthwise.h"
#include "cl_nv_relay_meet.h"
#include "cl_nv_relay_pool.h"
#include "cl_nv_warp_products.h"

enum { FUNCTIONS = 32 }; /* of a body at most */

static const char *name_of(fac_dtype t) {
    if (t == FAC_F16) return "f16";
    return t == FAC_BF16 ? "bf16" : "f32";
}
static const char *memory_of(fac_dtype t) { return t == FAC_F32 ? "float" : "ushort"; }

/* The functions of a body are numbered from 0 in each. */
static void rename_functions(const char *name, fac_text *to) {
    for (int i = 0; i < FUNCTIONS; i++)
        if (name)
            fac_text_print(to, "#define f%d %s_f%d\n", i, name, i);
        else
            fac_text_print(to, "#undef f%d\n", i);
}

bool fac_nv_finish_text(const fac_nv_finish *f, const char *name, bool fp64, fac_text *to) {
    static const char *const in[] = { "whole", "add" };
    fac_text functions = { 0 }, body = { 0 };
    const bool good = !f->body || fac_cl_body_text(f->body, in, fp64, &functions, &body);
    if (functions.s && *functions.s) rename_functions(name, to);
    fac_text_add(to, functions.s ? functions.s : "");
    fac_text_print(to, "INLINE float %s(float x, float bias, float add) {\n", name);
    if (f->biased) fac_text_add(to, "    x += bias;\n");
    if (f->body && f->rounded != FAC_NONE)
        fac_text_print(to, "    const float whole = fac_round_%s(x);\n", name_of(f->rounded));
    else
        fac_text_add(to, "    const float whole = x;\n");
    fac_text_add(to, f->body ? fac_text_or(body.s, "") : "    const float result = whole;\n");
    fac_text_add(to, "    return result;\n}\n");
    if (functions.s && *functions.s) rename_functions(NULL, to);
    to->failed |= functions.failed | body.failed;
    fac_text_free(&functions);
    fac_text_free(&body);
    return good;
}

static bool add_finishes(const fac_nv_finish *f, int n, bool fp64, fac_text *to) {
    char name[24];
    bool good = true;
    for (int i = 0; i < n && good; i++) {
        snprintf(name, sizeof name, "finish%d", i);
        good = fac_nv_finish_text(&f[i], name, fp64, to);
    }
    fac_text_add(
        to, "INLINE void relay_finish(int which, float *v, const float *bias, const float *add) {\n"
            "    switch (which) {\n");
    for (int i = 0; i < n; i++)
        fac_text_print(to,
                       "    case %d:\n        UNROLL for (int k = 0; k < 4; k++) v[k] = "
                       "finish%d(v[k], bias[k], add[k]);\n"
                       "        break;\n",
                       i, i);
    fac_text_add(to, "    }\n}\n");
    return good;
}

static void add_conv(const fac_nv_code *c, fac_text *to) {
    static const char *const names[] = { "tf32", "tf32", "bf16", "f16" };
    const int parts = c->mode == FAC_NV_3XTF32 ? 2 : 1;
    const int bytes = c->x == FAC_F32 ? 4 : 2;
    fac_text_print(to,
                   "#define BM %d\n#define BN %d\n#define BK %d\n#define DEPTH %d\n#define STAGE "
                   "%d\n#define PARTS %d\n"
                   "#define MMA nv_mma_%s\n",
                   c->pixels, c->columns, c->row / bytes, c->depth, c->columns * c->row * parts,
                   parts, names[c->mode]);
    if (c->window) fac_text_add(to, "#define WINDOW\n");
    if (c->ragged) fac_text_add(to, "#define RAGGED\n");
    fac_text_add(to, fac_kernel_nv_warp_products);
    fac_text_add(to, fac_kernel_nv_relay_conv);
    if (c->window) fac_text_add(to, "#undef WINDOW\n");
    if (c->ragged) fac_text_add(to, "#undef RAGGED\n");
    fac_text_add(
        to,
        "#undef BM\n#undef BN\n#undef BK\n#undef DEPTH\n#undef STAGE\n#undef PARTS\n#undef MMA\n");
}

static void add_depthwise(const fac_nv_code *c, fac_text *to) {
    fac_text_print(to, "#define R %d\n#define S %d\n", c->r, c->s);
    fac_text_add(to, fac_kernel_nv_relay_depthwise);
    fac_text_add(to, "#undef R\n#undef S\n");
}

static void add_pool(const fac_nv_code *c, fac_text *to) {
    if (c->average) fac_text_add(to, "#define AVERAGE\n");
    fac_text_add(to, fac_kernel_nv_relay_pool);
    if (c->average) fac_text_add(to, "#undef AVERAGE\n");
}

static void add_code(const fac_nv_code *c, int number, fac_text *to) {
    fac_text_print(
        to,
        "#define NAME(x) code%d_##x\n#define XMEM %s\n#define RESULT %s\n#define BIASMEM %s\n"
        "#define ADDMEM %s\n",
        number, memory_of(c->x), memory_of(c->result), memory_of(c->bias), memory_of(c->add));
    fac_text_print(to,
                   "#define FOUR nv_four_%s\n#define PUT nv_put_%s\n#define FOUR_BIAS nv_four_%s\n"
                   "#define FOUR_ADD nv_four_%s\n",
                   name_of(c->x), name_of(c->result), name_of(c->bias), name_of(c->add));
    if (c->result == FAC_F32)
        fac_text_add(to, "#define ROUND(x) (x)\n");
    else
        fac_text_print(to, "#define ROUND(x) (ushort)nv_pack_%s(x, 0.0f)\n", name_of(c->result));
    if (c->kind == FAC_NV_LEG_CONV)
        add_conv(c, to);
    else if (c->kind == FAC_NV_LEG_DEPTHWISE)
        add_depthwise(c, to);
    else
        add_pool(c, to);
    fac_text_add(to, "#undef NAME\n#undef XMEM\n#undef RESULT\n#undef BIASMEM\n#undef "
                     "ADDMEM\n#undef FOUR\n#undef PUT\n"
                     "#undef FOUR_BIAS\n#undef FOUR_ADD\n#undef ROUND\n");
}

static void add_cases(const fac_nv_code *codes, int n, fac_text *to) {
    fac_text_add(to, "#define LEG_CASES");
    for (int i = 0; i < n; i++)
        fac_text_print(to, " case %d: code%d_leg(l, base%s, &m); break;", i, i,
                       codes[i].kind == FAC_NV_LEG_CONV ? ", parts" : "");
    fac_text_add(to, "\n");
}

static void add_bases(int n, fac_text *to) {
    fac_text_print(to, "#define BASES_MOST %d\n#define BASES", n);
    for (int i = 0; i < n; i++) fac_text_print(to, " , global uchar *b%d", i);
    fac_text_add(to, "\n#define BASES_FILL");
    for (int i = 0; i < n; i++)
        fac_text_print(to, " if (item == %d) base[%d] = (ulong)b%d;", i, i, i);
    fac_text_add(to, "\n");
}

/* Sums of a lane of the largest tile that a warp has, in floats of a whole warp. */
static int parts_of(const fac_nv_code *codes, int n) {
    int most = 0;
    for (int i = 0; i < n; i++)
        if (codes[i].pixels * codes[i].columns > most) most = codes[i].pixels * codes[i].columns;
    return most;
}

bool fac_nv_relay_text(const fac_nv_code *codes, int ncodes, const fac_nv_finish *finishes,
                       int nfinishes, bool fp64, int legs, int bases, fac_text *to) {
    fac_text_add(to, fac_kernel_nv_common);
    fac_text_add(to, fac_kernel_nv_epilogue);
    fac_text_print(to, "#define WARPS %d\n#define LEGS %d\n#define PARTS_FLOATS %d\n",
                   FAC_NV_RELAY_WARPS, legs, parts_of(codes, ncodes));
    add_bases(bases, to);
    fac_text_add(to, fac_kernel_nv_relay);
    const bool good = add_finishes(finishes, nfinishes, fp64, to);
    for (int i = 0; i < ncodes; i++) add_code(&codes[i], i, to);
    add_cases(codes, ncodes, to);
    fac_text_add(to, fac_kernel_nv_relay_meet);
    return good && !to->failed;
}
