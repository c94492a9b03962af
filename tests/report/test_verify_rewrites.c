/* What is the same function is never called different, and mostly proved the same: cases of all ops
 * and networks of random layers, written in smaller ops, exported to ONNX and read again,
 * simplified (batch norms folded into weights), reordered, in tiles.  A sample; FACULA_ALL=1: all;
 * FACULA_SHARD=i/n: what falls to one of n processes. */
#include <unistd.h>
#include "random_check.h"
#include "facula/edit.h"
#include "facula/nn.h"
#include "facula/onnx.h"
#include "facula/ops.h"
#include "facula/tile.h"
#include "facula/report/verify.h"
#include "passes/passes.h"
#include "report/verify/verify.h"
#include "shard.h"

enum { OF_DEFINE, OF_EXPAND, OF_ONNX, OF_SIMPLIFY, OF_REORDER, OF_TILES, OF_BOTH, REWRITES };
static const char *const rewrite_names[] = { "smaller ops",         "expanded",  "exported",
                                             "simplified",          "reordered", "tiled",
                                             "simplified and tiled" };

typedef struct tally {
    shard part;
    int tried, same, different, other, errors, of[REWRITES], same_of[REWRITES];
} tally;

static char file[] = "/tmp/facula.rewrites.XXXXXX";

/* ---- rewritings ---- */

static fac_graph *again(const fac_graph *g) {
    fac_graph *to = NULL;
    if (fac_onnx_save(g, file, NULL, NULL) || fac_onnx_load(file, NULL, &to, NULL)) return NULL;
    return to;
}

static fac_graph *tiled(const fac_graph *g, int mode) {
    static const int64_t limits[] = { 4, 8, 16 };
    const int64_t limit = limits[mode % 3];
    fac_graph *to = NULL;
    const fac_tile_opts o = {
        .m = limit, .n = limit + 3, .k = limit + 1, .sum = (fac_tile_sum)(mode % 3), .pad = mode % 2
    };
    return fac_graph_tile(g, &o, &to, NULL, NULL) ? NULL : to;
}

/* NULL: it cannot be done. */
static fac_graph *rewritten(const fac_graph *g, int how, int mode) {
    fac_graph *quiet = fac_graph_inference(g), *to = NULL;
    if (how == OF_DEFINE) to = fac_define(fac_graph_clone(quiet));
    if (how == OF_EXPAND) to = fac_pass_expand(quiet, NULL, NULL);
    if (how == OF_ONNX) to = again(quiet);
    if ((how == OF_SIMPLIFY || how == OF_BOTH) && fac_graph_simplified(quiet, &to, NULL)) to = NULL;
    if (how == OF_REORDER && fac_graph_reordered(quiet, 1, &to, NULL)) to = NULL;
    if (how == OF_TILES) to = tiled(quiet, mode);
    if (how == OF_BOTH && to) {
        fac_graph *simple = to;
        to = tiled(simple, mode);
        fac_graph_free(simple);
    }
    fac_graph_free(quiet);
    if (to &&
        (fac_graph_check(to, NULL) || to->ninputs != g->ninputs || to->noutputs != g->noutputs)) {
        fac_graph_free(to);
        return NULL;
    }
    return to;
}

/* A release build shows it, too: cmocka's messages go to standard error. */
static void show_graph(const char *title, const fac_graph *g) {
    print_message("%s:\n", title);
    if (fac_graph_write(g, stderr, &err)) print_message("(%s)\n", err.text);
}

static void show_wrong(const char *name, int how, const fac_graph *g, const fac_graph *other,
                       const fac_verdict *v) {
    print_message("WRONG    %s, %s: %s\n", name, rewrite_names[how], v->why);
    show_graph("before", g);
    show_graph("after", other);
}

static void try_one(tally *t, const char *name, const fac_graph *g, int how, int mode) {
    if (!shard_is_mine(&t->part)) return;
    fac_graph *other = rewritten(g, how, mode);
    fac_verdict v = { 0 };
    if (!other) return;
    if (fac_verify(g, other, device, &(fac_verify_opts){ .seed = seed }, &v, &err)) {
        t->errors++;
        print_message("error    %s, %s: %s\n", name, rewrite_names[how], err.text);
    } else {
        t->tried++;
        t->of[how]++;
        t->same += v.same == FAC_SAME;
        t->same_of[how] += v.same == FAC_SAME;
        t->different += v.same == FAC_DIFFERENT;
        t->other += v.same != FAC_SAME && v.same != FAC_DIFFERENT;
        if (v.same == FAC_DIFFERENT)
            show_wrong(name, how, g, other, &v);
        else if (v.same != FAC_SAME && getenv("FACULA_ALL"))
            print_message("unproved %s, %s: %s: %.160s\n", name, rewrite_names[how],
                          fac_sameness_word(v.same), v.why);
    }
    fac_graph_free(other);
}

/* ---- networks of random layers ---- */

static uint64_t turn;
static int pick(int n) { return (int)(fac_random_bits(seed, 4711, turn++) % (uint64_t)n); }

static fac_value *activation(fac_value *x) {
    switch (pick(12)) {
    case 0:
        return fac_relu6(x);
    case 1:
        return fac_gelu(x);
    case 2:
        return fac_silu(x);
    case 3:
        return fac_hard_swish(x);
    case 4:
        return fac_leaky_relu(x, 0.1);
    case 5:
        return fac_sigmoid(x);
    case 6:
        return fac_tanh(x);
    case 7:
        return fac_elu(x, 1);
    case 8:
        return fac_mish(x);
    case 9:
        return fac_gelu_tanh(x);
    case 10:
        return fac_softplus(x);
    default:
        return fac_relu(x);
    }
}

static fac_value *image_layer(fac_value *x, int k) {
    char name[16];
    snprintf(name, sizeof name, "l%d", k);
    const int channels = 4 + 2 * pick(3);
    switch (pick(8)) {
    case 0:
        return fac_nn_group_norm(fac_nn_conv2d(x, name, 8, 3, &(fac_nn_conv2d_opts){ .pad = 1 }),
                                 "gn", 2, NULL);
    case 1:
        return fac_max_pool2d(x, 2, 2, NULL);
    case 2:
        return fac_avg_pool2d(x, 2, 2,
                              &(fac_pool2d_opts){ .pad = { 1, 1, 0, 0 }, .stride = { 1, 1 } });
    case 3:
        return fac_lrn(x, 3, 0.5, 0.75, 2);
    case 4:
        return fac_add(x, activation(x));
    case 5:
        return fac_softmax(x, 1);
    default: {
        char norm[16];
        snprintf(norm, sizeof norm, "n%d", k);
        fac_value *y = fac_nn_conv2d(x, name, channels, 3, &(fac_nn_conv2d_opts){ .pad = 1 });
        return activation(pick(2) ? fac_nn_batch_norm(y, norm, 1e-5) : y);
    }
    }
}

static fac_value *line_layer(fac_value *x, int k) {
    char name[16], norm[16];
    snprintf(name, sizeof name, "l%d", k);
    snprintf(norm, sizeof norm, "n%d", k);
    switch (pick(6)) {
    case 0:
        return fac_nn_layer_norm(x, norm, NULL);
    case 1:
        return fac_nn_rms_norm(x, norm, NULL);
    case 2: {
        fac_value *heads = fac_unsqueeze(x, fac_shape(1));
        return fac_squeeze(fac_attention(heads, heads, heads, NULL, NULL, NULL, NULL, NULL),
                           fac_shape(1));
    }
    case 3:
        return fac_add(x, activation(x));
    default:
        return activation(fac_nn_linear(x, name, 8 + 2 * pick(3)));
    }
}

static void random_weights(fac_graph *g) {
    for (int i = 0; i < (int)g->nparams; i++) {
        const bool positive = strstr(g->params[i]->name, "var") != NULL;
        const fac_type type = g->params[i]->type;
        fac_tensor *r = positive ? random_tensor(type, 0.2, 1.2) : random_tensor(type, -0.6, 0.7);
        OK(fac_tensor_write(g->params[i]->tensor, fac_tensor_data(r),
                            fac_type_bytes(&g->params[i]->type), &err));
        fac_tensor_free(r);
    }
}

static fac_graph *network(int k) {
    fac_graph *g = fac_graph_new();
    const bool image = k % 2;
    fac_value *x = image ? fac_input(g, "x", FAC_F32, fac_shape(1, 4, 10, 10))
                         : fac_input(g, "x", FAC_F32, fac_shape(2, 5, 8));
    const int layers = 2 + pick(4);
    for (int i = 0; i < layers; i++) {
        x = image ? image_layer(x, i) : line_layer(x, i);
        if (image && fac_value_type(x).dims.d[3] < 4) break;
    }
    fac_output(g, "y", fac_nn_linear(image ? fac_flatten(x, 1) : x, "head", 5));
    if (!fac_graph_check(g, NULL)) random_weights(g);
    return g;
}

static void networks(tally *t) {
    const int count = getenv("FACULA_ALL") ? 120 : 12;
    for (int k = 0; k < count; k++) {
        char name[32];
        fac_graph *g = network(k);
        snprintf(name, sizeof name, "network %d", k);
        if (!fac_graph_check(g, NULL))
            for (int how = 0; how < REWRITES; how++) try_one(t, name, g, how, k);
        fac_graph_free(g);
    }
}

/* ---- cases of ops ---- */

static bool is_asked(const fac_op *op, const fac_case *c) {
    return !(op->is & FAC_OP_BODIES) && !strstr(op->name, "_grad") && c->hi > c->lo &&
           !strstr(c->problem, "text") && !strstr(c->problem, "training");
}

static void cases(tally *t) {
    for (const fac_op *const *p = fac_ops; *p; p++)
        for (const fac_case *c = (*p)->cases; c && c->problem; c++) {
            fac_graph *g = NULL;
            if (!is_asked(*p, c) || (!getenv("FACULA_ALL") && pick(8))) continue;
            if (fac_problem_graph(c->problem, pick(2), &g, &err))
                fail_msg("%s: %s", c->problem, err.text);
            for (int i = 0; i < (int)g->nparams; i++) {
                fac_tensor *r = random_tensor(g->params[i]->type, c->lo, c->hi);
                OK(fac_tensor_write(g->params[i]->tensor, fac_tensor_data(r),
                                    fac_type_bytes(&g->params[i]->type), &err));
                fac_tensor_free(r);
            }
            const bool wanted = g->noutputs && fac_macs(g) <= 2e6 &&
                                fac_dims_count(&g->outputs[0].value->type.dims) > 0;
            for (int how = 0; wanted && how <= OF_SIMPLIFY; how++)
                try_one(t, c->problem, g, how, 0);
            fac_graph_free(g);
        }
}

static void rewrites_are_the_same(void **state) {
    (void)state;
    tally t = { .part = shard_asked_for() };
    networks(&t);
    cases(&t);
    for (int k = 0; k < REWRITES; k++)
        print_message("%s: %d of %d proved\n", rewrite_names[k], t.same_of[k], t.of[k]);
    print_message("%d true rewrites: %d same, %d unproved, %d called different\n", t.tried, t.same,
                  t.other, t.different);
    assert_int_equal(t.different, 0);
    assert_int_equal(t.errors, 0);
    assert_true(t.tried > 100);
    assert_true(t.same * 10 >= t.tried * 9);
}

static int open_all(void **state) {
    (void)state;
    const int fd = mkstemp(file);
    seed = fresh_seed();
    if (fd >= 0) close(fd);
    return fd < 0 || fac_device_open("cpu", NULL, &device, &err);
}

static int close_all(void **state) {
    unlink(file);
    return close_device(state);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(rewrites_are_the_same) };
    return cmocka_run_group_tests_name("verify_rewrites", tests, open_all, close_all);
}
