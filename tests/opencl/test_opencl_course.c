/* The 40 convolutions that a course holds its students' kernels to (UCSD CSE160, PA6: batch,
 * padding, stride, dilation; images of 224 and 512 pixels, a sprite under an identity, Laplacian
 * and edge filter), forward and both gradients in one program of the OpenCL device with its own
 * choice of solvers, against sums in f64 at the course's 1e-5.  FACULA_OPENCL_SOLVER=name forces
 * one where it takes the problem.  Skipped where no driver is. */
#include "backends/opencl/device/probe.h"
#include "opencl_pair.h"
#include "fresh_seed.h"

typedef enum filter { RANDOM, IDENTITY, LAPLACIAN, LEFT_EDGE } filter;
typedef struct shape {
    int N, C, H, W, K, R, stride[2], pad, dilation[2];
    filter weights;
    float shift;
} shape;
static const shape course[] = {
    /* stride and dilation 1 */
    { 1, 1, 224, 224, 1, 3, { 1, 1 }, 1, { 1, 1 }, RANDOM, 0 },
    { 1, 3, 224, 224, 3, 3, { 1, 1 }, 1, { 1, 1 }, RANDOM, 0 },
    { 1, 3, 224, 224, 3, 9, { 1, 1 }, 1, { 1, 1 }, RANDOM, 0 },
    { 3, 3, 512, 512, 3, 3, { 1, 1 }, 1, { 1, 1 }, RANDOM, 0 },
    { 3, 3, 512, 512, 3, 5, { 1, 1 }, 1, { 1, 1 }, RANDOM, 0 },
    { 3, 3, 512, 512, 5, 3, { 1, 1 }, 1, { 1, 1 }, RANDOM, 0 },
    { 1, 4, 32, 32, 4, 3, { 1, 1 }, 1, { 1, 1 }, IDENTITY, 0 },
    { 1, 4, 32, 32, 1, 3, { 1, 1 }, 1, { 1, 1 }, LAPLACIAN, 0 },
    { 1, 4, 32, 32, 4, 3, { 1, 1 }, 1, { 1, 1 }, LEFT_EDGE, 0 },
    { 1, 4, 32, 32, 4, 3, { 1, 1 }, 1, { 1, 1 }, LAPLACIAN, 0 },
    /* strides */
    { 1, 1, 224, 224, 1, 3, { 2, 2 }, 1, { 1, 1 }, RANDOM, 0 },
    { 1, 1, 224, 224, 1, 3, { 3, 3 }, 1, { 1, 1 }, RANDOM, 0 },
    { 1, 1, 224, 224, 1, 3, { 3, 2 }, 1, { 1, 1 }, RANDOM, -3 },
    { 3, 3, 512, 512, 3, 5, { 2, 2 }, 1, { 1, 1 }, RANDOM, 0 },
    { 3, 3, 512, 512, 3, 5, { 3, 4 }, 1, { 1, 1 }, RANDOM, 0 },
    { 3, 3, 512, 512, 3, 5, { 5, 5 }, 1, { 1, 1 }, RANDOM, 0 },
    { 3, 3, 512, 512, 3, 5, { 5, 5 }, 1, { 1, 1 }, RANDOM, 3 },
    { 1, 4, 32, 32, 4, 3, { 2, 2 }, 1, { 1, 1 }, IDENTITY, 0 },
    { 1, 4, 32, 32, 4, 3, { 1, 1 }, 1, { 1, 1 }, LEFT_EDGE, 0 },
    { 1, 4, 32, 32, 4, 3, { 1, 1 }, 1, { 1, 1 }, LAPLACIAN, 0 },
    /* dilations */
    { 1, 1, 224, 224, 1, 3, { 1, 1 }, 1, { 2, 2 }, RANDOM, 0 },
    { 1, 1, 224, 224, 1, 4, { 1, 1 }, 1, { 2, 2 }, RANDOM, 0 },
    { 1, 1, 224, 224, 1, 3, { 1, 1 }, 1, { 3, 1 }, RANDOM, -3 },
    { 5, 3, 512, 512, 3, 5, { 1, 1 }, 1, { 1, 3 }, RANDOM, 0 },
    { 3, 3, 512, 512, 3, 5, { 1, 1 }, 1, { 2, 3 }, RANDOM, 0 },
    { 3, 3, 512, 512, 3, 3, { 1, 1 }, 1, { 4, 4 }, RANDOM, 0 },
    { 4, 3, 512, 512, 3, 5, { 1, 1 }, 1, { 3, 3 }, RANDOM, 3 },
    { 1, 4, 32, 32, 4, 3, { 1, 1 }, 1, { 2, 2 }, IDENTITY, 0 },
    { 1, 4, 32, 32, 4, 3, { 1, 1 }, 1, { 3, 3 }, LEFT_EDGE, 0 },
    { 1, 4, 32, 32, 4, 3, { 1, 1 }, 1, { 2, 2 }, LAPLACIAN, 0 },
    /* all of it */
    { 1, 1, 224, 224, 1, 3, { 2, 2 }, 1, { 2, 2 }, RANDOM, 0 },
    { 1, 1, 224, 224, 1, 4, { 3, 3 }, 1, { 2, 2 }, RANDOM, 0 },
    { 2, 1, 224, 224, 1, 3, { 3, 3 }, 1, { 3, 3 }, RANDOM, -3 },
    { 5, 3, 512, 512, 3, 5, { 3, 3 }, 1, { 3, 3 }, RANDOM, 0 },
    { 1, 7, 500, 707, 6, 11, { 4, 8 }, 4, { 4, 3 }, RANDOM, 4 },
    { 1, 7, 200, 200, 3, 5, { 3, 2 }, 4, { 3, 5 }, RANDOM, -4 },
    { 3, 12, 224, 224, 24, 5, { 4, 4 }, 4, { 4, 4 }, RANDOM, 0 },
    { 3, 12, 224, 224, 24, 5, { 4, 3 }, 4, { 3, 4 }, RANDOM, 0 },
    { 3, 4, 224, 224, 13, 8, { 4, 3 }, 4, { 3, 4 }, RANDOM, 0 },
    { 3, 4, 224, 224, 13, 3, { 5, 5 }, 4, { 1, 2 }, RANDOM, 0 }
};

static uint64_t seed, stream;

static float *random_floats(size_t n, float shift) {
    float *x = malloc((n + 1) * sizeof *x);
    fac_random_fill(seed, ++stream, shift - 1, shift + 1, n, x);
    return x;
}

static float *weights_of(const shape *s) {
    static const float kinds[][9] = { [IDENTITY] = { 0, 0, 0, 0, 1, 0, 0, 0, 0 },
                                      [LAPLACIAN] = { 0, -1, 0, -1, 4, -1, 0, -1, 0 },
                                      [LEFT_EDGE] = { 1, 0, -1, 2, 0, -2, 1, 0, -1 } };
    const size_t taps = (size_t)(s->R * s->R), kernels = (size_t)(s->K * s->C);
    float *w = random_floats(kernels * taps, 0);
    if (s->weights == RANDOM) return w;
    for (size_t k = 0; k < kernels; k++) /* each channel of the sprite by itself */
        for (size_t i = 0; i < taps; i++)
            w[k * taps + i] = k / (size_t)s->C == k % (size_t)s->C ? kinds[s->weights][i] : 0;
    return w;
}

/* Columns q of y that tap s sees inside of x. */
static void seen(const shape *c, int Q, int s, int *first, int *end) {
    const int at = s * c->dilation[1] - c->pad;
    *first = at < 0 ? (-at + c->stride[1] - 1) / c->stride[1] : 0;
    *end = at >= c->W ? 0 : (c->W - 1 - at) / c->stride[1] + 1;
    if (*end > Q) *end = Q;
}

/* y = conv(x, w), dx and dw for dy, in f64, a row of y at a time. */
static void reference(const shape *c, int P, int Q, const float *x, const float *w, const float *dy,
                      double *y, double *dx, double *dw) {
    for (int n = 0; n < c->N; n++)
        for (int k = 0; k < c->K; k++)
            for (int p = 0; p < P; p++)
                for (int i = 0; i < c->C * c->R * c->R; i++) {
                    const int ch = i / c->R / c->R, r = i / c->R % c->R, s = i % c->R;
                    const int h = p * c->stride[0] + r * c->dilation[0] - c->pad,
                              step = c->stride[1];
                    int first, end;
                    if (h < 0 || h >= c->H) continue;
                    seen(c, Q, s, &first, &end);
                    const ptrdiff_t row = (((ptrdiff_t)n * c->C + ch) * c->H + h) * c->W +
                                          s * c->dilation[1] - c->pad,
                                    to = (((ptrdiff_t)n * c->K + k) * P + p) * Q;
                    const double tap = w[(k * c->C + ch) * c->R * c->R + r * c->R + s];
                    double sum = 0;
                    for (int q = first; q < end; q++) {
                        y[to + q] += tap * (double)x[row + q * step];
                        dx[row + q * step] += tap * (double)dy[to + q];
                        sum += (double)x[row + q * step] * (double)dy[to + q];
                    }
                    dw[(k * c->C + ch) * c->R * c->R + r * c->R + s] += sum;
                }
}

/* 1e-5 of each number and of one, and what adding so many products of up to one rounds off; of the
 * largest, for sums over up to a million products, for those of shifted numbers, which cancel, and
 * where matrix units multiply split numbers. */
static void expect(const shape *c, const char *what, const fac_tensor *got, const double *want,
                   size_t n, bool of_largest) {
    float *x = malloc((n + 1) * sizeof *x);
    double top = 1, rounded = 0x1p-26 * c->C * c->R * c->R;
    OK(fac_tensor_read(got, x, n * sizeof *x, &err));
    for (size_t i = 0; i < n && of_largest; i++) top = fmax(top, fabs(want[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)x[i] - want[i]) <=
              (of_largest ? 1e-5 * top : 1e-5 * (1 + fabs(want[i])) + rounded)))
            fail_msg("%s of %d,%d,%d,%d to %d by %d: element %zu is %.9g, not %.9g", what, c->N,
                     c->C, c->H, c->W, c->K, c->R, i, (double)x[i], want[i]);
    free(x);
}

static fac_tensor *tensor_of(fac_dims dims, const float *x) {
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, FAC_F32, dims, &t, &err));
    OK(fac_tensor_write(t, x, (size_t)fac_dims_count(&dims) * sizeof *x, &err));
    return t;
}

static fac_program *program_of(const shape *c, fac_dims xd, fac_dims wd, fac_dims yd) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, xd), *w = fac_input(g, "w", FAC_F32, wd),
              *dy = fac_input(g, "dy", FAC_F32, yd), *d[2];
    fac_value *y = fac_conv2d(x, w, NULL,
                              &(fac_conv2d_opts){ .stride = { c->stride[0], c->stride[1] },
                                                  .pad = { c->pad, c->pad, c->pad, c->pad },
                                                  .dilation = { c->dilation[0], c->dilation[1] } });
    fac_program *p = NULL;
    fac_grad(fac_sum(fac_mul(y, dy), (fac_dims){ 0 }, false), 2, (fac_value *[]){ x, w }, d);
    fac_output(g, "y", y);
    fac_output(g, "dx", d[0]);
    fac_output(g, "dw", d[1]);
    OK(fac_program_new(g, opencl, &(fac_program_opts){ .solver = getenv("FACULA_OPENCL_SOLVER") },
                       &p, &err));
    fac_graph_free(g);
    return p;
}

static void convolutions_of_a_course(void **state) {
    (void)state;
    NEEDS_DEVICE();
    seed = fresh_seed();
    for (size_t k = 0; k < sizeof course / sizeof *course; k++) {
        const shape *c = &course[k];
        const int P = (c->H + 2 * c->pad - (c->R - 1) * c->dilation[0] - 1) / c->stride[0] + 1;
        const int Q = (c->W + 2 * c->pad - (c->R - 1) * c->dilation[1] - 1) / c->stride[1] + 1;
        const fac_dims xd = fac_shape(c->N, c->C, c->H, c->W),
                       wd = fac_shape(c->K, c->C, c->R, c->R), yd = fac_shape(c->N, c->K, P, Q);
        const size_t nx = (size_t)fac_dims_count(&xd), nw = (size_t)fac_dims_count(&wd),
                     ny = (size_t)fac_dims_count(&yd);
        float *x = random_floats(nx, c->shift), *w = weights_of(c), *dy = random_floats(ny, 0);
        double *y = calloc(ny, sizeof *y), *dx = calloc(nx, sizeof *dx),
               *dw = calloc(nw, sizeof *dw);
        reference(c, P, Q, x, w, dy, y, dx, dw);
        fac_program *p = program_of(c, xd, wd, yd);
        fac_tensor *in[] = { tensor_of(xd, x), tensor_of(wd, w), tensor_of(yd, dy) },
                   *out[3] = { NULL };
        OK(fac_program_run(p, in, out, &err));
        for (int i = 0; i < 3; i++) {
            const fac_type t = fac_tensor_type(out[i]);
            assert_true(fac_dims_equal(&t.dims, (const fac_dims *[]){ &yd, &xd, &wd }[i]));
        }
        expect(c, "y", out[0], y, ny,
               c->shift != 0 || fac_cl_has_path(fac_opencl_of(opencl), FAC_CL_WGMMA));
        expect(c, "dx", out[1], dx, nx, true);
        expect(c, "dw", out[2], dw, nw, true);
        for (int i = 0; i < 3; i++) fac_tensor_free(in[i]), fac_tensor_free(out[i]);
        fac_program_free(p);
        free(x), free(w), free(dy), free(y), free(dx), free(dw);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(convolutions_of_a_course) };
    return cmocka_run_group_tests_name("opencl course", tests, open_devices, close_devices);
}
