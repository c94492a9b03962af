/* The proof that tiles are right is worth what it catches: mutants of tiled networks, inside of functions and loops too, are
 * found by fac_verify's exact mode, each.  Slices off by one, tiles exchanged, partial products or biases lost or doubled, an iteration
 * too few, another tile of a stack. */
#include "tile_check.h"
#include "op_list.h"

/* Convolutions, transposed ones with and without groups, and products, with remainders everywhere. */
static fac_graph *network(void) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(1, 3, 6, 6));
    x = fac_relu(fac_nn_conv2d(x, "conv", 10, 3, &(fac_nn_conv_opts){ .pad = 1 }));
    x = fac_relu(fac_nn_conv_transpose2d(x, "up1", 12, 4, &(fac_nn_conv_transpose_opts){ .stride = 2, .pad = 1 }));
    x = fac_relu(fac_nn_conv_transpose2d(x, "up2", 6, 3, &(fac_nn_conv_transpose_opts){ .groups = 2, .pad = 1 }));
    x = fac_flatten(fac_max_pool2d(x, 2, 2, NULL), 1);
    fac_output(g, "y", fac_nn_linear(fac_tanh(fac_nn_linear(x, "fc1", 21)), "fc2", 11));
    OK(fac_graph_check(g, &err));
    lively_params(g);
    return g;
}

/* ---- mutants ---- */

enum { KINDS = 16 };
typedef struct mutation { int target, at; const char *what; } mutation;     /* target -1: done */

static fac_value *copied(fac_graph *to, const fac_node *n, fac_value *const in[]) {
    fac_value *out[1];
    fac_node_copy(to, n, in, out);
    return out[0];
}

static fac_value *with(fac_graph *to, const fac_node *n, fac_value *const in[], int which, fac_value *other) {
    fac_value *own[4] = { NULL };
    memcpy(own, in, (size_t)n->nin * sizeof *in);
    own[which] = other;
    return copied(to, n, own);
}

static fac_value *shifted(const fac_node *n, fac_value *const in[]) {
    fac_contents start, end, axis, step;
    if (!fac_known_numbers(in[1], &start) || !fac_known_numbers(in[2], &end) || !fac_known_numbers(in[3], &axis)) return NULL;
    if (in[4] && (!fac_known_numbers(in[4], &step) || step.v[0] != 1)) return NULL;
    for (int k = 0; k < axis.n; k++) {                  /* the first of its axes that leaves room */
        const int64_t size = n->in[0]->type.dims.d[axis.v[k]],
                      by = end.v[k] < size  ? 1
                           : start.v[k] > 0 ? -1
                                            : 0;
        if (!by) continue;
        start.v[k] += by;
        end.v[k] += by;
        return fac_slice_axes(in[0], axis.n, axis.v, start.v, end.v);
    }
    return NULL;
}

/* One way to spoil this node; NULL: there is none. */
static fac_value *spoiled(mutation *m, fac_graph *to, const fac_node *n, fac_value *const in[]) {
    if (FAC_IS(n, slice)) {
        m->what = "a slice off by one";
        return shifted(n, in);
    }
    if (FAC_IS(n, concat) && n->nin < 64 && fac_dims_equal(&in[0]->type.dims, &in[1]->type.dims)) {
        fac_value *swapped[64];
        memcpy(swapped, in, (size_t)n->nin * sizeof *in);
        swapped[0] = in[1], swapped[1] = in[0];
        m->what = "two tiles exchanged";
        return copied(to, n, swapped);
    }
    if (FAC_IS(n, gather) && in[1]->type.dtype == FAC_I64) {
        m->what = "always the first tile of a stack";
        return with(to, n, in, 1, fac_mul(in[1], fac_number(to, FAC_I64, 0)));
    }
    if (FAC_IS(n, gemm) && in[2]) {
        const bool twice = m->at % 2;
        m->what = twice ? "a partial product or bias added twice" : "a partial product or bias lost";
        return with(to, n, in, 2, twice ? fac_add(in[2], in[2]) : NULL);
    }
    if (FAC_IS(n, loop) && fac_attr_int(n, "carried", 0)) {
        fac_value *own[8], *out[1];
        fac_contents trips;
        if (n->nin > 8 || !fac_known_numbers(in[0], &trips)) return NULL;
        memcpy(own, in, (size_t)n->nin * sizeof *in);
        own[0] = fac_number(to, FAC_I64, (double)(trips.v[0] - 1));
        m->what = "an iteration too few";
        fac_node_copy(to, n, own, out);
        return out[0];
    }
    return NULL;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    mutation *m = self;
    const bool here = m->target >= 0 && m->at++ == m->target;
    if (here) {
        if ((out[0] = spoiled(m, to, n, in))) {
            m->target = -1;
            return true;
        }
        m->target++;                        /* the next one, then */
    }
    if (m->target < 0 || !n->body[0]) return false;
    fac_graph *body = fac_graph_rebuild(n->body[0], &(fac_rebuild){ .self = m, .visit = visit }, NULL);
    if (m->target >= 0) {
        fac_graph_free(body);
        return false;
    }
    OK(fac_graph_check(body, &err));
    out[0] = fac_emit_body(to, n->op, n->attrs, n->nin, n->nports, in, body, NULL);
    return true;
}

static int nodes_of(const fac_graph *g) {
    int count = 0;
    for (const fac_node *n = g->first; n; n = n->next) count += 1 + (n->body[0] ? nodes_of(n->body[0]) : 0);
    return count;
}

static int mutants(fac_tile_opts how, int wanted, int least_kinds) {
    fac_graph *g = network(), *cut = NULL;
    const char *seen[KINDS] = { NULL };
    int caught = 0, proved = 0, kinds = 0;
    OK(fac_graph_tile(g, &how, &cut, NULL, &err));
    const fac_verify_opts exact = { .mode = FAC_VERIFY_EXACT, .seed = seed, .rounds = 1 };
    fac_verdict v;
    OK(fac_verify(g, cut, device, &exact, &v, &err));
    if (v.same != FAC_SAME) fail_msg("no mutant: %s", v.why);
    const int nodes = nodes_of(cut), step = nodes / wanted | 1;      /* odd: both ways to spoil a bias */
    for (int at = 0; at < nodes; at += step) {
        mutation m = { .target = at };
        fac_graph *bad = fac_graph_rebuild(cut, &(fac_rebuild){ .self = &m, .visit = visit }, NULL);
        OK(fac_graph_check(bad, &err));
        if (m.target < 0) {
            OK(fac_verify(g, bad, device, &exact, &v, &err));
            if (v.same == FAC_SAME) fail_msg("node %d, %s: not caught", at, m.what);
            proved += v.same == FAC_DIFFERENT;
            int k = 0;
            while (k < kinds && strcmp(seen[k], m.what)) k++;
            if (k == kinds) seen[kinds++] = m.what;
            caught++;
        }
        fac_graph_free(bad);
    }
    print_message("%d mutants of %d kinds, %d proved to differ\n", caught, kinds, proved);
    assert_true(proved * 10 >= caught * 8);       /* sums that are doubled may leave what integers hold: then there is no proof */
    assert_true(kinds >= least_kinds);
    fac_graph_free(cut);
    fac_graph_free(g);
    return caught;
}

static void of_nodes(void **state) {
    (void)state;
    assert_true(mutants((fac_tile_opts){ .m = 8, .n = 40, .k = 24 }, 60, 4) >= 30);
}

static void of_taps(void **state) {
    (void)state;
    assert_true(mutants((fac_tile_opts){ .m = 8, .n = 40, .k = 24, .conv = FAC_TILE_TAPS }, 20, 2) >= 12);
}

static void of_functions(void **state) {
    (void)state;
    assert_true(mutants((fac_tile_opts){ .m = 8, .n = 40, .k = 24, .mode = FAC_TILE_FUNCTION }, 40, 3) >= 30);
}

static void of_loops(void **state) {
    (void)state;
    assert_true(mutants((fac_tile_opts){ .m = 8, .n = 40, .k = 24, .mode = FAC_TILE_LOOP }, 50, 4) >= 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_nodes), cmocka_unit_test(of_taps), cmocka_unit_test(of_functions), cmocka_unit_test(of_loops) };
    return cmocka_run_group_tests_name("tile_mutants", tests, open_device, close_device);
}
