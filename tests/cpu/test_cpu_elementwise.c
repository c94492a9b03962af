/* The solver "fused": single ops and chains, every element type, broadcasting, strides, channel
 * blocks, in place. */
#include "solver_check.h"
#include "facula/ops.h"
#include "op_list.h"

enum { ROUNDS = 12 };

static check fresh(uint64_t seed, double lo, double hi, double tolerance) {
    return (check){ .seed = seed,
                    .lo = lo,
                    .hi = hi,
                    .tolerance = tolerance,
                    .threads = 2,
                    .strided = true,
                    .blocked = true };
}

static void must_solve(check *c, const fac_value *y) {
    fac_error err = { 0 };
    if (fac_graph_check(y->graph, &err)) fail_msg("%s", err.text);
    if (!check_node(c, "fused", y->node))
        fail_msg("no offer for %s (seed %llu)", y->node->op->name, (unsigned long long)c->seed);
}

/* Every instruction set, several layouts. */
static void everywhere(check c, const fac_value *y) {
    for (size_t i = 0; i < sizeof check_isas / sizeof *check_isas; i++)
        for (int round = 0; round < ROUNDS; round++) {
            c.isa = check_isas[i];
            c.in_place = round % 2;
            c.any_out = round % 3 == 2;
            must_solve(&c, y);
        }
}

static fac_value *in(fac_graph *g, int k, fac_dtype t, fac_dims d) {
    char name[16];
    snprintf(name, sizeof name, "x%d", k);
    return fac_input(g, name, t, d);
}

static void one_operand(void **state) {
    (void)state;
    const fac_dims shapes[] = { { 0 },
                                fac_shape(1),
                                fac_shape(7),
                                fac_shape(3, 0, 2),
                                fac_shape(2, 19, 5, 7),
                                fac_shape(1, 16, 9, 9),
                                fac_shape(5000) };
    const fac_op *ops[] = { &fac_op_relu, &fac_op_exp, &fac_op_sigmoid, &fac_op_neg };
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            fac_graph *g = fac_graph_new();
            fac_value *x = in(g, 0, FAC_F32, shapes[s]);
            everywhere(fresh(100 * k + s, -3, 3, 1e-6), fac_emit(ops[k], NULL, 1, &x));
            fac_graph_free(g);
        }
}

/* Both sides of NumPy broadcasting, the shapes of real networks among them. */
static void broadcasting(void **state) {
    (void)state;
    const struct {
        fac_dims a, b;
    } pairs[] = { { fac_shape(2, 19, 5, 7), fac_shape(19, 1, 1) },
                  { fac_shape(2, 19, 5, 7), fac_shape(1, 19, 1, 1) },
                  { fac_shape(2, 32, 8, 8), fac_shape(32, 1, 1) },
                  { fac_shape(2, 19, 5, 7), fac_shape(2, 19, 1, 1) },
                  { fac_shape(2, 19, 5, 7), fac_shape(2, 1, 5, 7) },
                  { fac_shape(2, 19, 5, 7), fac_shape(7) },
                  { fac_shape(2, 19, 5, 7), fac_shape(2, 19, 5, 7) },
                  { fac_shape(2, 32, 5, 7), fac_shape(2, 32, 5, 7) },
                  { fac_shape(1, 1, 3), fac_shape(4, 5, 1) },
                  { fac_shape(3, 1), fac_shape(1, 4) },
                  { { 0 }, fac_shape(2, 3) },
                  { fac_shape(6, 300), fac_shape(300) },
                  { fac_shape(3, 1100), fac_shape(3, 1) },
                  { fac_shape(2, 1, 5, 7), fac_shape(2, 19, 5, 7) },
                  { fac_shape(64, 3), fac_shape(3) },
                  { fac_shape(1, 1, 28, 28), fac_shape(1, 1, 28, 28) } };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        for (int swap = 0; swap < 2; swap++) {
            fac_graph *g = fac_graph_new();
            fac_value *a = in(g, 0, FAC_F32, swap ? pairs[k].b : pairs[k].a);
            fac_value *b = in(g, 1, FAC_F32, swap ? pairs[k].a : pairs[k].b);
            everywhere(fresh(1000 + 10 * k, -3, 3, 0), fac_sub(a, b));
            fac_graph_free(g);
        }
}

static void element_types(void **state) {
    (void)state;
    const fac_dims d = fac_shape(2, 9, 4, 5), row = fac_shape(9, 1, 1);
    for (int t = FAC_F32; t <= FAC_U64; t++) {
        fac_graph *g = fac_graph_new();
        fac_dtype type = (fac_dtype)t;
        double tolerance = 1e-6;
        if (type == FAC_F16) tolerance = 1e-3;
        if (type == FAC_BF16) tolerance = 8e-3;
        everywhere(fresh(2000 + (uint64_t)t * 10, -100, 100, tolerance),
                   fac_mul(in(g, 0, type, d), in(g, 1, type, row)));
        everywhere(fresh(2100 + (uint64_t)t * 10, -100, 100, 0),
                   fac_greater(in(g, 2, type, d), in(g, 3, type, row)));
        fac_value *choice =
            fac_where(in(g, 4, FAC_BOOL, row), in(g, 5, type, d), in(g, 6, type, row));
        everywhere(fresh(2200 + (uint64_t)t * 10, -9, 9, 0), choice);
        for (int to = FAC_F32; to <= FAC_BOOL; to++)
            everywhere(fresh(2300 + (uint64_t)(t * 20 + to), -3, 3, 0),
                       fac_cast(in(g, 10 + to, type, d), (fac_dtype)to));
        fac_graph_free(g);
    }
}

/* ---- chains ---- */

typedef fac_value *body_fn(fac_value *const x[]);

static fac_value *chain(fac_graph *g, body_fn *f, int n, const fac_type *types) {
    fac_graph *body = fac_graph_new();
    fac_value *outer[CHECK_OPERANDS], *inner[CHECK_OPERANDS];
    for (int k = 0; k < n; k++) {
        outer[k] = in(g, k, types[k].dtype, types[k].dims);
        inner[k] = in(body, k, types[k].dtype, types[k].dims);
    }
    fac_output(body, "y", f(inner));
    return fac_emit_body(g, &fac_op_fused, NULL, n, n, outer, body, NULL);
}

static fac_value *gelu_like(
    fac_value *const x[]) { /* x0 is read by the first and by the last step */
    fac_graph *g = fac_value_graph(x[0]);
    fac_value *t = fac_mul(fac_add(x[0], x[1]), fac_number(g, FAC_F32, 0.5));
    return fac_mul(fac_add(fac_erf(t), fac_number(g, FAC_F32, 1)), x[0]);
}
static fac_value *clamped(fac_value *const x[]) {
    return fac_min(fac_max(fac_add(fac_mul(x[0], x[1]), x[2]), fac_neg(x[1])), fac_exp(x[2]));
}
static fac_value *chosen(fac_value *const x[]) {
    return fac_where(fac_less(x[0], x[1]), fac_sqrt(fac_abs(x[0])), fac_mul(x[1], x[1]));
}
static fac_value *counted(
    fac_value *const x[]) { /* i8 wraps at every step; the condition is one of integers */
    fac_value *sum = fac_add(fac_mul(x[0], x[0]), x[1]);
    return fac_where(fac_and(fac_greater(sum, x[1]), x[2]), sum, fac_neg(sum));
}
static fac_value *halves(fac_value *const x[]) {
    return fac_sub(fac_mul(x[0], x[0]), fac_mul(x[0], x[1]));
}
static fac_value *converted(fac_value *const x[]) { /* f32 -> i32 -> u8 -> f64 */
    return fac_mul(fac_cast(fac_cast(fac_cast(fac_mul(x[0], x[0]), FAC_I32), FAC_U8), FAC_F64),
                   x[1]);
}
static fac_value *widened(fac_value *const x[]) {
    return fac_add(fac_cast(fac_neg(x[0]), FAC_F64), x[1]);
}

static void chains(void **state) {
    (void)state;
    const fac_dims d = fac_shape(2, 19, 5, 7), row = fac_shape(19, 1, 1), one = { 0 };
    const fac_dims flat = fac_shape(3, 2345), narrow = fac_shape(2345);
    const struct {
        body_fn *f;
        int n;
        fac_type types[3];
        double tolerance;
    } all[] = { { gelu_like,
                  2,
                  { { FAC_F32, d }, { FAC_F32, row } },
                  8e-6 }, /* 5 ulp of an erf near -1, times 20 */
                { gelu_like, 2, { { FAC_F32, flat }, { FAC_F32, narrow } }, 8e-6 },
                { clamped, 3, { { FAC_F32, d }, { FAC_F32, row }, { FAC_F32, row } }, 1e-6 },
                { clamped, 3, { { FAC_F32, flat }, { FAC_F32, one }, { FAC_F32, narrow } }, 1e-6 },
                { clamped, 3, { { FAC_F64, flat }, { FAC_F64, one }, { FAC_F64, narrow } }, 1e-14 },
                { chosen, 2, { { FAC_F32, d }, { FAC_F32, d } }, 1e-6 },
                { chosen, 2, { { FAC_F64, flat }, { FAC_F64, flat } }, 1e-14 },
                { counted, 3, { { FAC_I8, d }, { FAC_I8, row }, { FAC_BOOL, d } }, 0 },
                { counted, 3, { { FAC_I64, flat }, { FAC_I64, narrow }, { FAC_BOOL, narrow } }, 0 },
                { halves, 2, { { FAC_F16, d }, { FAC_F16, row } }, 0 },
                { halves, 2, { { FAC_BF16, flat }, { FAC_BF16, narrow } }, 0 },
                { widened, 2, { { FAC_F32, flat }, { FAC_F64, narrow } }, 0 },
                { converted, 2, { { FAC_F32, d }, { FAC_F64, row } }, 1e-14 } };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        fac_graph *g = fac_graph_new();
        everywhere(fresh(5000 + 100 * k, -20, 20, all[k].tolerance),
                   chain(g, all[k].f, all[k].n, all[k].types));
        fac_graph_free(g);
    }
}

/* What it cannot do it must not promise. */
static void refuses(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    check c = fresh(1, 0, 1, 0);
    c.isa = "portable";
    fac_value *x = in(g, 0, FAC_F32, fac_shape(2, 3));
    assert_false(check_node(&c, "fused", fac_softmax(x, 1)->node));
    assert_false(check_node(&c, "fused", fac_sum(x, (fac_dims){ 0 }, true)->node));
    assert_false(check_node(&c, "fused", fac_cast(x, FAC_TEXT)->node));
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(one_operand),
                                        cmocka_unit_test(broadcasting),
                                        cmocka_unit_test(element_types), cmocka_unit_test(chains),
                                        cmocka_unit_test(refuses) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
