/* Recomputing: the same bits from less memory, for networks of several kinds; budgets, scopes, what
 * cannot be dropped. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "allocations.h"
#include "base/rng.h"
#include "base/table.h"
#include "facula/facula.h"
#include "facula/op.h"
#include "op_list.h"
#include "program_check.h"

/* ---- networks ---- */

enum { LAYERS = 24, BLOCKS = 8, HEADS = 4, TOKENS = 32, WIDTH = 32 };

static void push(fac_graph *g, const char *what, int i) {
    char scope[32];
    snprintf(scope, sizeof scope, "%s%d", what, i);
    fac_graph_push(g, scope);
}

/* f32 [N,64]: stacks of 6 layers of 64, each with a sigmoid, whose gradient reads its result. */
static fac_value *deep(fac_value *x) {
    fac_graph *g = fac_value_graph(x);
    for (int i = 0; i < LAYERS; i++) {
        push(g, "stack", i / 6);
        push(g, "layer", i);
        x = fac_sigmoid(fac_nn_linear(x, "fc", 64));
        fac_graph_pop(g);
        fac_graph_pop(g);
    }
    return x;
}

static fac_value *seen_by(fac_graph *g, const char *name, fac_dims dims, double first) {
    fac_tensor *t = NULL;
    float x[256];
    for (size_t i = 0; i < 256; i++) x[i] = (float)first;
    OK(fac_tensor_new(NULL, FAC_F32, dims, &t, err));
    OK(fac_tensor_write(t, x, (size_t)fac_dims_count(&dims) * sizeof *x, err));
    fac_value *v =
        first == 1 && strstr(name, "scale") ? fac_param(g, name, t) : fac_state(g, name, t);
    fac_tensor_free(t);
    return v;
}

/* Batch norm of training with its running statistics, as fac_graph_training makes it. */
static fac_value *batch_norm(fac_value *x, const char *name) {
    fac_graph *g = fac_value_graph(x);
    int64_t channels = fac_value_type(x).dims.d[1];
    const char *const part[] = { "scale", "shift", "mean", "var" };
    fac_value *in[5] = { x };
    for (int i = 0; i < 4; i++) {
        char full[64];
        snprintf(full, sizeof full, "%s.%s", name, part[i]);
        in[i + 1] = seen_by(g, full, fac_shape(channels), i == 0 || i == 3);
    }
    fac_value *y = fac_apply(g, &fac_op_batch_norm, "training_mode momentum=0.9", 5, in);
    fac_update(in[3], fac_value_other(y, 1));
    fac_update(in[4], fac_value_other(y, 2));
    return y;
}

static fac_value *conv(fac_value *x, const char *name, uint64_t stream) {
    fac_graph *g = fac_value_graph(x);
    fac_tensor *t = NULL;
    float w[16 * 16 * 9];
    fac_random_fill(3, stream, -0.1f, 0.1f, 16 * 16 * 9, w);
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(16, 16, 3, 3), &t, err));
    OK(fac_tensor_write(t, w, sizeof w, err));
    fac_value *y =
        fac_conv2d(x, fac_param(g, name, t), NULL, &(fac_conv2d_opts){ .pad = { 1, 1, 1, 1 } });
    fac_tensor_free(t);
    return y;
}

/* f32 [N,16,12,12]: blocks of two convolutions with batch norms around a shortcut. */
static fac_value *residual(fac_value *x) {
    for (int i = 0; i < BLOCKS; i++) {
        char name[3][32];
        for (int k = 0; k < 2; k++) snprintf(name[k], sizeof name[k], "conv%d.%d", i, k);
        push(fac_value_graph(x), "block", i);
        fac_value *h = conv(x, name[0], 2 * (uint64_t)i);
        snprintf(name[2], sizeof name[2], "bn%d.0", i);
        h = conv(fac_relu(batch_norm(h, name[2])), name[1], 2 * (uint64_t)i + 1);
        snprintf(name[2], sizeof name[2], "bn%d.1", i);
        x = fac_relu(fac_add(batch_norm(h, name[2]), x));
        fac_graph_pop(fac_value_graph(x));
    }
    return fac_reshape(x, fac_shape(-1, 16 * 12 * 12));
}

static fac_value *normal(fac_value *x) {
    fac_graph *g = fac_value_graph(x);
    fac_value *ones = fac_expand_to(fac_number(g, FAC_F32, 1), fac_ints(g, fac_shape(WIDTH)));
    return fac_layer_norm(x, ones, fac_mul(ones, fac_number(g, FAC_F32, 0)), -1, 1e-5);
}

static fac_value *heads(fac_value *x) {
    return fac_transpose(fac_reshape(x, fac_shape(-1, TOKENS, HEADS, WIDTH / HEADS)),
                         fac_shape(0, 2, 1, 3));
}

/* f32 [N,32,32]: attention and a wide layer, with dropout. */
static fac_value *transformer(fac_value *x) {
    fac_graph *g = fac_value_graph(x);
    fac_tensor *t = NULL;
    const int64_t first = 11;
    OK(fac_tensor_new(NULL, FAC_I64, (fac_dims){ 0 }, &t, err));
    OK(fac_tensor_write(t, &first, sizeof first, err));
    fac_value *counter = fac_state(g, "noise", t);
    fac_tensor_free(t);
    fac_update(counter, fac_add(counter, fac_number(g, FAC_I64, 1)));
    for (int i = 0; i < 4; i++) {
        push(g, "layer", i);
        fac_value *h = normal(x), *q = heads(fac_nn_linear(h, "q", WIDTH)),
                  *k = heads(fac_nn_linear(h, "k", WIDTH));
        fac_value *v = heads(fac_nn_linear(h, "v", WIDTH));
        fac_value *a = fac_matmul(q, fac_transpose(k, fac_shape(0, 1, 3, 2)));
        a = fac_softmax(fac_mul(a, fac_number(g, FAC_F32, 0.35)), -1);
        a = fac_transpose(fac_matmul(fac_dropout_train(a, 0.1, counter), v), fac_shape(0, 2, 1, 3));
        x = fac_add(x, fac_nn_linear(fac_reshape(a, fac_shape(-1, TOKENS, WIDTH)), "o", WIDTH));
        h = fac_gelu(fac_nn_linear(normal(x), "up", 4 * WIDTH));
        x = fac_add(x, fac_dropout_train(fac_nn_linear(h, "down", WIDTH), 0.2, counter));
        fac_graph_pop(g);
    }
    return fac_reshape(x, fac_shape(-1, TOKENS * WIDTH));
}

typedef struct network {
    const char *name;
    fac_value *(*build)(fac_value *x);
    fac_dims x;
    const char *scopes;
    double to; /* what share of the arena recomputing must get to */
} network;
static const network networks[] = {
    { "deep", deep, { .n = 2, .d = { 512, 64 } }, "stack?", 0.65 },
    { "residual", residual, { .n = 4, .d = { 8, 16, 12, 12 } }, "block*", 0.65 },
    { "transformer", transformer, { .n = 3, .d = { 16, TOKENS, WIDTH } }, "layer*", 0.6 },
};
enum { NETWORKS = sizeof networks / sizeof *networks };

/* A training step: half the mean square of a last layer, Adam. */
static fac_graph *step_of(const network *n) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 5);
    fac_value *x = fac_input(g, "x", FAC_F32, n->x),
              *lr = fac_input(g, "lr", FAC_F64, (fac_dims){ 0 });
    fac_value *y = fac_nn_linear(n->build(x), "head", 10),
              *loss = fac_mean(fac_mul(y, y), (fac_dims){ 0 }, false);
    fac_output(g, "loss", loss);
    fac_adam(loss, lr, NULL);
    OK(fac_graph_check(g, err));
    return g;
}

static void inputs(const network *n, fac_tensor *in[2]) {
    const double lr = 1e-2;
    size_t count = (size_t)fac_dims_count(&n->x);
    float *x = malloc(count * sizeof *x);
    fac_random_fill(1, 2, -1, 1, count, x);
    OK(fac_tensor_new(NULL, FAC_F32, n->x, &in[0], err));
    OK(fac_tensor_write(in[0], x, count * sizeof *x, err));
    OK(fac_tensor_new(NULL, FAC_F64, (fac_dims){ 0 }, &in[1], err));
    OK(fac_tensor_write(in[1], &lr, sizeof lr, err));
    free(x);
}

/* Three steps; a hash of the losses and of every parameter and state. */
static fac_hash trained(const network *n, const fac_recompute_opts *how, fac_plan_stat *stat) {
    fac_graph *g = step_of(n);
    fac_program *p = NULL;
    fac_tensor *in[2], *loss = NULL;
    fac_hash h = fac_hash_start(1);
    inputs(n, in);
    OK(fac_program_new(g, device, &(fac_program_opts){ .recompute = *how }, &p, err));
    OK(fac_program_plan(p, in, stat, err));
    for (int i = 0; i < 3; i++) {
        OK(fac_program_run(p, in, &loss, err));
        h = fac_hash_bytes(h, fac_tensor_data(loss), 4);
    }
    for (int i = 0; i < fac_graph_params(g); i++) {
        const fac_tensor *t = fac_value_tensor(fac_graph_param(g, i));
        fac_type type = fac_tensor_type(t);
        h = fac_hash_bytes(h, fac_tensor_data(t), fac_type_bytes(&type));
    }
    fac_tensor_free(in[0]);
    fac_tensor_free(in[1]);
    fac_tensor_free(loss);
    fac_program_free(p);
    fac_graph_free(g);
    return h;
}

/* ---- the tests ---- */

static void the_same_bits_from_less_memory(void **state) {
    (void)state;
    for (int i = 0; i < NETWORKS; i++) {
        const network *n = &networks[i];
        fac_plan_stat plain, s;
        const fac_hash want = trained(n, &(fac_recompute_opts){ 0 }, &plain);
        assert_true(plain.recompute.nodes == 0 && plain.recompute.before == 0);
        const fac_recompute_opts ways[] = { { .on = true },
                                            { .share = 0.8 },
                                            { .share = 0.5 },
                                            { .scopes = n->scopes },
                                            { .bytes = 1 } };
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            const fac_hash got = trained(n, &ways[k], &s);
            print_message(
                "%s, way %zu: arena %zu -> %zu, forward %zu -> %zu, %d nodes, macs %.3g of %.3g\n",
                n->name, k, plain.arena, s.arena, s.recompute.before, s.recompute.after,
                s.recompute.nodes, s.recompute.macs, s.recompute.forward);
            if (!fac_hash_equal(want, got)) fail_msg("%s, way %zu: other bits", n->name, k);
            assert_true(s.recompute.nodes > 0 && s.recompute.after < s.recompute.before);
            assert_true(s.recompute.macs <= s.recompute.forward);
            if (k == 0) assert_true((double)s.arena < n->to * (double)plain.arena);
            if (ways[k].share > 0)
                assert_true((double)s.recompute.after <=
                            ways[k].share * (double)s.recompute.before);
        }
    }
}

/* More memory, fewer operations: a budget that is met takes the cheapest way, and one that needs
 * nothing does nothing. */
static void a_budget_is_met_as_cheaply_as_can_be(void **state) {
    (void)state;
    fac_graph *g = step_of(&networks[1]);
    fac_recompute_stat least, s;
    fac_graph *to = fac_graph_recompute(g, &(fac_recompute_opts){ .on = true }, &least);
    assert_non_null(to);
    OK(fac_graph_check(to, err));
    fac_graph_free(to);
    double before = -1;
    for (int i = 0; i <= 8; i++) {
        size_t limit = least.after + (least.before - least.after) * (size_t)i / 8;
        to = fac_graph_recompute(g, &(fac_recompute_opts){ .bytes = limit }, &s);
        assert_non_null(to);
        assert_true(s.after <= limit && s.before == least.before);
        assert_true(before < 0 || s.macs <= before);
        before = s.macs;
        if (i == 8) assert_int_equal(s.nodes, 0);
        fac_graph_free(to);
    }
    fac_graph_free(g);
}

static int count_nodes(const fac_graph *g, const char *op) {
    char *text = NULL;
    size_t size = 0;
    int n = 0;
    FILE *f = open_memstream(&text, &size);
    OK(fac_graph_write(g, f, err));
    fclose(f);
    for (const char *at = text; (at = strstr(at, op)); at++) n++;
    free(text);
    return n;
}

/* Of eight blocks in scopes the interiors are made again: the first convolutions, but no second
 * one, whose result nobody after the batch norm reads; and running statistics have one update
 * each. */
static void scopes_say_what_is_dropped(void **state) {
    (void)state;
    fac_graph *g = step_of(&networks[1]);
    fac_recompute_stat s;
    fac_graph *to = fac_graph_recompute(g, &(fac_recompute_opts){ .scopes = "block0,block3" }, &s);
    assert_non_null(to);
    const int convs = count_nodes(g, "= conv2d("), norms = count_nodes(g, "= batch_norm(");
    assert_int_equal(norms, 2 * BLOCKS);
    assert_int_equal(count_nodes(to, "= conv2d("), convs + 4);
    assert_true(count_nodes(to, "= batch_norm(") - norms >= 2 &&
                count_nodes(to, "= batch_norm(") - norms <= 4);
    assert_int_equal(count_nodes(to, "update bn"), count_nodes(g, "update bn"));
    fac_graph_free(to);
    to = fac_graph_recompute(g, &(fac_recompute_opts){ .scopes = "nobody" }, &s);
    assert_true(to && s.nodes == 0 && s.after == s.before);
    fac_graph_free(to);
    fac_graph_free(g);
}

/* A graph without a backward part, one without nodes, and one with an error. */
static void nothing_to_drop(void **state) {
    (void)state;
    fac_recompute_stat s;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 64));
    fac_graph *to = fac_graph_recompute(g, &(fac_recompute_opts){ .on = true }, &s);
    assert_true(to && s.nodes == 0 && s.before == 0);
    fac_graph_free(to);
    fac_nn_seed(g, 1);
    fac_output(g, "y", deep(x));
    to = fac_graph_recompute(g, &(fac_recompute_opts){ .on = true }, &s);
    assert_true(to && s.nodes == 0);
    fac_graph_free(to);
    fac_add(x, fac_input(g, "z", FAC_F32, fac_shape(3)));
    fac_error e = { 0 };
    to = fac_graph_recompute(g, &(fac_recompute_opts){ .on = true }, &s);
    assert_true(to && fac_graph_check(to, &e) == fac_graph_check(g, NULL) && e.status);
    fac_graph_free(to);
    fac_graph_free(g);
}

/* Every allocation in turn fails: NULL or a graph with an error, and then the right one. */
static void lost_allocations(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new(), *to = NULL;
    fac_nn_seed(g, 1);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(32, 64)),
              *lr = fac_input(g, "lr", FAC_F64, (fac_dims){ 0 });
    static const char *const names[4] = { "a", "c", "b", "d" };
    for (int i = 0; i < 4; i++) x = fac_tanh(fac_nn_linear(x, names[i], 64));
    fac_value *loss = fac_mean(x, (fac_dims){ 0 }, false);
    fac_output(g, "loss", loss);
    fac_sgd(loss, lr, NULL);
    OK(fac_graph_check(g, err));
    fac_recompute_stat s;
    int failed = 0;
    for (long n = 0; !to; n += 1 + n / 16) {
        allocations_left = n;
        to = fac_graph_recompute(g, &(fac_recompute_opts){ .share = 0.7 }, &s);
        allocations_left = -1;
        if (to && !fac_graph_check(to, NULL)) break;
        fac_graph_free(to);
        to = NULL;
        failed++;
    }
    assert_true(failed > 20 && s.nodes > 0);
    fac_graph_free(to);
    fac_graph_free(g);
}

/* The same for a program that recomputes, up to the end of its first run. */
static void lost_allocations_of_a_program(void **state) {
    (void)state;
    const network small = { "small", residual, { .n = 4, .d = { 1, 16, 12, 12 } }, "block*", 1 };
    fac_graph *g = step_of(&small);
    fac_tensor *in[2], *loss = NULL;
    int failed = 0;
    inputs(&small, in);
    for (long n = 0; !loss; n += 1 + n / 24) {
        fac_program *p = NULL;
        fac_error e = { 0 };
        allocations_left = n;
        fac_status status = fac_program_new(
            g, device, &(fac_program_opts){ .recompute = { .scopes = "block*" } }, &p, &e);
        if (!status) status = fac_program_run(p, in, &loss, &e);
        allocations_left = -1;
        fac_program_free(p);
        if (!status) break;
        assert_true(e.status && !loss);
        failed++;
    }
    assert_true(failed > 10);
    fac_tensor_free(loss);
    fac_tensor_free(in[0]);
    fac_tensor_free(in[1]);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits_from_less_memory),
        cmocka_unit_test(a_budget_is_met_as_cheaply_as_can_be),
        cmocka_unit_test(scopes_say_what_is_dropped),
        cmocka_unit_test(nothing_to_drop),
        cmocka_unit_test(lost_allocations),
        cmocka_unit_test(lost_allocations_of_a_program),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
