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

static fac_graph *chain(void) {
    static char text[200 * LAYERS];
    fac_graph *g;
    fac_error err = { 0 };
    int at = snprintf(text, sizeof text,
                      "input x0 f32[1,32,5,5]\nparam w u8[1,32,36]\nparam v f32[1,32]\n");
    for (int k = 0; k < LAYERS; k++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "x%d = conv2d_basis(x%d, w, -, f32{0.5}, v) pad=1,1,1,1 dims=32,32,3,3\n",
                       k + 1, k);
    snprintf(text + at, sizeof text - (size_t)at, "output y = x%d\n", LAYERS);
    FILE *f = fmemopen(text, strlen(text), "r");
    if (fac_graph_read(f, &g, &err)) fail_msg("%s", err.text);
    fclose(f);
    return g;
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

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_layer_is_asked_once) };
    return cmocka_run_group_tests_name("bits between", tests, NULL, NULL);
}
