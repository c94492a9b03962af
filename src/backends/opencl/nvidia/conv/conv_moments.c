/* Joining the moments and sums of parts: see conv.h and nv_moments_end.cl. */
#include <math.h>
#include "backends/opencl/nvidia/conv/conv.h"
#include "base/error.h"
#include "cl_nv_moments_end.h"

enum { FEW_PARTS = 256 };

/* Many parts of few channels: large groups, which read 16 bytes of each; few parts of many: small
 * ones. */
static int items_of(const fac_nv_moments *m) { return m->parts > FEW_PARTS ? 1024 : 128; }
static int across_of(const fac_nv_moments *m) { return m->parts > FEW_PARTS ? 1 : 2; }

/* As the kernel has it. */
typedef struct sizes {
    int64_t at, first, second, var;
    int32_t parts, channels;
} sizes;

size_t fac_nv_moments_bytes(const fac_nv_moments *m) {
    return (size_t)(m->parts * (2 * m->channels + 1)) * sizeof(float);
}

static bool write_text(const fac_nv_conv *c, const fac_nv_moments *m, fac_text *to) {
    if (c->sums)
        fac_text_print(to, "#define NORM\n#define EPSILON ((float)%.17g)\n", c->norm.epsilon);
    fac_text_print(to, "#define ITEMS %d\n#define ACROSS %d\n", items_of(m), across_of(m));
    fac_text_add(to, fac_kernel_nv_moments_end);
    return !to->failed;
}

fac_status fac_nv_moments_make(fac_opencl *o, const fac_nv_conv *c, const fac_nv_moments *m,
                               fac_cl_kernel *out, fac_error *err) {
    fac_text text = { 0 };
    fac_status status = write_text(c, m, &text)
                            ? fac_cl_kernel_new(o, text.s, "", "moments_end", out, err)
                            : fac_raise_memory(err, "the text of a kernel");
    fac_text_free(&text);
    return status;
}

fac_status fac_nv_moments_run(fac_opencl *o, const fac_nv_conv *c, const fac_nv_moments *m,
                              const fac_cl_kernel *k, fac_span from, const fac_span *in,
                              const fac_span *to, fac_error *err) {
    const fac_span var = c->sums ? in[FAC_NV_NORM_VAR] : to[2];
    const sizes s = { fac_cl_floats_at(from), fac_cl_floats_at(to[1]), fac_cl_floats_at(to[2]),
                      fac_cl_floats_at(var),  (int32_t)m->parts,       (int32_t)m->channels };
    const fac_cl_arg args[] = { fac_cl_arg_value(&s, sizeof s), fac_cl_arg_span(from),
                                fac_cl_arg_span(to[1]), fac_cl_arg_span(to[2]),
                                fac_cl_arg_span(var) };
    const int channels = 4 * across_of(m);
    const size_t groups = (size_t)((m->channels + channels - 1) / channels),
                 items = (size_t)items_of(m);
    const fac_cl_range range = { 1, { groups * items }, { items } };
    return fac_cl_launch(o, k, &range, 5, args, err);
}

static void add_limit(fac_text *to, const char *how, double limit) {
    if (isfinite(limit))
        fac_text_print(to, "        if (y %s (float)%.17g) v[k] = 0;\n", how, limit);
}

void fac_nv_norm_text(const fac_nv_conv *c, fac_text *to) {
    const fac_nv_norm *n = &c->norm;
    fac_text_add(
        to, "INLINE float nv_rsqrt(float x) {\n    float r;\n"
            "    asm(\"rsqrt.approx.f32 %0, %1;\" : \"=f\"(r) : \"f\"(x));\n    return r;\n}\n");
    fac_text_add(to, "INLINE void norm4(float *v, float *along, const more *m) {\n    UNROLL for "
                     "(int k = 0; k < 4; k++) {\n");
    if (n->add >= 0) fac_text_print(to, "        v[k] += m->v[%d][k];\n", n->add);
    fac_text_print(to, "        const float e = m->v[%d][k] - m->v[%d][k];\n", n->x, n->mean);
    if (n->mask >= 0)
        fac_text_print(to, "        if (!(as_uint(m->v[%d][0]) >> k & 1)) v[k] = 0;\n", n->mask);
    else if (n->y >= 0)
        fac_text_print(to, "        const float y = m->v[%d][k];\n", n->y);
    else
        fac_text_print(to,
                       "        const float y = e * (m->v[%d][k] * nv_rsqrt(m->v[%d][k] + "
                       "(float)%.17g)) + m->v[%d][k];\n",
                       n->scale, n->var, n->epsilon, n->bias);
    if (n->mask < 0) add_limit(to, "<=", n->lo), add_limit(to, ">=", n->hi);
    fac_text_add(to, "        along[k] = v[k] * e;\n    }\n}\n");
}
