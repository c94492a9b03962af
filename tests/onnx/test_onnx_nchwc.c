/* Images in blocks of channels, as ONNX Runtime's optimizer saves them (com.microsoft.nchwc):
 * weights whose memory is in blocks of 8, against the same network of ordinary weights. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "onnx_check.h"
#include "base/rng.h"
#include "facula/facula.h"
#include "fresh_seed.h"

enum { BLOCK = 8, MOST = 24 * 16 * 9 };
#define NCHWC "com.microsoft.nchwc"

static uint64_t seed, drawn;

typedef struct weight {
    int64_t K, C, R;
    float x[MOST];
} weight;

static weight drawn_weight(int64_t K, int64_t C, int64_t R) {
    weight w = { K, C, R, { 0 } };
    fac_random_fill(seed, drawn++, -1, 1, (size_t)(K * C * R * R), w.x);
    return w;
}

/* Adds it as an initializer, in blocks of outputs and of `inner` inputs. */
static void put(bytes *g, const char *name, const weight *w, int64_t inner) {
    float blocked[MOST];
    char dims[64];
    const int64_t taps = w->R * w->R;
    for (int64_t k = 0; k < w->K; k++)
        for (int64_t c = 0; c < w->C; c++)
            for (int64_t t = 0; t < taps; t++) {
                const int64_t outer = k / BLOCK * (w->C / inner) + c / inner;
                const int64_t at = ((outer * taps + t) * inner + c % inner) * BLOCK + k % BLOCK;
                blocked[at] = w->x[(k * w->C + c) * taps + t];
            }
    snprintf(dims, sizeof dims, "%d,%d,%d,%d", (int)w->K, (int)w->C, (int)w->R, (int)w->R);
    w_sub(g, INITIALIZER, w_tensor_f32(name, dims, blocked, (size_t)(w->K * w->C * taps)));
}

static bytes blocked_node(const char *type, const char *ins, const char *outs) {
    return domain(node(type, ins, outs), NCHWC);
}

static void put_text(bytes *n, const char *name, const char *text) {
    bytes a = w_attr(name, 3);
    w_text(&a, 4, text);
    w_sub(n, ATTRIBUTE, a);
}

static void put_ints(bytes *n, const char *name, const int64_t *x, int count) {
    bytes a = w_attr(name, 7);
    for (int k = 0; k < count; k++) w_int(&a, 8, x[k]);
    w_sub(n, ATTRIBUTE, a);
}

static bytes conv(const char *ins, const char *outs, int64_t groups, const char *activation) {
    bytes n = blocked_node("Conv", ins, outs);
    w_attr_int(&n, "group", groups);
    if (activation) put_text(&n, "activation", activation);
    return n;
}

static bytes model_of(bytes graph) {
    bytes m = w_model(graph, 8, 17);
    w_opset(&m, 8, NCHWC, 1);
    return m;
}

static fac_value *constant(fac_graph *g, const weight *w) {
    fac_tensor *t;
    fac_error err = { 0 };
    const fac_dims d = fac_shape(w->K, w->C, w->R, w->R);
    if (fac_tensor_new(NULL, FAC_F32, d, &t, &err) ||
        fac_tensor_write(t, w->x, (size_t)fac_dims_count(&d) * sizeof(float), &err))
        fail_msg("%s", err.text);
    fac_value *v = fac_const(g, t);
    fac_tensor_free(t);
    return v;
}

static fac_tensor *run(fac_graph *g, fac_device *d, fac_tensor *x) {
    fac_program *p;
    fac_tensor *y = NULL;
    fac_error err = { 0 };
    if (fac_program_new(g, d, NULL, &p, &err) || fac_program_run(p, &x, &y, &err))
        fail_msg("%s", err.text);
    fac_program_free(p);
    fac_graph_free(g);
    return y;
}

static void same(fac_graph *a, fac_graph *b, fac_dims dims) {
    fac_device *cpu;
    fac_tensor *x = NULL;
    fac_error err = { 0 };
    float numbers[512];
    const size_t n = (size_t)fac_dims_count(&dims);
    fac_random_fill(seed, drawn++, -1, 1, n, numbers);
    if (fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &cpu, &err) ||
        fac_tensor_borrow(FAC_F32, dims, NULL, numbers, NULL, NULL, &x, &err))
        fail_msg("%s", err.text);
    fac_tensor *got = run(a, cpu, x), *want = run(b, cpu, x);
    const fac_type a_type = fac_tensor_type(got), b_type = fac_tensor_type(want);
    assert_true(fac_dims_equal(&a_type.dims, &b_type.dims));
    const int64_t count = fac_dims_count(&a_type.dims);
    const float *p = fac_tensor_data(got), *q = fac_tensor_data(want);
    for (int64_t k = 0; k < count; k++)
        if (!(fabsf(p[k] - q[k]) <= 1e-5f))
            fail_msg("[%d] is %g, not %g", (int)k, (double)p[k], (double)q[k]);
    fac_tensor_free(got);
    fac_tensor_free(want);
    fac_tensor_free(x);
    fac_device_free(cpu);
}

/* An ordinary image, blocks of inputs, a depthwise convolution, a pool; at last 20 channels. */
static void network(void **state) {
    (void)state;
    const weight first = drawn_weight(8, 3, 1), second = drawn_weight(24, 8, 1);
    const weight deep = drawn_weight(24, 1, 3);
    bytes m = { 0 }, last = blocked_node("ReorderOutput", "p", "y");
    in(&m, "x", "1,3,6,6");
    put(&m, "w1", &first, 1);
    put(&m, "w2", &second, BLOCK);
    put(&m, "w3", &deep, 1);
    add(&m, conv("x,w1", "a", 1, "Relu"));
    add(&m, conv("a,w2", "b", 1, NULL));
    add(&m, conv("b,w3", "c", 24, "Relu"));
    bytes pool = blocked_node("MaxPool", "c", "p");
    put_ints(&pool, "kernel_shape", (int64_t[]){ 2, 2 }, 2);
    put_ints(&pool, "strides", (int64_t[]){ 2, 2 }, 2);
    add(&m, pool);
    w_attr_int(&last, "channels", 20);
    w_attr_int(&last, "channels_last", 1);
    add(&m, last);
    out(&m, "y");
    fac_graph *g = fac_graph_new();
    fac_value *v = fac_input(g, "x", FAC_F32, fac_shape(1, 3, 6, 6));
    v = fac_relu(fac_conv2d(v, constant(g, &first), NULL, NULL));
    v = fac_conv2d(v, constant(g, &second), NULL, NULL);
    v = fac_relu(fac_conv2d(v, constant(g, &deep), NULL, &(fac_conv2d_opts){ .groups = 24 }));
    v = fac_max_pool2d(v, 2, 2, &(fac_pool2d_opts){ .stride = { 2, 2 } });
    v = fac_transpose(fac_slice(v, 1, 0, 20, 1), fac_shape(0, 2, 3, 1));
    fac_output(g, "y", v);
    same(load_with(model_of(m), NULL), g, fac_shape(1, 3, 6, 6));
}

/* Ten channels become sixteen, zeros after them; what is added comes before the activation. */
static void filled_up(void **state) {
    (void)state;
    weight w = drawn_weight(8, 16, 3);
    bytes m = { 0 }, first = blocked_node("ReorderInput", "x", "a");
    in(&m, "x", "1,5,4,10");
    put(&m, "w", &w, BLOCK);
    w_attr_int(&first, "channels_last", 1);
    add(&m, first);
    add(&m, conv("a,w", "b", 1, NULL));
    add(&m, conv("a,w,,b", "c", 1, "Relu"));
    bytes up = blocked_node("Upsample", "c", "y");
    put_ints(&up, "scales", (int64_t[]){ 1, 1, 2, 3 }, 4);
    add(&m, up);
    out(&m, "y");
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(1, 5, 4, 10));
    fac_value *some = fac_slice(constant(g, &w), 1, 0, 10, 1);
    fac_value *v = fac_conv2d(fac_transpose(x, fac_shape(0, 3, 1, 2)), some, NULL, NULL);
    const fac_interpolate_opts o = { .coordinates = FAC_INTERPOLATE_ASYMMETRIC,
                                     .rounding = FAC_INTERPOLATE_FLOOR,
                                     .scales = { 4, { 1, 1, 2, 3 } } };
    fac_output(g, "y", fac_interpolate(fac_relu(fac_add(v, v)), NULL, &o));
    same(load_with(model_of(m), NULL), g, fac_shape(1, 5, 4, 10));
}

static void no_whole_blocks(void **state) {
    (void)state;
    const weight w = drawn_weight(12, 3, 1);
    bytes m = { 0 };
    in(&m, "x", "1,3,6,6");
    w_sub(&m, INITIALIZER, w_tensor_f32("w", "12,3,1,1", w.x, 36));
    add(&m, conv("x,w", "y", 1, NULL));
    out(&m, "y");
    refuses_with(model_of(m), NULL, FAC_E_FORMAT, "expected weights K,C,R,S with K whole blocks");
}

int main(void) {
    seed = fresh_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(network),
        cmocka_unit_test(filled_up),
        cmocka_unit_test(no_whole_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
