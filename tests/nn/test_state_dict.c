/* State dicts: parameters saved, loaded, converted, and what is left when memory is lost. */
#include "nn_init_check.h"

/* ---- state dicts ---- */

static fac_graph *net(uint64_t seed, int hidden) {
    fac_graph *g = seeded(seed);
    fac_value *x = fac_nn_linear(x_of(g, fac_shape(fac_symbol(g, "N"), 6)), "fc1", hidden);
    x = fac_nn_dropout(fac_nn_batch_norm(x, "bn", 0), 0.5);
    fac_output(g, "y", fac_nn_linear(x, "fc2", 3));
    check(g);
    return g;
}

static fac_weights *saved(fac_graph *g, const char *path) {
    fac_weights *w = NULL;
    OK(fac_graph_save_weights(g, path, &err));
    OK(fac_weights_load(path, &w, &err));
    remove(path);
    return w;
}

static float first(fac_graph *g, const char *name) {
    int64_t n;
    return *values(g, name, &n);
}

static void state_dicts_go_in_and_out(void **state) {
    (void)state;
    const char *path = "nn_state_dict.safetensors";
    fac_graph *a = net(1, 4), *b = net(2, 4), *wide = net(3, 5);
    fac_weights *w = saved(a, path);
    fac_load_result r;
    assert_true(first(a, "fc2.weight") != first(b, "fc2.weight"));
    OK(fac_graph_load_weights(b, w, NULL, &r, &err));
    assert_int_equal(r.loaded, fac_graph_params(b));
    assert_true(first(a, "fc2.weight") == first(b, "fc2.weight") &&
                first(a, "bn.bias") == first(b, "bn.bias"));

    /* another shape is an error either way, and nothing was written */
    const float before = first(wide, "fc2.bias");
    for (int loose = 0; loose < 2; loose++) {
        assert_int_equal(
            fac_graph_load_weights(wide, w, &(fac_load_opts){ .loose = loose }, &r, &err),
            FAC_E_ARGUMENT);
        assert_int_equal(r.different, 7);
        assert_non_null(strstr(err.text, "fc1.weight is f32[4,6], expected f32[5,6]"));
        assert_true(first(wide, "fc2.bias") == before);
    }
    fac_weights_free(w);

    /* names that only one side has: all in one message, or passed over */
    fac_graph *other = seeded(4);
    fac_value *x = fac_nn_linear(x_of(other, fac_shape(1, 6)), "fc1", 4);
    fac_nn_linear(fac_nn_linear(x, "extra", 2), "aux.last", 2);
    check(other);
    w = saved(other, path);
    assert_int_equal(fac_graph_load_weights(b, w, NULL, &r, &err), FAC_E_ARGUMENT);
    assert_int_equal(r.missing, 6);
    assert_int_equal(r.unknown, 4);
    assert_int_equal(r.different, 0);
    assert_true(strstr(err.text, "6 missing (bn.weight") &&
                strstr(err.text, "4 not part of it (extra.weight"));
    assert_true(first(a, "fc1.weight") == first(b, "fc1.weight"));
    assert_int_equal(fac_graph_load_weights(b, w, &(fac_load_opts){ .unused = "aux." }, &r, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(r.unknown, 2);
    OK(fac_graph_load_weights(b, w, &(fac_load_opts){ .loose = true }, &r, &err));
    assert_int_equal(r.loaded, 2);
    assert_true(first(other, "fc1.weight") == first(b, "fc1.weight") &&
                first(a, "fc2.bias") == first(b, "fc2.bias"));
    fac_weights_free(w);
    fac_graph_free(a), fac_graph_free(b), fac_graph_free(wide), fac_graph_free(other);
}

static void other_floats_are_converted(void **state) {
    (void)state;
    fac_graph *a = seeded(1), *b = seeded(2);
    fac_nn_linear(fac_input(a, "x", FAC_F64, fac_shape(1, 3)), "fc", 2);
    fac_nn_linear(x_of(b, fac_shape(1, 3)), "fc", 2);
    fac_weights *w = saved(a, "nn_state_dict64.safetensors");
    OK(fac_graph_load_weights(b, w, NULL, NULL, &err));
    const double *wide = fac_tensor_data(fac_value_tensor(fac_graph_find(a, "fc.weight")));
    assert_true(first(b, "fc.weight") == (float)*wide);
    fac_weights_free(w);
    fac_graph_free(a), fac_graph_free(b);
}

/* Loading and drawing anew, too. */
static void lost_memory_loads_nothing(void **state) {
    (void)state;
    fac_graph *a = net(1, 4), *b = net(2, 4);
    fac_weights *w = saved(a, "nn_lost.safetensors");
    const fac_init init = { .kind = FAC_INIT_ORTHOGONAL };
    for (int call = 0; call < 2; call++) {
        fac_status status = FAC_E_NOMEM;
        for (long n = 0; status; n++) {
            allowed = n;
            status = call ? fac_nn_init(b, "fc*.weight", &init, &err)
                          : fac_graph_load_weights(b, w, NULL, NULL, &err);
            allowed = -1;
            if (status && status != FAC_E_NOMEM) fail_msg("%ld: %s", n, err.text);
            assert_true(n < 1000);
        }
    }
    fac_weights_free(w);
    fac_graph_free(a), fac_graph_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_dicts_go_in_and_out),
        cmocka_unit_test(other_floats_are_converted),
        cmocka_unit_test(lost_memory_loads_nothing),
    };
    return cmocka_run_group_tests_name("state_dict", tests, NULL, NULL);
}
