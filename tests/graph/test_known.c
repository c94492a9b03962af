/* Shape arithmetic while a graph is built: what ops know of small integers, sizes that are symbols,
 * and the errors of shapes that do not fit; then the same graphs run with several sizes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "facula/ops.h"
#include "facula/program.h"
#include "graph/graph_internal.h"

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

static fac_value *ints(fac_graph *g, int64_t a, int64_t b) { return fac_ints(g, fac_shape(a, b)); }
static fac_value *number(fac_graph *g, int64_t a) { return fac_number(g, FAC_I64, (double)a); }

/* "f32[N,12]" */
static void assert_type(const fac_value *v, const char *want) {
    fac_text t = { 0 };
    if (fac_graph_check(v->graph, &err)) fail_msg("%s instead of %s", err.text, want);
    fac_type_print(v->graph, &v->type, &t);
    assert_string_equal(t.s, want);
    fac_text_free(&t);
}

/* "N,12": numbers and symbols by name, "?" when nothing is known */
static void assert_known(const fac_value *v, const char *want) {
    fac_contents c;
    char have[256] = "?";
    size_t n = 0;
    if (fac_graph_check(v->graph, &err)) fail_msg("%s instead of %s", err.text, want);
    if (fac_known(v, &c)) {
        have[0] = 0;
        for (int k = 0; k < c.n; k++) {
            const char *comma = k ? "," : "";
            if (c.symbolic >> k & 1)
                n += (size_t)snprintf(have + n, sizeof have - n, "%s%s", comma,
                                      fac_symbol_name(v->graph, c.v[k]));
            else
                n +=
                    (size_t)snprintf(have + n, sizeof have - n, "%s%lld", comma, (long long)c.v[k]);
        }
    }
    assert_string_equal(have, want);
}

static fac_value *image(fac_graph *g) {
    return fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 12, fac_symbol(g, "H"), 64));
}

/* Shape -> Gather -> Unsqueeze -> Concat -> Reshape, as exporters write x.view(x.size(0), 12, -1).
 */
static void view_of_torch(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = image(g), *s = fac_shape_of(x);
    assert_known(s, "N,12,H,64");
    fac_value *n = fac_gather(s, number(g, 0), 0), *h = fac_gather(s, number(g, -2), 0);
    assert_type(n, "i64[]");
    assert_known(n, "N");
    assert_known(h, "H");
    fac_value *parts[] = { fac_unsqueeze(n, fac_shape(0)), ints(g, 12, -1) };
    fac_value *shape = fac_concat(parts, 2, 0);
    assert_known(shape, "N,12,-1");
    assert_type(fac_reshape_to(x, shape), "f32[N,12,(H*64)]");
    assert_type(fac_reshape(x, fac_shape(fac_symbol(g, "N"), -1, fac_symbol(g, "H"))),
                "f32[N,768,H]");
    assert_type(fac_reshape(x, fac_shape(0, 0, -1, 8, 8)), "f32[N,12,H,8,8]");
    assert_type(fac_reshape(x, fac_shape(-1, 24)), "f32[((N*H)*32),24]");
    assert_type(fac_flatten(x, 2), "f32[(N*12),(H*64)]");
    fac_graph_free(g);
}

static void arithmetic(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *s = fac_shape_of(image(g));
    assert_known(fac_mul(s, number(g, 1)), "N,12,H,64");
    assert_known(fac_mul(s, number(g, 2)), "(N*2),24,(H*2),128");
    assert_known(fac_add(s, number(g, 0)), "N,12,H,64");
    assert_known(fac_add(s, number(g, 3)), "(N+3),15,(H+3),67");
    assert_known(fac_div(s, number(g, 2)), "(N/2),6,(H/2),32");
    assert_known(fac_sub(s, s), "0,0,0,0");
    assert_known(fac_sub(s, number(g, 1)), "?");
    assert_known(fac_max(s, number(g, 0)), "N,12,H,64");
    assert_known(fac_min(s, number(g, -1)), "-1,-1,-1,-1");
    assert_known(fac_neg(ints(g, 3, -4)), "-3,4");
    assert_known(fac_mod(ints(g, -7, 7), number(g, 3)), "2,1");
    assert_known(fac_div(ints(g, -7, 7), number(g, 0)), "0,0");
    assert_known(fac_slice(s, 0, 1, INT64_MAX, 1), "12,H,64");
    assert_known(fac_slice(s, 0, -1, -99, -2), "64,12");
    assert_known(fac_cast(s, FAC_I32), "N,12,H,64");
    assert_known(fac_cast(ints(g, 5000000000, 1), FAC_I32), "?");
    assert_known(fac_cast(ints(g, 2, 0), FAC_BOOL), "1,0");
    assert_known(fac_expand(number(g, 7), fac_shape(3)), "7,7,7");
    assert_known(fac_arange(number(g, 1), number(g, 8), number(g, 3)), "1,4,7");
    fac_value *n = fac_gather(s, number(g, 0), 0);
    assert_type(fac_arange(number(g, 0), n, number(g, 1)), "i64[N]");
    /* wrapping as the element type does */
    fac_value *big = fac_cast(ints(g, 2000000000, 1), FAC_I32);
    assert_known(fac_add(big, big), "-294967296,2");
    assert_known(fac_not(fac_equal(ints(g, 1, 2), number(g, 2))), "1,0");
    fac_graph_free(g);
}

/* Where(Equal(shape, -1), ones, shape) -> Expand, as exporters write x.expand(-1, ..). */
static void expand_of_torch(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = image(g), *s = fac_shape_of(x);
    fac_value *unknown = fac_equal(s, number(g, 5));
    assert_known(unknown, "?");
    fac_value *is = fac_equal(s, number(g, -1));
    assert_known(is, "0,0,0,0");
    fac_value *shape = fac_where(is, fac_full(fac_ints(g, fac_shape(4)), FAC_I64, 1), s);
    assert_known(shape, "N,12,H,64");
    assert_type(fac_expand_to(fac_number(g, FAC_F32, 0), shape), "f32[N,12,H,64]");
    assert_known(fac_greater(s, number(g, -3)), "1,1,1,1");
    fac_graph_free(g);
}

static void shapes_with_symbols(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = image(g), *out[2];
    assert_type(fac_transpose(x, fac_shape(0, 2, 1, 3)), "f32[N,H,12,64]");
    assert_type(fac_concat((fac_value *[]){ x, x }, 2, 2), "f32[N,12,(H+H),64]");
    assert_type(fac_concat((fac_value *[]){ x, fac_input(g, "y", FAC_F32,
                                                         fac_shape(5, 1, fac_symbol(g, "H"), 64)) },
                           2, 1),
                "f32[5,13,H,64]");
    assert_type(fac_slice(x, 2, 0, INT64_MAX, 1), "f32[N,12,H,64]");
    assert_type(fac_slice(x, 2, 1, -1, 1), "f32[N,12,H[1:-1:1],64]");
    assert_type(fac_slice(x, 1, -5, INT64_MAX, 2), "f32[N,3,H,64]");
    assert_type(
        fac_pad(x, fac_ints(g, fac_shape(0, 0, 1, 1, 0, 0, 1, 1)), NULL, NULL, FAC_PAD_CONSTANT),
        "f32[N,12,(H+2),66]");
    assert_type(fac_tile(x, fac_shape(2, 1, 3, 1)), "f32[(N*2),12,(H*3),64]");
    assert_type(fac_squeeze(fac_unsqueeze(x, fac_shape(1, -1)), fac_shape(-1, 1)),
                "f32[N,12,H,64]");
    fac_split(x, 2, 2, out);
    assert_true(out[0]->type.dims.d[2] < 0 &&
                out[0]->type.dims.d[2] != out[1]->type.dims.d[2]); /* of 7: 4 and 3 */
    fac_split_sizes(x, 1, ints(g, 5, 7), out);
    assert_type(out[1], "f32[N,7,H,64]");
    assert_type(fac_add(x, fac_input(g, "b", FAC_F32, fac_shape(64))), "f32[N,12,H,64]");
    fac_graph_free(g);
}

/* Every misuse is one error of the graph that says what is wrong. */
#define FAILS(status_, words, build)                                                               \
    do {                                                                                           \
        fac_graph *g = fac_graph_new();                                                            \
        fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2, 3, 4));                             \
        (void)x;                                                                                   \
        build;                                                                                     \
        fac_status s_ = fac_graph_check(g, &err);                                                  \
        if (s_ != (status_) || !strstr(err.text, words))                                           \
            fail_msg("%s: %s (%s)", #build, fac_status_name(s_), err.text);                        \
        fac_graph_free(g);                                                                         \
    } while (0)

static void misuse(void **state) {
    (void)state;
    fac_value *out[4];
    FAILS(FAC_E_SHAPE, "24 elements", fac_reshape(x, fac_shape(5, 5)));
    FAILS(FAC_E_SHAPE, "evenly", fac_reshape(x, fac_shape(-1, 5)));
    FAILS(FAC_E_ARGUMENT, "more than one", fac_reshape(x, fac_shape(-1, -1)));
    FAILS(FAC_E_ARGUMENT, "-3", fac_reshape(x, fac_shape(-3, 8)));
    FAILS(FAC_E_SHAPE, "copies", fac_reshape(x, fac_shape(1, 2, 3, 0)));
    FAILS(FAC_E_SHAPE, "axis 4", fac_flatten(x, 4));
    FAILS(FAC_E_SHAPE, "not 1", fac_squeeze(x, fac_shape(1)));
    FAILS(FAC_E_ARGUMENT, "twice", fac_unsqueeze(x, fac_shape(1, 1)));
    FAILS(FAC_E_SHAPE, "at most", fac_unsqueeze(x, fac_shape(0, 1, 2, 3, 4, 5)));
    FAILS(FAC_E_SHAPE, "perm has 2", fac_transpose(x, fac_shape(1, 0)));
    FAILS(FAC_E_ARGUMENT, "twice", fac_transpose(x, fac_shape(1, 0, 1)));
    FAILS(FAC_E_SHAPE, "broadcast", fac_expand(x, fac_shape(2, 5, 4)));
    FAILS(FAC_E_SHAPE, "axis 3", fac_concat(&x, 1, 3));
    FAILS(FAC_E_SHAPE, "dim 1",
          fac_concat((fac_value *[]){ x, fac_transpose(x, fac_shape(0, 2, 1)) }, 2, 0));
    FAILS(FAC_E_DTYPE, "dtype", fac_concat((fac_value *[]){ x, fac_cast(x, FAC_F64) }, 2, 0));
    FAILS(FAC_E_SHAPE, "together", fac_split_sizes(x, 1, ints(g, 1, 1), out));
    FAILS(FAC_E_ARGUMENT, "size -1", fac_split_sizes(x, 1, ints(g, -1, 4), out));
    FAILS(FAC_E_SHAPE, "axis 9", fac_slice(x, 9, 0, 1, 1));
    FAILS(FAC_E_ARGUMENT, "step", fac_slice(x, 0, 0, 1, 0));
    FAILS(FAC_E_ARGUMENT, "index 7", fac_gather(ints(g, 1, 2), number(g, 7), 0));
    FAILS(FAC_E_DTYPE, "", fac_gather(x, x, 0));
    FAILS(FAC_E_SHAPE, "two numbers", fac_pad(x, ints(g, 1, 1), NULL, NULL, FAC_PAD_EDGE));
    FAILS(FAC_E_SHAPE, "cut by 5",
          fac_pad(x, ints(g, -5, 0), NULL, fac_ints(g, fac_shape(1)), FAC_PAD_EDGE));
    FAILS(
        FAC_E_DTYPE, "value",
        fac_pad(x, fac_ints(g, fac_shape(0, 0, 0, 1, 1, 1)), number(g, 1), NULL, FAC_PAD_CONSTANT));
    FAILS(FAC_E_SHAPE, "repeats", fac_tile(x, fac_shape(1, 1)));
    FAILS(FAC_E_ARGUMENT, "delta", fac_arange(number(g, 1), number(g, 2), number(g, 0)));
    FAILS(FAC_E_DTYPE, "", fac_add(x, fac_cast(x, FAC_F16)));
    FAILS(FAC_E_SHAPE, "broadcast", fac_add(x, fac_transpose(x, (fac_dims){ 0 })));
    FAILS(FAC_E_SHAPE, "scalars", fac_clip(fac_number(g, FAC_F32, 1), x, x));
    FAILS(FAC_E_SHAPE, "slope", fac_prelu(fac_number(g, FAC_F32, 1), x));
    FAILS(FAC_E_DTYPE, "", fac_bitwise_and(x, x));
    FAILS(FAC_E_DTYPE, "", fac_where(x, x, x));
    FAILS(FAC_E_DTYPE, "", fac_exp(fac_cast(x, FAC_I64)));
    FAILS(FAC_E_ARGUMENT, "missing", fac_cast(x, FAC_NONE));
}

/* One program, several sizes: x is summed over nothing but moved about; every element must come
 * back to its place. */
static void programs_with_several_sizes(void **state) {
    (void)state;
    fac_device *d = NULL;
    fac_program *p = NULL;
    OK(fac_device_open("cpu", NULL, &d, &err));
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 3, fac_symbol(g, "H"))),
              *s = fac_shape_of(x);
    fac_value *parts[] = { fac_mul(fac_slice(s, 0, 0, 1, 1), number(g, 3)), ints(g, -1, 1) };
    fac_value *flat = fac_reshape_to(x, fac_concat(parts, 2, 0)), *half[2]; /* N*3, H, 1 */
    fac_split_sizes(flat, 1,
                    fac_concat((fac_value *[]){ fac_ints(g, fac_shape(1)),
                                                fac_sub(fac_slice(s, 0, 2, 3, 1), number(g, 1)) },
                               2, 0),
                    half);
    fac_value *y = fac_concat((fac_value *[]){ half[0], half[1] }, 2, 1);
    fac_output(g, "y", fac_add(fac_reshape_to(y, s), fac_full(s, FAC_F32, 1)));
    fac_output(g, "size", fac_size_of(x));
    OK(fac_graph_check(g, &err));
    OK(fac_program_new(g, d, NULL, &p, &err));
    for (int64_t n = 1; n < 4; n++)
        for (int64_t h = 1; h < 4; h++) {
            float numbers[64] = { 0 }, back[64] = { 0 };
            int64_t count = n * 3 * h, size = -1;
            fac_tensor *in = NULL, *out[2] = { NULL, NULL };
            for (int64_t k = 0; k < count; k++) numbers[k] = (float)k;
            OK(fac_tensor_new(NULL, FAC_F32, fac_shape(n, 3, h), &in, &err));
            OK(fac_tensor_write(in, numbers, (size_t)count * sizeof *numbers, &err));
            OK(fac_program_run(p, &in, out, &err));
            OK(fac_tensor_read(out[0], back, (size_t)count * sizeof *back, &err));
            OK(fac_tensor_read(out[1], &size, sizeof size, &err));
            for (int64_t k = 0; k < count; k++) assert_true(back[k] == (float)k + 1);
            assert_int_equal(size, count);
            fac_tensor_free(in);
            fac_tensor_free(out[0]);
            fac_tensor_free(out[1]);
        }
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(view_of_torch),   cmocka_unit_test(arithmetic),
        cmocka_unit_test(expand_of_torch), cmocka_unit_test(shapes_with_symbols),
        cmocka_unit_test(misuse),          cmocka_unit_test(programs_with_several_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
