/* Every op of the table by its own cases: each case builds, and the cpu device gives what the
 * reference driver gives on fresh random contents, for every element type the op takes, as
 * parameters and as inputs, strided and contiguous, fused or not, in place or not; and what has a
 * meaning and an expansion means the same by both. */
#include "op_trial.h"
#include "base/table.h"
#include "op_list.h"
#include "passes/passes.h"

/* ---- contents ---- */

/* The same numbers in other memory: dims backwards, with gaps between the elements. */
static fac_tensor *strided(const fac_tensor *t) {
    fac_type type = fac_tensor_type(t);
    size_t size = (size_t)fac_dtype_get(type.dtype)->block_bytes;
    int64_t stride[FAC_DIMS], step = 2, n = fac_dims_count(&type.dims);
    for (int k = 0; k < type.dims.n; k++) {
        stride[k] = step;
        step *= type.dims.d[k] ? type.dims.d[k] : 1;
    }
    char *memory = calloc((size_t)step + 2, size);
    memset(memory, 0x5A, ((size_t)step + 2) * size);
    const char *from = fac_tensor_data(t);
    for (int64_t e = 0; e < n; e++) {
        int64_t at = 0, rest = e;
        for (int k = type.dims.n - 1; k >= 0; k--) {
            at += rest % type.dims.d[k] * stride[k];
            rest /= type.dims.d[k];
        }
        memcpy(memory + (size_t)at * size, from + (size_t)e * size, size);
    }
    fac_tensor *out = NULL;
    OK(fac_tensor_borrow(type.dtype, type.dims, stride, memory, free, memory, &out, &err));
    return out;
}

/* ---- one problem ---- */

/* Contents for the leaves; the reference on them.  Ops without a meaning are expanded first. */
static void prepare(trial *t) {
    t->nin = fac_graph_inputs(t->g);
    t->nout = fac_graph_outputs(t->g);
    assert_true(t->nin <= OPERANDS && t->nout <= OPERANDS);
    for (int i = 0; i < fac_graph_params(t->g); i++) {
        fac_value *v = fac_graph_param(t->g, i);
        fac_tensor *x = random_tensor(v->type, t->lo, t->hi);
        OK(fac_tensor_write(fac_value_tensor(v), fac_tensor_data(x), fac_type_bytes(&v->type),
                            &err));
        fac_tensor_free(x);
    }
    fac_host in[OPERANDS];
    for (int i = 0; i < t->nin; i++) {
        t->in[i] = random_tensor(fac_graph_input(t->g, i)->type, t->lo, t->hi);
        in[i] = (fac_host){ fac_tensor_type(t->in[i]), (void *)(uintptr_t)fac_tensor_data(t->in[i]),
                            NULL };
    }
    for (int k = 0; k < t->nout; k++) {
        t->want[k].type = fac_graph_output(t->g, k)->type;
        t->want[k].data = calloc(1, fac_type_bytes(&t->want[k].type) + 8);
    }
    fac_graph *simple = fac_pass_expand(t->g, NULL, NULL);
    if (fac_graph_check(simple, &err) || fac_ref_graph(simple, in, t->want, &err))
        fail_msg("%s: reference: %s", t->text, err.text);
    fac_graph_free(simple);
}

static void release(trial *t) {
    for (int i = 0; i < t->nin; i++) fac_tensor_free(t->in[i]);
    for (int k = 0; k < t->nout; k++) free(t->want[k].data);
}

/* exp(log(y)) after the op and neg(neg(x)) before it: the op has neighbours to be fused with and
 * to write over. */
static fac_graph *among_others(const trial *t) {
    fac_graph *g = fac_graph_clone(t->g);
    for (int i = 0; i < fac_graph_inputs(g); i++) {
        fac_value *x = fac_graph_input(g, i);
        const fac_dtype dtype = x->type.dtype;
        if (kind(dtype) == 'f' && !fac_dtype_is_stored(dtype)) fac_replace(x, fac_neg(fac_neg(x)));
    }
    if (fac_graph_check(g, &err)) fail_msg("%s among others: %s", t->text, err.text);
    return g;
}

static void check_cost(const trial *t, const fac_op *op) {
    fac_cost c = { 0 };
    const fac_node *n = t->g->last;
    if (n->op != op || !op->cost) return;
    op->cost(n, &c);
    if (!(c.macs >= 0 && c.other >= 0 && c.read >= 0 && c.written >= 0 &&
          c.macs + c.other + c.read + c.written < 1e12))
        fail_msg("%s: its cost", t->text);
    if (!(op->is & FAC_OP_BODIES) && fac_dims_count(&n->out[0]->type.dims) > 0 && c.written == 0)
        fail_msg("%s: it costs no write", t->text);
}

static void try_all_ways(trial *t, const fac_op *op) {
    check_cost(t, op);
    prepare(t);
    run(t, t->g, t->in, (fac_program_opts){ .no_fuse = true, .no_inplace = true }, "alone");
    run(t, t->g, t->in, (fac_program_opts){ 0 }, "default");
    fac_graph *g = among_others(t);
    run(t, g, t->in, (fac_program_opts){ 0 }, "among others");
    run(t, g, t->in, (fac_program_opts){ .no_inplace = true }, "among others, not in place");
    run(t, g, t->in, (fac_program_opts){ .no_fuse = true }, "among others, in place");
    fac_graph_free(g);
    fac_tensor *windows[OPERANDS];
    for (int i = 0; i < t->nin; i++) windows[i] = strided(t->in[i]);
    run(t, t->g, windows, (fac_program_opts){ 0 }, "strided inputs");
    for (int i = 0; i < t->nin; i++) fac_tensor_free(windows[i]);
    if (op->expand && fac_op_means(op)) {
        fac_graph *e = fac_graph_rebuild(
            t->g, &(fac_rebuild){ .self = (void *)(uintptr_t)op, .visit = expansion }, NULL);
        if (fac_graph_check(e, &err)) fail_msg("%s: its expansion: %s", t->text, err.text);
        run(t, e, t->in, (fac_program_opts){ 0 }, "its expansion");
        fac_graph_free(e);
    }
    release(t);
}

static void every_case_gives_the_reference(void **state) {
    (void)state;
    int cases = 0;
    for (const fac_op *const *p = fac_ops; *p; p++)
        for (const fac_case *c = (*p)->host ? NULL : (*p)->cases; c && c->problem; c++)
            for (int params = 0; params < 2; params++) {
                trial t = {
                    .text = c->problem, .lo = c->lo, .hi = c->hi, .tolerance = c->tolerance
                };
                if (fac_problem_graph(c->problem, params, &t.g, &err))
                    fail_msg("%s: %s", c->problem, err.text);
                try_all_ways(&t, *p);
                fac_graph_free(t.g);
                cases++;
            }
    assert_true(cases > 500);
}

/* What has no formula runs all the same, at a cut, whatever its operands are. */
static void host_ops_run(void **state) {
    (void)state;
    int cases = 0;
    for (const fac_op *const *p = fac_ops; *p; p++)
        for (const fac_case *c = (*p)->host ? (*p)->cases : NULL; c && c->problem; c++, cases++) {
            fac_graph *g = NULL;
            fac_program *program = NULL;
            fac_tensor *in[OPERANDS] = { NULL }, *out[OPERANDS] = { NULL };
            if (fac_problem_graph(c->problem, false, &g, &err))
                fail_msg("%s: %s", c->problem, err.text);
            for (int i = 0; i < fac_graph_inputs(g); i++)
                in[i] = random_tensor(fac_graph_input(g, i)->type, c->lo, c->hi);
            OK(fac_program_new(g, device, NULL, &program, &err));
            if (fac_program_run(program, in, out, &err)) fail_msg("%s: %s", c->problem, err.text);
            for (int k = 0; k < OPERANDS; k++) {
                fac_tensor_free(in[k]);
                fac_tensor_free(out[k]);
            }
            fac_program_free(program);
            fac_graph_free(g);
        }
    assert_true(cases > 10);
}

/* ---- every element type ---- */

/* The text with one dtype for another, "f32[" for "i8[": contents of FAC_HOST operands ("i64{")
 * stay. */
static bool retyped(const char *text, const char *from, const char *to, char *out, size_t room) {
    size_t n = 0, length = strlen(from);
    bool changed = false;
    for (const char *s = text; *s; s++) {
        bool here = !strncmp(s, from, length) && s[length] == '[' && (s[-1] == '(' || s[-1] == ' ');
        changed = changed || here;
        n += (size_t)snprintf(out + n, room - n, "%s", here ? to : (char[]){ *s, 0 });
        if (here) s += length - 1;
    }
    return changed;
}

static void every_dtype_gives_the_reference(void **state) {
    (void)state;
    int tried = 0, refused = 0;
    for (const fac_op *const *p = fac_ops; *p; p++)
        for (const fac_case *c = (*p)->host ? NULL : (*p)->cases; c && c->problem; c++)
            for (int d = FAC_F32; d <= FAC_BOOL; d++) {
                char text[512];
                const char *name = fac_dtype_get((fac_dtype)d)->name;
                double whole = kind((fac_dtype)d) == 'f' ? 0 : 1;
                if (!retyped(c->problem, "f32", name, text, sizeof text) || d == FAC_F32) continue;
                trial t = { .text = text,
                            .lo = c->lo,
                            .hi = fmax(c->hi, c->lo + whole),
                            .tolerance = kind((fac_dtype)d) == 'f' ? c->tolerance : 0 };
                /* accumulated in f32 or better, so one rounding for each op that the result went
                 * through */
                if (d == FAC_F16 || d == FAC_BF16) t.tolerance = 8 * epsilon((fac_dtype)d);
                if (d == FAC_F64) t.tolerance = fmin(c->tolerance, 1e-11);
                fac_status s = fac_problem_graph(text, false, &t.g, &err);
                if (s && s != FAC_E_DTYPE) fail_msg("%s: %s", text, err.text);
                refused += s == FAC_E_DTYPE;
                if (s) continue;
                prepare(&t);
                run(&t, t.g, t.in, (fac_program_opts){ 0 }, "default");
                release(&t);
                fac_graph_free(t.g);
                tried++;
            }
    print_message("%d problems, %d refused\n", tried, refused);
    assert_true(tried > 1000);
}

/* What rounding may do (op_trial.h) goes with the type: a product of numbers that are off by a unit
 * moves by two units and its own rounding. */
static void bounds_go_with_the_type(void **state) {
    (void)state;
    static const fac_dtype types[] = { FAC_F64, FAC_F32, FAC_F16, FAC_BF16 };
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        char text[64];
        double most = 0;
        const char *name = fac_dtype_get(types[k])->name;
        snprintf(text, sizeof text, "mul(%s[9], %s[9])", name, name);
        trial t = { .text = text, .lo = -2, .hi = -1 };
        OK(fac_problem_graph(text, false, &t.g, &err));
        prepare(&t);
        for (int64_t e = 0; e < 9; e++) {
            const double y = fabs(as_double(types[k], t.want[0].data, e));
            const double may = spread(&t, 0, e);
            assert_true(may <= 4 * epsilon(types[k]) * y);
            most = fmax(most, may);
        }
        assert_true(most > 0);
        release(&t);
        fac_graph_free(t.g);
    }
}

/* ---- what is expanded ---- */

/* The results of a problem, whose inputs are the same numbers each time, and how many steps make
 * them. */
static void result_of(const char *problem, const char *solver, fac_tensor **y, size_t *steps) {
    fac_graph *g = NULL;
    fac_program *p = NULL;
    fac_tensor *in[OPERANDS] = { NULL };
    const fac_program_opts opts = { .precision = FAC_PRECISION_HIGHEST, .solver = solver };
    OK(fac_problem_graph(problem, false, &g, &err));
    stream = 0;
    for (int i = 0; i < fac_graph_inputs(g); i++)
        in[i] = random_tensor(fac_graph_input(g, i)->type, 0.1, 1);
    OK(fac_program_new(g, device, &opts, &p, &err));
    OK(fac_program_run(p, in, y, &err));
    *steps = fac_program_steps(p, NULL, 0);
    for (int i = 0; i < fac_graph_inputs(g); i++) fac_tensor_free(in[i]);
    fac_program_free(p);
    fac_graph_free(g);
}

/* conv1d has no meaning but its expansion, which knows nothing of epilogues. */
static void epilogues_stay_after_expansions(void **state) {
    (void)state;
    fac_tensor *y[2] = { NULL };
    size_t steps;
    result_of("conv1d(f32[1,2,5], f32[3,2,2])", NULL, &y[0], &steps);
    result_of("conv1d(f32[1,2,5], f32[3,2,2]) {neg}", NULL, &y[1], &steps);
    const float *a = fac_tensor_data(y[0]), *b = fac_tensor_data(y[1]);
    for (int i = 0; i < 12; i++) {
        assert_true(a[i] > 0);
        assert_true(b[i] == -a[i]);
    }
    for (int k = 0; k < 2; k++) fac_tensor_free(y[k]);
}

/* The loop of a formula runs where it was asked for, and where neither a kernel nor an expansion
 * is. */
static void formulas_without_kernels_are_expanded(void **state) {
    (void)state;
    static const char *const problems[] = {
        "batch_norm_grad_given(f32[2,3,4,5], f32[2,3,4,5], f32[3], f32[3], f32[3], f32[3], f32[3]) "
        "epsilon=1e-5",
        "conv2d_moments(f32[2,3,9,8], f32[5,3,3,2], f32[5])",
        "batch_norm_grad(f64[2,3,4,5], f64[2,3,4,5], f64[3]) epsilon=1e-5"
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        fac_support s = { 0 };
        OK(fac_problem_support(problems[i], device, &s, &err));
        if (s.steps < 2 || s.fallbacks)
            fail_msg("%s: %d steps, %d of the reference", problems[i], s.steps, s.fallbacks);
        fac_tensor *y[OPERANDS] = { NULL };
        size_t steps;
        result_of(problems[i], "ref", y, &steps);
        assert_int_equal(steps, 1);
        for (int k = 0; k < OPERANDS; k++) fac_tensor_free(y[k]);
    }
}

/* ---- */

static int open_device(void **state) {
    (void)state;
    seed = fresh_seed();
    return fac_device_open("cpu", NULL, &device, &err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_gives_the_reference),
        cmocka_unit_test(host_ops_run),
        cmocka_unit_test(every_dtype_gives_the_reference),
        cmocka_unit_test(bounds_go_with_the_type),
        cmocka_unit_test(epilogues_stay_after_expansions),
        cmocka_unit_test(formulas_without_kernels_are_expanded),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
