/* Layers of few bits in a chain: each is asked about once, however many kernels refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "facula/facula.h"
#include "op_list.h"
#include "ops/conv_basis.h"
#include "passes/passes.h"

enum { LAYERS = 24 };

static fac_graph *graph_of(char *text) {
    fac_graph *g;
    fac_error err = { 0 };
    FILE *f = fmemopen(text, strlen(text), "r");
    if (fac_graph_read(f, &g, &err)) fail_msg("%s\n%s", err.text, text);
    fclose(f);
    return g;
}

static fac_graph *chain(void) {
    static char text[200 * LAYERS];
    int at = snprintf(text, sizeof text,
                      "input x0 f32[1,32,5,5]\nparam w u8[1,32,36]\nparam v f32[1,32]\n");
    for (int k = 0; k < LAYERS; k++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "x%d = conv2d_basis(x%d, w, -, f32{0.5}, v) pad=1,1,1,1 dims=32,32,3,3\n",
                       k + 1, k);
    snprintf(text + at, sizeof text - (size_t)at, "output y = x%d\n", LAYERS);
    return graph_of(text);
}

typedef struct asked {
    int times, refuse; /* every so many are refused; 0: none */
} asked;

static bool accept(void *self, const fac_node *n) {
    asked *a = self;
    assert_true(FAC_IS(n, conv2d_codes));
    a->times++;
    return !a->refuse || a->times % a->refuse;
}

static int count(const fac_graph *g, const fac_op *op) {
    int n = 0;
    for (const fac_node *at = g->first; at; at = at->next) n += at->op == op;
    return n;
}

static void each_layer_is_asked_once(void **state) {
    (void)state;
    for (int refuse = 0; refuse < 4; refuse++) {
        asked a = { 0, refuse };
        fac_graph *g = chain(), *to = fac_pass_bits_between(g, accept, &a);
        const int refused = refuse ? (LAYERS - 1) / refuse : 0;
        assert_int_equal(fac_graph_check(to, NULL), FAC_OK);
        assert_int_equal(a.times, LAYERS - 1);
        assert_int_equal(count(to, &fac_op_conv2d_codes), LAYERS - 1 - refused);
        assert_int_equal(count(to, &fac_op_conv2d_basis), 1 + refused);
        fac_graph_free(to);
        fac_graph_free(g);
    }
}

/* Two layers whose concat is read by a third; relus: before the concat, after it. */
static fac_graph *side_by_side(int channels, const char *first, const char *second,
                               const char *after) {
    static char text[2000];
    snprintf(text, sizeof text,
             "input x f32[1,8,5,5]\nparam w0 u8[1,%d,9]\nparam v0 f32[1,%d]\n"
             "param w1 u8[1,40,9]\nparam v1 f32[1,40]\n"
             "a = conv2d_basis(x, w0, -, f32{0.5}, v0) pad=1,1,1,1 dims=%d,8,3,3\n"
             "b = conv2d_basis(x, w1, -, f32{0.5}, v1) pad=1,1,1,1 dims=40,8,3,3\n"
             "p = %s(a)\nq = %s(b)\nc = concat(p, q) axis=1\nd = %s(c)\n"
             "param w u8[1,9,%d]\nparam v f32[1,9]\n"
             "y = conv2d_basis(d, w, -, f32{0.5, 1}, v) dims=9,%d,1,1\noutput y = y\n",
             channels, channels, channels, first, second, after, (channels + 47) / 8,
             channels + 40);
    return graph_of(text);
}

static int joins(const fac_graph *g) {
    int n = 0;
    for (const fac_node *at = g->first; at; at = at->next)
        n += FAC_IS(at, concat) && at->out[0]->type.dtype == FAC_U32;
    return n;
}

/* Words are joined where all parts are codes and have whole words; floats stay where one is not. */
static void concats_join_words(void **state) {
    (void)state;
    static const struct {
        int channels, refuse;
        const char *first, *second, *after;
        int joins, floats; /* floats: concats of them that are left */
    } cases[] = { { 64, 0, "relu", "relu", "relu", 1, 0 }, { 32, 0, "relu", "neg", "relu", 0, 1 },
                  { 40, 0, "relu", "relu", "relu", 0, 1 }, { 32, 2, "relu", "relu", "relu", 0, 1 },
                  { 32, 0, "relu", "relu", "neg", 0, 1 },  { 96, 0, "relu", "relu", "abs", 0, 1 } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        asked a = { 0, cases[k].refuse };
        fac_graph *g =
            side_by_side(cases[k].channels, cases[k].first, cases[k].second, cases[k].after);
        fac_graph *to = fac_pass_bits_between(g, accept, &a);
        assert_int_equal(fac_graph_check(to, NULL), FAC_OK);
        assert_int_equal(joins(to), cases[k].joins);
        assert_int_equal(count(to, &fac_op_concat) - joins(to), cases[k].floats);
        if (cases[k].joins) assert_int_equal(count(to, &fac_op_relu), 0);
        fac_graph_free(to);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_layer_is_asked_once),
                                        cmocka_unit_test(concats_join_words) };
    return cmocka_run_group_tests_name("bits between", tests, NULL, NULL);
}
