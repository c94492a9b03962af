/* Ifs whose branches differ in the number of dims: what follows is what it would be after the
 * branch that is taken, whether sizes decide or data does, after passes and by way of a file. */
#include "flow_check.h"
#include "facula/edit.h"
#include "through_onnx.h"

#define HEAD "input c bool[]\ninput x f32[1,4]\n"
#define BY_DATA "b = if(c, x) {t0 = squeeze(x1, i64{0}); t0} {x1}\n"
#define OPEN                                                                                       \
    "input c bool[]\ninput x f32[N,4]\ns = shape(x)\nn = gather(s, i64(0))\nd = equal(n, "         \
    "i64(1))\n"
#define BY_SIZE "b = if(d, x) {t0 = squeeze(x1, i64{0}); t0} {x1}\n"

static const char *const tails[] = {
    "y = identity(b)\n",
    "y = relu(b)\n",
    "y = sum(b, -)\n",
    "t = shape(b)\ny = cast(t) to=f32\n",
    "r = reshape(b, i64{-1})\ny = add(r, r)\n",
    "y = softmax(b) axis=-1\n",
    "y = concat(b, b) axis=-1\n",
    "g = greater(b, f32(0))\ny = where(g, b, f32(0))\n",
    "p, q = split(b) axis=-1 parts=2\ny = sub(p, q)\n",
    "e = exp(b)\ny = if(c, e) {t0 = neg(x1); t0} {t0 = unsqueeze(x1, i64{0}); t0}\n",
    "r = reshape(b, i64{1,-1,4})\nl = lstm(r, f32[1,4,4]{.1,.2,-.3,.4,.5,-.6,.7,.8,-.9,1,.1,-.2,"
    ".3,.4,-.5,.6}, f32[1,4,1]{.5,-.4,.3,.2})\ny = identity(l)\n",
    "u = unsqueeze(b, i64{0})\nv = flatten(u) axis=1\ny = matmul(v, f32[4,1]{1,2,3,4})\n"
};
enum { TAILS = 11 };

static char *joined(const char *head, const char *middle, const char *tail) {
    static char text[2048];
    snprintf(text, sizeof text, "%s%s%soutput y = y\n", head, middle, tail);
    return text;
}

static fac_graph *graph(const char *head, const char *middle, const char *tail) {
    return read_text(joined(head, middle, tail));
}

/* The graph and what edits make of it, against the graph of one branch alone. */
static void all_same(fac_graph *g, const fac_graph *want, const numbers *x, bool files) {
    fac_graph *simple = NULL, *wide = NULL, *clone = fac_graph_clone(g);
    same_graphs(device, want, g, x, 1e-6);
    same_graphs(device, want, clone, x, 1e-6);
    OK(fac_graph_simplified(g, &simple, err));
    same_graphs(device, want, simple, x, 1e-6);
    OK(fac_graph_floats_but(g, &(fac_float_opts){ .to = FAC_F64, .keep_ports = true }, NULL, &wide,
                            err));
    same_graphs(device, want, wide, x, 1e-6);
    if (files) {
        fac_error why = { 0 };
        fac_graph *again = through_onnx(g, &why);
        if (!again) fail_msg("%s", why.text);
        same_graphs(device, want, again, x, 1e-6);
        fac_graph_free(again);
    }
    fac_graph_free(clone);
    fac_graph_free(simple);
    fac_graph_free(wide);
}

static void data_decides(void **state) {
    (void)state;
    for (int k = 0; k < TAILS; k++)
        for (int taken = 0; taken < 2; taken++) {
            const numbers x = { .seed = 7, .flag = taken };
            fac_graph *g = graph(HEAD, BY_DATA, tails[k]);
            fac_graph *want =
                graph(HEAD, taken ? "b = squeeze(x, i64{0})\n" : "b = identity(x)\n", tails[k]);
            assert_int_equal(fac_graph_find(g, "b")->guess, FAC_RANKLESS);
            assert_int_equal(fac_graph_find(g, "y")->guess, FAC_RANKLESS);
            all_same(g, want, &x, true);
            fac_graph_free(g);
            fac_graph_free(want);
        }
}

/* At run time nothing is left to decide, and the plan has no If. */
static void sizes_decide(void **state) {
    (void)state;
    for (int k = 0; k < TAILS; k++)
        for (int size = 1; size < 4; size += 2) {
            char given[16];
            fac_graph *g = graph(OPEN, BY_SIZE, tails[k]), *sized = NULL, *want = NULL, *alone;
            alone =
                graph(OPEN, size == 1 ? "b = squeeze(x, i64{0})\n" : "b = identity(x)\n", tails[k]);
            snprintf(given, sizeof given, "%d,4", size);
            OK(fac_graph_shaped(g, "x", given, &sized, err));
            OK(fac_graph_shaped(alone, "x", given, &want, err));
            assert_int_equal(fac_graph_find(sized, "b")->guess, FAC_CERTAIN);
            all_same(sized, want, &(numbers){ .seed = 3, .flag = size == 1 }, true);
            fac_graph_free(g);
            fac_graph_free(sized);
            fac_graph_free(alone);
            fac_graph_free(want);
        }
}

/* What cannot be is said: an input without a rank, two element types, a node that no rank fits. */
static void refusals(void **state) {
    (void)state;
    fac_graph *g = graph(HEAD, BY_DATA, tails[1]), *part = NULL;
    fac_error e = { 0 };
    const fac_status s =
        fac_graph_extract(g, 1, (const char *[]){ "b" }, 1, (const char *[]){ "y" }, &part, &e);
    assert_int_equal(s, FAC_E_UNSUPPORTED);
    assert_non_null(strstr(e.text, "how many dims it has shows in a run"));
    fac_graph_free(g);
    refuses(joined(HEAD, "b = if(c, x) {t0 = cast(x1) to=f64; t0} {x1}\n", tails[0]),
            FAC_E_UNSUPPORTED, "output 0 is f64 or f32");
    refuses(joined(HEAD, BY_DATA, "y = not(b)\n"), FAC_E_DTYPE, "it takes bools");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(data_decides),
                                        cmocka_unit_test(sizes_decide),
                                        cmocka_unit_test(refusals) };
    return cmocka_run_group_tests_name("flow ranks", tests, open_device, close_device);
}
