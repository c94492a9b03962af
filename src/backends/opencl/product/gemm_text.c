/* The definitions in front of the kernels of products: element types, further operands, and what is
 * done to a sum. */
#include "backends/opencl/elementwise/elementwise.h"
#include "backends/opencl/product/gemm.h"
#include "tensor/dtype.h"
#include "tensor/tensor_internal.h"

static const char *half_name(fac_dtype t) { return t == FAC_F16 ? "f16" : "bf16"; }
static bool is_real(fac_dtype t) { return fac_dtype_get(t)->kind == 'f'; }

/* Integers are summed modulo 2^32 or 2^64, which is exact modulo their own width. */
static const char *sum_type(fac_dtype t) {
    if (t == FAC_F64) return "double";
    if (is_real(t)) return "float";
    return fac_dtype_get(t)->block_bytes == 8 ? "ulong" : "uint";
}

/* Element `at` of pointer p in the type that bodies compute in. */
static void add_element(fac_text *t, fac_dtype dtype, const char *p, const char *at) {
    if (fac_dtype_is_half(dtype))
        fac_text_print(t, "fac_load_%s(%s, %s)", half_name(dtype), p, at);
    else
        fac_text_print(t, "(%s)%s[%s]", fac_cl_computing(dtype), p, at);
}

/* Products are exact before they are added up, of halves in float, too. */
static void add_factors(const fac_gpu_product *r, fac_text *to) {
    if (r->quads)
        fac_text_print(to,
                       "#define QUADS\n#define FACTOR uint\n#define MULTIPLY_ADD(a, b, c) "
                       "fac_dot_%s(a, b, c)\n",
                       r->dtype == FAC_I8 ? "signed" : "unsigned");
    else if (r->half)
        fac_text_add(
            to,
            "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n#define HALVES\n#define FACTOR half\n"
            "#define MULTIPLY_ADD(a, b, c) ((float)(a) * (float)(b) + (c))\n");
    else
        fac_text_add(to, "#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))\n");
}

static void add_types(const fac_gpu_product *r, bool partial, fac_text *to) {
    const char *memory = fac_cl_in_memory(r->dtype), *sum = sum_type(r->dtype);
    fac_text_print(to, "#define MEM %s\n#define ACC %s\n", memory, sum);
    add_factors(r, to);
    if (fac_dtype_is_half(r->dtype))
        fac_text_print(to, "#define LOAD(p, i) fac_load_%s(p, i)\n", half_name(r->dtype));
    else
        fac_text_print(to, "#define LOAD(p, i) (%s)(p)[i]\n", sum);
    fac_text_print(to, "#define RESULT %s\n", partial ? sum : fac_cl_in_memory(r->result));
    if (fac_dtype_is_half(r->result))
        fac_text_print(to, "#define STORE(p, i, x) fac_store_%s(p, i, x)\n", half_name(r->result));
    else
        fac_text_print(to, "#define STORE(p, i, x) (p)[i] = (%s)(x)\n",
                       fac_cl_in_memory(r->result));
}

/* Neighbours side by side, and one for all, are told to the compiler, which makes vectors of them.
 */
static void add_column(int64_t step, int extra, fac_text *to) {
    if (step == 1)
        fac_text_add(to, " + (J)");
    else if (step)
        fac_text_print(to, " + (J) * s.e[%d].column", extra);
}

static void add_operands(const fac_gpu_product *r, fac_text *to) {
    fac_text_print(to, "#define EXTRAS %d\n#define EXTRA_PARAMS", r->extras);
    for (int i = 0; i < r->extras; i++)
        fac_text_print(to, " , global const %s *e%d", fac_cl_in_memory(r->extra_dtype[i]), i);
    fac_text_add(to, "\n#define EXTRA_STARTS");
    for (int i = 0; i < r->extras; i++)
        fac_text_print(to, " const long at%d = START(s.e[%d]);", i, i);
    fac_text_add(to, "\n#define FINISH(X, I, O, J) finish(X");
    for (int i = 0; i < r->extras; i++) {
        fac_text_print(to, ", e%d, at%d + (I) * s.e[%d].row + (O) * s.e[%d].outer", i, i, i, i);
        add_column(r->s.e[i].column, i, to);
    }
    fac_text_print(to, ")\n#define Y_COLUMN %s\n", r->s.y.column == 1 ? "1" : "s.y.column");
}

/* alpha x + beta bias, as an element of the type that y has before the body. */
static void add_scaled(const fac_gpu_product *r, fac_text *to) {
    const char *sum = sum_type(r->dtype);
    if (r->alpha != 1) fac_text_print(to, "    x *= (%s)%.17g;\n", sum, r->alpha);
    if (r->biased) {
        fac_text_print(to, "    x += (%s)", sum);
        add_element(to, r->extra_dtype[0], "e0", "i0");
        if (r->beta != 1) fac_text_print(to, " * (%s)%.17g", sum, r->beta);
        fac_text_add(to, ";\n");
    }
    const char *as = fac_cl_computing(r->dtype);
    if (fac_dtype_is_half(r->dtype))
        fac_text_print(to, "    const %s whole = fac_round_%s(x);\n", as, half_name(r->dtype));
    else if (is_real(r->dtype))
        fac_text_print(to, "    const %s whole = x;\n", as);
    else
        fac_text_print(to, "    const %s whole = (%s)x;\n", as, fac_cl_in_memory(r->dtype));
}

bool fac_cl_finish_text(const fac_gpu_product *r, bool fp64, bool partial, fac_text *to) {
    fac_text functions = { 0 }, body = { 0 }, in[FAC_GPU_EXTRAS] = { { 0 } };
    const char *names[FAC_GPU_EXTRAS + 1] = { "whole" };
    int n = 1;
    bool good = true;
    for (int i = r->biased; i < r->extras; i++, n++) {
        char pointer[8], at[8];
        snprintf(pointer, sizeof pointer, "e%d", i);
        snprintf(at, sizeof at, "i%d", i);
        add_element(&in[i], r->extra_dtype[i], pointer, at);
        names[n] = in[i].s ? in[i].s : "";
    }
    if (r->body)
        good = fac_cl_body_text(r->body, names, fp64, &functions, &body);
    else
        fac_text_print(&body, "    const %s result = whole;\n", fac_cl_computing(r->result));
    add_types(r, partial, to);
    add_operands(r, to);
    fac_text_add(to, functions.s ? functions.s : "");
    fac_text_print(to, "static inline %s finish(%s x", fac_cl_computing(r->result),
                   sum_type(r->dtype));
    for (int i = 0; i < r->extras; i++)
        fac_text_print(to, ", global const %s *e%d, long i%d", fac_cl_in_memory(r->extra_dtype[i]),
                       i, i);
    fac_text_add(to, ") {\n");
    add_scaled(r, to);
    fac_text_add(to, body.s ? body.s : "");
    fac_text_add(to, "    return result;\n}\n");
    for (int i = 0; i < FAC_GPU_EXTRAS; i++) {
        to->failed |= in[i].failed;
        fac_text_free(&in[i]);
    }
    to->failed |= functions.failed | body.failed;
    fac_text_free(&functions);
    fac_text_free(&body);
    return good && !to->failed;
}

/* Numbers in expressions are doubles, which not every device has. */
const char *fac_cl_options(const fac_gpu_product *r) {
    bool doubles = r->dtype == FAC_F64 || r->result == FAC_F64;
    for (int i = 0; i < r->extras; i++) doubles |= r->extra_dtype[i] == FAC_F64;
    return doubles ? "" : "-cl-single-precision-constant";
}
