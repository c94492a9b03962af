/* Convolutions for the tests of NVIDIA's matrix units: texts that are kept, random shapes. */
#ifndef NV_CONV_CHECK_H
#define NV_CONV_CHECK_H
#include "nv_check.h"

static const struct {
    const char *name, *problem;
    fac_precision precision;
} texts[] = {
    { "tf32_3x3", "conv2d(f32[64,256,14,14], f32[256,256,3,3], f32[256]) pad=1,1,1,1 {relu}",
      FAC_PRECISION_HIGH },
    { "tf32_1x1_sum",
      "conv2d(f32[64,64,56,56], f32[256,64,1,1], f32[256], f32[64,256,56,56]) {add(_, x1) relu}",
      FAC_PRECISION_HIGH },
    { "tf32_few", "conv2d(f32[64,3,224,224], f32[64,3,7,7], f32[64]) stride=2,2 pad=3,3,3,3 {relu}",
      FAC_PRECISION_HIGH },
    { "split_3x3", "conv2d(f32[64,256,14,14], f32[256,256,3,3], f32[256]) pad=1,1,1,1 {relu}",
      FAC_PRECISION_DEFAULT },
    { "split_7x7", "conv2d(f32[1,512,7,7], f32[512,512,3,3], f32[512]) pad=1,1,1,1 {relu}",
      FAC_PRECISION_DEFAULT },
    { "split_few",
      "conv2d(f32[64,3,224,224], f32[64,3,7,7], f32[64]) stride=2,2 pad=3,3,3,3 {relu}",
      FAC_PRECISION_DEFAULT },
    { "bf16_of_f32", "conv2d(f32[64,256,14,14], f32[256,256,3,3], f32[256]) pad=1,1,1,1 {relu}",
      FAC_PRECISION_MEDIUM },
    { "bf16", "conv2d(bf16[64,256,14,14], bf16[256,256,3,3], bf16[256]) pad=1,1,1,1 {relu}",
      FAC_PRECISION_DEFAULT },
    { "f16_1x1", "conv2d(f16[64,96,14,14], f16[256,96,1,1], f16[256]) {relu}",
      FAC_PRECISION_DEFAULT },
    { "tf32_few_large",
      "conv2d(f32[1,3,224,224], f32[64,3,11,11], f32[64]) stride=4,4 pad=2,2,2,2 {relu}",
      FAC_PRECISION_HIGH },
    { "split_few_large",
      "conv2d(f32[1,3,224,224], f32[64,3,11,11], f32[64]) stride=4,4 pad=2,2,2,2",
      FAC_PRECISION_HIGHEST },
    { "f16_few", "conv2d(f16[8,3,64,64], f16[64,3,3,3]) pad=1,1,1,1", FAC_PRECISION_DEFAULT },
    { "grad_x",
      "conv2d_grad_x(f32[64,128,28,28], f32[128,64,3,3], f32[64,64,56,56]) stride=2,2 pad=1,1,1,1",
      FAC_PRECISION_HIGH },
    { "moments_1x1", "conv2d_moments(f32[64,256,56,56], f32[64,256,1,1])", FAC_PRECISION_HIGH },
    { "moments_3x3", "conv2d_moments(f32[64,256,14,14], f32[256,256,3,3]) pad=1,1,1,1",
      FAC_PRECISION_HIGH },
    { "moments_few", "conv2d_moments(f32[64,3,224,224], f32[64,3,7,7]) stride=2,2 pad=3,3,3,3",
      FAC_PRECISION_HIGH },
    { "moments_bf16", "conv2d_moments(bf16[64,256,14,14], bf16[256,256,1,1])",
      FAC_PRECISION_DEFAULT },
    { "moments_split", "conv2d_moments(f32[1,512,7,7], f32[512,512,3,3]) pad=1,1,1,1",
      FAC_PRECISION_DEFAULT },
    NV_CONV_NORMS,
    { "conv3d", "conv3d(f32[2,32,8,14,14], f32[64,32,3,3,3], f32[64]) pad=1,1,1,1,1,1 {relu}",
      FAC_PRECISION_HIGH },
};

static inline void keep(const char *kind, const char *name, int k, const fac_text *t) {
    const char *folder = getenv("FACULA_KERNELS");
    char path[512];
    if (!folder) return;
    snprintf(path, sizeof path, "%s/%s_%s_%d.cl", folder, kind, name, k);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(t->s, f);
    fclose(f);
}

typedef struct mode {
    const char *type;
    fac_precision precision;
    double tolerance;
    int channels;
} mode;
static const mode modes[] = { { "f32", FAC_PRECISION_HIGH, 2e-3, 4 },
                              { "f32", FAC_PRECISION_HIGHEST, 4e-6, 4 },
                              { "f32", FAC_PRECISION_MEDIUM, 1e-2, 4 },
                              { "bf16", FAC_PRECISION_HIGHEST, 2e-2, 8 },
                              { "f16", FAC_PRECISION_HIGHEST, 3e-3, 8 } };
enum { MODES = sizeof modes / sizeof *modes, FORMS = 6 };

/* One of a few forms with random sizes: windows, strides, dilations, groups, few channels,
 * gradients, transposes, depth. */
static inline void write_problem(int form, const mode *m, char *to, size_t size) {
    static const char *const bodies[] = { "", " {relu}", " {add(_, x1) relu}" };
    const char *t = m->type;
    const int groups = form == 1 ? 2 : 1,
              channels = m->channels * (int)(number(0, 2) ? 4 * number(1, 8) : number(2, 24)),
              few = (int)number(1, 4);
    const int most = form == 2 && number(0, 1)
                         ? 8
                         : 4; /* large windows of few channels: sums that may be split */
    const int rows = 4 * (int)number(1, 40), r = (int)number(most / 2 - 1, most),
              s = (int)number(1, most + 1);
    const int down = (int)number(1, 3);
    const int images = (int)number(1, 4), h = (int)number(10, 24), w = (int)number(10, 24),
              dilation = form == 0 ? (int)number(1, 2) : 1;
    const int pad = (int)number(0, 2), across = (int)number(1, 2), body = (int)number(0, 2);
    const int H = h + 2 * pad - (r - 1) * dilation,
              W = w + 2 * pad - (s - 1) * dilation; /* of y, for stride 1, plus - 1 */
    const int p = (H - 1) / down + 1, q = (W - 1) / across + 1;
    char attrs[128], more[64] = "";
    snprintf(attrs, sizeof attrs, "stride=%d,%d pad=%d,%d,%d,%d dilation=%d,%d groups=%d", down,
             across, pad, pad, pad, pad, dilation, dilation, groups);
    if (body == 2) snprintf(more, sizeof more, ", %s[%d,%d,%d,%d]", t, images, rows * groups, p, q);
    if (form < 3)
        snprintf(to, size, "conv2d(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d], %s[%d]%s) %s%s", t, images,
                 form == 2 ? few : channels * groups, h, w, t, rows * groups,
                 form == 2 ? few : channels, r, s, t, rows * groups, more, attrs, bodies[body]);
    else if (form == 3) /* dy, w, x */
        snprintf(to, size, "conv2d_grad_x(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d], %s[%d,%d,%d,%d]) %s", t,
                 images, channels, p, q, t, channels, rows, r, s, t, images, rows, h, w, attrs);
    else if (form == 4)
        snprintf(
            to, size,
            "conv_transpose2d(%s[%d,%d,%d,%d], %s[%d,%d,3,3], %s[%d]) stride=2,2 pad=1,1,1,1%s", t,
            images, channels, h, w, t, channels, rows, t, rows, body ? " {relu}" : "");
    else
        snprintf(to, size,
                 "conv3d(%s[%d,%d,4,%d,%d], %s[%d,%d,2,3,3], -) stride=1,2,1 pad=1,1,1,1,1,1", t,
                 images, channels, h, w, t, rows, channels);
}
#endif
