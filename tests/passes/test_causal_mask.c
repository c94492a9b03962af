/* Masks that let each query see the keys up to its own: in all ways in which they are written, and
 * nothing else; and attention with one gives what the masked softmax gives. */
#include "problem_check.h"
#include "graph/graph_internal.h"
#include "passes/fusion/causal_mask.h"

enum { SIZE = 7, HEADS = 2, BATCH = 3, WIDE = 8 };
static fac_error err;

/* A constant of BATCH, 1, rows, columns: f(batch, i, j). */
static fac_value *constant(fac_graph *g, fac_dtype t, int rows, int columns,
                           double (*f)(int, int, int)) {
    double v[BATCH * SIZE * SIZE];
    fac_tensor *wide, *narrow;
    int n = 0;
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) v[n++] = f(b, i, j);
    assert_int_equal(fac_tensor_new(NULL, FAC_F64, fac_shape(BATCH, 1, rows, columns), &wide, &err),
                     FAC_OK);
    assert_int_equal(fac_tensor_write(wide, v, (size_t)n * sizeof *v, &err), FAC_OK);
    assert_int_equal(fac_tensor_convert(wide, t, &narrow, &err), FAC_OK);
    fac_value *c = fac_const(g, narrow);
    fac_tensor_free(wide);
    fac_tensor_free(narrow);
    return c;
}

static double below(int b, int i, int j) { return b >= 0 && j <= i; }
static double above(int b, int i, int j) { return !below(b, i, j); }
static double strictly(int b, int i, int j) { return b >= 0 && j < i; }
static double last_differs(int b, int i, int j) {
    return below(b, i, j) != (b == BATCH - 1 && i == SIZE - 1 && j == 0);
}
static double infinite(int b, int i, int j) { return below(b, i, j) ? 0 : -INFINITY; }
static double lowest(int b, int i, int j) { return below(b, i, j) ? 0 : -3.4e38; }
static double weak(int b, int i, int j) { return below(b, i, j) ? 0 : -1e4; }
static double raised(int b, int i, int j) { return below(b, i, j) ? .5 : -INFINITY; }
static double row(int b, int i, int j) { return 5 + i + 0 * (b + j); }
static double column(int b, int i, int j) { return 5 + j + 0 * (b + i); }
static double next_column(int b, int i, int j) { return 6 + j + 0 * (b + i); }
static double backwards(int b, int i, int j) { return 5 + SIZE - j + 0 * (b + i); }
static double one(int b, int i, int j) { return 1 + 0 * (b + i + j); }
static double zero(int b, int i, int j) { return 0 * (b + i + j); }
static double half_of_batch(int b, int i, int j) { return b > 0 || i + j < 0; }

static fac_value *rows(fac_graph *g) { return constant(g, FAC_I64, SIZE, 1, row); }
static fac_value *columns(fac_graph *g) { return constant(g, FAC_I64, 1, SIZE, column); }
static fac_value *flags(fac_graph *g, double (*f)(int, int, int)) {
    return constant(g, FAC_BOOL, SIZE, SIZE, f);
}
static fac_value *added(fac_value *seen, double hidden) {
    fac_graph *g = seen->graph;
    return fac_where(seen, fac_number(g, FAC_F32, 0), fac_number(g, FAC_F32, hidden));
}
/* Are a row's and a column's sequences the same, as transformers asks of packed ones? */
static fac_value *same_sequence(fac_graph *g, double (*f)(int, int, int)) {
    fac_value *n = fac_cum_sum(constant(g, FAC_I64, SIZE, 1, f), 2, false, false);
    return fac_equal(n, fac_transpose(n, fac_shape(0, 1, 3, 2)));
}

static fac_value *form(fac_graph *g, int k, bool *causal) {
    *causal = k < 12;
    switch (k) {
    case 0:
        return flags(g, below);
    case 1:
        return constant(g, FAC_F32, SIZE, SIZE, infinite);
    case 2:
        return fac_cast(constant(g, FAC_F32, SIZE, SIZE, lowest), FAC_BF16);
    case 3:
        return fac_less_or_equal(columns(g), rows(g));
    case 4:
        return fac_greater_or_equal(rows(g), columns(g));
    case 5:
        return fac_not(fac_greater(columns(g), rows(g)));
    case 6:
        return fac_not(flags(g, above));
    case 7:
        return fac_and(flags(g, one), fac_less_or_equal(columns(g), rows(g)));
    case 8:
        return added(flags(g, below), -INFINITY);
    case 9:
        return added(
            fac_and(fac_and(fac_number(g, FAC_BOOL, 1), fac_less_or_equal(columns(g), rows(g))),
                    same_sequence(g, zero)),
            -3.4e38);
    case 10:
        return fac_not(fac_less(rows(g), columns(g)));
    case 11:
        return fac_expand(flags(g, below), fac_shape(BATCH, 2, SIZE, SIZE));
    /* what hides other keys */
    case 12:
        return flags(g, strictly);
    case 13:
        return flags(g, last_differs);
    case 14:
        return flags(g, one);
    case 15:
        return flags(g, above);
    case 16:
        return fac_not(flags(g, below));
    case 17:
        return constant(g, FAC_F32, SIZE, SIZE, weak);
    case 18:
        return constant(g, FAC_F32, SIZE, SIZE, raised);
    case 19:
        return fac_less_or_equal(constant(g, FAC_I64, 1, SIZE, next_column), rows(g));
    case 20:
        return fac_less_or_equal(constant(g, FAC_I64, 1, SIZE, backwards), rows(g));
    case 21:
        return fac_less(columns(g), rows(g));
    case 22:
        return fac_less_or_equal(rows(g), columns(g));
    case 23:
        return fac_and(flags(g, half_of_batch), fac_less_or_equal(columns(g), rows(g)));
    case 24:
        return added(fac_and(fac_less_or_equal(columns(g), rows(g)), same_sequence(g, one)),
                     -INFINITY);
    case 25:
        return added(flags(g, below), -100);
    case 26:
        return fac_input(g, "m", FAC_BOOL, fac_shape(BATCH, 1, SIZE, SIZE));
    case 27:
        return fac_less_or_equal(fac_input(g, "m", FAC_I64, fac_shape(1, SIZE)), rows(g));
    default:
        return NULL;
    }
}

static void told_apart(void **state) {
    (void)state;
    bool causal;
    for (int k = 0;; k++) {
        fac_graph *g = fac_graph_new();
        const fac_value *mask = form(g, k, &causal);
        if (!mask) {
            assert_true(k > 20);
            fac_graph_free(g);
            break;
        }
        assert_int_equal(fac_graph_check(g, &err), FAC_OK);
        if (fac_mask_is_causal(mask, SIZE, SIZE) != causal) fail_msg("form %d", k);
        assert_false(fac_mask_is_causal(mask, SIZE, SIZE + 1));
        assert_false(fac_mask_is_causal(mask, SIZE - 1, SIZE - 1) && k != 2);
        fac_graph_free(g);
    }
}

static fac_tensor *attention(fac_device *d, int k, bool plain, bool *causal) {
    fac_graph *g = fac_graph_new();
    fac_tensor *in[3], *y = NULL, *wide;
    fac_value *q[3];
    const problem_check c = { .seed = 5, .lo = -2, .hi = 2 };
    static const char *const names[] = { "q", "k", "v" };
    for (int i = 0; i < 3; i++) {
        q[i] = fac_input(g, names[i], FAC_F32, fac_shape(BATCH, HEADS, SIZE, WIDE));
        assert_int_equal(fac_tensor_new(NULL, FAC_F32, q[i]->type.dims, &in[i], &err), FAC_OK);
        problem_fill(&c, i, in[i]);
    }
    fac_value *s = fac_matmul(q[0], fac_transpose(q[1], fac_shape(0, 1, 3, 2)));
    fac_value *mask = form(g, k, causal);
    s = mask->type.dtype == FAC_BOOL ? fac_where(mask, s, fac_number(g, FAC_F32, -INFINITY))
                                     : fac_add(s, fac_cast(mask, FAC_F32));
    fac_output(g, "y", fac_matmul(fac_softmax(s, -1), q[2]));
    fac_program *p;
    const fac_program_opts o = { .solver = plain ? "ref" : NULL, .no_fuse = plain };
    if (fac_program_new(g, d, &o, &p, &err) || fac_program_run(p, in, &y, &err))
        fail_msg("form %d: %s", k, err.text);
    if (!plain) {
        fac_step_stat steps[8];
        const size_t n = fac_program_steps(p, steps, 8);
        assert_true(n <= 8 && !strcmp(steps[n - 1].solver, "attention"));
        /* a causal mask is no operand of the step, nor anything that makes it */
        if (*causal) assert_int_equal(n, 1);
    }
    assert_int_equal(fac_tensor_convert(y, FAC_F64, &wide, &err), FAC_OK);
    for (int i = 0; i < 3; i++) fac_tensor_free(in[i]);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_graph_free(g);
    return wide;
}

static void attention_is_the_same(void **state) {
    (void)state;
    static const int forms[] = { 0, 1, 3, 5, 8, 9, 14, 17, 25 }; /* each row sees a key */
    fac_device *d;
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        bool causal;
        char what[40];
        const problem_check c = { .tolerance = 1e-5 };
        fac_tensor *got = attention(d, forms[i], false, &causal),
                   *want = attention(d, forms[i], true, &causal);
        snprintf(what, sizeof what, "form %d", forms[i]);
        problem_compare(&c, got, want, what);
        fac_tensor_free(got);
        fac_tensor_free(want);
    }
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(told_apart),
                                        cmocka_unit_test(attention_is_the_same) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
