/* Batches in slices: which graphs are cut, that every slice gets the same results as the whole batch, and that graphs in which
 * images meet stay whole. */
#include "net_check.h"
#include "run/plan.h"

/* Large enough that a batch does not stay in the cores' own caches. */
static fac_value *trunk(builder *b, fac_value *x) {
    fac_value *y = fac_relu(conv(b, x, 32, 3, 1, 1)), *z = conv(b, y, 32, 3, 1, 32);
    fac_value *both[2] = { fac_add(z, y), conv(b, y, 16, 1, 1, 1) };
    return fac_max_pool2d(fac_concat(both, 2, 1), 3, 3, &(fac_pool2d_opts){ .stride = { 2, 2 }, .pad = { 1, 1, 1, 1 } });
}

static fac_value *head(builder *b, fac_value *x) {
    const int64_t C = fac_value_type(x).dims.d[1];
    return fac_softmax(fac_linear(fac_flatten(fac_mean(x, fac_shape(2, 3), true), 1), param(b, fac_shape(10, C), 1), NULL), 1);
}

enum { SIDE = 40, FLAT = SIDE * SIDE * 3 };
typedef struct net { builder b; fac_value *x; } net;

static net begin(uint64_t seed) {
    net n = { .b = { fac_graph_new(), seed, 0, 0 } };
    n.x = fac_input(n.b.g, "x", FAC_F32, fac_shape(fac_symbol(n.b.g, "N"), 3, SIDE, SIDE));
    return n;
}

/* Images of a slice when the caches hold `near` bytes; the batch where it stays whole. */
static int64_t slice_of(const fac_graph *g, int64_t images, size_t near) {
    fac_tensor *x = random_tensor(1, 1, fac_shape(images, 3, SIDE, SIDE), 1);
    const bool steers[1] = { false };
    fac_error err = { 0 };
    fac_graph *s = fac_specialize(g, steers, &x, &err);
    if (!s) fail_msg("%s", err.text);
    int64_t n = fac_batch_slice(s, near);
    fac_graph_free(s);
    fac_tensor_free(x);
    return n;
}

static void test_which(void **state) {
    (void)state;
    enum { IMAGES = 12, NEAR = 1 << 20 };
    net n = begin(1);
    fac_output(n.b.g, "features", trunk(&n.b, n.x));
    fac_output(n.b.g, "y", head(&n.b, trunk(&n.b, n.x)));
    const int64_t some = slice_of(n.b.g, IMAGES, NEAR);
    assert_true(some < IMAGES && IMAGES % some == 0);
    assert_int_equal(slice_of(n.b.g, IMAGES, 1 << 30), IMAGES);         /* all of it stays near */
    assert_int_equal(slice_of(n.b.g, IMAGES, 0), IMAGES);               /* a device that does not say */
    assert_int_equal(slice_of(n.b.g, 1, NEAR), 1);
    assert_int_equal(slice_of(n.b.g, 13, NEAR), 1);
    fac_graph_free(n.b.g);

    for (int k = 0; k < 9; k++) {               /* images that meet, results that are no images */
        n = begin(2);
        fac_value *y = trunk(&n.b, n.x), *z = NULL;
        switch (k) {
        case 0: z = fac_mean(y, fac_shape(0), true); break;
        case 1: z = fac_softmax(y, 0); break;
        case 2: z = fac_transpose(y, fac_shape(1, 0, 2, 3)); break;
        case 3: z = fac_slice(y, 0, 0, 6, 1); break;
        case 4: z = fac_reshape(y, fac_shape(-1)); break;
        case 5: z = fac_concat((fac_value *[]){ y, y }, 2, 0); break;
        case 6: z = fac_add(y, param(&n.b, fac_shape(IMAGES, 1, 1, 1), 1)); break;
        case 7: z = fac_cum_sum(y, 0, false, false); break;
        default: z = fac_slice(y, 0, -1, -1000, -1);
        }
        fac_output(n.b.g, "y", y);
        fac_output(n.b.g, "z", z);
        fac_error err = { 0 };
        if (fac_graph_check(n.b.g, &err)) fail_msg("%d: %s", k, err.text);
        if (slice_of(n.b.g, IMAGES, NEAR) != IMAGES) fail_msg("case %d was cut", k);
        fac_graph_free(n.b.g);
    }
}

/* Runs whole and in slices: the same bits, into tensors of the caller's and new ones. */
static void compare(fac_device *d, uint64_t seed) {
    for (int64_t images = 4; images <= 14; images += 5) {
        net n = begin(seed);
        fac_value *y = trunk(&n.b, n.x);
        fac_output(n.b.g, "features", y);
        fac_output(n.b.g, "y", head(&n.b, trunk(&n.b, y)));
        fac_output(n.b.g, "image", fac_transpose(fac_mul(n.x, fac_number(n.b.g, FAC_F32, 2)), fac_shape(0, 2, 3, 1)));
        fac_tensor *x = random_tensor(seed, 1, fac_shape(images, 3, SIDE, SIDE), 1);
        const size_t near = d->near;
        d->near = 1 << 19;
        check_network(d, n.b.g, x, seed);
        d->near = near;
        fac_tensor_free(x);
        fac_graph_free(n.b.g);
    }
}

static uint64_t seed;
static void test_compare(void **s) { (void)s, check_everywhere(compare, seed); }

/* The arena is that of a slice, the profile speaks of the batch. */
static void test_plan(void **state) {
    (void)state;
    fac_device *d;
    fac_error err = { 0 };
    if (fac_device_open("cpu", NULL, &d, &err)) fail_msg("%s", err.text);
    double macs[2] = { 0 };
    size_t arena[2];
    for (int cut = 0; cut < 2; cut++) {
        net n = begin(3);
        fac_output(n.b.g, "y", head(&n.b, trunk(&n.b, n.x)));
        fac_tensor *x = random_tensor(3, 1, fac_shape(16, 3, SIDE, SIDE), 1), *y = NULL;
        fac_program *p;
        fac_plan_stat stat;
        d->near = cut ? 1 << 19 : 0;
        if (fac_program_new(n.b.g, d, NULL, &p, &err) || fac_program_plan(p, &x, &stat, &err)) fail_msg("%s", err.text);
        fac_program_profile(p, true);
        if (fac_program_run(p, &x, &y, &err)) fail_msg("%s", err.text);
        fac_step_stat steps[32];
        for (size_t i = 0, all = fac_program_steps(p, steps, 32); i < all; i++) {
            assert_int_equal(steps[i].runs, 1);
            macs[cut] += steps[i].macs;
        }
        arena[cut] = stat.arena;
        assert_int_equal(fac_tensor_type(y).dims.d[0], 16);
        fac_tensor_free(x), fac_tensor_free(y);
        fac_program_free(p);
        fac_graph_free(n.b.g);
    }
    assert_true(macs[0] > 0 && macs[0] == macs[1]);
    assert_true(arena[1] < arena[0] / 2);
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_which), cmocka_unit_test(test_compare), cmocka_unit_test(test_plan) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
