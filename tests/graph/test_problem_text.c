/* Problems as text: printed, read back, all cases of all ops; hostile text and lost memory. */
#include "graph_text_check.h"

/* ---- problems ---- */

/* The problem of the one node of a graph, as a planner would see it. */
static void print_problem(const fac_graph *g, char *to, size_t size) {
    const fac_node *n = g->first;
    fac_operand *in = fac_alloc((size_t)n->nin + 1, sizeof *in),
                *out = fac_alloc((size_t)n->nout, sizeof *out);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]) in[i] = (fac_operand){ .type = n->in[i]->type, .known = n->in[i]->known };
    for (int k = 0; k < n->nout; k++) out[k] = (fac_operand){ .type = n->out[k]->type };
    const fac_problem p = { .node = n, .nin = n->nin, .nout = n->nout, .in = in, .out = out };
    const int length = fac_problem_print(&p, to, size);
    assert_true(length > 0 && (size_t)length < size);
    char little[4];
    assert_int_equal(fac_problem_print(&p, little, sizeof little), length);
    assert_memory_equal(little, to, 3);
    assert_int_equal(little[3], 0);
    fac_release(in);
    fac_release(out);
}

static void problems(void **state) {
    (void)state;
    static const char *const cases[] = {
        "conv2d(f32[8,64,56,56], f32[64,64,3,3], f32[64]) pad=1,1,1,1 {relu}",
        "conv2d(f32[1,8,5,5], f32[8,8,3,3], -, f32[1,8,3,3]) {add(_, x1) relu}",
        "conv2d(f32[1,8,5,5], f32[8,8,3,3])",
        "reshape(f32[2,3], i64{3,2})",
        "softmax(f32[2,5]) axis=1",
        "add(f32[], f32[3])",
        "fused(f32[2,3], f32[3]) {t0 = add(x0, x1); t1 = exp(t0); t2 = mul(t1, t0); t2}",
        "fused(f32[2,3], f32[3]) {add(_, x1) exp mul(_, x0)}",
        "concat(f32[1], f32[2], f32[3])",
        "neg(i8[0,3])",
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int params = 0; params < 2; params++) {
            fac_graph *g = NULL;
            fac_error err = { 0 };
            char text[512];
            if (fac_problem_graph(cases[k], params, &g, &err))
                fail_msg("%s: %s", cases[k], err.text);
            assert_int_equal(g->nodes, 1);
            print_problem(g, text, sizeof text);
            assert_string_equal(text, cases[k]);
            fac_graph_free(g);
        }
    fac_graph *g = NULL;
    fac_error err = { 0 };
    assert_int_equal(fac_problem_graph(cases[1], true, &g, &err), FAC_OK);
    assert_int_equal(fac_graph_find(g, "x0")->leaf, FAC_INPUT);
    assert_int_equal(fac_graph_find(g, "w1")->leaf, FAC_PARAM);
    assert_int_equal(fac_graph_find(g, "x3")->leaf, FAC_INPUT); /* of the epilogue */
    assert_non_null(fac_graph_find(g, "y0"));
    fac_graph_free(g);
    g = NULL;
    static const char *const bad[][2] = {
        { "", "an op is missing, at the end" },
        { "conv2d", "'(' is missing, at the end" },
        { "relu(x)", "an operand is a type, a constant or -, at 'x)'" },
        { "relu(f32[2]) relu", "there is no attribute 'relu'; relu has none, at the end" },
        { "relu(f32[2]) # more", NULL },
        { "relu(f32[2])\nrelu(f32[2])", "this was not expected, at the end" },
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        const fac_status s = fac_problem_graph(bad[k][0], false, &g, &err);
        if (!bad[k][1]) {
            assert_int_equal(s, FAC_OK);
            fac_graph_free(g);
            g = NULL;
            continue;
        }
        assert_int_not_equal(s, FAC_OK);
        assert_string_equal(err.text, bad[k][1]);
        assert_null(g);
    }
    assert_int_equal(fac_problem_graph(NULL, false, &g, &err), FAC_E_ARGUMENT);
}

/* Every case of every op: problem -> graph -> text -> graph -> the same text and structure. */
static void all_cases(void **state) {
    (void)state;
    int count = 0;
    for (const fac_op *const *op = fac_ops; *op; op++) {
        assert_ptr_equal(fac_op_find((*op)->name), *op);
        if (op[1]) assert_true(strcmp(op[0]->name, op[1]->name) < 0);
        for (const fac_case *c = (*op)->cases; c && c->problem; c++, count++) {
            fac_graph *g = NULL;
            fac_error err = { 0 };
            if (fac_problem_graph(c->problem, true, &g, &err))
                fail_msg("%s: %s", c->problem, err.text);
            char *text = write_text(g);
            fac_graph *again = read_ok(text);
            char *second = write_text(again);
            assert_string_equal(second, text);
            if (!fac_hash_equal(fac_graph_hash(g), fac_graph_hash(again)))
                fail_msg("%s: another hash", c->problem);
            fac_graph *copy = fac_graph_rebuild(g, &(fac_rebuild){ 0 }, NULL);
            assert_true(fac_hash_equal(fac_graph_hash(g), fac_graph_hash(copy)));
            char problem[1024], back[1024];
            print_problem(g, problem, sizeof problem);
            fac_graph *solved = NULL;
            if (fac_problem_graph(problem, true, &solved, &err))
                fail_msg("%s: %s", problem, err.text);
            print_problem(solved, back, sizeof back);
            assert_string_equal(problem, back);
            fac_graph_free(solved);
            fac_graph_free(copy);
            fac_graph_free(again);
            fac_graph_free(g);
            free(text);
            free(second);
        }
    }
    assert_true(count > 0);
    print_message("%d cases\n", count);
}

/* ---- hostile text and no memory ---- */

static const char sample[] =
    "input x f32[N,3,8,8]\nparam w f32[4,3,3,3]\nstate s f32[]\nconst c i64{0,-1}\n"
    "%1 = conv2d(x, w, -) pad=1,1,1,1 {relu} @a.b !n\n%2 = reshape(%1, c)\ny = add(%2, 0.5) ~2\n%3 "
    "= add(s, 1)\n"
    "%4 = fused(y, y) {t0 = add(x0, x1); t1 = exp(t0); t1}\noutput y = %4\nupdate s <- %3\n";

static void mutations(void **state) {
    (void)state;
    static const char letters[] = "(){}[],=-<>\"\\%?~@!# \n0123456789xtfi_.e";
    int good = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        char text[sizeof sample];
        size_t n = sizeof sample - 1;
        memcpy(text, sample, n);
        const int changes = 1 + (int)(fac_random_bits(seed, 0, 0) % 3);
        for (int k = 0; k < changes; k++) {
            const uint64_t at = fac_random_bits(seed, 1, (uint64_t)k),
                           what = fac_random_bits(seed, 2, (uint64_t)k);
            if (what % 4 == 0)
                n = at % n + 1;
            else
                text[at % n] =
                    what % 4 == 1 ? (char)(what >> 8) : letters[(what >> 8) % (sizeof letters - 1)];
        }
        fac_graph *g = NULL;
        fac_error err = { 0 };
        if (read_text(text, n, &g, &err)) {
            assert_null(g);
            assert_true(err.status && *err.text);
            continue;
        }
        good++;
        char *once = write_text(g);
        fac_graph *again = read_ok(once);
        char *twice = write_text(again);
        if (strcmp(once, twice)) fail_msg("seed %d:\n%s\n%s", (int)seed, once, twice);
        free(once);
        free(twice);
        fac_graph_free(again);
        fac_graph_free(g);
    }
    assert_true(good > 100);
}

static void without_memory(void **state) {
    (void)state;
    fac_graph *whole = read_ok(sample);
    int failures = 0;
    for (long k = 0; k < 4000; k++) {
        fac_graph *g = NULL, *copy = NULL;
        fac_error err = { 0 };
        FILE *f = fmemopen((void *)sample, sizeof sample - 1, "r"), *to = fopen("/dev/null", "w");
        allocations_left = k;
        fac_status s = fac_graph_read(f, &g, &err);
        if (!s) s = fac_graph_write(g, to, &err);
        if (!s && !(copy = fac_graph_clone(g))) s = FAC_E_NOMEM;
        if (!s) {
            fac_value *y = fac_graph_find(copy, "y");
            if (y && y->leaf != FAC_POISON) fac_replace(y, fac_relu(y));
            fac_graph_sweep(copy);
            fac_graph_hash(copy);
            s = fac_graph_check(copy, &err);
        }
        const bool done = allocations_left > 0;
        allocations_left = -1;
        fclose(f);
        fclose(to);
        if (s) {
            if (s != FAC_E_NOMEM)
                fail_msg("allocation %ld: %s: %s", k, fac_status_name(s), err.text);
            failures++;
        } else {
            assert_true(fac_hash_equal(fac_graph_hash(g), fac_graph_hash(whole)));
        }
        fac_graph_free(copy);
        fac_graph_free(g);
        if (done) break;
        assert_true(k < 3999);
    }
    assert_true(failures > 10);
    fac_graph_free(whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(problems),
        cmocka_unit_test(all_cases),
        cmocka_unit_test(mutations),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
