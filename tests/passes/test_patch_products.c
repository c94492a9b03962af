/* Gradients by the weights of patches as products: the same numbers, and only where every pixel is
 * in one patch. */
#include "problem_check.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "passes/passes.h"

static const struct {
    const char *problem;
    bool becomes;
} all[] = {
    { "conv2d_grad_w(f64[2,3,8,12], f64[2,5,2,3], f64[5,3,4,4]) stride=4,4", true },
    { "conv2d_grad_w(f32[1,1,6,4], f32[1,7,2,4], f32[7,1,3,1]) stride=3,1", true },
    { "conv2d_grad_w(f32[3,2,2,2], f32[3,4,1,1], f32[4,2,2,2]) stride=2,2", true },
    { "conv2d_grad_w(f32[2,3,9,12], f32[2,5,2,3], f32[5,3,4,4]) stride=4,4", false },
    { "conv2d_grad_w(f32[2,3,8,8], f32[2,5,3,3], f32[5,3,4,4]) stride=2,2", false },
    { "conv2d_grad_w(f32[2,3,6,6], f32[2,5,2,2], f32[5,3,4,4]) stride=4,4 pad=1,1,1,1", false },
    { "conv2d_grad_w(f32[2,4,4,4], f32[2,6,2,2], f32[6,2,2,2]) stride=2,2 groups=2", false },
    { "conv2d_grad_w(f32[2,4,5,5], f32[2,6,5,5], f32[6,4,1,1])", false },
    { "conv2d_grad_w(f32[0,3,8,8], f32[0,5,2,2], f32[5,3,4,4]) stride=4,4", false },
};

/* *self: what a product takes, where a convolution takes 1. */
static double price(void *self, const fac_node *n) {
    return FAC_IS(n, matmul) ? *(const double *)self : 1;
}

static fac_tensor *result(const fac_graph *g, fac_tensor *const in[]) {
    fac_error err = { 0 };
    fac_device *d;
    fac_program *p;
    fac_tensor *y = NULL, *wide;
    const fac_program_opts o = { .solver = "ref", .no_fuse = true };
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    if (fac_program_new(g, d, &o, &p, &err) || fac_program_run(p, in, &y, &err))
        fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_convert(y, FAC_F64, &wide, &err), FAC_OK);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_device_free(d);
    return wide;
}

static bool has_product(const fac_graph *g) {
    for (const fac_node *n = g->first; n; n = n->next)
        if (FAC_IS(n, matmul) && n->out[0]->uses) return true;
    return false;
}

static void patches_and_nothing_else(void **state) {
    (void)state;
    fac_error err = { 0 };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fac_graph *g;
        fac_tensor *in[3] = { NULL };
        double cheap = .1, costly = .6;
        const problem_check c = { .seed = i + 1, .lo = -1, .hi = 1, .tolerance = 2e-5 };
        if (fac_problem_graph(all[i].problem, false, &g, &err)) fail_msg("%s", err.text);
        for (int k = 0; k < fac_graph_inputs(g); k++) {
            const fac_type t = fac_value_type(fac_graph_input(g, k));
            assert_int_equal(fac_tensor_new(NULL, t.dtype, t.dims, &in[k], &err), FAC_OK);
            problem_fill(&c, k, in[k]);
        }
        fac_graph *made = fac_pass_patch_products(g, price, &cheap),
                  *left = fac_pass_patch_products(g, price, &costly);
        if (has_product(made) != all[i].becomes) fail_msg("%s", all[i].problem);
        assert_false(has_product(left)); /* moving the operands would take longer */
        fac_tensor *got = result(made, in), *want = result(g, in);
        problem_compare(&c, got, want, all[i].problem);
        fac_tensor_free(got);
        fac_tensor_free(want);
        for (int k = 0; k < 3; k++) fac_tensor_free(in[k]);
        fac_graph_free(made);
        fac_graph_free(left);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(patches_and_nothing_else) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
