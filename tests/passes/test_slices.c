/* Slices go before views, and gradients of slices that are all of a tensor become one concat: the
 * same numbers, and nothing where slices overlap, leave something out or have other readers. */
#include "problem_check.h"
#include "graph/graph_internal.h"
#include "passes/passes.h"

static fac_error err;

static int count(const fac_graph *g, const char *op) {
    int n = 0;
    for (const fac_node *k = g->first; k; k = k->next)
        n += !strcmp(k->op->name, op) && (k->out[0]->uses || k->out[0]->roots);
    return n;
}

/* What the first output is for the first input, by the reference kernels. */
static fac_tensor *result(const fac_graph *g) {
    fac_device *d;
    fac_program *p;
    fac_tensor *x, *y = NULL, *wide;
    const fac_type t = fac_value_type(fac_graph_input(g, 0));
    const problem_check c = { .seed = 3, .lo = -2, .hi = 2 };
    const fac_program_opts o = { .solver = "ref", .no_fuse = true };
    assert_int_equal(fac_tensor_new(NULL, t.dtype, t.dims, &x, &err), FAC_OK);
    problem_fill(&c, 0, x);
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    if (fac_program_new(g, d, &o, &p, &err) || fac_program_run(p, &x, &y, &err))
        fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_convert(y, FAC_F64, &wide, &err), FAC_OK);
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_device_free(d);
    return wide;
}

static void same_results(const fac_graph *a, const fac_graph *b, const char *what) {
    const problem_check c = { .tolerance = 1e-6 };
    fac_tensor *x = result(a), *y = result(b);
    problem_compare(&c, x, y, what);
    fac_tensor_free(x);
    fac_tensor_free(y);
}

/* ---- sums ---- */

typedef struct cut {
    int axis;
    int64_t from, to, step;
} cut;
static const struct {
    const char *name;
    cut cuts[3];
    bool other; /* something else reads a gradient */
    bool joins;
} sums[] = {
    { "two parts", { { 1, 0, 2, 1 }, { 1, 2, 6, 1 } }, false, true },
    { "three parts in another order",
      { { 1, 4, 6, 1 }, { 1, 0, 1, 1 }, { 1, 1, 4, 1 } },
      false,
      true },
    { "ends from the end", { { 2, 0, -3, 1 }, { 2, -3, 100, 1 } }, false, true },
    { "a gap", { { 1, 0, 2, 1 }, { 1, 3, 6, 1 } }, false, false },
    { "an overlap", { { 1, 0, 3, 1 }, { 1, 2, 6, 1 } }, false, false },
    { "as many twice and a gap", { { 1, 0, 3, 1 }, { 1, 0, 3, 1 } }, false, false },
    { "two axes", { { 1, 0, 3, 1 }, { 2, 0, 2, 1 } }, false, false },
    { "steps", { { 1, 0, 6, 2 }, { 1, 1, 6, 2 } }, false, false },
    { "another reader", { { 1, 0, 2, 1 }, { 1, 2, 6, 1 } }, true, false },
};

static void gradients_of_all_parts_are_one(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        fac_graph *g = fac_graph_new();
        fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(3, 6, 5)), *dx, *loss = NULL, *part[3];
        for (int k = 0; k < 3 && sums[i].cuts[k].step; k++) {
            const cut *c = &sums[i].cuts[k];
            part[k] = fac_slice(x, c->axis, c->from, c->to, c->step);
            fac_value *y = fac_mul(fac_exp(part[k]), fac_number(g, FAC_F32, k + 1));
            y = fac_sum(y, (fac_dims){ 0 }, false);
            loss = loss ? fac_add(loss, y) : y;
        }
        fac_grad(loss, 1, &x, &dx);
        fac_output(g, "dx", dx);
        if (sums[i].other) fac_output(g, "first", fac_add(dx->node->in[0], dx->node->in[0]));
        assert_int_equal(fac_graph_check(g, &err), FAC_OK);
        fac_graph *made = fac_pass_slice_sums(g);
        assert_int_equal(fac_graph_check(made, &err), FAC_OK);
        if (count(made, "concat") != sums[i].joins ||
            (count(made, "slice_grad") > 0) == sums[i].joins)
            fail_msg("%s: %d concat, %d slice_grad", sums[i].name, count(made, "concat"),
                     count(made, "slice_grad"));
        if (!sums[i].other) same_results(made, g, sums[i].name);
        fac_graph_free(made);
        fac_graph_free(g);
    }
}

/* ---- views ---- */

static fac_value *view(fac_value *x, int k, bool *early) {
    *early = k < 5;
    switch (k) {
    case 0: /* one of queries, keys and values */
        x = fac_transpose(fac_reshape(x, fac_shape(3, 4, 3, 8)), fac_shape(2, 0, 1, 3));
        return fac_slice(x, 0, 1, 2, 1);
    case 1: /* heads of it */
        x = fac_transpose(fac_reshape(x, fac_shape(3, 4, 3, 2, 4)), fac_shape(2, 0, 3, 1, 4));
        return fac_slice(x, 0, 2, 3, 1);
    case 2:
        return fac_slice(fac_reshape(x, fac_shape(1, 3, 1, 4, 6, 4)), 4, 1, 5, 1);
    case 3:
        return fac_slice(fac_transpose(x, fac_shape(2, 0, 1)), 1, 1, 3, 1);
    case 4:
        return fac_slice(fac_squeeze(fac_unsqueeze(x, fac_shape(0)), fac_shape(0)), 2, 5, 9, 1);
    /* what is no slice of one dim before the reshape */
    case 5:
        return fac_slice(fac_reshape(x, fac_shape(12, 24)), 0, 2, 7, 1);
    case 6:
        return fac_slice(fac_reshape(x, fac_shape(3, 4, 3, 8)), 3, 0, 4, 1);
    case 7:
        return fac_slice(fac_reshape(x, fac_shape(3, 96)), 1, 0, 7, 1);
    case 8:
        return fac_slice(fac_transpose(x, fac_shape(2, 0, 1)), 1, 0, 3, 2);
    default:
        return NULL;
    }
}

static void slices_go_before_views(void **state) {
    (void)state;
    for (int k = 0;; k++) {
        bool early;
        fac_graph *g = fac_graph_new();
        fac_value *x = fac_exp(fac_input(g, "x", FAC_F32, fac_shape(3, 4, 24))),
                  *y = view(x, k, &early);
        char what[40];
        if (!y) {
            assert_true(k > 5);
            fac_graph_free(g);
            break;
        }
        snprintf(what, sizeof what, "view %d", k);
        fac_output(g, "y", y);
        assert_int_equal(fac_graph_check(g, &err), FAC_OK);
        fac_graph *made = fac_pass_early_slices(g);
        assert_int_equal(fac_graph_check(made, &err), FAC_OK);
        bool first = false;
        for (const fac_node *n = made->first; n; n = n->next)
            first |= !strcmp(n->op->name, "slice") && n->out[0]->uses &&
                     !strcmp(n->in[0]->node->op->name, "exp");
        if (first != early) fail_msg("%s: the slice is%s first", what, first ? "" : " not");
        same_results(made, g, what);
        fac_graph_free(made);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(gradients_of_all_parts_are_one),
                                        cmocka_unit_test(slices_go_before_views) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
