/* The solvers that move values, and turn halves into floats; what none of them takes. */
#include "memory_check.h"

static void reorders(void **state) {
    (void)state;
    const fac_dims shapes[] = { { 0 },
                                fac_shape(5),
                                fac_shape(0, 3),
                                fac_shape(67, 130),
                                fac_shape(3, 5, 2),
                                fac_shape(2, 19, 5, 7),
                                fac_shape(1, 64, 30, 31),
                                fac_shape(2, 3, 40, 41),
                                fac_shape(2, 3, 2, 5, 3),
                                fac_shape(1, 4, 90, 130) };
    const fac_dtype types[] = { FAC_F32, FAC_F64, FAC_F16, FAC_U8, FAC_BOOL };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            fac_graph *g = fac_graph_new();
            check c = fresh(10 * s + t, -9, 9, 0);
            c.any_out = true;
            everywhere(c, "reorder",
                       fac_emit(&fac_op_identity, NULL, 1,
                                (fac_value *[]){ in(g, "x", types[t], shapes[s]) }),
                       8);
            fac_graph_free(g);
        }
}

static void movers(void **state) {
    (void)state;
    const fac_dtype types[] = { FAC_F32, FAC_F64, FAC_BF16, FAC_I8 };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        fac_graph *g = fac_graph_new();
        check c = fresh(50 * t, -7, 6, 0), any = c;
        any.any_out = true;
        fac_value *x = in(g, "x", types[t], fac_shape(2, 32, 5, 7)),
                  *y = in(g, "y", types[t], fac_shape(2, 32, 5, 7));
        fac_value *z = in(g, "z", types[t], fac_shape(2, 9, 5, 7)),
                  *m = in(g, "m", types[t], fac_shape(30, 41));
        everywhere(any, "concat", fac_concat((fac_value *[]){ x, y, z }, 3, 1), 8);
        everywhere(c, "concat", fac_concat((fac_value *[]){ x, y }, 2, 1), 8);
        everywhere(c, "concat", fac_concat((fac_value *[]){ z, x, y }, 3, 1), 8);
        everywhere(any, "concat", fac_concat((fac_value *[]){ x, y }, 2, 0), 8);
        everywhere(c, "concat", fac_concat((fac_value *[]){ x, y, x }, 3, -1), 8);
        everywhere(c, "concat",
                   fac_concat((fac_value *[]){ m, in(g, "e", types[t], fac_shape(30, 0)) }, 2, 1),
                   4);
        everywhere(any, "move", fac_transpose(x, fac_shape(0, 2, 3, 1)), 8);
        everywhere(c, "move", fac_transpose(x, fac_shape(3, 1, 0, 2)), 8);
        everywhere(any, "move", fac_transpose(m, (fac_dims){ 0 }), 8);
        everywhere(c, "move", fac_slice(x, 1, 16, 32, 1), 8);
        everywhere(any, "move", fac_slice(x, 1, 3, 30, 1), 8);
        everywhere(c, "move", fac_slice(x, 2, -1, -99, -2), 8);
        everywhere(c, "move", fac_slice(x, 1, 16, 17, 1), 8);
        everywhere(c, "move", fac_slice(x, 1, 5, 5, 1), 2);
        everywhere(any, "move",
                   fac_expand(in(g, "r", types[t], fac_shape(32, 1, 7)), fac_shape(3, 32, 4, 7)),
                   8);
        fac_value *parts[3];
        fac_split(x, 1, 2, parts);
        everywhere(c, "move", parts[0], 8);
        fac_split(m, 1, 3, parts);
        everywhere(any, "move", parts[0], 8);
        everywhere(c, "reshape", fac_flatten(x, 1), 8);
        everywhere(c, "reshape", fac_reshape(z, fac_shape(6, -1, 5)), 8);
        fac_value *i = in(g, "i", FAC_I64, fac_shape(3, 2)),
                  *j = in(g, "j", FAC_I32, fac_shape(200));
        check rows = c;
        rows.index = 5;
        everywhere(rows, "gather", fac_gather(in(g, "p", types[t], fac_shape(5, 3)), i, 0), 4);
        rows.index = 6;
        everywhere(rows, "gather", fac_gather(in(g, "q", types[t], fac_shape(4, 6, 300)), j, 1), 4);
        everywhere(rows, "gather", fac_gather(m, in(g, "k", FAC_I64, (fac_dims){ 0 }), -1), 4);
        fac_value *few = in(g, "few", FAC_I64, fac_shape(77)),
                  *many = in(g, "many", FAC_I64, fac_shape(601));
        everywhere(rows, "gather", fac_gather(in(g, "s", types[t], fac_shape(33, 5, 6)), few, -1),
                   4);
        everywhere(rows, "gather", fac_gather(in(g, "u", types[t], fac_shape(7, 9, 6)), many, 2),
                   4);
        fac_value *v = in(g, "v", types[t], (fac_dims){ 0 });
        everywhere(c, "pad",
                   fac_pad(x, fac_ints(g, fac_shape(0, 0, 1, 2, 0, 0, 3, 1)), NULL, NULL,
                           FAC_PAD_CONSTANT),
                   8);
        everywhere(
            c, "pad",
            fac_pad(x, fac_ints(g, fac_shape(0, 3, -1, 2, 1, -4, 3, 0)), v, NULL, FAC_PAD_CONSTANT),
            8);
        everywhere(c, "pad",
                   fac_pad(m, fac_ints(g, fac_shape(-20, -10)), v, fac_ints(g, fac_shape(0)),
                           FAC_PAD_CONSTANT),
                   4);
        fac_graph_free(g);
    }
}

/* Elements that are repeated around x, in lines that hold one element or several at a place. */
static const struct {
    int n;
    int64_t x[4], pads[8];
} around[] = { { 1, { 9 }, { 4, 3 } },
               { 1, { 1 }, { 2, 5 } },
               { 1, { 2 }, { 7, 9 } },
               { 1, { 40 }, { -3, 100 } },
               { 2, { 5, 700 }, { 0, 256, 0, 255 } },
               { 2, { 7, 3 }, { 3, 0, 2, 0 } },
               { 2, { 300, 40 }, { 0, -40, 0, 7 } },
               { 3, { 2, 5, 3 }, { 1, -2, 0, 0, 4, 6 } },
               { 4, { 3, 2, 19, 23 }, { 0, 0, 3, 2, 0, 0, 1, 4 } },
               { 4, { 2, 30, 17, 8 }, { 0, 2, 5, 0, 0, 3, -1, 0 } },
               { 2, { 0, 5 }, { 0, 2, 0, 2 } } };

static void repeated(void **state) {
    (void)state;
    const fac_dtype types[] = { FAC_F32, FAC_F64, FAC_BF16, FAC_I8 };
    for (size_t k = 0; k < sizeof around / sizeof *around; k++)
        for (int mode = FAC_PAD_REFLECT; mode <= FAC_PAD_WRAP; mode++) {
            fac_dims x = { .n = around[k].n }, y = x;
            memcpy(x.d, around[k].x, (size_t)x.n * sizeof *x.d);
            fac_graph *g = fac_graph_new();
            fac_dims list = { .n = 2 * x.n };
            memcpy(list.d, around[k].pads, (size_t)list.n * sizeof *list.d);
            fac_value *pads = fac_ints(g, list);
            for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
                fac_value *padded = fac_pad(in(g, fac_dtype_get(types[t])->name, types[t], x), pads,
                                            NULL, NULL, mode);
                y = padded->type.dims;
                everywhere(fresh(10 * k + t, -7, 6, 0), "pad_repeat", padded, 4);
            }
            everywhere(fresh(10 * k, -1, 1, 1e-5), "pad_grad",
                       fac_emit(&fac_op_pad_grad, &mode, 4,
                                (fac_value *[]){ in(g, "like", FAC_F32, x), pads, NULL,
                                                 in(g, "dy", FAC_F32, y) }),
                       4);
            fac_graph_free(g);
        }
}

/* f16 and bf16 through solvers of f32. */
static void halves(void **state) {
    (void)state;
    for (int type = FAC_F16; type <= FAC_BF16; type++) {
        fac_graph *g = fac_graph_new();
        fac_dtype t = (fac_dtype)type;
        check c = fresh(10, -1, 1, type == FAC_F16 ? 1e-3 : 8e-3);
        fac_value *x = in(g, "x", t, fac_shape(2, 19, 9, 8));
        fac_value *w = in(g, "w", t, fac_shape(24, 19, 3, 3)), *b = in(g, "b", t, fac_shape(24));
        fac_value *m = in(g, "m", t, fac_shape(30, 41)), *k = in(g, "k", t, fac_shape(41, 50));
        everywhere(c, "half", fac_conv2d(x, w, b, &(fac_conv2d_opts){ .pad = { 1, 1, 1, 1 } }), 6);
        everywhere(c, "half", fac_matmul(m, k), 6);
        everywhere(c, "half", fac_softmax(m, 1), 6);
        everywhere(c, "half", fac_mean(x, fac_shape(2, 3), true), 6);
        everywhere(c, "half", fac_sum(m, fac_shape(0), true), 6);
        everywhere(c, "half", fac_lrn(x, 5, 0.5, 0.75, 1), 6);
        fac_graph_free(g);
    }
}

/* All 65536 halves, and floats between, above and below them. */
static void half_conversions(void **state) {
    (void)state;
    enum { N = 65536 };
    uint16_t *h = calloc(N, 2), *back = calloc(N, 2), *want = calloc(N, 2);
    float *f = calloc(N, 4), *g = calloc(N, 4);
    for (size_t isa = 0; isa < sizeof check_isas / sizeof *check_isas; isa++) {
        const fac_simd *simd;
        assert_int_equal(fac_cpu_simd(check_isas[isa], &simd, NULL), FAC_OK);
        for (int type = FAC_F16; type <= FAC_BF16; type++) {
            for (int i = 0; i < N; i++) h[i] = (uint16_t)i;
            fac_streams_convert(simd->streams, FAC_F32, f, (fac_dtype)type, h, N);
            fac_convert(FAC_F32, g, (fac_dtype)type, h, N);
            for (int i = 0; i < N; i++)
                assert_true(!memcmp(&f[i], &g[i], 4) || (isnan(f[i]) && isnan(g[i])));
            for (int step = 0; step < 8;
                 step++) { /* every half, and what lies 1/8, 1/4, ... of the way to the next one */
                for (int i = 0; i < N; i++) {
                    uint32_t u, rest = (uint32_t)step << (type == FAC_F16 ? 10 : 13);
                    memcpy(&u, &g[i], 4);
                    u += rest + (step == 4 && i % 3 == 0);
                    memcpy(&f[i], &u, 4);
                }
                fac_streams_convert(simd->streams, (fac_dtype)type, back, FAC_F32, f, N);
                fac_convert((fac_dtype)type, want, FAC_F32, f, N);
                for (int i = 0; i < N; i++)
                    if (back[i] != want[i] && !isnan(f[i]))
                        fail_msg("%.9g: %04x, not %04x (%s)", (double)f[i], back[i], want[i],
                                 check_isas[isa]);
            }
        }
    }
    free(h), free(back), free(want), free(f), free(g);
}

static void solvers_refuse(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    check c = fresh(1, -1, 1, 0);
    c.isa = "portable";
    fac_value *x = in(g, "x", FAC_F32, fac_shape(2, 3)), *i = in(g, "i", FAC_I32, fac_shape(2, 3));
    assert_false(check_node(
        &c, "pad", fac_pad(x, fac_ints(g, fac_shape(0, 1, 0, 1)), NULL, NULL, FAC_PAD_EDGE)->node));
    assert_false(check_node(&c, "reduce", fac_sum(i, (fac_dims){ 0 }, false)->node));
    assert_false(check_node(
        &c, "pad_repeat",
        fac_pad(x, fac_ints(g, fac_shape(0, 1, 0, 1)), NULL, NULL, FAC_PAD_CONSTANT)->node));
    assert_false(
        check_node(&c, "softmax", fac_softmax(in(g, "d", FAC_F64, fac_shape(2, 3)), 1)->node));
    assert_false(check_node(&c, "move", fac_concat((fac_value *[]){ x, x }, 2, 0)->node));
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reorders),       cmocka_unit_test(movers),
        cmocka_unit_test(halves),         cmocka_unit_test(half_conversions),
        cmocka_unit_test(solvers_refuse), cmocka_unit_test(repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
