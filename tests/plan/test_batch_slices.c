/* Batches in slices: which graphs are cut, that every slice gets the same results as the whole
 * batch, and that graphs in which images meet stay whole.  Stages: where later layers do more
 * images at once, results are the same, too. */
#include "net_check.h"
#include "plan/plan.h"

/* Large enough that a batch does not stay in the cores' own caches. */
static fac_value *trunk(builder *b, fac_value *x) {
    fac_value *y = fac_relu(conv(b, x, 32, 3, 1, 1)), *z = conv(b, y, 32, 3, 1, 32);
    fac_value *both[2] = { fac_add(z, y), conv(b, y, 16, 1, 1, 1) };
    return fac_max_pool2d(fac_concat(both, 2, 1), 3, 3,
                          &(fac_pool2d_opts){ .stride = { 2, 2 }, .pad = { 1, 1, 1, 1 } });
}

static fac_value *head(builder *b, fac_value *x) {
    const int64_t C = fac_value_type(x).dims.d[1];
    return fac_softmax(fac_linear(fac_flatten(fac_mean(x, fac_shape(2, 3), true), 1),
                                  param(b, fac_shape(10, C), 1), NULL),
                       1);
}

enum { SIDE = 40, FLAT = SIDE * SIDE * 3 };
typedef struct net {
    builder b;
    fac_value *x;
} net;

static net begin(uint64_t seed) {
    net n = { .b = { fac_graph_new(), seed, 0, 0 } };
    n.x = fac_input(n.b.g, "x", FAC_F32, fac_shape(fac_symbol(n.b.g, "N"), 3, SIDE, SIDE));
    return n;
}

/* Images of a slice when the caches hold `near` bytes; the batch where it stays whole.  *changes:
 * how often it becomes more; each time to a multiple.  It may be NULL. */
static int64_t slice_of(const fac_graph *g, int64_t images, size_t near, int *changes) {
    fac_tensor *x = random_tensor(1, 1, fac_shape(images, 3, SIDE, SIDE), 1);
    const bool steers[1] = { false };
    fac_error err = { 0 };
    fac_graph *s = fac_specialize(g, steers, &x, &err);
    if (!s) fail_msg("%s", err.text);
    int64_t *after = calloc((size_t)s->nodes, sizeof *after), n = fac_batch_slice(s, near, after),
            now = n;
    if (changes) *changes = 0;
    for (int k = 0; k < s->nodes; k++) {
        if (!after[k]) continue;
        assert_true(after[k] > now && after[k] % now == 0 && images % after[k] == 0);
        now = after[k];
        if (changes) ++*changes;
    }
    free(after);
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
    const int64_t some = slice_of(n.b.g, IMAGES, NEAR, NULL);
    assert_true(some < IMAGES && IMAGES % some == 0);
    assert_int_equal(slice_of(n.b.g, IMAGES, 1 << 30, NULL), IMAGES); /* all of it stays near */
    assert_int_equal(slice_of(n.b.g, IMAGES, 0, NULL), IMAGES); /* a device that does not say */
    assert_int_equal(slice_of(n.b.g, 1, NEAR, NULL), 1);
    assert_int_equal(slice_of(n.b.g, 13, NEAR, NULL), 1);
    fac_graph_free(n.b.g);

    for (int k = 0; k < 9; k++) { /* images that meet, results that are no images */
        n = begin(2);
        fac_value *y = trunk(&n.b, n.x), *z = NULL;
        switch (k) {
        case 0:
            z = fac_mean(y, fac_shape(0), true);
            break;
        case 1:
            z = fac_softmax(y, 0);
            break;
        case 2:
            z = fac_transpose(y, fac_shape(1, 0, 2, 3));
            break;
        case 3:
            z = fac_slice(y, 0, 0, 6, 1);
            break;
        case 4:
            z = fac_reshape(y, fac_shape(-1));
            break;
        case 5:
            z = fac_concat((fac_value *[]){ y, y }, 2, 0);
            break;
        case 6:
            z = fac_add(y, param(&n.b, fac_shape(IMAGES, 1, 1, 1), 1));
            break;
        case 7:
            z = fac_cum_sum(y, 0, false, false);
            break;
        default:
            z = fac_slice(y, 0, -1, -1000, -1);
        }
        fac_output(n.b.g, "y", y);
        fac_output(n.b.g, "z", z);
        fac_error err = { 0 };
        if (fac_graph_check(n.b.g, &err)) fail_msg("%d: %s", k, err.text);
        if (slice_of(n.b.g, IMAGES, NEAR, NULL) != IMAGES) fail_msg("case %d was cut", k);
        fac_graph_free(n.b.g);
    }
}

/* So many images, where the caches hold `near` bytes, against the reference; the network is gone
 * then. */
static void check_slices(fac_device *d, net *n, int64_t images, size_t near, uint64_t seed) {
    fac_tensor *x = random_tensor(seed, 1, fac_shape(images, 3, SIDE, SIDE), 1);
    const size_t before = d->near;
    d->near = near;
    check_network(d, n->b.g, x, seed);
    d->near = before;
    fac_tensor_free(x);
    fac_graph_free(n->b.g);
}

static void compare(fac_device *d, uint64_t seed) {
    for (int64_t images = 4; images <= 14; images += 5) {
        net n = begin(seed);
        fac_value *y = trunk(&n.b, n.x);
        fac_output(n.b.g, "features", y);
        fac_output(n.b.g, "y", head(&n.b, trunk(&n.b, y)));
        fac_output(
            n.b.g, "image",
            fac_transpose(fac_mul(n.x, fac_number(n.b.g, FAC_F32, 2)), fac_shape(0, 2, 3, 1)));
        check_slices(d, &n, images, 1 << 19, seed);
    }
}

/* Large images with few weights, then small ones with many, then rows with more; gathered are a
 * concat or a sum that lies over one of its operands, images with a halo or without, a result of a
 * pool, rows that were images, some channels of images (these are copied). */
static fac_value *narrowing(builder *b, fac_value *x, int64_t kind) {
    fac_value *y = trunk(b, kind == 2 ? fac_transpose(x, fac_shape(0, 1, 3, 2)) : x);
    if (kind == 1) y = fac_add(y, fac_relu(conv(b, y, 48, 3, 1, 1)));
    y = fac_relu(conv(b, y, 160, 3, 2, 1));
    if (kind == 1) y = fac_add(fac_relu(conv(b, y, 160, 3, 1, 1)), y);
    if (kind == 2) y = fac_slice(y, 1, 16, 112, 1);
    static const int kernel[] = { 1, 3, 3 }, stride[] = { 1, 1, 2 };
    y = conv(b, y, 200 + kind, kernel[kind], stride[kind], 1);
    if (kind < 2) y = fac_max_pool2d(y, 2, 2, &(fac_pool2d_opts){ .stride = { 2, 2 } });
    y = fac_flatten(y, 1);
    y = fac_relu(fac_linear(y, param(b, fac_shape(500, fac_value_type(y).dims.d[1]), 0.03f), NULL));
    return fac_softmax(
        fac_linear(y, param(b, fac_shape(40, 500), 0.03f), param(b, fac_shape(40), 1)), 1);
}

static void stages(fac_device *d, uint64_t seed) {
    for (int64_t kind = 0; kind < 3; kind++) {
        const int64_t images = kind == 1 ? 18 : 8;
        net n = begin(seed);
        int changes;
        fac_output(n.b.g, "y", narrowing(&n.b, n.x, kind));
        assert_true(slice_of(n.b.g, images, 1 << 20, &changes) < images);
        assert_in_range(changes, 2, 4);
        check_slices(d, &n, images, 1 << 20, seed);
    }
}

static uint64_t seed;
static void test_compare(void **s) { (void)s, check_everywhere(compare, seed); }
static void test_stages(void **s) { (void)s, check_everywhere(stages, seed + 1000); }

/* All but the last stage leave one value: a graph whose features are asked for as well has no
 * stages from there on. */
static void test_outputs(void **state) {
    (void)state;
    int changes;
    net n = begin(4);
    fac_value *y = trunk(&n.b, n.x);
    fac_output(n.b.g, "features", y);
    y = fac_flatten(conv(&n.b, y, 160, 3, 4, 1), 1);
    fac_output(n.b.g, "y",
               fac_linear(y, param(&n.b, fac_shape(900, fac_value_type(y).dims.d[1]), 0.1f), NULL));
    slice_of(n.b.g, 16, 1 << 20, &changes);
    assert_int_equal(changes, 0);
    fac_graph_free(n.b.g);
}

/* The arena is that of a slice, with what stages gather; the profile speaks of the batch. */
static void test_plan(void **state) {
    (void)state;
    fac_device *d;
    fac_error err = { 0 };
    if (fac_device_open("cpu", NULL, &d, &err)) fail_msg("%s", err.text);
    for (int staged = 0; staged < 2; staged++) {
        double macs[2] = { 0 };
        size_t arena[2];
        for (int cut = 0; cut < 2; cut++) {
            net n = begin(3);
            fac_output(n.b.g, "y", staged ? narrowing(&n.b, n.x, 1) : head(&n.b, trunk(&n.b, n.x)));
            fac_tensor *x = random_tensor(3, 1, fac_shape(16, 3, SIDE, SIDE), 1), *y = NULL;
            fac_program *p;
            fac_plan_stat stat;
            d->near = cut ? 1 << 19 : 0;
            if (fac_program_new(n.b.g, d, NULL, &p, &err) || fac_program_plan(p, &x, &stat, &err))
                fail_msg("%s", err.text);
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
        assert_true(arena[1] < (staged ? arena[0] : arena[0] / 2));
    }
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which), cmocka_unit_test(test_compare), cmocka_unit_test(test_stages),
        cmocka_unit_test(test_outputs), cmocka_unit_test(test_plan)
    };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
