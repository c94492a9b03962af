/* Convolutions that give statistics of what they make, by solvers of NVIDIA's matrix units, where
 * these work. */
#include "opencl_solver_check.h"
#include "graph/attr.h"
#include "backends/opencl/nvidia/conv/conv_rows.h"
#include "backends/opencl/nvidia/conv/conv_stream.h"
#include "opencl_solvers.h"
#include "op_list.h"

enum { VARIANTS = 12 };

/* Mean and variance of what is made, and the sums of gradients: first layers, groups, ragged
 * channels, sums in parts, a mean far from zero. */
static const struct statistics {
    const char *problem;
    fac_precision precision;
    double lo, tolerance;
} statistics[] = {
    { "conv2d_moments(f32[5,3,37,41], f32[20,3,7,7], f32[20]) stride=2,2 pad=3,3,3,3",
      FAC_PRECISION_HIGH, -1, 2e-3 },
    { "conv2d_moments(f32[3,24,13,11], f32[36,12,3,3], f32[36]) pad=1,1,1,1 groups=2",
      FAC_PRECISION_HIGH, -1, 2e-3 },
    { "conv2d_moments(f32[1,256,14,14], f32[128,256,3,3], f32[128]) pad=1,1,1,1",
      FAC_PRECISION_HIGH, -1, 2e-3 },
    { "conv2d_moments(bf16[2,256,14,13], bf16[200,256,3,3], bf16[200]) pad=1,1,1,1",
      FAC_PRECISION_HIGH, -1, 2e-2 },
    { "conv2d_moments(f32[4,16,19,23], f32[140,16,1,1], f32[140])", FAC_PRECISION_HIGHEST, 10,
      2e-3 },
    { "conv2d_moments(f32[2,64,9,7], f32[64,64,3,3], f32[64]) stride=2,1 pad=1,1,1,1",
      FAC_PRECISION_HIGHEST, -1, 2e-5 },
    /* gradients: masks by numbers that are operands, or made of some (away_from_limits) */
    { "conv2d_grad_x_norm(f32[3,36,13,11], f32[36,28,3,3], f32[3,28,13,11], f32[3,28,13,11], "
      "f32[28], f32[28], f32[28], "
      "f32[28], f32[3,28,13,11], f32[3,28,13,11]) pad=1,1,1,1 epsilon=0.1 lo=0.7 hi=inf",
      FAC_PRECISION_HIGH, 0.1, 2e-3 },
    { "conv2d_grad_x_norm(f32[2,64,9,7], f32[64,132,1,1], f32[2,132,9,7], f32[2,132,9,7], "
      "f32[132], f32[132], f32[132], "
      "f32[132]) epsilon=0.1 lo=0.7 hi=3",
      FAC_PRECISION_HIGHEST, 0.1, 2e-5 },
    { "conv2d_grad_x_norm(bf16[4,64,19,7], bf16[64,72,3,3], bf16[4,72,19,7], bf16[4,72,19,7], "
      "f32[72], f32[72], f32[72], "
      "f32[72], bf16[4,72,19,7]) pad=1,1,1,1 epsilon=0.1 lo=-inf hi=inf",
      FAC_PRECISION_HIGH, 0.1, 2e-2 },
    { "conv2d_grad_x_norm(f32[5,256,14,14], f32[256,64,1,1], f32[5,64,14,14], f32[5,64,14,14], "
      "f32[64], f32[64], f32[64], "
      "f32[64]) epsilon=0.1 lo=-inf hi=inf",
      FAC_PRECISION_HIGH, 0.1, 2e-3 },
    /* what is added has every second, every third pixel alone */
    { "conv2d_grad_x_norm(f32[3,64,13,12], f32[64,136,1,1], f32[3,136,13,12], f32[3,136,13,12], "
      "f32[136], f32[136], f32[136], "
      "f32[136], f32[3,136,7,6], f32[3,136,13,12]) epsilon=0.1 lo=0.7 hi=inf apart=2",
      FAC_PRECISION_HIGH, 0.1, 2e-3 },
    { "conv2d_grad_x_norm(bf16[2,64,11,10], bf16[64,72,3,3], bf16[2,72,11,10], bf16[2,72,11,10], "
      "f32[72], f32[72], f32[72], "
      "f32[72], bf16[2,72,4,4]) pad=1,1,1,1 epsilon=0.1 lo=-inf hi=inf apart=3",
      FAC_PRECISION_HIGH, 0.1, 2e-2 },
    /* masks as bits, whose pixels are whole pieces of 16 bytes or not */
    { "conv2d_grad_x_norm(f32[3,36,13,11], f32[36,28,3,3], f32[3,28,13,11], f32[3,28,13,11], "
      "f32[28], f32[28], f32[28], "
      "f32[28], f32[3,28,13,11], -, u8[3,7,13,11]) pad=1,1,1,1 epsilon=0.1 lo=0 hi=inf",
      FAC_PRECISION_HIGH, 0.1, 2e-3 },
    { "conv2d_grad_x_norm(f32[5,64,14,14], f32[64,320,1,1], f32[5,320,14,14], f32[5,320,14,14], "
      "f32[320], f32[320], f32[320], "
      "f32[320], f32[5,320,14,14], -, u8[5,80,14,14]) epsilon=0.1 lo=0 hi=inf",
      FAC_PRECISION_HIGH, 0.1, 2e-3 },
    { "conv2d_grad_x_norm(f32[2,64,9,7], f32[64,132,1,1], f32[2,132,9,7], f32[2,132,9,7], "
      "f32[132], f32[132], f32[132], "
      "f32[132], -, -, u8[2,33,9,7]) epsilon=0.1 lo=0 hi=inf",
      FAC_PRECISION_HIGHEST, 0.1, 2e-5 },
    { "conv2d_grad_x_norm(f32[3,64,13,12], f32[64,128,1,1], f32[3,128,13,12], f32[3,128,13,12], "
      "f32[128], f32[128], f32[128], "
      "f32[128], f32[3,128,7,6], -, u8[3,32,13,12]) epsilon=0.1 lo=0 hi=inf apart=2",
      FAC_PRECISION_HIGH, 0.1, 2e-3 },
    { "conv2d_grad_x_norm(bf16[4,64,19,7], bf16[64,72,3,3], bf16[4,72,19,7], bf16[4,72,19,7], "
      "f32[72], f32[72], f32[72], "
      "f32[72], bf16[4,72,19,7], -, u8[4,18,19,7]) pad=1,1,1,1 epsilon=0.1 lo=0 hi=inf",
      FAC_PRECISION_HIGH, 0.1, 2e-2 },
    { "conv2d_grad_x_norm(f32[3,64,14,12], f32[64,256,3,3], f32[3,256,28,23], f32[3,256,28,23], "
      "f32[256], f32[256], f32[256], "
      "f32[256], f32[3,256,28,23], -, u8[3,64,28,23]) stride=2,2 pad=1,1,1,1 epsilon=0.1 lo=0 "
      "hi=inf",
      FAC_PRECISION_HIGH, 0.1, 2e-3 },
    { "conv2d_grad_x_norm(f32[7,32,56,53], f32[32,128,1,1], f32[7,128,56,53], f32[7,128,56,53], "
      "f32[128], f32[128], f32[128], "
      "f32[128], f32[7,128,56,53], -, u8[7,32,56,53]) epsilon=0.1 lo=0 hi=inf",
      FAC_PRECISION_HIGH, 0.1, 2e-3 },
    /* phases: all of them in one sum */
    { "conv2d_grad_x_norm(f32[3,64,14,12], f32[64,96,3,3], f32[3,96,28,23], f32[3,96,28,23], "
      "f32[96], f32[96], f32[96], "
      "f32[96]) stride=2,2 pad=1,1,1,1 epsilon=0.1 lo=-inf hi=inf",
      FAC_PRECISION_HIGH, 0.1, 2e-3 },
    { "conv2d_grad_x_norm(f32[9,40,29,27], f32[40,200,3,3], f32[9,200,57,53], f32[9,200,57,53], "
      "f32[200], f32[200], f32[200], "
      "f32[200], f32[9,200,57,53]) stride=2,2 pad=1,1,1,1 epsilon=0.1 lo=-inf hi=inf",
      FAC_PRECISION_HIGH, 0.1, 2e-3 },
    { "conv2d_grad_x_norm(f32[3,64,29,53], f32[64,96,1,1], f32[3,96,57,53], f32[3,96,57,53], "
      "f32[96], f32[96], f32[96], "
      "f32[96]) stride=2,1 epsilon=0.1 lo=-inf hi=inf",
      FAC_PRECISION_HIGH, 0.1, 2e-3 },
    /* groups of items take several tiles and keep what they have seen */
    { "conv2d_moments(f32[9,32,56,53], f32[136,32,1,1])", FAC_PRECISION_HIGH, -1, 2e-3 },
    { "conv2d_grad_x_norm(f32[7,32,56,53], f32[32,128,1,1], f32[7,128,56,53], f32[7,128,56,53], "
      "f32[128], f32[128], f32[128], "
      "f32[128], f32[7,128,56,53], f32[7,128,56,53]) epsilon=0.1 lo=0.7 hi=inf",
      FAC_PRECISION_HIGH, 0.1, 2e-3 }
};

/* conv2d_grad_x_norm without y makes it of x: one at a limit may fall on either side of it, so it
 * is moved, a hundred times as far as solvers may err.  Bits are any. */
static void away_from_limits(const fac_node *n, const fac_host *in) {
    enum { X = 3, MEAN, VAR, SCALE, BIAS, Y = 9, MASK };
    double lo = 0, hi = 0, epsilon = 0;
    const bool bits = n->nin > MASK && in[MASK].data;
    for (int64_t i = 0; bits && i < fac_dims_count(&in[MASK].type.dims); i++)
        ((uint8_t *)in[MASK].data)[i] = (uint8_t)(fac_random_bits(seed, stream, (uint64_t)i) & 15);
    if (bits) return;
    if (!FAC_IS(n, conv2d_grad_x_norm) || (n->nin > Y && in[Y].data) || in[X].type.dtype != FAC_F32)
        return;
    fac_attr_get_real(n, "lo", &lo), fac_attr_get_real(n, "hi", &hi),
        fac_attr_get_real(n, "epsilon", &epsilon);
    const fac_dims *d = &in[X].type.dims;
    float *x = in[X].data;
    for (int64_t i = 0; i < fac_dims_count(d); i++) {
        const int64_t c = i / (d->d[2] * d->d[3]) % d->d[1];
        const double each = (double)((float *)in[SCALE].data)[c] /
                            sqrt((double)((float *)in[VAR].data)[c] + epsilon),
                     y = ((double)x[i] - (double)((float *)in[MEAN].data)[c]) * each +
                         (double)((float *)in[BIAS].data)[c];
        if (fabs(y - lo) < 1e-3 || fabs(y - hi) < 1e-3) x[i] += (float)(0.01 / each);
    }
}

/* By one solver in some of its variants; all with FACULA_ALL. */
static void solve_all(const fac_solver *solver, int variants) {
    int taken_all = 0;
    of_largest = true;
    decide = away_from_limits;
    for (size_t i = 0; i < sizeof statistics / sizeof *statistics; i++) {
        const struct statistics *s = &statistics[i];
        fac_graph *g = NULL;
        const fac_case c = { s->problem, s->lo, s->lo + 2, s->tolerance };
        bool taken = false;
        OK(fac_problem_graph(c.problem, false, &g, &err));
        precision = s->precision;
        for (int k = 0; k <= (getenv("FACULA_ALL") ? variants : 2); k++) {
            variant = getenv("FACULA_ALL") || !k
                          ? k
                          : 1 + (int)(fac_random_bits(seed, ++stream, 0) % (uint64_t)variants);
            channels_last = fac_random_bits(seed, ++stream, 0) & 1;
            if (!solve(solver, g->last, &c, false)) continue;
            print_message("%-3d %.1e  %s\n", variant, worst, c.problem);
            taken = true;
        }
        taken_all += taken;
        fac_graph_free(g);
    }
    variant = 0;
    precision = FAC_PRECISION_DEFAULT;
    assert_true(taken_all >= 6);
}

/* What parts leave becomes statistics; on any device. */
static void parts_are_joined(void **state) {
    (void)state;
    if (!device) skip();
    enum { CHANNELS = 20 };
    for (int turn = 0; turn < 4; turn++) {
        const bool sums = turn & 1;
        const fac_nv_moments m = { turn & 2 ? 1400 : 70, CHANNELS };
        const fac_nv_conv c = { .sums = sums, .norm.epsilon = 0.25 };
        const size_t numbers = fac_nv_moments_bytes(&m) / sizeof(float);
        float *from = contents((fac_type){ FAC_F32, fac_shape((int64_t)numbers) }, 3, 5),
              made[2][CHANNELS];
        float *counts = from + m.parts * 2 * CHANNELS, var[CHANNELS];
        fac_span at = { 0 }, in[6] = { { 0 } }, to[3] = { { 0 } };
        fac_cl_kernel kernel;
        for (int64_t i = 0; i < m.parts; i++) counts[i] = (float)(i % 9 ? 64 : i % 5);
        for (int k = 0; k < CHANNELS; k++) var[k] = (float)k;
        OK(fac_device_alloc(device, numbers * sizeof *from, &at.memory, &err));
        OK(fac_device_alloc(device, sizeof var, &in[5].memory, &err));
        for (int k = 1; k < 3; k++) OK(fac_device_alloc(device, sizeof var, &to[k].memory, &err));
        OK(device->backend->write(device, at, from, numbers * sizeof *from, &err));
        OK(device->backend->write(device, in[5], var, sizeof var, &err));
        OK(fac_nv_moments_make(fac_opencl_of(device), &c, &m, &kernel, &err));
        OK(fac_nv_moments_run(fac_opencl_of(device), &c, &m, &kernel, at, in, to, &err));
        for (int k = 1; k < 3; k++)
            OK(device->backend->read(device, to[k], made[k - 1], sizeof var, &err));
        for (int k = 0; k < CHANNELS; k++) {
            double n = 0, sum = 0, square = 0, mean, want[2];
            for (int64_t i = 0; i < m.parts; i++) {
                const double weight = sums ? 1 : (double)counts[i];
                n += weight;
                sum += weight * (double)from[i * 2 * CHANNELS + k];
            }
            mean = sum / n;
            for (int64_t i = 0; i < m.parts; i++) {
                const double d = (double)from[i * 2 * CHANNELS + k] - mean;
                square += (double)from[(i * 2 + 1) * CHANNELS + k] +
                          (sums ? 0 : (double)counts[i] * d * d);
            }
            want[0] = sums ? square / sqrt((double)var[k] + 0.25) : mean;
            want[1] = sums ? sum : square / n;
            for (int j = 0; j < 2; j++)
                if (!(fabs((double)made[j][k] - want[j]) <= 2e-6 * fabs(want[j])))
                    fail_msg("turn %d, channel %d: %.9g, not %.9g", turn, k, (double)made[j][k],
                             want[j]);
        }
        fac_cl_kernel_free(fac_opencl_of(device), &kernel);
        fac_device_release(device, at.memory, numbers * sizeof *from);
        fac_device_release(device, in[5].memory, sizeof var);
        for (int k = 1; k < 3; k++) fac_device_release(device, to[k].memory, sizeof var);
        free(from);
    }
}

static void by_rows(void **state) {
    (void)state;
    if (!device || !fac_cl_has_path(fac_opencl_of(device), FAC_CL_WGMMA)) skip();
    solve_all(&fac_cl_conv_wgmma, VARIANTS);
}

static void by_stream(void **state) {
    (void)state;
    if (!device || !fac_cl_has_path(fac_opencl_of(device), FAC_CL_WGMMA)) skip();
    solve_all(&fac_cl_conv_wgmma_stream, fac_nv_stream_variants());
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(parts_are_joined),
                                        cmocka_unit_test(by_stream), cmocka_unit_test(by_rows) };
    return cmocka_run_group_tests_name("nv_moments", tests, open_device, close_device);
}
