/* Concats of the OpenCL device whose parts are written to their places, plain and with channels
 * last: networks with branches against the reference kernels; that nothing is copied where nothing
 * needs to be.  Skipped where no driver is. */
#include "net_check.h"
#include "backends/opencl/device/opencl.h"
#include "fresh_seed.h"
#include "opencl_check.h"

static fac_device *device;

static int open_device(void **state) {
    fac_error err = { 0 };
    (void)state;
    return opencl_open(&device, &err);
}

static int close_device(void **state) {
    (void)state;
    fac_device_free(device);
    return 0;
}

static fac_value *pooled(fac_value *x) {
    return fac_max_pool2d(x, 3, 3, &(fac_pool2d_opts){ .stride = { 1, 1 }, .pad = { 1, 1, 1, 1 } });
}

static fac_value *depthwise(builder *b, fac_value *x) {
    const int64_t C = fac_value_type(x).dims.d[1];
    return conv(b, x, C, 3, 1, C);
}

/* As in GoogLeNet; a channel too many now and then, which fours do not divide. */
static fac_value *inception(builder *b, fac_value *x) {
    const int64_t step = pick(b, 0, 3) ? 8 : pick(b, 1, 12);
    fac_value *v[4];
    v[0] = activation(b, conv(b, x, step * pick(b, 1, 3), 1, 1, 1));
    v[1] = activation(b, depthwise(b, conv(b, x, step, 1, 1, 1)));
    v[2] = pooled(x);
    v[3] = pick(b, 0, 1) ? conv(b, v[2], pick(b, 1, 20), 1, 1, 1) : depthwise(b, v[0]);
    return fac_concat(v, 4, 1);
}

/* As in DenseNet: growing, each whole a part of the next. */
static fac_value *dense(builder *b, fac_value *x) {
    fac_value *y = fac_relu(conv(b, x, pick(b, 0, 3) ? 16 : 15, 1, 1, 1));
    for (int k = 0; k < 3; k++)
        y = fac_concat((fac_value *[]){ y, depthwise(b, conv(b, fac_relu(y), 8, 1, 1, 1)) }, 2, 1);
    return y;
}

/* As in ShuffleNet: one half goes through, channels are dealt out anew; and parts that cannot be
 * made in place. */
static fac_value *shuffle(builder *b, fac_value *x) {
    fac_value *y = activation(b, conv(b, x, 24, 1, 1, 1)), *half[2];
    fac_split(y, 1, 2, half);
    y = fac_concat((fac_value *[]){ half[0], depthwise(b, conv(b, half[1], 12, 1, 1, 1)) }, 2, 1);
    const fac_dims d = fac_value_type(y).dims;
    y = fac_transpose(fac_reshape(y, fac_shape(d.d[0], 2, d.d[1] / 2, d.d[2], d.d[3])),
                      fac_shape(0, 2, 1, 3, 4));
    y = fac_reshape(y, d);
    return fac_concat((fac_value *[]){ y, pooled(y), y }, 3, 1);
}

static fac_graph *network(uint64_t seed, fac_dims *shape) {
    builder b = { fac_graph_new(), seed, 0, 0 };
    *shape = fac_shape(pick(&b, 1, 3), 4 * pick(&b, 1, 5), pick(&b, 5, 20), pick(&b, 5, 20));
    fac_value *x = fac_input(b.g, "x", FAC_F32, *shape);
    for (int k = 0; k < 2; k++) switch (pick(&b, 0, 2)) {
        case 0:
            x = inception(&b, x);
            break;
        case 1:
            x = dense(&b, x);
            break;
        default:
            x = shuffle(&b, x);
        }
    fac_output(b.g, "before", x);
    fac_output(b.g, "y", fac_mean(conv(&b, x, 20, 1, 1, 1), fac_shape(2, 3), false));
    return b.g;
}

/* Kernels for a cpu and for a GPU; solvers that lay channels last are asked for by name, since
 * estimates may not choose them. */
static void networks(void **state) {
    static const char *const only[] = { NULL, "conv/depthwise", "pool/quads" };
    (void)state;
    if (!device) skip();
    const uint64_t seed = fresh_seed();
    const int count = getenv("FACULA_ALL") ? 30 : 3;
    for (int k = 0; k < count; k++) {
        fac_dims shape;
        fac_graph *g = network(seed + (uint64_t)k, &shape);
        fac_tensor *x = random_tensor(seed + (uint64_t)k, 1, shape, 1);
        fac_opencl_of(device)->limits.gpu = k % 3 > 0;
        check_network_by(device, g, x, seed + (uint64_t)k, only[k % 3]);
        fac_tensor_free(x);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(networks) };
    return cmocka_run_group_tests_name("opencl concat", tests, open_device, close_device);
}
