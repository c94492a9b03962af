/* The pass that makes few kernels of all updates, and the solvers "group" and "sum_square_all"
 * after it. */
#include "allocations.h"
#include "solver_check.h"
#include "facula/facula.h"
#include "facula/ops.h"
#include "op_list.h"
#include "passes/passes.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)

/* ---- the solvers ---- */

static void solve(const char *solver, const char *text, double lo, double tolerance) {
    fac_graph *g = NULL;
    OK(fac_problem_graph(text, false, &g, err));
    for (size_t i = 0; i < sizeof check_isas / sizeof *check_isas; i++)
        for (int round = 0; round < 6; round++) {
            check c = { .seed = 17 + (uint64_t)round,
                        .lo = lo,
                        .hi = 2,
                        .tolerance = tolerance,
                        .isa = check_isas[i],
                        .threads = 1 + round % 3,
                        .strided = round % 2 == 1 };
            if (!check_node(&c, solver, g->last)) fail_msg("no offer for %s", text);
        }
    fac_graph_free(g);
}

static void groups_give_the_reference(void **state) {
    (void)state;
    solve("group", "group(f32[2,3], f32[5], f32[]) {t0 = mul(x0, x2); t1 = add(x1, x2); t0, t1}",
          -2, 1e-6);
    solve("group",
          "group(f32[70,90], f32[70,90], f32[0], i64[3], f64[40000], f16[33]) "
          "{t0, t1 = fused(x0, x1) {t0 = add(x0, x1); t1 = mul(t0, x0); t0, t1}; t2 = relu(x2); t3 "
          "= neg(x3); "
          "t4 = fused(x4) {abs sqrt}; t5 = mul(x5, x5); t5, t1, t0, t2, t4, t3}",
          -2, 1e-3);
    solve("group",
          "group(f32[3,1], f32[1,4], f32[200000]) {t0 = sub(x0, x1); t1 = sub(x1, x0); t2 = "
          "neg(x2); t1, t2, t0}",
          -2, 0);
}

static void groups_of_dependent_nodes_are_refused(void **state) {
    (void)state;
    fac_graph *g = NULL;
    OK(fac_problem_graph("group(f32[8]) {t0 = relu(x0); t1 = neg(t0); t0, t1}", false, &g, err));
    check c = { .seed = 1, .lo = -1, .hi = 1, .isa = "portable", .threads = 1 };
    assert_false(check_node(&c, "group", g->last));
    fac_graph_free(g);
}

static void squares_are_summed(void **state) {
    (void)state;
    solve("sum_square_all", "sum_square_all(f32[3,4], f32[5], f32[])", -2, 1e-6);
    solve("sum_square_all",
          "sum_square_all(f32[100000], f64[70,700], f32[0], f32[16384], f32[16385])", -2, 1e-6);
}

/* ---- the pass ---- */

enum { PARAMS = 8, STEPS = 4 };

/* loss = sum over k of the sum of (w_k x_k)^2, parameters of many shapes and types */
static fac_graph *problem(fac_value **loss, fac_value **lr) {
    static const fac_type types[PARAMS] = {
        { FAC_F32, { 2, { 200, 30 } } }, { FAC_F32, { 1, { 30 } } },
        { FAC_F32, { 1, { 5000 } } },    { FAC_F32, { 0 } },
        { FAC_F64, { 2, { 7, 11 } } },   { FAC_F16, { 1, { 65 } } },
        { FAC_F32, { 2, { 200, 30 } } }, { FAC_F32, { 2, { 1, 7 } } }
    };
    fac_graph *g = fac_graph_new();
    *loss = NULL;
    for (int k = 0; k < PARAMS; k++) {
        fac_tensor *t = NULL, *as = NULL;
        char name[8];
        const size_t n = (size_t)fac_dims_count(&types[k].dims);
        float *x = malloc(n * sizeof *x);
        OK(fac_tensor_new(NULL, FAC_F32, types[k].dims, &t, err));
        fac_random_fill(5, (uint64_t)k, -1, 1, n, x);
        OK(fac_tensor_write(t, x, n * sizeof *x, err));
        OK(fac_tensor_convert(t, types[k].dtype, &as, err));
        snprintf(name, sizeof name, "w%d", k);
        fac_value *w = fac_param(g, name, as);
        name[0] = 'x';
        fac_value *y = fac_mul(w, fac_input(g, name, types[k].dtype, types[k].dims));
        fac_value *one = fac_cast(fac_sum(fac_mul(y, y), (fac_dims){ 0 }, false), FAC_F32);
        *loss = *loss ? fac_add(*loss, one) : one;
        free(x);
        fac_tensor_free(t);
        fac_tensor_free(as);
    }
    *lr = fac_input(g, "lr", FAC_F64, (fac_dims){ 0 });
    fac_output(g, "loss", *loss);
    return g;
}

static fac_program *run_steps(fac_graph *g, fac_device *device, bool fuse) {
    fac_program *p = NULL;
    fac_tensor *in[PARAMS + 1] = { NULL }, *out = NULL;
    const double rate = 0.01;
    OK(fac_graph_check(g, err));
    OK(fac_program_new(g, device, &(fac_program_opts){ .no_fuse = !fuse }, &p, err));
    for (int i = 0; i <= PARAMS; i++) {
        const fac_type t = fac_value_type(fac_graph_input(g, i));
        fac_tensor *wide = NULL;
        const size_t n = (size_t)fac_dims_count(&t.dims);
        double *x = malloc(n * sizeof *x);
        for (size_t k = 0; k < n; k++)
            x[k] = i == PARAMS ? rate : fac_random_uniform(9, (uint64_t)i, k);
        OK(fac_tensor_new(NULL, FAC_F64, t.dims, &wide, err));
        OK(fac_tensor_write(wide, x, n * sizeof *x, err));
        OK(fac_tensor_convert(wide, t.dtype, &in[i], err));
        fac_tensor_free(wide);
        free(x);
    }
    for (int s = 0; s < STEPS; s++) OK(fac_program_run(p, in, &out, err));
    for (int i = 0; i <= PARAMS; i++) fac_tensor_free(in[i]);
    fac_tensor_free(out);
    return p;
}

/* Steps that are called "update", and with groups only those. */
static int count_updates(fac_program *p, bool groups) {
    static fac_step_stat all[4096];
    size_t n = fac_program_steps(p, all, 4096);
    int found = 0;
    for (size_t i = 0; i < n && i < 4096; i++)
        found += !strcmp(all[i].nodes, "update") && (!groups || !strcmp(all[i].solver, "group"));
    return found;
}

static void bits_are_those_of_single_steps(void **state) {
    (void)state;
    static const fac_optim_group vectors = { .vectors = true, .weight_decay = -1, .lr = 0.5 };
    static const struct {
        const char *name;
        fac_optim_opts opts;
        int steps;
    } cases[] = {
        { "sgd", { .weight_decay = 0 }, 2 },
        { "sgd", { .momentum = 0.9, .nesterov = true, .clip_norm = 0.5 }, 2 },
        { "adam", { .weight_decay = 0 }, 2 },
        { "adam", { .weight_decay = 0.1, .clip_value = 0.3, .clip_norm = 1 }, 2 },
        { "adamw", { .groups = &vectors, .ngroups = 1, .ema = 0.9, .ema_warmup = true }, 2 },
        { "adam", { .accumulate = 3, .ema = 0.5 }, 2 },
        { "adamw",
          { .accumulate = 2,
            .ema = 0.9,
            .ema_warmup = true,
            .clip_value = 0.3,
            .clip_norm = 1,
            .groups = &vectors,
            .ngroups = 1 },
          3 },
        { "rmsprop", { .centered = true, .momentum = 0.5 }, 2 },
        { "adagrad", { .lr_decay = 0.1, .initial = 0.1 }, 2 },
        { "lion", { .weight_decay = 0.1, .groups = &vectors, .ngroups = 1 }, 2 }
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t isa = 0; isa < sizeof check_isas / sizeof *check_isas; isa++) {
            fac_device *device = NULL;
            fac_graph *g[2];
            OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 2, .isa = check_isas[isa] },
                               &device, err));
            for (int fuse = 0; fuse < 2; fuse++) {
                fac_value *loss, *lr;
                g[fuse] = problem(&loss, &lr);
                fac_optim_find(cases[c].name)->build(loss, lr, &cases[c].opts);
                fac_program *p = run_steps(g[fuse], device, fuse);
                if (fuse &&
                    (count_updates(p, false) > cases[c].steps || count_updates(p, true) < 1))
                    fail_msg("case %zu (%s): %d steps of updates", c, cases[c].name,
                             count_updates(p, false));
                fac_program_free(p);
            }
            for (int i = 0; i < fac_graph_params(g[0]); i++) {
                const fac_value *a = fac_graph_param(g[0], i), *b = fac_graph_param(g[1], i);
                const fac_type t = fac_value_type(a);
                if (memcmp(fac_tensor_data(fac_value_tensor(a)),
                           fac_tensor_data(fac_value_tensor(b)), fac_type_bytes(&t)))
                    fail_msg("case %zu (%s), %s: %s has other bits", c, cases[c].name,
                             check_isas[isa], fac_value_name(a));
            }
            fac_graph_free(g[0]);
            fac_graph_free(g[1]);
            fac_device_free(device);
        }
}

static int number_of(const fac_graph *g, const char *op) {
    int n = 0;
    for (const fac_node *m = g->first; m; m = m->next) n += !strcmp(m->op->name, op);
    return n;
}

static bool always(void *self, const fac_node *n) {
    (void)self, (void)n;
    return true;
}
static bool never(void *self, const fac_node *n) {
    (void)self, (void)n;
    return false;
}
static bool alone(void *self, const fac_node *n) {
    (void)self;
    return n->op != &fac_op_group;
}
static bool without_roots(void *self, const fac_node *n) {
    (void)self;
    return n->op == &fac_op_group || !number_of(n->body[0], "sqrt") || n->in[0]->type.dims.n != 2;
}

/* What no kernel takes stays as it was. */
static void kernels_decide(void **state) {
    (void)state;
    fac_value *loss, *lr;
    fac_graph *built = problem(&loss, &lr), *to;
    fac_adam(loss, lr, NULL);
    fac_graph *g = fac_pass_cse(built); /* every rule makes its scalars anew */
    to = fac_pass_updates(g, never, NULL);
    OK(fac_graph_check(to, err));
    assert_int_equal(number_of(to, "fused") + number_of(to, "group"), 0);
    assert_int_equal(number_of(to, "sqrt"), number_of(g, "sqrt"));
    fac_graph_free(to);
    to = fac_pass_updates(g, alone, NULL);
    OK(fac_graph_check(to, err));
    assert_int_equal(number_of(to, "group"), 0);
    assert_int_equal(number_of(to, "fused"),
                     PARAMS); /* one of them is a scalar: it goes with the rates */
    fac_graph_free(to);
    to = fac_pass_updates(g, without_roots,
                          NULL); /* three parameters of two dims and their moments are left */
    OK(fac_graph_check(to, err));
    assert_true(number_of(to, "group") >= 1 && number_of(to, "sqrt") >= 4);
    fac_graph_free(to);
    to = fac_pass_updates(g, always, NULL);
    OK(fac_graph_check(to, err));
    assert_int_equal(number_of(to, "sqrt"), 0);
    assert_int_equal(number_of(to, "group"), 1);
    fac_graph_free(to);
    fac_graph_free(g);
    fac_graph_free(built);
}

/* An inference graph ends in elementwise nodes too; they are none of this pass. */
static void results_are_left_alone(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(4, 5));
    fac_output(g, "y", fac_exp(fac_neg(x)));
    fac_graph *to = fac_pass_updates(g, always, NULL);
    OK(fac_graph_check(to, err));
    assert_int_equal(number_of(to, "exp") + number_of(to, "neg"), 2);
    fac_graph_free(to);
    fac_graph_free(g);
}

/* Gradients of more than a group reads at once make several groups, and no parameter is copied. */
static void large_models_have_several_groups(void **state) {
    (void)state;
    enum { N = 3 << 20 };
    fac_device *device = NULL;
    fac_program *p = NULL;
    fac_graph *g = fac_graph_new();
    fac_value *loss = NULL;
    for (int k = 0; k < 3; k++) {
        fac_tensor *t = NULL;
        char name[8];
        snprintf(name, sizeof name, "x%d", k);
        OK(fac_tensor_new(NULL, FAC_F32, fac_shape(N), &t, err));
        fac_value *x = fac_input(g, name, FAC_F32, fac_shape(N));
        name[0] = 'w';
        fac_value *y = fac_mul(fac_param(g, name, t), x),
                  *one = fac_sum(fac_mul(y, y), (fac_dims){ 0 }, false);
        loss = loss ? fac_add(loss, one) : one;
        fac_tensor_free(t);
    }
    fac_adam(loss, fac_input(g, "lr", FAC_F64, (fac_dims){ 0 }), NULL);
    fac_output(g, "loss", loss);
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &device, err));
    OK(fac_program_new(g, device, NULL, &p, err));
    fac_tensor *in[4] = { NULL };
    fac_plan_stat stat;
    for (int k = 0; k < 3; k++) OK(fac_tensor_new(NULL, FAC_F32, fac_shape(N), &in[k], err));
    OK(fac_tensor_new(NULL, FAC_F64, (fac_dims){ 0 }, &in[3], err));
    OK(fac_program_plan(p, in, &stat, err));
    assert_int_equal(count_updates(p, false),
                     4); /* the scalars; each of 12 MB that are read beside the leaves */
    assert_true(stat.copied <= sizeof(int64_t)); /* the count of steps */
    for (int k = 0; k < 4; k++) fac_tensor_free(in[k]);
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(device);
}

/* Whichever allocation is the first of those that fail: an error, no crash, nothing lost. */
static void without_memory(void **state) {
    (void)state;
    static const fac_optim_group vectors = { .vectors = true, .weight_decay = -1 };
    const fac_optim_opts opts = {
        .clip_norm = 1, .accumulate = 2, .ema = 0.9, .groups = &vectors, .ngroups = 1
    };
    fac_device *device = NULL;
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &device, err));
    bool done = false;
    for (long k = 0; !done; k += 1 + k / 40) {
        fac_value *loss, *lr;
        fac_program *p = NULL;
        fac_graph *g = problem(&loss, &lr);
        fac_tensor *in[PARAMS + 1] = { NULL };
        fac_error e = { 0 };
        for (int i = 0; i <= PARAMS; i++) {
            const fac_type t = fac_value_type(fac_graph_input(g, i));
            OK(fac_tensor_new(NULL, t.dtype, t.dims, &in[i], err));
        }
        allocations_left = k;
        fac_adamw(loss, lr, &opts);
        fac_status status = fac_graph_check(g, &e);
        if (!status) status = fac_program_new(g, device, NULL, &p, &e);
        if (!status) status = fac_program_plan(p, in, NULL, &e);
        done = !status;
        allocations_left = -1;
        if (status && status != FAC_E_NOMEM) fail_msg("after %ld allocations: %s", k, e.text);
        for (int i = 0; i <= PARAMS; i++) fac_tensor_free(in[i]);
        fac_program_free(p);
        fac_graph_free(g);
    }
    fac_device_free(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_give_the_reference),
        cmocka_unit_test(groups_of_dependent_nodes_are_refused),
        cmocka_unit_test(squares_are_summed),
        cmocka_unit_test(bits_are_those_of_single_steps),
        cmocka_unit_test(kernels_decide),
        cmocka_unit_test(results_are_left_alone),
        cmocka_unit_test(large_models_have_several_groups),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
