/* Delta debugging: what is left is what was looked for and nothing more; every model on the way is
 * whole; searches end when told. */
#include "device_check.h"
#include "facula/report/reduce.h"
#include "facula/report/verify.h"
#include "graph/graph_internal.h"
#include "graph/attr.h"
#include "op_list.h"

/* Two branches of convolutions that meet, and a classifier after them. */
static fac_graph *network(void) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 3, 16, 16));
    fac_value *a =
        fac_relu(fac_nn_conv2d(x, "a1", 8, 3, &(fac_nn_conv2d_opts){ .pad = 1, .stride = 2 }));
    fac_value *b =
        fac_sigmoid(fac_nn_conv2d(x, "b1", 8, 3, &(fac_nn_conv2d_opts){ .pad = 1, .stride = 2 }));
    a = fac_tanh(fac_nn_conv2d(a, "a2", 8, 3, &(fac_nn_conv2d_opts){ .pad = 1 }));
    fac_value *y = fac_max_pool2d(fac_add(a, b), 2, 2, NULL);
    y = fac_relu(fac_nn_linear(fac_flatten(y, 1), "fc1", 20));
    fac_output(g, "y", fac_nn_linear(y, "fc2", 10));
    fac_output(g, "aside", fac_softmax(y, -1));
    OK(fac_graph_check(g, &err));
    return g;
}

typedef struct asked {
    const char *op, *reader;
    int runs, stop;
} asked;

static bool feeds(const fac_graph *g, const char *op, const char *reader) {
    for (const fac_node *n = g->first; n; n = n->next) {
        if (strcmp(n->op->name, op)) continue;
        if (!reader) return true;
        for (const fac_use *u = n->out[0]->uses; u; u = u->next)
            if (!strcmp(u->node->op->name, reader)) return true;
    }
    return false;
}

/* A model that a file can hold: named inputs, all of them read; outputs of different names. */
static void assert_whole(const fac_graph *g) {
    OK(fac_graph_check(g, &err));
    assert_true(g->noutputs > 0 && g->nodes > 0);
    for (size_t i = 0; i < g->ninputs; i++)
        assert_true(g->inputs[i]->name && (g->inputs[i]->uses || g->inputs[i]->roots));
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    OK(fac_graph_write(g, f, &err));
    fclose(f);
    f = fmemopen(text, size, "r");
    fac_graph *again = NULL;
    OK(fac_graph_read(f, &again, &err));
    fclose(f);
    assert_int_equal(again->nodes, g->nodes);
    fac_graph_free(again);
    free(text);
}

static fac_status ask(void *self, const fac_graph *g, const fac_reduce_stat *stat,
                      fac_reduce_answer *answer, fac_error *e) {
    asked *a = self;
    (void)e;
    assert_whole(g);
    assert_int_equal(stat->runs, ++a->runs);
    *answer = a->stop && a->runs > a->stop ? FAC_REDUCE_STOP
              : feeds(g, a->op, a->reader) ? FAC_REDUCE_YES
                                           : FAC_REDUCE_NO;
    return FAC_OK;
}

static void only_what_is_asked_is_left(void **state) {
    (void)state;
    static const struct {
        const char *op, *reader;
        int nodes;
    } cases[] = { { "conv2d", "relu", 2 }, { "add", "max_pool2d", 2 }, { "tanh", "add", 2 },
                  { "softmax", NULL, 1 },  { "linear", "softmax", 0 }, { "max_pool2d", NULL, 1 },
                  { "relu", "linear", 2 } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fac_graph *g = network(), *small = NULL;
        asked a = { cases[k].op, cases[k].reader, 0, 0 };
        fac_reduce_stat stat = { 0 };
        const fac_reduce_opts opts = { .check = ask, .self = &a, .seed = seed };
        const fac_status status = fac_reduce(g, &opts, &small, &stat, &err);
        if (!cases[k].nodes) {
            assert_int_equal(status, FAC_E_ARGUMENT); /* it was not there at first */
        } else {
            assert_int_equal(status, FAC_OK);
            assert_true(feeds(small, a.op, a.reader));
            if (small->nodes != cases[k].nodes)
                fail_msg("%s: %d nodes are left", a.op, small->nodes);
            assert_true(stat.minimal);
            assert_int_equal(stat.nodes, small->nodes);
            assert_int_equal(stat.at_first, 13);
            assert_int_equal(small->noutputs, 1);
            for (size_t i = 0; i < small->ninputs; i++)
                for (int d = 0; d < small->inputs[i]->type.dims.n; d++)
                    assert_true(small->inputs[i]->type.dims.d[d] <= 3);
        }
        fac_graph_free(small);
        fac_graph_free(g);
    }
}

/* The sum of the first parameter's numbers, which zeros spoil and ones do not. */
static fac_status weight_counts(void *self, const fac_graph *g, const fac_reduce_stat *stat,
                                fac_reduce_answer *answer, fac_error *e) {
    (void)self, (void)stat;
    double sum = 0;
    fac_tensor *wide = NULL;
    *answer = FAC_REDUCE_NO;
    if (!feeds(g, "linear", NULL) || !g->nparams) return FAC_OK;
    const fac_value *w = g->params[0];
    const fac_status status = fac_tensor_convert(w->tensor, FAC_F64, &wide, e);
    if (status) return status;
    const double *x = fac_tensor_data(wide);
    for (int64_t i = 0; i < fac_dims_count(&w->type.dims); i++) sum += x[i] * x[i];
    fac_tensor_free(wide);
    *answer = sum > 0 ? FAC_REDUCE_YES : FAC_REDUCE_NO;
    return FAC_OK;
}

static void weights_become_simple(void **state) {
    (void)state;
    fac_graph *g = network(), *small = NULL;
    OK(fac_reduce(g, &(fac_reduce_opts){ .check = weight_counts, .seed = seed }, &small, NULL,
                  &err));
    assert_int_equal(small->nodes, 1);
    assert_int_equal(small->nparams, 1); /* the bias is optional */
    const fac_value *w = small->params[0];
    const float *x = fac_tensor_data(w->tensor);
    assert_int_equal(fac_dims_count(&w->type.dims), 1);
    assert_true(x[0] == 1);
    fac_graph_free(small);
    fac_graph_free(g);
}

static void searches_end_when_told(void **state) {
    (void)state;
    fac_graph *g = network(), *small = NULL;
    fac_reduce_stat stat = { 0 };
    asked a = { "conv2d", "relu", 0, 0 };
    OK(fac_reduce(g, &(fac_reduce_opts){ .check = ask, .self = &a, .max_runs = 7 }, &small, &stat,
                  &err));
    assert_int_equal(a.runs, 7);
    assert_false(stat.minimal);
    assert_true(feeds(small, "conv2d", "relu"));
    fac_graph_free(small);
    a = (asked){ "conv2d", "relu", 0, 4 };
    OK(fac_reduce(g, &(fac_reduce_opts){ .check = ask, .self = &a }, &small, &stat, &err));
    assert_int_equal(a.runs, 5);
    assert_false(stat.minimal);
    assert_true(feeds(small, "conv2d", "relu"));
    fac_graph_free(small);
    fac_graph_free(g);
}

/* ---- a real one: verify says that a rewriting with a mistake differs ---- */

static bool mistake(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                    fac_value *out[]) {
    (void)self, (void)to;
    if (!FAC_IS(n, sigmoid)) return false;
    out[0] = fac_mul(in[0], fac_sigmoid(in[0]));
    return true;
}

static fac_status differs(void *self, const fac_graph *g, const fac_reduce_stat *stat,
                          fac_reduce_answer *answer, fac_error *e) {
    (void)self, (void)stat;
    fac_verdict v;
    fac_graph *bad = fac_graph_rebuild(g, &(fac_rebuild){ .visit = mistake }, NULL);
    const fac_verify_opts opts = { .mode = FAC_VERIFY_DATA, .seed = seed, .rounds = 1 };
    const fac_status status = fac_verify(g, bad, device, &opts, &v, e);
    fac_graph_free(bad);
    *answer = !status && v.same == FAC_DIFFERENT ? FAC_REDUCE_YES : FAC_REDUCE_NO;
    return FAC_OK;
}

static void a_wrong_rewriting_is_found(void **state) {
    (void)state;
    fac_graph *g = network(), *small = NULL;
    fac_reduce_stat stat = { 0 };
    OK(fac_reduce(g, &(fac_reduce_opts){ .check = differs, .seed = seed }, &small, &stat, &err));
    print_message("%d runs, %d kept\n", stat.runs, stat.kept);
    assert_int_equal(small->nodes, 1);
    assert_true(FAC_IS(small->first, sigmoid));
    fac_graph_free(small);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(only_what_is_asked_is_left),
                                        cmocka_unit_test(weights_become_simple),
                                        cmocka_unit_test(searches_end_when_told),
                                        cmocka_unit_test(a_wrong_rewriting_is_found) };
    return cmocka_run_group_tests_name("reduce", tests, open_device, close_device);
}
