/* Gradients of attention: one node where it can be, the expansion elsewhere; both say what f64
 * says, and so does log sum exp. */
#include "problem_check.h"
#include "op_list.h"

typedef struct form {
    fac_dims q, k, v, mask; /* mask.n = 0: none */
    fac_dtype mask_type;
    bool causal, by_mask,
        lse; /* by_mask: the gradient by the mask too; lse: it is part of the loss */
    double scale, softcap;
    int nodes; /* of attention_grad */
} form;

#define D(...)                                                                                     \
    {                                                                                              \
        .n = sizeof(int64_t[]){ __VA_ARGS__ } / sizeof(int64_t), .d = { __VA_ARGS__ }              \
    }
static const form forms[] = {
    { .q = D(2, 3, 9, 8), .k = D(2, 3, 21, 8), .v = D(2, 3, 21, 5), .nodes = 1 },
    { .q = D(1, 4, 33, 16),
      .k = D(1, 2, 40, 16),
      .v = D(1, 2, 40, 16),
      .causal = true,
      .scale = 0.3,
      .nodes = 1 },
    { .q = D(2, 7, 24),
      .k = D(2, 18, 12),
      .v = D(2, 18, 9),
      .mask = D(2, 1, 7, 18),
      .mask_type = FAC_BOOL,
      .nodes = 1 },
    { .q = D(6, 2, 9, 8),
      .k = D(6, 2, 21, 8),
      .v = D(6, 2, 21, 5),
      .mask = D(1, 3, 2, 9, 21),
      .mask_type = FAC_F32,
      .nodes = 1 },
    { .q = D(6, 2, 9, 8),
      .k = D(6, 1, 21, 8),
      .v = D(6, 1, 21, 5),
      .mask = D(2, 3, 1, 9, 21),
      .mask_type = FAC_F32,
      .by_mask = true },
    { .q = D(1, 2, 30, 8),
      .k = D(1, 2, 50, 8),
      .v = D(1, 2, 50, 8),
      .mask = D(30, 50),
      .mask_type = FAC_F32,
      .nodes = 1 },
    { .q = D(1, 2, 30, 8),
      .k = D(1, 2, 50, 8),
      .v = D(1, 2, 50, 8),
      .mask = D(30, 50),
      .mask_type = FAC_F32,
      .by_mask = true },
    { .q = D(1, 2, 30, 8),
      .k = D(1, 2, 50, 8),
      .v = D(1, 2, 50, 8),
      .mask = D(11),
      .mask_type = FAC_F32 },
    { .q = D(1, 2, 30, 8), .k = D(1, 2, 50, 8), .v = D(1, 2, 50, 8), .lse = true },
    { .q = D(1, 2, 30, 8), .k = D(1, 2, 50, 8), .v = D(1, 2, 50, 8), .softcap = 2, .causal = true },
};

/* Outputs: y, lse, the gradients. */
static fac_graph *build(const form *f, fac_dtype dtype, int *nodes) {
    fac_graph *g = fac_graph_new();
    fac_value *wrt[4] = { fac_input(g, "q", dtype, f->q), fac_input(g, "k", dtype, f->k),
                          fac_input(g, "v", dtype, f->v) },
              *d[4];
    fac_value *mask = NULL;
    if (f->mask.n)
        mask = wrt[3] = fac_input(g, "mask", f->mask_type == FAC_BOOL ? FAC_BOOL : dtype, f->mask);
    const fac_attention_opts o = { .q_heads = f->q.n == 3 ? 6 : 0,
                                   .kv_heads = f->q.n == 3 ? 3 : 0,
                                   .scale = f->scale,
                                   .softcap = f->softcap,
                                   .causal = f->causal };
    fac_value *y = fac_attention(wrt[0], wrt[1], wrt[2], mask, NULL, NULL, NULL, &o),
              *lse = fac_value_other(y, 4);
    fac_value *loss = fac_sum(fac_sin(y), (fac_dims){ 0 }, false);
    if (f->lse) loss = fac_add(loss, fac_sum(fac_cos(lse), (fac_dims){ 0 }, false));
    fac_grad(loss, f->by_mask ? 4 : 3, wrt, d);
    fac_output(g, "y", y);
    fac_output(g, "lse", lse);
    for (int i = 0; i < (f->by_mask ? 4 : 3); i++) fac_output(g, fac_value_name(wrt[i]), d[i]);
    *nodes = 0;
    for (const fac_node *n = g->first; n; n = n->next) *nodes += FAC_IS(n, attention_grad);
    return g;
}

static int run(const form *f, const problem_check *c, fac_device *d, bool reference,
               fac_tensor **to) {
    fac_error err = { 0 };
    int nodes;
    fac_graph *g = build(f, reference ? FAC_F64 : FAC_F32, &nodes);
    fac_tensor *in[4] = { NULL }, *out[6] = { NULL };
    fac_program *p = NULL;
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
    assert_int_equal(nodes, f->nodes);
    for (int k = 0; k < fac_graph_inputs(g); k++) {
        const fac_type t = fac_value_type(fac_graph_input(g, k));
        assert_int_equal(fac_tensor_new(NULL, t.dtype, t.dims, &in[k], &err), FAC_OK);
        problem_fill(c, k, in[k]);
    }
    const fac_program_opts o = { .solver = reference ? "ref" : NULL, .no_fuse = reference };
    if (fac_program_new(g, d, &o, &p, &err) || fac_program_run(p, in, out, &err))
        fail_msg("%s", err.text);
    const int n = fac_graph_outputs(g);
    for (int k = 0; k < n; k++)
        if (fac_tensor_convert(out[k], FAC_F64, &to[k], &err)) fail_msg("%s", err.text);
    for (int k = 0; k < 6; k++) fac_tensor_free(out[k]);
    for (int k = 0; k < 4; k++) fac_tensor_free(in[k]);
    fac_program_free(p);
    fac_graph_free(g);
    return n;
}

static void gradients_are_those_in_f64(void **state) {
    (void)state;
    fac_error err = { 0 };
    fac_device *d;
    const problem_check c = {
        .seed = fresh_seed(), .lo = -1, .hi = 1, .tolerance = 1e-5, .single = true
    };
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        fac_tensor *got[6] = { NULL }, *want[6] = { NULL };
        const int n = run(&forms[i], &c, d, true, want);
        run(&forms[i], &c, d, false, got);
        for (int k = 0; k < n; k++) {
            char what[40];
            snprintf(what, sizeof what, "form %zu, output %d", i, k);
            problem_compare(&c, got[k], want[k], what);
            fac_tensor_free(got[k]), fac_tensor_free(want[k]);
        }
    }
    fac_device_free(d);
}

/* The fused gradient of the cpu, forced: numbers of y and lse are arbitrary, the formula is the
 * same.  Several blocks of queries and keys, blocks that are not full, heads of sizes that are no
 * vectors, heads that share keys, masks of each kind; with one thread heads are whole, with three
 * they are cut into parts. */
static void the_cpus_own(void **state) {
    (void)state;
    static const char *const problems[] = {
        "attention_grad(f32[1,2,37,64], f32[1,2,53,64], f32[1,2,53,64], f32[1,2,37,64], "
        "f32[1,2,37,64], f32[1,2,37])",
        "attention_grad(f32[2,3,1,8], f32[2,3,300,8], f32[2,3,300,5], f32[2,3,1,5], f32[2,3,1,5], "
        "f32[2,3,1])",
        "attention_grad(f32[1,1,33,3], f32[1,1,1,3], f32[1,1,1,1], f32[1,1,33,1], f32[1,1,33,1], "
        "f32[1,1,33])",
        "attention_grad(f32[1,1,150,32], f32[1,1,149,32], f32[1,1,149,70], f32[1,1,150,70], "
        "f32[1,1,150,70], f32[1,1,150]) "
        "causal",
        "attention_grad(f32[2,6,19,16], f32[2,2,40,16], f32[2,2,40,16], f32[2,6,19,16], "
        "f32[2,6,19,16], f32[2,6,19]) causal "
        "scale=0.3",
        "attention_grad(f32[1,8,50,20], f32[1,2,77,20], f32[1,2,77,20], f32[1,8,50,20], "
        "f32[1,8,50,20], f32[1,8,50], "
        "bool[50,77])",
        "attention_grad(f32[2,70,24], f32[2,18,12], f32[2,18,9], f32[2,70,18], f32[2,70,18], "
        "f32[2,6,70]) q_heads=6 kv_heads=3",
        "attention_grad(f32[1,2,70,8], f32[1,2,150,8], f32[1,2,150,8], f32[1,2,70,8], "
        "f32[1,2,70,8], f32[1,2,70], f32[70,150]) "
        "scale=-0.7",
        "attention_grad(f32[2,4,70,8], f32[2,2,150,8], f32[2,2,150,8], f32[2,4,70,8], "
        "f32[2,4,70,8], f32[2,4,70], "
        "bool[2,1,1,150])",
        "attention_grad(f32[2,4,70,8], f32[2,2,150,8], f32[2,2,150,8], f32[2,4,70,8], "
        "f32[2,4,70,8], f32[2,4,70], f32[4,1,150]) "
        "causal",
        NULL
    };
    const uint64_t seed = fresh_seed();
    for (int k = 0; problems[k]; k++)
        problem_everywhere(
            (problem_check){ .seed = seed + (uint64_t)k, .lo = -1, .hi = 1, .tolerance = 3e-5 },
            "attention_grad", problems[k]);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(gradients_are_those_in_f64),
                                        cmocka_unit_test(the_cpus_own) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
