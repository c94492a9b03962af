/* Concats whose parts are written to their places, and views of blocked values: networks with
 * branches on every instruction set, against the reference kernels; that there is nothing to copy
 * where nothing needs to be; that observers still see every value. */
#include "net_check.h"

static fac_value *join(fac_value *const v[], int n) { return fac_concat(v, n, 1); }

/* As in GoogLeNet; with odd channels now and then, whose concat must copy. */
static fac_value *inception(builder *b, fac_value *x) {
    int64_t step = pick(b, 0, 3) ? 16 : pick(b, 1, 24);
    fac_value *v[4];
    v[0] = activation(b, conv(b, x, step * pick(b, 1, 3), 1, 1, 1));
    v[1] = activation(b, conv(b, fac_relu(conv(b, x, 17, 1, 1, 1)), step * pick(b, 1, 2), 3, 1, 1));
    v[2] = activation(b, conv(b, fac_relu(conv(b, x, 8, 1, 1, 1)), step, 5, 1, 1));
    v[3] = fac_max_pool2d(x, 3, 3, &(fac_pool2d_opts){ .stride = { 1, 1 }, .pad = { 1, 1, 1, 1 } });
    if (pick(b, 0, 1)) v[3] = conv(b, v[3], pick(b, 1, 40), 1, 1, 1);
    return join(v, 4);
}

/* As in DenseNet: growing, and each is read in its turn; or all before it joined anew, as
 * torchvision does. */
static fac_value *dense(builder *b, fac_value *x) {
    bool anew = pick(b, 0, 1);
    fac_value *all[6] = { fac_relu(conv(b, x, pick(b, 0, 3) ? 32 : 30, 1, 1, 1)) }, *y = all[0];
    for (int k = 1; k < 5; k++) {
        all[k] = conv(b, fac_relu(conv(b, fac_relu(y), 24, 1, 1, 1)), 16, 3, 1, 1);
        y = anew ? join(all, k + 1) : join((fac_value *[]){ y, all[k] }, 2);
    }
    return y;
}

/* Parts that cannot be made in place: an input of the run, a parameter, the same twice, a part of
 * two wholes, a view. */
static fac_value *awkward(builder *b, fac_value *x, fac_value *input) {
    const fac_dims d = fac_value_type(x).dims, e = fac_value_type(input).dims;
    fac_value *y = fac_relu(conv(b, x, 32, 3, 1, 1)), *z = conv(b, x, 16, 1, 1, 1);
    fac_value *first = join((fac_value *[]){ y, y, z }, 3),
              *second = join((fac_value *[]){ z, y }, 2);
    fac_value *sum = fac_add(conv(b, first, 16, 1, 1, 1), conv(b, second, 16, 3, 1, 1));
    if (d.d[2] == e.d[2] && d.d[3] == e.d[3]) sum = join((fac_value *[]){ sum, input }, 2);
    return join((fac_value *[]){ fac_slice(y, 1, 16, 32, 1), sum }, 2);
}

/* Slices and splits of channels, whole blocks or not, and of rows and columns. */
static fac_value *cut(builder *b, fac_value *x) {
    fac_value *y = activation(b, conv(b, x, 64, 3, 1, 1)), *parts[2];
    fac_split(y, 1, 2, parts);
    parts[0] = conv(b, fac_slice(parts[0], 1, pick(b, 0, 1) ? 16 : 3, 32, 1), 32, 3, 1, 1);
    const int64_t H = fac_value_type(y).dims.d[2];
    fac_value *z = fac_add(parts[0], fac_relu(parts[1]));
    return H > 6 ? fac_slice(fac_slice(z, 2, 1, H - 1, 1), 3, 2, 100, pick(b, 1, 2)) : z;
}

static fac_graph *network(uint64_t seed, fac_dims *shape) {
    builder b = { fac_graph_new(), seed, 0, 0 };
    *shape = fac_shape(0, pick(&b, 1, 20), pick(&b, 9, 30), pick(&b, 9, 30));
    fac_value *input =
                  fac_input(b.g, "x", FAC_F32,
                            fac_shape(fac_symbol(b.g, "N"), shape->d[1], shape->d[2], shape->d[3])),
              *x = input;
    for (int k = 0; k < 2; k++) switch (pick(&b, 0, 3)) {
        case 0:
            x = inception(&b, x);
            break;
        case 1:
            x = dense(&b, x);
            break;
        case 2:
            x = awkward(&b, x, input);
            break;
        default:
            x = cut(&b, x);
        }
    fac_output(b.g, "before", x);
    x = conv(&b, x, 20, 3, 1, 1);
    fac_output(b.g, "features", x);
    fac_output(b.g, "y", fac_mean(x, fac_shape(2, 3), false));
    return b.g;
}

static void networks(fac_device *d, uint64_t seed) {
    for (uint64_t k = 0; k < 12; k++) {
        fac_dims shape;
        fac_graph *g = network(seed + k, &shape);
        shape.d[0] = 1 + (int64_t)(k % 3);
        fac_tensor *x = random_tensor(seed + k, 1, shape, 1);
        check_network(d, g, x, seed + k);
        fac_tensor_free(x);
        fac_graph_free(g);
    }
}

static int count_steps(fac_program *p, const char *solver) {
    fac_step_stat steps[64];
    int found = 0;
    size_t n = fac_program_steps(p, steps, 64);
    assert_true(n <= 64);
    for (size_t i = 0; i < n; i++) found += !strcmp(steps[i].solver, solver);
    return found;
}

static bool look(void *self, const char *name, const fac_tensor *value) {
    (void)name, (void)value;
    ++*(int *)self;
    return true;
}

/* Aligned branches take no step to join or to take apart; an observer sees the joined value all the
 * same.  (Short vectors may do better with plain images in between.) */
static void no_copies(fac_device *d, uint64_t seed) {
    builder b = { fac_graph_new(), seed, 0, 0 };
    fac_value *x = fac_relu(
                  conv(&b, fac_input(b.g, "x", FAC_F32, fac_shape(2, 32, 14, 15)), 32, 1, 1, 1)),
              *parts[2];
    for (int k = 0; k < 2; k++)
        x = join((fac_value *[]){ x, conv(&b, x, 16, 3, 1, 1), fac_relu(conv(&b, x, 32, 1, 1, 1)) },
                 3);
    fac_split(conv(&b, x, 64, 1, 1, 1), 1, 2, parts);
    fac_output(b.g, "y",
               fac_mean(fac_add(conv(&b, parts[0], 32, 3, 1, 1), conv(&b, parts[1], 32, 1, 1, 1)),
                        fac_shape(2, 3), false));
    fac_tensor *t = random_tensor(seed, 1, fac_shape(2, 32, 14, 15), 1), *y = NULL;
    fac_error err = { 0 };
    fac_program *p;
    if (fac_program_new(b.g, d, NULL, &p, &err) || fac_program_run(p, &t, &y, &err))
        fail_msg("%s", err.text);
    assert_int_equal(count_steps(p, "concat"), 0);
    if (!strstr(fac_device_about(d), "portable")) {
        assert_int_equal(count_steps(p, "move"), 0);
        assert_true(count_steps(p, "reorder") <= 1); /* of the input */
    }
    fac_tensor_free(y);
    fac_program_free(p);

    int seen = 0;
    y = NULL;
    fac_program_opts o = { .observe = look, .observe_self = &seen };
    if (fac_program_new(b.g, d, &o, &p, &err) || fac_program_run(p, &t, &y, &err))
        fail_msg("%s", err.text);
    assert_int_equal(seen, 17);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_tensor_free(t);
    fac_graph_free(b.g);
}

static uint64_t seed;
static void test_networks(void **s) { (void)s, check_everywhere(networks, seed); }
static void test_no_copies(void **s) { (void)s, check_everywhere(no_copies, seed); }

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_networks),
                                        cmocka_unit_test(test_no_copies) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
