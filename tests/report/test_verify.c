/* The judge is judged: a model in tiles is the same in every mode, and each of many mutants of it
 * (slices off by one, tiles exchanged, a partial product lost, a bias added twice, a remainder
 * dropped) is caught by the exact mode. */
#include "verify_check.h"

/* Two convolutions, pooling, two linear layers: everything that tiles are cut from, with
 * remainders. */
static fac_graph *network(void) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 3, 12, 12));
    x = fac_relu(fac_nn_conv2d(x, "conv1", 10, 3, &(fac_nn_conv2d_opts){ .pad = 1 }));
    x = fac_max_pool2d(x, 2, 2, NULL);
    x = fac_nn_batch_norm(fac_nn_conv2d(x, "conv2", 12, 3, NULL), "bn", 0);
    x = fac_flatten(fac_relu(x), 1);
    x = fac_tanh(fac_nn_linear(x, "fc1", 21));
    fac_output(g, "y", fac_nn_linear(x, "fc2", 11));
    OK(fac_graph_check(g, &err));
    lively_params(g);
    return g;
}

static fac_graph *tiled(const fac_graph *g, fac_tile_sum sum, bool pad) {
    fac_graph *cut = NULL;
    OK(fac_graph_tile(g, &(fac_tile_opts){ .m = 8, .n = 8, .k = 8, .sum = sum, .pad = pad }, &cut,
                      NULL, &err));
    return cut;
}

/* Numbers alone prove nothing. */
static fac_sameness most_of(int mode) {
    return mode == FAC_VERIFY_FULL || mode == FAC_VERIFY_EXACT ? FAC_SAME : FAC_NO_DIFFERENCE;
}

static void tiles_are_the_same(void **state) {
    (void)state;
    fac_graph *g = network();
    for (int sum = 0; sum < 3; sum++)
        for (int pad = 0; pad < 2; pad++) {
            fac_graph *cut = tiled(g, (fac_tile_sum)sum, pad);
            for (int mode = 0; mode < MODES; mode++) {
                const fac_verdict v = judge(g, cut, (fac_verify_mode)mode);
                if (v.same != most_of(mode))
                    fail_msg("sum %d, pad %d, mode %d: %s", sum, pad, mode, v.why);
                /* two inputs for each prime */
                assert_int_equal(v.elements, (mode == FAC_VERIFY_EXACT ? 4 : 2) * 11);
                assert_true(mode == FAC_VERIFY_EXACT || v.ratio < 1);
                assert_true(mode == FAC_VERIFY_BOUND ? v.segments >= 6 : v.segments == 0);
            }
            fac_graph_free(cut);
        }
    fac_graph_free(g);
}

/* ---- mutants ---- */

typedef struct mutation {
    int target, at;
    const char *what;
    fac_value *last_tile;
} mutation;

/* The first axis that has room to move moves by one. */
static fac_value *shifted(const fac_node *n, fac_value *const in[]) {
    fac_contents start, end, axis;
    if (!fac_known_numbers(in[1], &start) || !fac_known_numbers(in[2], &end) ||
        !fac_known_numbers(in[3], &axis))
        return NULL;
    for (int k = 0; k < axis.n; k++) {
        const int64_t size = n->in[0]->type.dims.d[axis.v[k]];
        int by = start.v[k] > 0 ? -1 : 0;
        if (end.v[k] < size) by = 1;
        if (!by) continue;
        start.v[k] += by;
        end.v[k] += by;
        return fac_slice_axes(in[0], (int)axis.n, axis.v, start.v, end.v);
    }
    return NULL;
}

/* One way to spoil this node; NULL: there is none. */
static fac_value *spoiled(mutation *m, fac_graph *to, const fac_node *n, fac_value *const in[]) {
    if (FAC_IS(n, slice) && !in[4]) {
        m->what = "a slice off by one";
        return shifted(n, in);
    }
    if (FAC_IS(n, concat) && fac_dims_equal(&in[0]->type.dims, &in[1]->type.dims)) {
        fac_value *out[1], *swapped[64];
        if (n->nin > 64) return NULL;
        memcpy(swapped, in, (size_t)n->nin * sizeof *in);
        swapped[0] = in[1];
        swapped[1] = in[0];
        m->what = "two tiles exchanged";
        fac_node_copy(to, n, swapped, out);
        return out[0];
    }
    if (!FAC_IS(n, gemm)) return NULL;
    fac_value *out[1], *operands[3] = { in[0], in[1], in[2] };
    const bool turn = m->at % 3 == 0;
    if (turn && m->last_tile && m->last_tile != in[1] &&
        fac_dims_equal(&m->last_tile->type.dims, &in[1]->type.dims)) {
        m->what = "the weights of another tile";
        operands[1] = m->last_tile;
    } else if (in[2] && m->at % 2) {
        m->what = "a partial product or bias lost";
        operands[2] = NULL;
    } else if (in[2]) {
        m->what = "a partial product or bias added twice";
        operands[2] = fac_add(in[2], in[2]);
    } else {
        return NULL;
    }
    fac_node_copy(to, n, operands, out);
    return out[0];
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    mutation *m = self;
    const bool here = m->at++ == m->target;
    fac_value *y = here ? spoiled(m, to, n, in) : NULL;
    if (FAC_IS(n, gemm)) m->last_tile = in[1];
    if (here && !y) m->target++; /* the next one, then */
    if (!y) return false;
    out[0] = y;
    m->target = -1;
    return true;
}

static void mutants_are_caught(void **state) {
    (void)state;
    fac_graph *g = network(), *cut = tiled(g, FAC_TILE_CHAIN, false);
    int caught = 0, kinds = 0, hidden = 0;
    const char *seen[8] = { NULL };
    const int step = cut->nodes / 48;
    for (int at = 0; at < cut->nodes; at += step) {
        mutation m = { .target = at };
        fac_graph *bad = fac_graph_rebuild(cut, &(fac_rebuild){ .self = &m, .visit = visit }, NULL);
        OK(fac_graph_check(bad, &err));
        if (m.target < 0) {
            const fac_verdict v = judge(g, bad, FAC_VERIFY_EXACT);
            /* a row that dead relus hide gives equal numbers: nothing is proven then, either way */
            hidden += v.same == FAC_NO_DIFFERENCE;
            if (v.same == FAC_SAME || hidden > 1)
                fail_msg("node %d, %s: not caught: %s", at, m.what, v.why);
            int k = 0;
            while (k < kinds && strcmp(seen[k], m.what)) k++;
            if (k == kinds) seen[kinds++] = m.what;
            caught += v.same == FAC_DIFFERENT;
        }
        fac_graph_free(bad);
    }
    print_message("%d mutants of %d kinds\n", caught, kinds);
    assert_true(caught >= 30);
    assert_true(kinds >= 4);
    fac_graph_free(cut);
    fac_graph_free(g);
}

/* The second one adds x to c; what stands before it is the same. */
static void the_first_difference_is_named(void **state) {
    (void)state;
    static const char *const texts[] = {
        "input x f32[1,4]\nparam w f32[4,4]\na = linear(x, w, -)\nb = relu(a)\nc = linear(b, w, "
        "-)\nd = tanh(c)\noutput y = d\n",
        "input x f32[1,4]\nparam w f32[4,4]\na = linear(x, w, -)\nb = relu(a)\ne = linear(b, w, "
        "-)\nc = add(e, x)\nd = tanh(c)\n"
        "output y = d\n"
    };
    fac_graph *g[2] = { NULL };
    for (int k = 0; k < 2; k++) g[k] = graph_of(texts[k]);
    for (int mode = 0; mode < MODES; mode++) {
        const fac_verdict v = judge(g[0], g[1], (fac_verify_mode)mode);
        assert_int_equal(v.same, FAC_DIFFERENT);
        assert_string_equal(v.first, "c");
        assert_true(v.worst > 0);
    }
    fac_graph_free(g[0]);
    fac_graph_free(g[1]);
}

/* ---- bounds ---- */

typedef struct told {
    int n;
    double ratio;
} told;

static void tell(void *self, const fac_verify_segment *s) {
    told *t = self;
    assert_true(s->a[0] && s->b[0] && s->elements > 0);
    t->n++;
    if (s->ratio > t->ratio) t->ratio = s->ratio;
}

/* Six layers without anything that saturates; `wrong`: one column is a little larger after the
 * third.  Its weights are not negative, as what they meet: the column is never all zeros. */
static fac_graph *layers(bool wrong) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(4, 16));
    for (int k = 0; k < 6; k++) {
        float w[256], one[16];
        char name[8];
        fac_tensor *t = NULL, *by = NULL;
        for (int i = 0; i < 256; i++)
            w[i] = (float)fac_random_uniform(seed, (uint64_t)k, (uint64_t)i) -
                   (k == 2 && i / 16 == 3 ? 0 : 0.4f);
        for (int i = 0; i < 16; i++) one[i] = i == 3 ? 1.1f : 1;
        snprintf(name, sizeof name, "w%d", k);
        OK(fac_tensor_new(NULL, FAC_F32, fac_shape(16, 16), &t, &err));
        OK(fac_tensor_write(t, w, sizeof w, &err));
        x = fac_relu(fac_linear(x, fac_param(g, name, t), NULL));
        OK(fac_tensor_new(NULL, FAC_F32, fac_shape(16), &by, &err));
        OK(fac_tensor_write(by, one, sizeof one, &err));
        if (wrong && k == 2) x = fac_mul(x, fac_const(g, by));
        fac_tensor_free(t), fac_tensor_free(by);
    }
    fac_output(g, "y", x);
    OK(fac_graph_check(g, &err));
    return g;
}

/* Bounds from value to value see what bounds of the whole networks do not. */
static void local_bounds_are_tight(void **state) {
    (void)state;
    fac_graph *g = network(), *cut = tiled(g, FAC_TILE_CHAIN, false), *good = layers(false),
              *bad = layers(true);
    told t = { 0 };
    fac_verify_opts o = {
        .mode = FAC_VERIFY_BOUND, .seed = seed, .rounds = 2, .segment = tell, .self = &t
    };
    fac_verdict v, whole;
    OK(fac_verify(g, cut, device, &o, &v, &err));
    assert_int_equal(v.same, FAC_NO_DIFFERENCE);
    assert_int_equal(t.n, v.segments + 1); /* and the output */
    assert_true(t.ratio >= v.ratio && t.ratio <= v.ratio);
    o.whole = true;
    OK(fac_verify(g, cut, device, &o, &whole, &err));
    assert_int_equal(whole.same, FAC_NO_DIFFERENCE);
    assert_int_equal(whole.segments, 0);
    assert_true(v.ratio > 100 * whole.ratio);
    o.whole = false;
    OK(fac_verify(good, bad, device, &o, &v, &err));
    if (v.same == FAC_NO_DIFFERENCE) fail_msg("not seen: %s", v.why);
    assert_true(v.first_differing > 0 && v.first_differing <= v.first_elements);
    fac_graph_free(bad), fac_graph_free(good), fac_graph_free(cut), fac_graph_free(g);
}

static void add_to_last_bias(fac_graph *g, float by) {
    fac_tensor *t = fac_value_tensor(fac_graph_param(g, fac_graph_params(g) - 1));
    float bias[11];
    OK(fac_tensor_read(t, bias, sizeof bias, &err));
    for (int i = 0; i < 11; i++) bias[i] += by;
    OK(fac_tensor_write(t, bias, sizeof bias, &err));
}

/* The same network with weights of 16 bits: rounding them explains the difference, and another
 * network does not. */
static void weights_of_16_bits(void **state) {
    (void)state;
    static const fac_dtype types[] = { FAC_F16, FAC_BF16 };
    fac_graph *g = network(), *other = network(), *half = NULL;
    add_to_last_bias(other, 8); /* more than bf16 can round away in four layers */
    for (int k = 0; k < 2; k++) {
        OK(fac_graph_floats(g, types[k], &half, &err));
        fac_verdict v = judge(g, half, FAC_VERIFY_BOUND);
        if (v.same != FAC_NO_DIFFERENCE) fail_msg("%s: %s", fac_dtype_get(types[k])->name, v.why);
        assert_true(v.worst > 0);
        v = judge(other, half, FAC_VERIFY_BOUND);
        if (v.same == FAC_NO_DIFFERENCE)
            fail_msg("%s of other weights: %s", fac_dtype_get(types[k])->name, v.why);
        fac_graph_free(half);
    }
    fac_graph_free(other);
    fac_graph_free(g);
}

/* ---- given inputs ---- */

/* Two inputs of an open size and two outputs; only the second output of the second model differs,
 * in two elements. */
static void given_inputs_say_the_sizes(void **state) {
    (void)state;
    static const char *const texts[] = {
        "input x f32[N,4]\ninput z f32[N,1]\na = add(x, z)\nb = mul(x, z)\noutput p = a\noutput q "
        "= b\n",
        "input x f32[N,4]\ninput z f32[N,1]\na = add(x, z)\nb = mul(x, z)\nc = clip(b, -10, "
        "10)\noutput p = a\noutput q = c\n"
    };
    fac_graph *g[2] = { NULL };
    for (int k = 0; k < 2; k++) g[k] = graph_of(texts[k]);
    fac_tensor *in[2] = { NULL };
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(3, 4), &in[0], &err));
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(3, 1), &in[1], &err));
    const float x[12] = { 1, 2, 3, 4, 5, 6, 7, 8, -20, 2, 3, 30 }, z[3] = { 1, 1, 1 };
    OK(fac_tensor_write(in[0], x, sizeof x, &err));
    OK(fac_tensor_write(in[1], z, sizeof z, &err));
    fac_verdict v;
    fac_verify_opts o = { .mode = FAC_VERIFY_DATA, .n = 2, .inputs = in };
    OK(fac_verify(g[0], g[1], device, &o, &v, &err));
    assert_int_equal(v.same, FAC_DIFFERENT);
    assert_int_equal(v.elements, 24);
    assert_int_equal(v.differing, 2);
    assert_non_null(strstr(v.why, "output q: 2 of 12 elements differ on the given inputs; the "
                                  "first is element 8, -20 against -10"));
    assert_string_equal(v.first, "");
    assert_true(v.last[0]);
    o.n = 1;
    assert_int_equal(fac_verify(g[0], g[1], device, &o, &v, &err), FAC_E_ARGUMENT);
    fac_tensor_free(in[0]), fac_tensor_free(in[1]);
    fac_graph_free(g[0]), fac_graph_free(g[1]);
}

static void models_that_do_not_fit(void **state) {
    (void)state;
    fac_graph *a = network(), *b = fac_graph_new();
    fac_value *x = fac_input(b, "x", FAC_F32, fac_shape(1, 3, 12, 13));
    fac_output(b, "y", fac_relu(x));
    const fac_verdict v = judge(a, b, FAC_VERIFY_DATA);
    assert_int_equal(v.same, FAC_DIFFERENT);
    assert_non_null(strstr(v.why, "input 0"));
    fac_graph_free(a);
    fac_graph_free(b);
}

/* An op that nobody has a rounding bound for is no verdict. */
static void what_cannot_be_judged(void **state) {
    (void)state;
    fac_graph *g[2];
    for (int k = 0; k < 2; k++) {
        g[k] = fac_graph_new();
        fac_value *x = fac_input(g[k], "x", FAC_F32, fac_shape(5));
        fac_output(g[k], "y", fac_tan(x));
    }
    const fac_verdict v = judge(g[0], g[1], FAC_VERIFY_BOUND);
    assert_int_equal(v.same, FAC_CANNOT_TELL);
    assert_non_null(strstr(v.why, "tan"));
    assert_int_equal(judge(g[0], g[1], FAC_VERIFY_DATA).same, FAC_NO_DIFFERENCE);
    assert_int_equal(judge(g[0], g[1], FAC_VERIFY_FULL).same, FAC_SAME);
    for (int k = 0; k < 2; k++) fac_graph_free(g[k]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_are_the_same),
        cmocka_unit_test(mutants_are_caught),
        cmocka_unit_test(the_first_difference_is_named),
        cmocka_unit_test(models_that_do_not_fit),
        cmocka_unit_test(local_bounds_are_tight),
        cmocka_unit_test(weights_of_16_bits),
        cmocka_unit_test(given_inputs_say_the_sizes),
        cmocka_unit_test(what_cannot_be_judged),
    };
    return cmocka_run_group_tests_name("verify", tests, open_device, close_device);
}
