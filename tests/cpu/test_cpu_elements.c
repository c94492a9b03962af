/* gather_elements and scatter_elements of the cpu against the reference: all types, awkward shapes,
 * ways of sharing them out. */
#include "fresh_seed.h"
#include "solver_check.h"
#include "facula/facula.h"

static uint64_t seed;
static fac_value *in(fac_graph *g, const char *name, fac_dtype t, fac_dims d) {
    return fac_input(g, name, t, d);
}

/* Of as many threads as there are ways to share out. */
static void everywhere(check c, const char *solver, const fac_value *y) {
    fac_error err = { 0 };
    if (fac_graph_check(y->graph, &err)) fail_msg("%s", err.text);
    for (int threads = 1; threads <= 5; threads += 2) {
        c.threads = threads;
        c.isa = check_isas[0];
        if (!check_node(&c, solver, y->node))
            fail_msg("%s: no offer (seed %llu)", solver, (unsigned long long)c.seed);
    }
}

static const struct {
    int axis;
    fac_dims x, i;
} shapes[] = { { 0, { 1, { 7 } }, { 1, { 19 } } },
               { 0, { 1, { 50 } }, { 1, { 9000 } } },
               { 1, { 2, { 600, 9 } }, { 2, { 600, 1 } } },
               { 0, { 2, { 9, 600 } }, { 2, { 40, 300 } } },
               { 1, { 3, { 3, 11, 5 } }, { 3, { 2, 30, 4 } } },
               { 2, { 4, { 2, 3, 4, 8 } }, { 4, { 2, 3, 500, 8 } } },
               { -1, { 4, { 5, 6, 7, 9 } }, { 4, { 5, 5, 7, 300 } } },
               { 0, { 4, { 8, 3, 1, 70 } }, { 4, { 6, 3, 1, 70 } } },
               { 1, { 3, { 1, 8, 1 } }, { 3, { 1, 1, 1 } } },
               { 1, { 2, { 0, 5 } }, { 2, { 0, 4 } } },
               { 0, { 2, { 6, 3 } }, { 2, { 0, 3 } } } };
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Indices fit every shape's dim: those that say how many there are at least. */
static int64_t least(int s) {
    return shapes[s].x.d[shapes[s].axis < 0 ? shapes[s].x.n + shapes[s].axis : shapes[s].axis];
}

static check fresh(int s) {
    return (check){
        .seed = seed + 100 * (uint64_t)s, .lo = -3, .hi = 3, .index = least(s), .strided = true
    };
}

static void gathers(void **state) {
    static const fac_dtype indices[] = { FAC_I64, FAC_I32, FAC_I16, FAC_I8 };
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int t = FAC_F32; t <= FAC_BOOL; t++) {
            fac_graph *g = fac_graph_new();
            fac_value *i = in(g, "i", indices[t % (least(s) > 100 ? 3 : 4)], shapes[s].i);
            everywhere(
                fresh(s), "gather_elements",
                fac_gather_elements(in(g, "x", (fac_dtype)t, shapes[s].x), i, shapes[s].axis));
            fac_graph_free(g);
        }
}

static void scatters(void **state) {
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int t = FAC_F32; t <= FAC_BOOL; t++)
            for (int how = FAC_SCATTER_NONE; how <= FAC_SCATTER_MAX; how++) {
                fac_graph *g = fac_graph_new();
                fac_value *x = in(g, "x", (fac_dtype)t, shapes[s].x),
                          *i = in(g, "i", t % 2 ? FAC_I64 : FAC_I32, shapes[s].i);
                check c = fresh(s);
                if (how == FAC_SCATTER_ADD || how == FAC_SCATTER_MUL)
                    c.tolerance = t == FAC_F32    ? 1e-4
                                  : t == FAC_F64  ? 1e-12
                                  : t == FAC_F16  ? 2e-3
                                  : t == FAC_BF16 ? 1.6e-2
                                                  : 0;
                if (how == FAC_SCATTER_MUL && fac_dtype_get((fac_dtype)t)->kind == 'f') {
                    c.lo = 0.5;
                    c.hi = 1.5;
                }
                everywhere(c, "scatter_elements",
                           fac_scatter_elements(x, i, in(g, "u", (fac_dtype)t, shapes[s].i),
                                                shapes[s].axis, (fac_scatter_reduction)how));
                fac_graph_free(g);
            }
}

/* Columns so long that they are done in panels. */
static void panels(void **state) {
    (void)state;
    for (int t = FAC_F32; t <= FAC_F16; t += FAC_F16 - FAC_F32) {
        fac_graph *g = fac_graph_new();
        fac_value *x = in(g, "x", (fac_dtype)t, fac_shape(9000, 210)),
                  *i = in(g, "i", FAC_I64, fac_shape(30, 200));
        check c = { .seed = seed,
                    .lo = -3,
                    .hi = 3,
                    .index = 9000,
                    .tolerance = t == FAC_F32 ? 1e-5 : 2e-3,
                    .strided = true };
        everywhere(c, "scatter_elements",
                   fac_scatter_elements(x, i, in(g, "u", (fac_dtype)t, fac_shape(30, 200)), 0,
                                        FAC_SCATTER_ADD));
        fac_graph_free(g);
    }
}

/* Sums of thousands of numbers that round differently in another order: the same bits with any
 * number of threads. */
static void order(void **state) {
    enum { N = 20000, PLACES = 3 };
    (void)state;
    float *x = calloc(N, sizeof *x), want[PLACES], got[PLACES];
    int64_t *at = calloc(N, sizeof *at);
    for (int i = 0; i < N; i++) {
        x[i] = (float)fac_random_uniform(seed, 1, (uint64_t)i) - 0.5f;
        at[i] = i % PLACES;
    }
    for (int threads = 1; threads <= 4; threads++) {
        fac_device *d = NULL;
        fac_error err = { 0 };
        fac_graph *g = fac_graph_new();
        fac_program *p = NULL;
        fac_tensor *v[3] = { NULL }, *y = NULL;
        fac_value *z = in(g, "z", FAC_F32, fac_shape(PLACES)),
                  *i = in(g, "i", FAC_I64, fac_shape(N));
        fac_output(
            g, "y",
            fac_scatter_elements(z, i, in(g, "u", FAC_F32, fac_shape(N)), 0, FAC_SCATTER_ADD));
        assert_int_equal(fac_device_open("cpu", &(fac_device_opts){ .threads = threads }, &d, &err),
                         FAC_OK);
        assert_int_equal(
            fac_program_new(g, d, &(fac_program_opts){ .solver = "scatter_elements" }, &p, &err),
            FAC_OK);
        assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(PLACES), &v[0], &err), FAC_OK);
        assert_int_equal(fac_tensor_new(NULL, FAC_I64, fac_shape(N), &v[1], &err), FAC_OK);
        assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(N), &v[2], &err), FAC_OK);
        assert_int_equal(fac_tensor_write(v[0], (float[PLACES]){ 0 }, sizeof want, &err), FAC_OK);
        assert_int_equal(fac_tensor_write(v[1], at, N * sizeof *at, &err), FAC_OK);
        assert_int_equal(fac_tensor_write(v[2], x, N * sizeof *x, &err), FAC_OK);
        if (fac_program_run(p, v, &y, &err)) fail_msg("%s", err.text);
        assert_int_equal(fac_tensor_read(y, threads == 1 ? want : got, sizeof want, &err), FAC_OK);
        if (threads > 1) assert_memory_equal(got, want, sizeof want);
        for (int k = 0; k < 3; k++) fac_tensor_free(v[k]);
        fac_tensor_free(y);
        fac_program_free(p);
        fac_graph_free(g);
        fac_device_free(d);
    }
    free(x), free(at);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(gathers), cmocka_unit_test(scatters),
                                        cmocka_unit_test(panels), cmocka_unit_test(order) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
