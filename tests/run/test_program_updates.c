/* Updates: one parallel assignment, whether steps write over parameters or not; what is copied; who
 * else holds the memory. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "fresh_seed.h"
#include "base/rng.h"
#include "facula/facula.h"
#include "facula/op.h"
#include "op_list.h"
#include "program_check.h"

static fac_tensor *tensor(fac_dims d, uint64_t seed, uint64_t stream) {
    fac_tensor *t = NULL;
    float x[4096];
    size_t n = (size_t)fac_dims_count(&d);
    assert_true(n <= sizeof x / sizeof *x);
    OK(fac_tensor_new(NULL, FAC_F32, d, &t, err));
    fac_random_fill(seed, stream, -1, 1, n, x);
    OK(fac_tensor_write(t, x, n * sizeof *x, err));
    return t;
}

static float at(const fac_tensor *t, size_t i) { return ((const float *)fac_tensor_data(t))[i]; }

static fac_program *program(const fac_graph *g, const fac_program_opts *o) {
    fac_program *p = NULL;
    OK(fac_program_new(g, device, o, &p, err));
    return p;
}

static size_t copied(fac_program *p, fac_tensor *const in[]) {
    fac_plan_stat s;
    OK(fac_program_plan(p, in, &s, err));
    return s.copied;
}

/* ---- any graph ---- */

enum { STATES = 5, ROWS = 3, COLUMNS = 4, NODES = 24, RUNS = 3 };

static bool see(void *self, const char *node, const fac_tensor *value) {
    (void)node, (void)value;
    ++*(int *)self;
    return true;
}

static uint64_t seed, drawn;
static int draw(int n) { return (int)(fac_random_bits(seed, 99, drawn++) % (uint64_t)n); }

/* Elementwise ops, products, transposed views, softmax and reductions of five states, of which most
 * become some value, perhaps another state, perhaps one value twice. */
static fac_graph *random_graph(fac_tensor *const states[]) {
    fac_graph *g = fac_graph_new();
    fac_value *v[STATES + NODES];
    int n = 0;
    for (; n < STATES; n++) {
        char name[8];
        snprintf(name, sizeof name, "s%d", n);
        v[n] = fac_state(g, name, states[n]);
    }
    for (; n < STATES + NODES; n++) {
        fac_value *a = v[draw(n)], *b = v[draw(n)], *half = fac_number(g, FAC_F32, 0.5);
        switch (draw(7)) {
        case 0:
            v[n] = fac_mul(fac_add(a, b), half);
            break;
        case 1:
            v[n] = fac_sub(a, fac_mul(b, half));
            break;
        case 2:
            v[n] = fac_tanh(a);
            break;
        case 3:
            v[n] = fac_matmul(a, fac_matmul(fac_transpose(b, fac_shape(1, 0)), a));
            break;
        case 4:
            v[n] = fac_softmax(a, 1);
            break;
        case 5:
            v[n] = fac_sub(a, fac_mean(b, fac_shape(0), true));
            break;
        default:
            v[n] = fac_transpose(fac_neg(fac_transpose(a, fac_shape(1, 0))), fac_shape(1, 0));
        }
    }
    for (int i = 0; i < STATES; i++)
        if (draw(5)) fac_update(v[i], v[draw(3) ? STATES + draw(NODES) : draw(n)]);
    fac_output(g, "y", v[n - 1]);
    fac_output(g, "z", v[draw(n)]);
    OK(fac_graph_check(g, err));
    return g;
}

static void run_from(const fac_program_opts *o, uint64_t graph, float *to) {
    fac_tensor *states[STATES], *y[2] = { NULL };
    for (int i = 0; i < STATES; i++)
        states[i] = tensor(fac_shape(ROWS, COLUMNS), seed, (uint64_t)i);
    drawn = graph << 32;
    fac_graph *g = random_graph(states);
    fac_program *p = program(g, o);
    for (int k = 0; k < RUNS; k++) {
        OK(fac_program_run(p, NULL, y, err));
        for (int i = 0; i < 2; i++, to += ROWS * COLUMNS)
            memcpy(to, fac_tensor_data(y[i]), ROWS * COLUMNS * sizeof *to);
    }
    for (int i = 0; i < STATES; i++, to += ROWS * COLUMNS)
        memcpy(to, fac_tensor_data(states[i]), ROWS * COLUMNS * sizeof *to);
    for (int i = 0; i < 2; i++) fac_tensor_free(y[i]);
    for (int i = 0; i < STATES; i++) fac_tensor_free(states[i]);
    fac_program_free(p);
    fac_graph_free(g);
}

/* A program with an observer fuses nothing and writes over nothing; the others must give its bits.
 */
static void every_reader_sees_the_old_contents(void **state) {
    (void)state;
    enum { ALL = (2 * RUNS + STATES) * ROWS * COLUMNS };
    seed = fresh_seed();
    int seen = 0;
    for (uint64_t graph = 0; graph < 120; graph++) {
        static float want[ALL], got[ALL];
        const fac_program_opts watched = { .observe = see, .observe_self = &seen, .solver = "ref" };
        const fac_program_opts others[] = { { .solver = "ref" },
                                            { .solver = "ref", .no_inplace = true },
                                            { .solver = "ref", .no_fuse = true } };
        run_from(&watched, graph, want);
        for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
            run_from(&others[k], graph, got);
            if (memcmp(want, got, sizeof got))
                fail_msg("graph %llu, options %zu", (unsigned long long)graph, k);
        }
        /* the fast kernels round otherwise, but not otherwise in place */
        run_from(&(fac_program_opts){ .no_inplace = true }, graph, want);
        run_from(NULL, graph, got);
        if (memcmp(want, got, sizeof got))
            fail_msg("graph %llu, fast kernels", (unsigned long long)graph);
    }
    assert_true(seen > 0);
}

/* ---- what is copied ---- */

static void an_optimizer_copies_nothing(void **state) {
    (void)state;
    for (const fac_optim *o = fac_optims; o->name; o++) {
        fac_graph *g = fac_graph_new();
        fac_nn_seed(g, 1);
        fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(8, 16)),
                  *lr = fac_input(g, "lr", FAC_F64, (fac_dims){ 0 });
        fac_value *h = fac_relu(fac_nn_linear(x, "a", 64)),
                  *y = fac_nn_linear(fac_relu(fac_nn_linear(h, "b", 64)), "c", 4);
        fac_value *loss = fac_mean(fac_mul(y, y), (fac_dims){ 0 }, false);
        o->build(loss, lr, NULL);
        fac_output(g, "loss", loss);
        fac_program *p = program(g, NULL);
        fac_tensor *in[2] = { tensor(fac_shape(8, 16), 1, 1), NULL }, *out = NULL;
        const double rate = 0.01;
        OK(fac_tensor_new(NULL, FAC_F64, (fac_dims){ 0 }, &in[1], err));
        OK(fac_tensor_write(in[1], &rate, sizeof rate, err));
        assert_true(copied(p, in) <= 8); /* the step counter, which others read until the end */
        float first = 0;
        for (int i = 0; i < 20; i++) {
            OK(fac_program_run(p, in, &out, err));
            if (!i) first = at(out, 0);
        }
        assert_true(at(out, 0) < first);
        fac_tensor_free(in[0]);
        fac_tensor_free(in[1]);
        fac_tensor_free(out);
        fac_program_free(p);
        fac_graph_free(g);
    }
}

/* What something reads after the update, or what becomes two parameters, has to be copied. */
static void what_cannot_be_in_place_is_copied(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_tensor *t[3];
    fac_value *s[3];
    for (int i = 0; i < 3; i++) {
        char name[2] = { (char)('a' + i), 0 };
        t[i] = tensor(fac_shape(10), 2, (uint64_t)i);
        s[i] = fac_state(g, name, t[i]);
    }
    float a = at(t[0], 3), b = at(t[1], 3);
    fac_value *sum = fac_add(s[0], s[1]);
    fac_update(s[0], sum);
    fac_update(s[1], s[0]); /* the old a: so a cannot be written before the end */
    fac_update(s[2], sum);
    fac_program *p = program(g, NULL);
    assert_int_equal(copied(p, NULL), 2 * 40);
    OK(fac_program_run(p, NULL, NULL, err));
    assert_true(at(t[0], 3) == a + b && at(t[1], 3) == a && at(t[2], 3) == a + b);
    for (int i = 0; i < 3; i++) fac_tensor_free(t[i]);
    fac_program_free(p);
    fac_graph_free(g);
}

/* ---- whose memory it is ---- */

static fac_graph *doubling(fac_tensor *t) {
    fac_graph *g = fac_graph_new();
    fac_value *p = fac_state(g, "p", t), *x = fac_input(g, "x", FAC_F32, fac_shape(6));
    fac_value *next = fac_mul(p, fac_number(g, FAC_F32, 2));
    fac_update(p, next);
    fac_output(g, "y", fac_add(fac_softmax(next, 0), x));
    return g;
}

static void borrowed_memory_is_never_written(void **state) {
    (void)state;
    const float own[6] = { 1, 2, 3, 4, 5, 6 };
    float lent[6];
    memcpy(lent, own, sizeof own);
    fac_tensor *t = NULL, *x = tensor(fac_shape(6), 1, 1), *y = NULL;
    OK(fac_tensor_borrow(FAC_F32, fac_shape(6), NULL, lent, NULL, NULL, &t, err));
    fac_graph *g = doubling(t);
    fac_program *p = program(g, NULL);
    uint64_t version = fac_tensor_version(t);
    for (int i = 0; i < 2; i++) OK(fac_program_run(p, &x, &y, err));
    assert_memory_equal(lent, own, sizeof own);
    for (size_t i = 0; i < 6; i++) assert_true(at(t, i) == 4 * own[i]);
    assert_true(fac_tensor_version(t) > version);
    fac_tensor_free(t);
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_graph_free(g);
}

/* The caller gives the parameter's own tensor as an input: that too is old contents. */
static void an_input_may_be_the_parameter(void **state) {
    (void)state;
    fac_tensor *t = tensor(fac_shape(6), 3, 1), *copy = tensor(fac_shape(6), 3, 1),
               *same = tensor(fac_shape(6), 3, 1);
    fac_tensor *y = NULL, *want = NULL;
    fac_graph *g = doubling(t), *h = doubling(copy);
    fac_program *p = program(g, NULL), *q = program(h, NULL);
    OK(fac_program_run(p, &t, &y, err));
    OK(fac_program_run(q, &same, &want, err));
    for (size_t i = 0; i < 6; i++) assert_true(at(y, i) == at(want, i) && at(t, i) == at(copy, i));
    fac_program_free(p);
    fac_program_free(q);
    fac_graph_free(g);
    fac_graph_free(h);
    fac_tensor_free(t);
    fac_tensor_free(copy);
    fac_tensor_free(same);
    fac_tensor_free(y);
    fac_tensor_free(want);
}

/* Two leaves on one storage: the second reads old contents although the first was updated. */
static void leaves_may_share_a_storage(void **state) {
    (void)state;
    fac_tensor *t = tensor(fac_shape(6), 4, 1), *half = NULL, *y = NULL;
    float second = at(t, 1);
    OK(fac_tensor_view(t, fac_shape(3), (int64_t[]){ 1 }, 0, &half, err));
    fac_graph *g = fac_graph_new();
    fac_value *p = fac_state(g, "p", t), *q = fac_state(g, "q", half), *next = fac_neg(p);
    fac_update(p, next);
    fac_output(g, "y", fac_mul(fac_softmax(q, 0), fac_sum(next, fac_shape(0), true)));
    fac_output(g, "q", q);
    fac_program *run = program(g, NULL);
    assert_int_equal(copied(run, NULL), 24);
    fac_tensor *out[2] = { NULL };
    OK(fac_program_run(run, NULL, out, err));
    assert_true(at(t, 1) == -second && at(out[1], 1) == second);
    fac_tensor_free(out[0]);
    fac_tensor_free(out[1]);
    fac_tensor_free(t);
    fac_tensor_free(half);
    fac_tensor_free(y);
    fac_program_free(run);
    fac_graph_free(g);
}

/* ---- runs that fail ---- */

static bool stop(void *self, const char *node, const fac_tensor *value) {
    (void)value;
    return strcmp(node, self) != 0;
}

static fac_value *number_pair(fac_graph *g) {
    return fac_expand_to(fac_number(g, FAC_F32, 3), fac_ints(g, fac_shape(2)));
}

static void a_failed_run_leaves_old_or_next_contents(void **state) {
    (void)state;
    for (int watched = 0; watched < 2; watched++) {
        fac_tensor *t = tensor(fac_shape(6), 5, 1), *old = tensor(fac_shape(6), 5, 1),
                   *index = NULL, *y = NULL;
        fac_graph *g = fac_graph_new();
        fac_value *p = fac_state(g, "p", t), *i = fac_input(g, "i", FAC_I64, fac_shape(2)),
                  *next = fac_neg(p);
        fac_update(p, next);
        fac_output(g, "y",
                   fac_apply(g, &fac_op_scatter_elements, NULL, 3,
                             (fac_value *[]){ next, i, number_pair(g) }));
        const fac_program_opts o = { .observe = stop,
                                     .observe_self = (void *)(uintptr_t) "nobody" };
        fac_program *run = program(g, watched ? &o : NULL);
        const int64_t outside[2] = { 0, 6 }, inside[2] = { 0, 5 };
        fac_error e = { 0 };
        OK(fac_tensor_new(NULL, FAC_I64, fac_shape(2), &index, err));
        OK(fac_tensor_write(index, outside, sizeof outside, err));
        assert_int_not_equal(fac_program_run(run, &index, &y, &e), FAC_OK);
        assert_null(y);
        float sign = at(t, 0) == at(old, 0) ? 1 : -1;
        if (watched)
            assert_true(sign ==
                        1); /* no step of a program with an observer writes over a parameter */
        for (size_t k = 0; k < 6; k++) assert_true(at(t, k) == sign * at(old, k));
        OK(fac_tensor_write(index, inside, sizeof inside, err));
        OK(fac_program_run(run, &index, &y, err));
        assert_true(at(t, 5) == -sign * at(old, 5) && at(y, 5) == 3 && at(y, 1) == at(t, 1));
        fac_tensor_free(t);
        fac_tensor_free(old);
        fac_tensor_free(index);
        fac_tensor_free(y);
        fac_program_free(run);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reader_sees_the_old_contents),
        cmocka_unit_test(an_optimizer_copies_nothing),
        cmocka_unit_test(what_cannot_be_in_place_is_copied),
        cmocka_unit_test(borrowed_memory_is_never_written),
        cmocka_unit_test(an_input_may_be_the_parameter),
        cmocka_unit_test(leaves_may_share_a_storage),
        cmocka_unit_test(a_failed_run_leaves_old_or_next_contents),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
